"""Follows a name part by part, as the operating system does.

Rules.  ``.`` and ``..`` are resolved after links, as in the kernel.  A mounted root can be entered by its name and by
its path.  The walk looks (lstat, readlink) and never opens a file.  It refuses the disk's own names.

Limits.  ``..`` after a directory that does not exist yet cancels that directory; the kernel would raise ENOENT.  So a
name means the same before and after the directory is made.  A link may lead out of the workspace and back in; nothing
outside is recorded among the directories passed.
"""

from __future__ import annotations

import errno
import functools
import os

import attrs

from toolrt.workspace._problem import UNSHOWN, FileProblem, from_os_error
from toolrt.workspace.disk._disk import DEEPEST, Disk, Entry, Folding, Kind, Stat, is_own, parts_of
from toolrt.workspace.names._naming import shown_at

#: How many links one name may go through; Linux stops at the same number.
_MOST_LINKS = 40

#: The error of a name that leads outside: what was expected, what it is, what to do.
OUTSIDE = ("a path inside the workspace", "one that leads outside", "Name a file inside the workspace.")

#: What "/" and the directories on the way to the root are known to be.
TOP = Stat(Kind.DIRECTORY, 0o755, 0, 0, 0, 0, 0, 1)


@attrs.frozen
class _Step:
    """One part of a real path."""

    #: The part as it is spelled, and as its directory folds it.
    name: str
    key: str
    #: The path so far.
    path: str
    #: What stands there; None from the first missing part on.
    found: Stat | None


class NameWalk:
    """Goes along a name part by part, as the operating system does, and keeps what it went through."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._base = parts_of(disk.root)
        #: The names at which other roots are mounted, by the parts of their paths.
        self._mounts = {parts_of(root): name for name, root in disk.mounts.items()}
        #: The root that the path so far is in, or was in last; how it is called below the base, and by what key.
        self._root = self._base
        self._mounted: Entry = ()
        self._mounted_key: Entry = ()
        #: Whether that root was entered by its name, and not by its path.
        self._by_name = False
        #: The real path so far, from "/" down.
        self._steps: list[_Step] = list(_way_down(self._root))
        #: Whether the path so far is that of a root, or below one.
        self.inside = True
        #: The keys of all directories and links passed inside the root, in order.
        self.through: dict[Entry, None] = {}
        self._links = 0
        #: Whether the last part says that a directory is meant: nothing, a dot or two.
        self.directory_meant = False

    def follow(self, path: str, *, to_end: bool = True) -> None:
        """Go along `path` from here, or from the top if it is absolute, to what it means in the end.

        Args:
            to_end: whether a link in the last part is followed too.

        Raises:
            FileProblem: it cannot be followed to its end.
        """
        if path.startswith("/"):
            self._to_top()
        pending = path.split("/")[::-1]
        while pending:
            part = pending.pop()
            self._require_directory()
            self.directory_meant = part in ("", ".", "..")
            if part == "..":
                self._up()
            elif part not in ("", "."):
                # Empty parts, from slashes at the end, do not make a link one to follow: it then is no directory.
                target = self._step(part, follow=to_end or any(pending))
                if target is not None:
                    # Behind a link ``..`` is the directory's that the link is in.
                    self._by_name = False
                    if target.startswith("/"):
                        self._to_top()
                    pending.extend(target.split("/")[::-1])

    def standing(self) -> Stat | None:
        """What stands at the path so far."""
        return self._steps[-1].found if self._steps else TOP

    def entry(self) -> Entry:
        """The path so far below the root, as it is spelled."""
        return self._mounted + tuple([step.name for step in self._steps[len(self._root) :]])

    def key(self) -> Entry:
        """The same as its directories fold it."""
        return self._mounted_key + tuple([step.key for step in self._steps[len(self._root) :]])

    def at_root(self) -> bool:
        """Whether the path so far, which is inside, is that of a root."""
        return len(self._steps) == len(self._root)

    def here(self) -> str:
        """The path so far."""
        return self._steps[-1].path if self._steps else "/"

    def _to_top(self) -> None:
        self._steps.clear()
        self._by_name = False
        self.inside = not self._base
        if self.inside:
            self._enter(())

    def _enter(self, root: Entry) -> None:
        """The path so far is that of this root."""
        self.inside, self._root = True, root
        name = self._mounts.get(root)
        self._mounted = () if name is None else (name,)
        self._mounted_key = () if name is None else (self._disk.folds(self._disk.root).fold(name),)

    def _go_to(self, root: Entry) -> None:
        """The path so far is that of `root`, whatever it was."""
        self._steps[:] = _way_down(root)
        self._enter(root)

    def _up(self) -> None:
        if self._by_name and self.inside and self.at_root():
            self._by_name = False
            self._go_to(self._base)
        elif self._steps:
            self._steps.pop()
            self.inside = self.inside and len(self._steps) >= len(self._root)

    def _refuse(self, name: str, error: OSError) -> FileProblem:
        """What to say about an error at `name` in this directory, without showing what is outside."""
        if not self.inside:
            return FileProblem(UNSHOWN, *OUTSIDE)
        return from_os_error(shown_at((*self.entry(), name)), error)

    def _require_directory(self) -> None:
        found = self.standing()
        if found is None or found.kind is Kind.DIRECTORY:
            return
        if not self.inside:
            raise FileProblem(UNSHOWN, *OUTSIDE)
        raise FileProblem(
            shown_at(self.entry()), "a directory", found.kind.value, "Check the names of the directories."
        )

    def _step(self, part: str, *, follow: bool) -> str | None:
        """Go to `part` of this directory; for a link to be followed stay, and return its target."""
        if self.inside and is_own(part):
            raise FileProblem(
                shown_at((*self.entry(), part)),
                "a name that is not reserved",
                f"{part!r}, one that toolrt keeps for itself",
                "Use a name that does not begin with .toolrt- and end in .tmp, .undo or .kept. Nothing was touched.",
            )
        depth = len(self._steps)
        on_the_way = None if self.inside else self._on_the_way(part)
        if on_the_way is not None:
            self._push(on_the_way, on_the_way, TOP)
            return None
        mounted = self._mounted_at(part)
        if mounted is not None:
            self._go_to(mounted)
            self._by_name = True
            self.through[self.key()] = None
            return None
        if self.standing() is None:
            self._push(part, self._folding(depth).fold(part), None)
            return None
        path = self._below(part)
        try:
            found = self._disk.lstat(path)
            target = self._disk.readlink(path) if follow and found.kind is Kind.SYMLINK else None
        except FileNotFoundError:
            found, target = None, None
        except OSError as error:
            raise self._refuse(part, error) from None
        key = self._folding(depth).fold(part) if self.inside else part
        if target is None:
            self._push(part, key, found)
            return None
        if self.inside:
            self.through[(*self.key(), key)] = None
        self._links += 1
        if self._links > _MOST_LINKS:
            raise self._refuse(part, OSError(errno.ELOOP, os.strerror(errno.ELOOP)))
        return target

    def _below(self, name: str) -> str:
        return f"{self._steps[-1].path if self._steps else ''}/{name}"

    def _push(self, name: str, key: str, found: Stat | None) -> None:
        self._steps.append(_Step(name, key, self._below(name), found))
        if not self.inside:
            path = tuple(step.name for step in self._steps)
            if path == self._base or path in self._mounts:
                self._enter(path)
        if self.inside and self.entry():
            if len(self._steps) - len(self._root) > DEEPEST:
                raise FileProblem(UNSHOWN, f"at most {DEEPEST} directories deep", "more", "Use a shorter path.")
            self.through[self.key()] = None

    def _on_the_way(self, part: str) -> str | None:
        """The next part of a root's path, if `part` of this directory, which is outside, is that."""
        depth = len(self._steps)
        here = tuple(step.name for step in self._steps)
        for root in (self._base, *self._mounts):
            if depth < len(root) and here == root[:depth]:
                wanted = root[depth]
                if part == wanted:
                    return wanted
                if _LOOSEST.fold(part) == _LOOSEST.fold(wanted):
                    folding = self._disk.folds(self.here())
                    if folding.fold(part) == folding.fold(wanted):
                        return wanted
        return None

    def _mounted_at(self, part: str) -> Entry | None:
        """The parts of the root that is mounted at `part` of this directory, if one is."""
        if not self._mounts or not self.inside or self._root != self._base or not self.at_root():
            return None
        folding = self._disk.folds(self._disk.root)
        wanted = folding.fold(part)
        return next((root for root, name in self._mounts.items() if folding.fold(name) == wanted), None)

    def _folding(self, depth: int) -> Folding:
        """How the directory at the first `depth` parts folds names; a missing one will as the one it is made in."""
        while depth > 0 and self._steps[depth - 1].found is None:
            depth -= 1
        return self._disk.folds(self._steps[depth - 1].path if depth else "/")


@functools.lru_cache(maxsize=256)
def _way_down(root: Entry) -> tuple[_Step, ...]:
    """The steps to a root."""
    return tuple(_Step(part, part, "/" + "/".join(root[:depth]), TOP) for depth, part in enumerate(root, 1))


#: Takes more spellings for the same than any directory does.
_LOOSEST = Folding(case=True, unicode=True)
