"""A machine that does the same to the twin and to the real disk, and holds their answers and trees against each other.

Run as a program, it is the child in which permission bits bind: a process that gives up root for every operation and
takes it back to plant and to look.

    python _disk_machine.py unprivileged EXAMPLES
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, ClassVar
from unittest import mock

import attrs
import trio
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from toolrt import probe
from toolrt.workspace import (
    Directory,
    Entry,
    HardLink,
    Kind,
    MemoryDisk,
    NotRegular,
    Planted,
    RealDisk,
    Revision,
    Snapshot,
    Special,
    Stat,
    Symlink,
    TooLarge,
    User,
)
from toolrt.workspace.disk import _real_remove
from toolrt.workspace.disk._nodes import Branch, FileNode, Other

#: Whom permission bits bind in the child, and somebody else.
ME, OTHER = 12345, 23456
GROUPS = (12345, 12346)

names = st.sampled_from(["a", "b", "c", "d"])
entries = st.lists(names, max_size=3).map(tuple)
things = st.lists(names, min_size=1, max_size=3).map(tuple)
sizes = st.sampled_from([0, 1, 10, 4095, 4096, 4097, 9000, 20_000])
contents = st.builds(lambda letter, size: Content(letter, size), st.sampled_from(["x", "y"]), sizes)
modes = st.sampled_from([0o644, 0o600, 0o000, 0o444, 0o200, 0o666, 0o755, 0o4755, 0o2775, 0o060, 0o006])
directory_modes = st.sampled_from([0o755, 0o700, 0o000, 0o555, 0o333, 0o111, 0o1777, 0o2775, 0o070, 0o707])
kinds = st.sampled_from(["look", "revise", "move", "make_dirs"])
owners = st.sampled_from([(ME, GROUPS[0]), (ME, GROUPS[1]), (OTHER, GROUPS[1]), (OTHER, OTHER), (ME, OTHER)])
targets = st.sampled_from(["a", "b", "../a", "c/d", "nowhere", ".."])


@attrs.frozen
class Content:
    """So many times the same letter, which is short to show."""

    letter: str
    size: int

    @property
    def bytes(self) -> bytes:
        return self.letter.encode() * self.size


class Asked(Exception):
    """Raised by a change."""


class DiskMachine(RuleBasedStateMachine):
    """Both disks, from empty."""

    #: Whether permission bits are to bind: then the process is root and gives that up for every operation.
    unprivileged: ClassVar[bool] = False
    #: How many bytes of files there is room for; None: any number.
    capacity: ClassVar[int | None] = None
    #: Makes the directory that the real disk's root is made in, empty.
    base: ClassVar[Callable[[], contextlib.AbstractContextManager[str]]]

    def __init__(self) -> None:
        super().__init__()
        self._leaving = contextlib.ExitStack()

    @initialize()
    def begin(self) -> None:
        base = self._leaving.enter_context(type(self).base())
        self.root = f"{os.path.realpath(base)}/repo"
        os.mkdir(self.root, 0o755)
        if self.unprivileged:
            os.chown(self.root, ME, GROUPS[0])
        self.real = RealDisk(self.root)
        user = User(ME, GROUPS) if self.unprivileged else None
        #: The effect of the twin that fails now.
        self.failing: str | None = None
        self.twin = MemoryDisk(root=self.root, user=user, capacity=self.capacity, fault=self._fault)
        self.me = (ME, GROUPS[0]) if self.unprivileged else (os.geteuid(), os.getegid())

    def teardown(self) -> None:
        self._leaving.close()

    def _fault(self, effect: str, path: str) -> None:
        if effect == self.failing:
            raise OSError(errno.EIO, "told to")

    # Somebody else

    def _path(self, entry: Entry) -> str:
        return "/".join((self.root, *entry))

    def _plantable(self, entry: Entry) -> bool:
        """Whether its directory is there, and no link on the way."""
        for depth in range(len(entry)):
            try:
                if not stat.S_ISDIR(os.lstat(self._path(entry[:depth])).st_mode):
                    return False
            except OSError:
                return False
        return True

    def _room_for(self, what: Planted) -> bool:
        if self.capacity is None or not isinstance(what, bytes):
            return True
        return shutil.disk_usage(self.root).free >= len(what) + 8192

    def _plant(self, entry: Entry, what: Planted, mode: int, owner: tuple[int, int]) -> None:
        path = self._path(entry)
        if not self._plantable(entry) or not self._room_for(what):
            return
        owner = owner if self.unprivileged else self.me
        if isinstance(what, HardLink):
            source = parts(what.target)
            if source == entry or not self._plantable(source):
                return
            with contextlib.suppress(OSError):
                if stat.S_ISREG(os.lstat(self._path(source)).st_mode) and entry[: len(source)] != source:
                    inside = source[: len(entry)] == entry
                    if not inside:
                        self._clear(path)
                        os.link(self._path(source), path)
                        self.twin.put("/".join(entry), what)
            return
        self._clear(path)
        if isinstance(what, bytes):
            with open(path, "wb") as file:
                file.write(what)
        elif isinstance(what, Directory):
            os.mkdir(path)
            mode = what.mode
        elif isinstance(what, Symlink):
            os.symlink(what.target, path)
        else:
            os.mkfifo(path)
        if os.geteuid() == 0:
            os.lchown(path, *owner)
        if not isinstance(what, Symlink):
            os.chmod(path, mode)
        self.twin.put("/".join(entry), what, mode=mode, owner=owner)

    @staticmethod
    def _clear(path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)

    @rule(entry=things, content=contents, mode=modes, owner=owners)
    def put_file(self, entry: Entry, content: Content, mode: int, owner: tuple[int, int]) -> None:
        self._plant(entry, content.bytes, mode if self.unprivileged else mode | 0o600, owner)

    @rule(entry=things, mode=directory_modes, owner=owners)
    def put_directory(self, entry: Entry, mode: int, owner: tuple[int, int]) -> None:
        self._plant(entry, Directory(mode=mode if self.unprivileged else 0o755), 0, owner)

    @rule(entry=things, text=targets, owner=owners)
    def put_symlink(self, entry: Entry, text: str, owner: tuple[int, int]) -> None:
        self._plant(entry, Symlink(text), 0o777, owner)

    @rule(entry=things, other=things, owner=owners)
    def put_hard_link(self, entry: Entry, other: Entry, owner: tuple[int, int]) -> None:
        self._plant(entry, HardLink("/".join(other)), 0, owner)

    @rule(entry=things, owner=owners)
    def put_pipe(self, entry: Entry, owner: tuple[int, int]) -> None:
        self._plant(entry, Special(), 0o644, owner)

    @rule(entry=entries, content=contents, suffix=st.sampled_from([".tmp", ".undo", ".txt"]))
    def put_left_over(self, entry: Entry, content: Content, suffix: str) -> None:
        """What looks as if a dead writer had left it, and is left alone."""
        self._plant((*entry, f".toolrt-1-{suffix}"), content.bytes, 0o600, self.me)

    @rule(entry=entries)
    def put_left_over_tree(self, entry: Entry) -> None:
        """What looks like a tree that was being removed."""
        self._plant((*entry, ".toolrt-2-.tmp"), Directory(), 0o755, self.me)
        self._plant((*entry, ".toolrt-2-.tmp", "a"), b"text", 0o600, self.me)

    @rule(entry=entries, mode=directory_modes)
    def chmod(self, entry: Entry, mode: int) -> None:
        if self.unprivileged and self._plantable((*entry, "a")):
            os.chmod(self._path(entry), mode)
            self.twin.chmod(self._path(entry), mode)

    @rule(entry=things)
    def drop(self, entry: Entry) -> None:
        if self._plantable(entry) and os.path.lexists(self._path(entry)):
            self._clear(self._path(entry))
            self.twin.drop("/".join(entry))

    # Operations

    def _both(self, shown: str, operation: Callable[[Any], Any]) -> None:
        twin = outcome(operation, self.twin)
        with self._bound():
            real = outcome(operation, self.real)
        note(f"{shown}: {real}")
        assert twin == real, f"{shown}: the twin answers {twin}, the real disk {real}"

    @contextlib.contextmanager
    def _bound(self) -> Iterator[None]:
        """As somebody whom permission bits bind, if they are to bind."""
        before = os.umask(0o022)
        if self.unprivileged:
            os.setegid(GROUPS[0])
            os.seteuid(ME)
        try:
            yield
        finally:
            if self.unprivileged:
                os.seteuid(0)
                os.setegid(0)
            os.umask(before)

    @rule(entry=entries, limit=st.sampled_from([0, 10, 4096, 100_000]))
    def read(self, entry: Entry, limit: int) -> None:
        self._both(f"read {entry} {limit}", lambda disk: disk.read(entry, limit))

    @rule(entry=entries, limit=st.sampled_from([10, 100_000]), content=contents | st.none())
    def revise(self, entry: Entry, limit: int, content: Content | None) -> None:
        new = None if content is None else content.bytes
        self._both(f"revise {entry}", lambda disk: disk.revise(entry, limit, lambda before: new))

    @rule(entry=entries, content=contents)
    def append(self, entry: Entry, content: Content) -> None:
        def change(before: Snapshot | None) -> bytes:
            if before is None:
                raise Asked
            return before.content + content.bytes

        self._both(f"append {entry}", lambda disk: disk.revise(entry, 100_000, change))

    @rule(entry=entries)
    def look(self, entry: Entry) -> None:
        self._both(f"look {entry}", lambda disk: disk.look(entry))

    @rule(entry=entries)
    def list_names(self, entry: Entry) -> None:
        self._both(f"names {entry}", lambda disk: disk.names(entry))

    @rule(entry=entries)
    def make_dirs(self, entry: Entry) -> None:
        self._both(f"make_dirs {entry}", lambda disk: disk.make_dirs(entry))

    @rule(entry=entries, text=targets)
    def make_link(self, entry: Entry, text: str) -> None:
        self._both(f"make_link {entry} {text}", lambda disk: disk.make_link(entry, text))

    @rule(entry=entries, mode=modes | directory_modes)
    def set_mode(self, entry: Entry, mode: int) -> None:
        self._both(f"set_mode {entry} {mode:o}", lambda disk: disk.set_mode(entry, mode))

    @rule(entry=entries)
    def remove(self, entry: Entry) -> None:
        self._both(f"remove {entry}", lambda disk: disk.remove(entry))

    @rule(entry=entries, other=entries)
    def remove_expected(self, entry: Entry, other: Entry) -> None:
        async def operation(disk: Any) -> None:
            expected = await disk.look(other)
            if expected.kind is not Kind.DIRECTORY:
                await disk.remove(entry, expected)

        self._both(f"remove {entry} as {other}", operation)

    @rule(entry=entries)
    def remove_tree(self, entry: Entry) -> None:
        self._both(f"remove_tree {entry}", lambda disk: disk.remove_tree(entry))

    @rule(entry=entries)
    def remove_tree_that_cannot_be_deleted(self, entry: Entry) -> None:
        """It is aside by then: the removal is done, and the next start takes the rest."""

        def refuse(*_: Any) -> None:
            raise OSError(errno.EIO, "told to")

        with mock.patch.object(_real_remove, "delete_tree", refuse):
            self.failing = "remove"
            self._both(f"remove_tree {entry}, left aside", lambda disk: disk.remove_tree(entry))
            self.failing = None

        async def mended(disk: Any) -> int:
            return len(disk.recover())

        self._both("recover", mended)

    @rule(entry=entries)
    def survey(self, entry: Entry) -> None:
        async def told(disk: Any) -> Any:
            found = await disk.survey(entry)
            return found.kind, found.mode, found.digest, found.size

        self._both(f"survey {entry}", told)

    @rule(entry=entries, other=entries)
    def keep_and_give_back(self, entry: Entry, other: Entry) -> None:
        """What was kept aside comes back at another name, or at its own if that is taken; nothing stays behind."""

        async def there_and_back(disk: Any) -> Any:
            told: list[Any] = []
            kept = disk.kept_for(entry)
            await disk.keep(entry, kept, lambda found: told.append((found.kind, found.digest, found.size)))
            told.append((await disk.survey(kept)).digest)
            try:
                await disk.move(kept, other)
            except OSError as error:
                told.append(error.errno)
                await disk.move(kept, entry)
            return told

        self._both(f"keep {entry}, give back {other}", there_and_back)

    @rule(entry=entries, other=entries)
    def move(self, entry: Entry, other: Entry) -> None:
        self._both(f"move {entry} {other}", lambda disk: disk.move(entry, other))

    @rule(
        above=entries, size=st.sampled_from([255, 256]), kind=st.sampled_from(["look", "revise", "move", "make_dirs"])
    )
    def long_name(self, above: Entry, size: int, kind: str) -> None:
        entry = (*above, "x" * size)
        arguments: dict[str, tuple[Any, ...]] = {
            "look": (entry,),
            "revise": (entry, 10, lambda before: b"new"),
            "move": (("a",), entry),
            "make_dirs": (entry,),
        }
        self._both(f"{kind} {above} {size}", lambda disk: getattr(disk, kind)(*arguments[kind]))

    @rule(directories=st.none() | st.lists(entries, max_size=3))
    def recover(self, directories: list[Entry] | None) -> None:
        self._both(f"recover {directories}", lambda disk: at_once(disk.recover, directories))

    @rule(directories=st.none() | st.lists(entries, max_size=3))
    def strangers(self, directories: list[Entry] | None) -> None:
        async def made_up(disk: Any) -> list[str]:
            # Those of the disk's own kind that the machine planted; what the disks leave themselves differs by name.
            return [path for path in disk.strangers(directories) if path.rpartition("/")[2][9:] in ("-.tmp", "-.undo")]

        self._both(f"strangers {directories}", made_up)

    @rule(entry=entries, look=st.sampled_from(["lstat", "readlink", "listdir"]))
    def look_at_once(self, entry: Entry, look: str) -> None:
        path = self._path(entry)
        if any(os.path.islink(self._path(entry[:depth])) for depth in range(1, len(entry))):
            return  # the port asks for none
        self._both(f"{look} {entry}", lambda disk: at_once(getattr(disk, look), path))

    @invariant()
    def same_tree(self) -> None:
        if hasattr(self, "root"):
            real, twin = tree_of_real(self.root), tree_of_twin(self.twin)
            assert twin == real, difference(twin, real)


async def at_once(look: Callable[..., Any], *arguments: Any) -> Any:
    return look(*arguments)


def parts(path: str) -> Entry:
    return tuple(path.split("/"))


def outcome(operation: Callable[[Any], Any], disk: Any) -> Any:
    """What the operation answers, without what differs between any two disks."""

    async def ask() -> Any:
        return await operation(disk)

    with probe.observed_by(None, inline=True):
        try:
            return shown(trio.run(ask))
        except Asked:
            return "asked"
        except TooLarge as error:
            return "too large", error.size, error.limit
        except NotRegular as error:
            return "not regular", error.kind
        except OSError as error:
            # No text may show a path above the root.
            return type(error).__name__, error.errno, os.strerror(error.errno or 0), disk.root in str(error)


def shown(value: Any) -> Any:
    if isinstance(value, Stat):
        # A directory's size and links are its file system's own business.
        directory = value.kind is Kind.DIRECTORY
        return (value.kind, value.mode, None if directory else value.size, None if directory else value.links)
    if isinstance(value, Snapshot):
        return (value.content, shown(value.stat))
    if isinstance(value, Revision):
        return (shown(value.before), shown(value.after))
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, tuple):
        return tuple(shown(item) for item in value)
    return value


def tree_of_real(root: str) -> dict[str, Any]:
    """Everything, by path: kind, mode, owner, content; names of one file know the first of them."""
    found: dict[str, Any] = {}
    firsts: dict[int, str] = {}
    pending = [""]
    while pending:
        path = pending.pop()
        for name in sorted(os.listdir(f"{root}/{path}")):
            below = f"{path}/{name}"
            seen = os.lstat(root + below)
            kind, content = Kind.of(seen.st_mode), b""
            if kind is Kind.FILE:
                with open(root + below, "rb") as file:
                    content = file.read()
                firsts[seen.st_ino] = min(below, firsts.get(seen.st_ino, below))
            elif kind is Kind.SYMLINK:
                content = os.readlink(root + below).encode()
            elif kind is Kind.DIRECTORY:
                pending.append(below)
            mode = 0o777 if kind is Kind.SYMLINK else stat.S_IMODE(seen.st_mode)
            found[below] = (kind, mode, seen.st_uid, seen.st_gid, content, seen.st_ino)
    return {path: (*told, firsts.get(inode)) for path, (*told, inode) in found.items()}


def tree_of_twin(disk: MemoryDisk) -> dict[str, Any]:
    """As `tree_of_real`."""
    found: dict[str, Any] = {}
    firsts: dict[int, str] = {}
    node: Any = disk._tree.top
    for part in disk._below:
        node = node.names[part][1]
    pending: list[tuple[str, Branch]] = [("", node)]
    while pending:
        path, branch = pending.pop()
        for name, node in branch.names.values():
            below = f"{path}/{name}"
            if isinstance(node, FileNode):
                firsts[node.inode] = min(below, firsts.get(node.inode, below))
                found[below] = (Kind.FILE, node.mode, node.uid, node.gid, node.content, node.inode)
            elif isinstance(node, Branch):
                pending.append((below, node))
                found[below] = (Kind.DIRECTORY, node.mode, node.uid, node.gid, b"", 0)
            else:
                assert isinstance(node, Other)
                found[below] = (node.kind, node.mode, node.uid, node.gid, node.target.encode(), 0)
    if os.geteuid() == 0:
        return {path: (*told, firsts.get(inode)) for path, (*told, inode) in found.items()}
    # Nobody else owns anything, and the twin that binds nobody has root's numbers.
    me = (os.geteuid(), os.getegid())
    return {
        path: (kind, mode, *me, content, firsts.get(inode))
        for path, (kind, mode, _, _, content, inode) in found.items()
    }


def difference(twin: dict[str, Any], real: dict[str, Any]) -> str:
    lines = [
        f"{path}: the twin has {twin.get(path)}, the real disk {real.get(path)}"
        for path in sorted({*twin, *real})
        if twin.get(path) != real.get(path)
    ]
    return "\n".join(lines)


@contextlib.contextmanager
def new_directory() -> Iterator[str]:
    """A directory that anybody may enter."""
    path = tempfile.mkdtemp()
    os.chmod(path, 0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def run(machine: type[DiskMachine], examples: int, steps: int = 30) -> None:
    """Let Hypothesis drive the machine."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            suppress_health_check=list(HealthCheck),
        ),
    )


class UnprivilegedMachine(DiskMachine):
    """Both disks, as somebody whom permission bits bind."""

    unprivileged = True
    base = staticmethod(new_directory)


if __name__ == "__main__":
    assert sys.argv[1] == "unprivileged"
    os.setgroups(GROUPS)
    run(UnprivilegedMachine, int(sys.argv[2]))
