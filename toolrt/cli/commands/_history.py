"""``toolrt history``, ``undo`` and ``restore``: what changed in a directory, and the way back.

Rules.  These commands refuse to change a file that was changed in between, and name it.  What they do is a version
too, so an undo can be undone.
"""

from __future__ import annotations

import datetime
import difflib
import functools
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, TypeVar

import trio
from cyclopts import Parameter

from toolrt.cli._exit import Exit
from toolrt.cli.experiment._options import Whole
from toolrt.cli.experiment._roots import KeepHardLinks, Mounts, as_options, roots_of
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._screen import Screen, complain, forgiving, print_json
from toolrt.errors import InputRefused
from toolrt.workspace import FileProblem, History, Undone, Version, Workspace, shown_path

T = TypeVar("T")

#: Of what a batch changed so many paths are named.
_NAMED = 8

#: So many batches are listed.
_LISTED = 50


def history(
    path: Annotated[str, Parameter(help="The file, relative to the directory.")],
    /,
    *,
    workspace: Annotated[str, Parameter(help="The directory; it is only read.")],
    mount: Mounts = (),
    json: Annotated[bool, Parameter(help="Print the versions as JSON.", negative=())] = False,
) -> int:
    """List the versions of a file that toolrt run made: when, in which batch and call, and what was done.

    Version 0 is what was there before the first. toolrt restore puts one back, toolrt undo a whole batch.
    """
    files = roots_of(workspace, mount).workspace()
    versions = _done(files.history.versions, _given(path))
    if versions is None:
        return Exit.USAGE
    if json:
        print_json([_as_json(version) for version in versions])
        return Exit.OK
    screen = Screen(forgiving(sys.stdout))
    if not versions:
        screen.say(f"no version of {on_one_line(path, 200)} is known")
    for version in versions:
        screen.say(
            f"{version.number:>4}  {_when(version)}  {on_one_line(version.action, 300)} "
            f"by call {version.call_index} of {on_one_line(version.batch_id, 100)}"
        )
    return Exit.OK


def undo(
    batch_id: Annotated[str | None, Parameter(help="The batch, as toolrt run and toolrt history print it.")] = None,
    /,
    *,
    workspace: Annotated[str, Parameter(help="The directory it changed.")],
    listed: Annotated[
        bool, Parameter(name="--list", help="List the batches that changed files; change nothing.", negative=())
    ] = False,
    show: Annotated[
        bool, Parameter(help="Print what would be taken back, as a diff; change nothing.", negative=())
    ] = False,
    call: Annotated[Whole | None, Parameter(help="Only what this call of the batch changed, from 0.")] = None,
    file: Annotated[str | None, Parameter(help="Only what the batch did to this file.")] = None,
    mount: Mounts = (),
    keep_hard_links: KeepHardLinks = False,
) -> int:
    """Put back exactly what a batch changed, one call of it or one file, all of it or nothing.

    The command refuses where another writer, or another call, has changed one of those files since; then nothing is
    changed.
    """
    if (batch_id is None) is not listed:
        got = "no batch" if batch_id is None else "both"
        what = "toolrt undo --show" if show else "toolrt undo"
        raise InputRefused(
            what,
            f"expected a batch or --list, got {got}",
            "toolrt undo --list --workspace DIR names the batches; give one of them.",
        )
    files = roots_of(workspace, mount).workspace(keep_hard_links=keep_hard_links)
    screen = Screen(forgiving(sys.stdout))
    if batch_id is None:
        trio.run(_list_batches, files.history, screen)
        return Exit.OK
    path = None if file is None else _given(file)
    if show:
        changes = _done(functools.partial(files.history.changes, call_index=call, path=path), batch_id)
        if changes is None:
            return Exit.FAILED
        trio.run(_show_changes, files.history, screen, changes)
        return Exit.OK
    return _report(_done(functools.partial(files.history.undo, call_index=call, path=path), batch_id), files)


async def _list_batches(known: History, screen: Screen) -> None:
    """Print a line for each batch, the newest first."""
    batches = await known.batches()
    for batch_id in batches[:_LISTED]:
        try:
            changes = await known.changes(batch_id)
        except FileProblem as problem:  # its id is that of two batches, or a part of it went
            screen.say(on_one_line(str(problem), 500))
            continue
        paths = tuple(dict.fromkeys(change.path for change in changes))
        screen.say(f"{_when(changes[-1])}  {on_one_line(batch_id, 100)}  {_named(paths)}")
    if len(batches) > _LISTED:
        screen.say(f"and {len(batches) - _LISTED:,} older")
    if not batches:
        screen.say("no batch that changed files is known")


async def _show_changes(known: History, screen: Screen, changes: Sequence[Version]) -> None:
    """Print the changes one after the other, as `diff -u` does."""
    for change in changes:
        screen.say(f"call {change.call_index}: {on_one_line(change.path, 200)} {on_one_line(change.action, 300)}")
        before, after = await _lines(known, change.before), await _lines(known, change.after)
        for line in difflib.unified_diff(before, after, f"a/{change.path}", f"b/{change.path}", lineterm=""):
            for shown in line.split("\n"):
                screen.say(on_one_line(shown, 500))


async def _lines(known: History, digest: str | None) -> list[str]:
    """The lines of a content; none where there is none, one that says so where it cannot be shown."""
    content = None if digest is None else await known.content(digest)
    if content is None:
        return [] if digest is None else ["(not in history: it is too large, or was dropped for later versions)"]
    try:
        *lines, last = content.decode().split("\n")
    except UnicodeDecodeError:
        return [f"(no UTF-8: {len(content):,} bytes, SHA-256 {digest})"]
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


def restore(
    path: Annotated[str, Parameter(help="The file, relative to the directory.")],
    version: Annotated[Whole, Parameter(help="Which version; 0 is what was there before the first.")],
    /,
    *,
    workspace: Annotated[str, Parameter(help="The directory it is in.")],
    mount: Mounts = (),
    keep_hard_links: KeepHardLinks = False,
) -> int:
    """Put back one version of a file. That makes a new version, so nothing is lost."""
    files = roots_of(workspace, mount).workspace(keep_hard_links=keep_hard_links)
    return _report(_done(files.history.restore, _given(path), version), files)


async def print_way_back(files: Workspace, batch_id: str, screen: Screen) -> None:
    """Say what a batch changed, and the command that undoes it.

    Checkpoint: as `History.changed_by`.
    """
    changed = await files.history.changed_by(batch_id)
    if changed and files.history.persistent:
        screen.say(f"changed {_named(changed)}; toolrt undo {batch_id} {as_options(files.disk)} puts it back", "dim")
    elif changed and files.history.problem is not None:
        screen.say(f"changed {_named(changed)}; not kept for undo: {on_one_line(files.history.problem, 500)}", "yellow")


def _given(path: str) -> str:
    """A name as it stands on the command line; one that is no UTF-8 in the way that names are shown."""
    return path if path.isprintable() else shown_path(path)


def _done(what: Callable[..., Awaitable[T]], *arguments: object) -> T | None:
    """What came of it; None where it was refused, which has been said then."""

    async def program() -> T:
        return await what(*arguments)

    try:
        return trio.run(program)
    except FileProblem as problem:
        complain(str(problem))
        return None


def _report(undone: Undone | None, files: Workspace) -> int:
    if undone is None:
        return Exit.FAILED
    screen = Screen(forgiving(sys.stdout))
    screen.say(f"put back {_named(undone.paths)}" if undone.paths else "everything was as it should be")
    if undone.already:
        screen.say(f"{_named(undone.already)}: put back already by an earlier undo")
    if undone.parted:
        what = "is a file of its own now" if len(undone.parted) == 1 else "are files of their own now"
        screen.say(f"{_named(undone.parted)} had names elsewhere (hard links), which keep what they had, and {what}")
    if undone.made_anew:
        what = "is a new file: its" if len(undone.made_anew) == 1 else "are new files: their"
        screen.say(f"{_named(undone.made_anew)} {what} owner, times and extended attributes are not what they were")
    trio.run(print_way_back, files, undone.batch_id, screen)
    return Exit.OK


def _named(paths: tuple[str, ...]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(on_one_line(path, 200) for path in paths[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _when(version: Version) -> str:
    moment = datetime.datetime.fromtimestamp(version.time_ns / 1e9, datetime.UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _as_json(version: Version) -> dict[str, object]:
    return {
        "number": version.number,
        "path": version.path,
        "batch_id": version.batch_id,
        "call_index": version.call_index,
        "call_id": version.call_id,
        "action": version.action,
        "before": version.before,
        "after": version.after,
        "time_ns": version.time_ns,
    }
