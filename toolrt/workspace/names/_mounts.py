"""Joins several directories into one tree: a disk with other disks mounted at names of its root.

Rules.  A file of the mount ``docs`` has the name ``docs/...`` and its own absolute path, and both have one key.  No
root contains another, so no file has two keys.  A mount point cannot be moved or removed, and it hides what stands
below it. A move from one root to another is refused: that would be a copy, not a rename.

Theory.  Every operation on an entry belongs to one disk, so each root keeps its own rules: how it folds names, whether
it syncs, which other processes it takes turns with.

Limits.  Mounts are not nested.  ``..`` after a mount point's name leads back to the workspace's root.  After the
mount's absolute path, and after a link, it leads to the parent directory that the system has.
"""

from __future__ import annotations

import contextlib
import copy
import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Self, cast

from toolrt.errors import DefinitionRefused
from toolrt.workspace.disk._disk import (
    EXACT,
    NAME_MAX,
    Change,
    Disk,
    Entry,
    Folding,
    InPlace,
    Revision,
    Snapshot,
    Stat,
    Survey,
    is_own,
    path_below,
)
from toolrt.workspace.disk._disk_errors import failure
from toolrt.workspace.disk._real import RealDisk
from toolrt.workspace.disk._seal import contains


class MountedDisk:
    """The disk `base`, with other disks at names of its root.

    Args:
        base: whose root is the workspace's.
        mounts: by name, which is one part of a path; each disk's root is a directory of the workspace's root.

    Raises:
        DefinitionRefused: a name is none, or is taken at the root of `base`; or one of the roots contains another.

    Example::

        disk = MountedDisk(RealDisk("path/to/repo"), {"docs": RealDisk("path/to/docs")})
    """

    def __init__(self, base: Disk, mounts: Mapping[str, Disk]) -> None:
        if not isinstance(base, Disk) or base.mounts:
            raise DefinitionRefused("MountedDisk(base)", "a disk that has no mounts of its own", base)
        self._base = base
        self._disks = dict(mounts)
        folding = base.folds(base.root)
        roots = {"the workspace's root": base.root}
        taken: dict[str, str] = {}
        for name, disk in self._disks.items():
            what = f"mount {name!r}"
            if not isinstance(name, str) or not _is_a_name(name):
                raise DefinitionRefused(what, "a name without a slash, such as 'docs'", name)
            if not isinstance(disk, Disk) or disk.mounts:
                raise DefinitionRefused(what, "a disk that has no mounts of its own", disk)
            for other, root in roots.items():
                if contains(root, disk.root) or contains(disk.root, root):
                    raise DefinitionRefused(what, f"a directory apart from {other}", disk.root)
            roots[what] = disk.root
            other = taken.setdefault(folding.fold(name), name)
            if other != name or stat_or_none(base, f"{base.root.rstrip('/')}/{name}") is not None:
                raise DefinitionRefused(what, "a name that is free at the workspace's root", f"a second {other!r}")
        self._by_key = {folding.fold(name): disk for name, disk in self._disks.items()}
        self._mounts = MappingProxyType({name: disk.root for name, disk in self._disks.items()})

    @property
    def root(self) -> str:
        """The path of the base's root."""
        return self._base.root

    @property
    def mounts(self) -> Mapping[str, str]:
        """The paths of the other roots, by name."""
        return self._mounts

    @property
    def disks(self) -> tuple[Disk, ...]:
        """The base and then the others, as they were given."""
        return (self._base, *self._disks.values())

    @property
    def home(self) -> str | None:
        """What ``~`` stands for on the base."""
        return self._base.home

    def lstat(self, path: str) -> Stat:
        """What `path` is, links not followed."""
        return self._at(path).lstat(path)

    def readlink(self, path: str) -> str:
        """The text of the symbolic link at `path`."""
        return self._at(path).readlink(path)

    def listdir(self, path: str) -> list[str]:
        """The names in the directory at `path`, sorted."""
        names = self._at(path).listdir(path)
        if path != self.root:
            return names
        return sorted(
            self._not_hidden(names)
            | {name for name, root in self._mounts.items() if stat_or_none(self, root) is not None}
        )

    def folds(self, path: str) -> Folding:
        """Which spellings the directory at `path` takes for the same name."""
        return self._at(path).folds(path)

    @property
    def time_step_ns(self) -> int:
        """The coarsest of the disks' steps."""
        return max(disk.time_step_ns for disk in self.disks)

    def now_ns(self) -> int:
        """What the base's clock says."""
        return self._base.now_ns()

    def peek(self, entry: Entry) -> bytes:
        """The content of the file at `entry`, read at once."""
        with self._on(entry) as (disk, below):
            return disk.peek(below)

    def recover(self, directories: Iterable[Entry] | None = None) -> list[str]:
        """What dead writers left is gone; see `Disk.recover`."""
        return self._at_all(directories, lambda disk, own: disk.recover(own))

    def _at_all(
        self, directories: Iterable[Entry] | None, ask: Callable[[Disk, list[Entry] | None], list[str]]
    ) -> list[str]:
        """What each disk answers for its part of `directories`, by the names that it has here."""
        chosen = None if directories is None else list(directories)
        told: list[str] = []
        for name, disk in ((None, self._base), *self._disks.items()):
            own = None if chosen is None else [self.of(entry)[1] for entry in chosen if self.of(entry)[0] is disk]
            if own is None or own:
                found = ask(disk, own)
                told += found if name is None else [f"{name}/{path}" for path in found]
        return sorted(told)

    def strangers(self, directories: Iterable[Entry] | None = None) -> list[str]:
        """Names like the disk's own that it did not make; see `Disk.strangers`."""
        return self._at_all(directories, lambda disk, own: disk.strangers(own))

    def names_of(self, stat: Stat) -> list[Entry]:
        """The names of a file that were found below any of the roots; see `Disk.names_of`."""
        found = self._base.names_of(stat)
        return found + [(name, *entry) for name, disk in self._disks.items() for entry in disk.names_of(stat)]

    async def look(self, entry: Entry) -> Stat:
        """What stands at `entry`; see `Disk.look`."""
        with self._on(entry) as (disk, below):
            return await disk.look(below)

    async def names(self, entry: Entry) -> list[tuple[str, Stat]]:
        """The names in the directory at `entry`; see `Disk.names`."""
        with self._on(entry) as (disk, below):
            listed = await disk.names(below)
        if entry:
            return listed
        seen = self._not_hidden(name for name, _ in listed)
        kept = [one for one in listed if one[0] in seen]
        for name, other in self._disks.items():
            with contextlib.suppress(OSError):  # one that is gone is not listed
                kept.append((name, await other.look(())))
        return sorted(kept, key=lambda one: one[0])

    async def read(self, entry: Entry, limit: int) -> Snapshot:
        """The regular file at `entry`; see `Disk.read`."""
        with self._on(entry) as (disk, below):
            return await disk.read(below, limit)

    async def read_part(self, entry: Entry, start: int, size: int) -> Snapshot:
        """A part of the regular file at `entry`; see `Disk.read_part`."""
        with self._on(entry) as (disk, below):
            return await disk.read_part(below, start, size)

    async def revise(self, entry: Entry, limit: int, change: Change, in_place: InPlace | None = None) -> Revision:
        """The file at `entry` has what `change` makes of it; see `Disk.revise`."""
        with self._on(entry) as (disk, below):
            return await disk.revise(
                below, limit, change, in_place or (lambda stat: len(self.names_of(stat)) >= stat.links)
            )

    async def make_dirs(self, entry: Entry) -> None:
        """A directory stands at `entry`; see `Disk.make_dirs`."""
        with self._on(entry) as (disk, below):
            if disk is not self._base:
                await disk.look(())  # a mount point that is gone is not made
            await disk.make_dirs(below)

    async def make_link(self, entry: Entry, text: str) -> None:
        """A symbolic link stands at `entry`; see `Disk.make_link`."""
        with self._on(entry) as (disk, below):
            await disk.make_link(below, text)

    async def set_mode(self, entry: Entry, mode: int) -> None:
        """The file or directory at `entry` has these permission bits; see `Disk.set_mode`."""
        with self._on(entry) as (disk, below):
            await disk.set_mode(below, mode)

    async def remove(self, entry: Entry, expected: Stat | None = None) -> None:
        """Nothing stands at `entry`; see `Disk.remove`."""
        with self._on(entry) as (disk, below):
            await disk.remove(below, expected)

    async def remove_tree(self, entry: Entry) -> None:
        """Nothing stands at `entry`, whatever did; see `Disk.remove_tree`."""
        with self._on(entry) as (disk, below):
            await disk.remove_tree(below)

    def kept_for(self, entry: Entry) -> Entry:
        """A new entry for what is to be kept; see `Disk.kept_for`."""
        disk, below = self.of(entry)
        kept = disk.kept_for(below)
        return kept if disk is self._base else (entry[0], *kept)

    async def survey(self, entry: Entry, *, contents: bool = True) -> Survey:
        """What stands at `entry` with all that is in it; see `Disk.survey`."""
        with self._on(entry) as (disk, below):
            return await disk.survey(below, contents=contents)

    async def keep(self, entry: Entry, kept: Entry, begin: Callable[[Survey], None]) -> None:
        """What stood at `entry` is kept at `kept`; see `Disk.keep`."""
        with self._on(entry) as (disk, below):
            await disk.keep(below, self.of(kept)[1], begin)

    async def move(self, source: Entry, target: Entry) -> None:
        """What stood at `source` stands at `target`; see `Disk.move`."""
        other, there = self.of(target)
        if self.of(source)[0] is not other:
            await self.look(source)
            raise failure(errno.EXDEV if self.of(source)[1] else errno.EBUSY, source)
        with self._on(source) as (disk, below):
            await disk.move(below, there)

    def over(self, wrap: Callable[[Disk], object]) -> Self:
        """The same tree over what `wrap` makes of each disk, which may do less than a disk does."""
        made = copy.copy(self)
        made._base = cast(Disk, wrap(self._base))
        made._disks = {name: cast(Disk, wrap(disk)) for name, disk in self._disks.items()}
        made._by_key = dict(zip(self._by_key, made._disks.values(), strict=True))
        return made

    def of(self, entry: Entry) -> tuple[Disk, Entry]:
        """The disk that has `entry`, which may be a key, and where it is on that."""
        disk = self._by_key.get(self._base.folds(self.root).fold(entry[0])) if entry else None
        return (self._base, entry) if disk is None else (disk, entry[1:])

    def _at(self, path: str) -> Disk:
        """The disk whose root `path` is below; the base for all that is below none."""
        for disk in self._disks.values():
            if contains(disk.root, path):
                return disk
        return self._base

    def _not_hidden(self, names: Iterable[str]) -> set[str]:
        """Those of the base's `names` that no mount stands over."""
        folding = self._base.folds(self.root)
        hidden = {folding.fold(name) for name in self._disks}
        return {name for name in names if folding.fold(name) not in hidden}

    @contextlib.contextmanager
    def _on(self, entry: Entry) -> Iterator[tuple[Disk, Entry]]:
        """The disk that has `entry`, and where it is on that; an error names it as it is called here."""
        disk, below = self.of(entry)
        try:
            yield disk, below
        except OSError as error:
            if below != entry and isinstance(error.filename, str):
                error.filename = entry[0] if error.filename == "." else f"{entry[0]}/{error.filename}"
            raise


def located(disk: Disk, entry: Entry) -> tuple[Disk, Entry]:
    """The disk that `entry` of `disk` is on, which has no mounts, and where it is on that."""
    return disk.of(entry) if isinstance(disk, MountedDisk) else (disk, entry)


def path_on(disk: Disk, entry: Entry) -> str:
    """The disk's path of an entry."""
    disk, entry = located(disk, entry)
    return path_below(disk.root, entry)


def stat_or_none(disk: Disk, path: str) -> Stat | None:
    """What stands at the disk's `path`; None: nothing that can be looked at."""
    try:
        return disk.lstat(path)
    except OSError:
        return None


def disks_of(disk: Disk) -> tuple[Disk, ...]:
    """The disks that `disk` is made of, its base first."""
    return disk.disks if isinstance(disk, MountedDisk) else (disk,)


def real_parts(disk: Disk) -> list[tuple[Entry, RealDisk]]:
    """The real ones of the disks that `disk` is made of, its base first, each with the entry of its root."""
    roots: list[Entry] = [()]
    if isinstance(disk, MountedDisk):
        roots += [(name,) for name in disk.mounts]
    return [(root, part) for root, part in zip(roots, disks_of(disk), strict=True) if isinstance(part, RealDisk)]


def real_disks(disk: Disk) -> tuple[RealDisk, ...]:
    """The disks that `disk` is made of, if each of them is real; else none."""
    real = tuple(part for _, part in real_parts(disk))
    return real if len(real) == len(disks_of(disk)) else ()


def reopened(disk: Disk) -> Disk:
    """The same directories, the real ones as disks of their own: for another Trio."""
    return disk.over(_again) if isinstance(disk, MountedDisk) else _again(disk)


def _again(disk: Disk) -> Disk:
    if not isinstance(disk, RealDisk):
        return disk
    again = RealDisk(disk.root, fsync=disk.fsync)
    again.trust(disk.seal)
    return again


def _is_a_name(name: str) -> bool:
    if len(name.encode(errors="surrogateescape")) > NAME_MAX:
        return False
    return name not in ("", ".", "..", "~") and not is_own(name) and not set(name) & {"/", "\0"} and name.isprintable()


def as_on_disk(disk: Disk, entry: Entry) -> Entry:
    """The same entry as the disk spells it; a part that is not there stays as it is.

    Any spelling of a name finds its file, so most code never needs the disk's own.  A removal or a move does: undo must
    bring the entry back under the name that the directory listed.

    Costs a listing of each directory on the way that folds names, and nothing where none does.

    Raises:
        OSError: a directory cannot be listed.

    Checkpoint: never.
    """
    spelled: Entry = ()
    for part in entry:
        above = path_on(disk, spelled)
        folding = disk.folds(above)
        if folding is not EXACT:
            names = disk.listdir(above)
            if part not in names:
                part = next((name for name in names if folding.fold(name) == folding.fold(part)), part)
        spelled = (*spelled, part)
    return spelled
