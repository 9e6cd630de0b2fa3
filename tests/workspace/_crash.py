"""Every system call that a change makes on the real disk: the process killed at it, or an error in its place.

Run as a program it is the parent of the processes that are killed:

    python _crash.py DIRECTORY fsync|plain

and prints, as JSON, how many calls each change was killed at, and what was wrong.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
import trio

from toolrt import probe
from toolrt.workspace import Disk, RealDisk, Workspace, is_own
from toolrt.workspace.disk import _real_write

#: What the disk changes things with, and what it looks with.
CALLS = [
    *("open", "read", "write", "lseek", "ftruncate", "fchmod", "fchown", "fsync", "fstat", "lstat", "access"),
    *("mkdir", "rmdir", "unlink", "link", "rename", "replace", "listdir"),
]

OLD, LONG, SHORT = b"old " * 3_000, b"a longer new content " * 1_000, b"new"

Operation = Callable[[Any], Any]


@attrs.frozen
class Change:
    """A change, and what it makes of the tree below."""

    operation: Operation
    after: Mapping[str, bytes | str]
    #: Whether an error in the midst may leave part of it done.
    partly: bool = False


BEFORE: dict[str, bytes | str] = {
    "a": OLD,
    "d/one": b"1",
    "d/sub/two": b"2",
    "names/x": OLD,
    "names/y": OLD,
}


def revised(entry: tuple[str, ...], content: bytes) -> Operation:
    return lambda disk: disk.revise(entry, 100_000, lambda before: content)


def without(*prefixes: str) -> dict[str, bytes | str]:
    return {path: content for path, content in BEFORE.items() if not path.startswith(prefixes)}


CHANGES = {
    "replace": Change(revised(("a",), SHORT), {**BEFORE, "a": SHORT}),
    "create": Change(revised(("d", "new"), LONG), {**BEFORE, "d/new": LONG}),
    "grow in place": Change(revised(("names", "x"), LONG), {**BEFORE, "names/x": LONG, "names/y": LONG}),
    "shrink in place": Change(revised(("names", "y"), SHORT), {**BEFORE, "names/x": SHORT, "names/y": SHORT}),
    "make_dirs": Change(lambda disk: disk.make_dirs(("e", "f")), {**BEFORE, "e/f/": ""}, partly=True),
    "remove": Change(lambda disk: disk.remove(("a",)), without("a")),
    "remove_tree": Change(lambda disk: disk.remove_tree(("d",)), without("d")),
    "move": Change(lambda disk: disk.move(("a",), ("d", "b")), {**without("a"), "d/b": OLD}),
    "move tree": Change(
        lambda disk: disk.move(("d",), ("names", "d")),
        {**without("d"), "names/d/one": b"1", "names/d/sub/two": b"2"},
    ),
}


def plant(root: str) -> None:
    """The tree that every change begins with."""
    shutil.rmtree(root, ignore_errors=True)
    for path, content in BEFORE.items():
        os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
        if path == "names/y":
            os.link(f"{root}/names/x", f"{root}/names/y")
        else:
            assert isinstance(content, bytes)
            with open(f"{root}/{path}", "wb") as file:
                file.write(content)


@contextmanager
def at_every_call(happening: Callable[[str, Callable[..., Any], tuple[Any, ...]], None]) -> Iterator[None]:
    """`happening` is told of each call, with its name, itself and its arguments, before it is made."""
    places: list[tuple[Any, str]] = [(os, name) for name in CALLS]
    places += [(fcntl, "flock"), (_real_write, "_exclusive_rename"), (_real_write, "_exchanging_rename")]
    really = [getattr(place, name) for place, name in places]

    def wrapped(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **more: Any) -> Any:
            happening(name, call, arguments)
            return call(*arguments, **more)

        return made

    try:
        for (place, name), call in zip(places, really, strict=True):
            if call is not None:
                setattr(place, name, wrapped(name, call))
        yield
    finally:
        for (place, name), call in zip(places, really, strict=True):
            setattr(place, name, call)


def run(disk: Disk, operation: Operation) -> Any:
    """The operation in this thread, and what it returns."""

    async def program() -> Any:
        return await operation(disk)

    with probe.observed_by(None, inline=True):
        return trio.run(program)


def killed_at(root: str, change: Change, fsync: bool, number: int, torn: bool) -> bool:
    """Whether a process that is killed at call `number` of the change gets that far; torn: a write is half done."""
    calls = itertools.count()
    return killed_once(root, change, fsync, lambda name: next(calls) == number, torn)


def killed_once(
    root: str, change: Change, fsync: bool, dies: Callable[[str], bool], torn: bool, state: str | None = None
) -> bool:
    """Whether a process comes to a call of the change at which it `dies`; `state` is its state directory."""
    child = os.fork()
    if child == 0:
        os.environ.update({} if state is None else {"TOOLRT_STATE_DIR": state})
        disk = RealDisk(root, fsync=fsync)

        def happening(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
            if dies(name):
                if torn and name == "write":
                    call(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)

        with at_every_call(happening):
            run(disk, change.operation)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def left_by(root: str, entry: tuple[str, ...], suffix: str = ".tmp", state: str | None = None) -> str:
    """The name of the disk's own, with that suffix, that a process leaves which is killed as it writes that file."""
    directory = "/".join((root, *entry[:-1]))
    before = set(os.listdir(directory))

    def dies(name: str) -> bool:
        # Looking is a call, too.
        return name == "write" and any(one.endswith(suffix) for one in set(os.listdir(directory)) - before)

    assert killed_once(root, Change(revised(entry, LONG), {}), False, dies, True, state)
    (name,) = set(os.listdir(directory)) - before
    return name


def wrong_after(workspace: Workspace, root: str, change: Change, where: str) -> list[str]:
    """What is wrong with the tree that a killed process left, once it is mended.

    Args:
        workspace: one that was made before, and so mended nothing.
    """
    found: list[str] = []
    disk = workspace.disk
    disk.recover()
    left = workspace.snapshot()
    partly = {**BEFORE, "e/": ""} if change.partly else BEFORE
    if left not in (BEFORE, dict(change.after), partly):
        found.append(f"{where}: {sorted(left)} {left == BEFORE}")
    if any(is_own(part) for path in left for part in path.split("/")):
        found.append(f"{where}: something of the disk's own is left: {sorted(left)}")
    if again := disk.recover():
        found.append(f"{where}: mended twice: {again}")
    links = os.lstat(f"{root}/names/x").st_nlink
    if links != 2:
        found.append(f"{where}: {links} names of one file")
    return found


def main(root: str, fsync: bool) -> None:
    counts: dict[str, int] = {}
    wrong: list[str] = []
    for name, change in CHANGES.items():
        for torn in (False, True):
            number = 0
            while True:
                plant(root)
                workspace = Workspace(root)
                killed = killed_at(root, change, fsync, number, torn)
                wrong += wrong_after(workspace, root, change, f"{name}, call {number}, torn {torn}")
                if not killed:
                    break
                number += 1
            counts[name] = number
    print(json.dumps({"counts": counts, "wrong": wrong}))


if __name__ == "__main__":
    main(f"{sys.argv[1]}/repo", sys.argv[2] == "fsync")
