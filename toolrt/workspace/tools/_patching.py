"""The tool that changes several files by one patch.

Rules.  All files that a patch names are claimed, and all its parts are made, or none.  A part that deletes, renames or
copies is about the file itself: a name that is a symbolic link is refused there.  A file that is renamed or copied
keeps its mode.  A patch of git's may say that a file may be executed, or may not any more: where it may be read it may
then be executed, and one that is created has 0755.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import attrs

from toolrt._plain import counted
from toolrt.model import READ, WRITE, Claim, Mode, State
from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._files import require_different
from toolrt.workspace.change._held import FileAccess, held, missing
from toolrt.workspace.change._mutation import in_thread
from toolrt.workspace.change._revision import CallContext, Change, PlannedChange
from toolrt.workspace.disk._disk import Entry
from toolrt.workspace.names._identity import Identity, Wanted, identify
from toolrt.workspace.names._naming import shown_path
from toolrt.workspace.text._encoding import decoded, encoded, encoding_of
from toolrt.workspace.tools._editing import noted_others
from toolrt.workspace.tools._hunks import FilePatch, patched
from toolrt.workspace.tools._patch import names_in, parsed_patch

#: How many files one patch may name.
_FILES_MOST = 1000

#: From how many characters on a patch is read in a worker thread, and its claims are made of its header lines alone:
#: reading that many takes some milliseconds.
_LONG = 32 * 1024

#: The permission bits that git means by mode 100755.
_EXECUTABLE = 0o755


def claims_of_patch(workspace: FileAccess, input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
    """What a patch claims: WRITE on each file that it changes, creates or deletes, READ on what it copies.

    Where it takes a file away the claim is on the entry's subtree: something else may stand there afterwards.  A long
    patch claims WRITE on the subtree of each entry that a header line may name.
    """
    claims: dict[Claim, None] = {}
    for path, mode, goes in _touched(input["patch"]):
        own, *others = identify(workspace.disk, path, state.working_dir).claims(mode)
        claims[attrs.evolve(own, subtree=True) if goes and own.mode is WRITE else own] = None
        claims.update(dict.fromkeys(others))
    return tuple(claims) or identify(workspace.disk, "", state.working_dir).claims(READ)


def names_in_patch(workspace: FileAccess, input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
    """What decides which files the names in a patch mean."""
    meant = [identify(workspace.disk, path, state.working_dir) for path, _, _ in _touched(input["patch"])]
    return tuple(dict.fromkeys(claim for identity in meant for claim in identity.looks_at()))


def _touched(patch: str) -> list[tuple[str, Mode, bool]]:
    """The names that a patch may touch, how it touches each, and whether it may take away what stands there."""
    if len(patch) > _LONG:
        names = names_in(patch)
        if len(names) <= 2 * _FILES_MOST:
            return [(path, WRITE, True) for path in map(_given, names) if path is not None]
    try:
        parts = _parts(patch)
    except FileProblem:
        return []  # which the call itself will say
    return [
        (path, mode, path == part.source and part.target != part.source and not part.copies)
        for part in parts
        for path, mode in _ends(part)
    ]


def _parts(patch: str) -> tuple[FilePatch, ...]:
    parts = parsed_patch(patch)
    if len(parts) > _FILES_MOST:
        raise FileProblem("patch", f"at most {_FILES_MOST} files", f"{len(parts)}", "Send it in several calls.")
    return tuple(attrs.evolve(part, source=_given(part.source), target=_given(part.target)) for part in parts)


def _given(name: str | None) -> str | None:
    """A name of the patch as tools are given one: what the patch quoted is quoted in that way."""
    if name is None or name.startswith("/"):
        return name
    return shown_path(name)


def _ends(part: FilePatch) -> list[tuple[str, Mode]]:
    """The names of a part, and how it touches each."""
    ends: list[tuple[str, Mode]] = []
    if part.source is not None:
        ends.append((part.source, READ if part.copies else WRITE))
    if part.target is not None and part.target != part.source:
        ends.append((part.target, WRITE))
    return ends


@attrs.frozen
class _Part:
    """One part of the patch, with what its names mean."""

    patch: FilePatch
    source: Identity | None
    target: Identity | None

    @property
    def written(self) -> list[Identity]:
        """The files that it changes, each once."""
        ends = [None if self.patch.copies else self.source, self.target]
        return list({end.key: end for end in ends if end is not None}.values())

    def shown(self) -> str:
        """What it does, for the answer."""
        names = [end.path for end in (self.source, self.target) if end is not None]
        return f"{self.patch.verb} {' to '.join(dict.fromkeys(names))}"


async def apply_patch(workspace: FileAccess, ctx: CallContext, patch: str) -> str:
    """Change, create, delete, rename or copy several text files by one patch: all of it, or nothing.

    patch is a unified diff, with --- and +++ lines for each file, or has the *** Begin Patch form, or SEARCH/REPLACE
    blocks, each below its file's name. In a diff /dev/null stands for a file that is created or deleted, "rename
    from" and "rename to" lines rename one. Names are relative to the working directory; a/ and b/ before them are left
    away. A hunk's old lines must be in the file: at the line that an @@ line with right numbers says, or else at
    exactly one place; @@ def f(): narrows it to what is below that line. If another program changed a file since it was
    last seen, they must be at exactly one place, and at the line that the @@ line says, if any. Line ends of the files
    are kept.
    """
    read = await in_thread(lambda: _parts(patch), blocks=len(patch) > _LONG)
    parts = [_looked_up(workspace, ctx, part) for part in read]
    written = [end for part in parts for end in part.written]
    require_different(written, "one in two parts", "Nothing was changed. Join the parts.")
    revisions: list[PlannedChange] = []
    modes: dict[Entry, int] = {}
    for part in parts:
        revisions += await _revisions(workspace, ctx, part, modes)
    if len(revisions) == 1 and not modes:
        # No other program comes between the look and the write, as it may where several files are written together.
        made = [await workspace.files.revise(ctx, *revisions[0])]
    else:
        made = await workspace.files.revise_all(ctx, revisions, modes)
    shown = "; ".join(part.shown() for part in parts)
    noted = noted_others([(identity, revised) for (identity, *_), revised in zip(revisions, made, strict=True)])
    return f"patched {len(parts)} file{'s' if len(parts) > 1 else ''}: {shown}{noted}"


def _looked_up(workspace: FileAccess, ctx: CallContext, part: FilePatch) -> _Part:
    found: dict[str, Identity] = {}
    for path, mode in _ends(part):
        found[path] = held(workspace, ctx, path, mode)
        itself = identify(workspace.disk, path, ctx.state.working_dir, Wanted.ENTRY)
        if part.verb != "changed" and itself.key != found[path].key:
            raise FileProblem(
                found[path].path,
                f"a file to be {part.verb}",
                "a symbolic link to it",
                "Nothing was changed. Name the file itself.",
            )
    source = None if part.source is None else found[part.source]
    target = None if part.target is None else found.get(part.target, source)
    if source is not None and source.found is None:
        raise missing(source)
    if part.verb != "changed" and target is not None and target.found is not None:
        raise _there_already(target, part)
    return _Part(part, source, target)


def _there_already(target: Identity, part: FilePatch) -> FileProblem:
    got = "one that is there already" if target.found is None else f"{target.found.kind.value} that is there already"
    return FileProblem(target.path, f"a file to be {part.verb}", got, "Nothing was changed.")


async def _revisions(
    workspace: FileAccess, ctx: CallContext, part: _Part, modes: dict[Entry, int]
) -> list[PlannedChange]:
    """What is to become of the files of one part; `modes` is given those that are not a new file's."""
    source, target, hunks = part.source, part.target, part.patch.hunks
    if source is None:
        assert target is not None
        content = encoded(target.path, patched(target.path, "", hunks), "the result")
        if part.patch.executable:
            modes[target.entry] = _EXECUTABLE
        return [(target, _created(target, part.patch, content), None)]
    if target is source:
        if part.patch.executable is not None:
            there = await workspace.files.read(ctx, source)
            modes[source.entry] = _executable(there.stat.mode, part.patch.executable)
        change = functools.partial(_changed, source, part.patch)
        return [(source, change, functools.partial(change, exactly=True))]
    if target is None:
        return [(source, lambda before: _deleted(source, before, part.patch), None)]
    # Siblings cannot change it while its claim is held; `_gone` notices a change by another program.
    found = await workspace.files.read(ctx, source)
    copied, modes[target.entry] = found.content, _executable(found.stat.mode, part.patch.executable)
    revisions: list[PlannedChange] = [
        (target, _created(target, part.patch, _changed(source, part.patch, copied)), None)
    ]
    if not part.patch.copies:
        revisions.append((source, lambda before: _gone(source, before, copied), None))
    return revisions


def _executable(mode: int, executable: bool | None) -> int:
    """The permission bits of a file that may be executed then, by all that may read it, or by none; None: as it was."""
    if executable is None:
        return mode
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def _created(target: Identity, patch: FilePatch, content: bytes) -> Change:
    def change(before: bytes | None) -> bytes:
        if before is not None:
            raise _there_already(target, patch)
        return content

    return change


def _changed(source: Identity, patch: FilePatch, before: bytes | None, exactly: bool = False) -> bytes:
    if before is None:
        raise missing(source)
    if not patch.hunks:
        return before
    text = patched(source.path, decoded(source.path, before), patch.hunks, exactly)
    return encoded(source.path, text, "the result", encoding_of(before))


def _deleted(source: Identity, before: bytes | None, patch: FilePatch) -> None:
    if before is not None and patch.whole:
        return
    left = _changed(source, patch, before)
    if left:
        raise FileProblem(
            source.path,
            "a patch that removes all its lines, as the file is to be deleted",
            f"{counted(len(left), 'byte')} left over",
            "Nothing was changed. Use delete_path to delete a file as it is.",
        )


def _gone(source: Identity, before: bytes | None, copied: bytes) -> None:
    if before != copied:
        raise FileProblem(
            source.path, "the file as it was read", "another one by now", "Nothing was changed; send the call again.",
            retryable=True,
        )  # fmt: skip
