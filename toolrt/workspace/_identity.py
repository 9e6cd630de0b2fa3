"""What a name means: one key for every name of a file, and the claims that follow from it.

Rules (RULES 17 and 18).  The key of a file is its entry: the parts of its real directory below the workspace's
root, then its own name, each as the directory it stands in folds it; below another root, behind the name at which
that is mounted.  A key does not depend on whether the file
exists, nor on its inode (replacing a file changes that).  Relative names start at the state's working directory,
absolute ones and ``~`` where the disk has them; ``.`` and ``..`` mean what the operating system takes them for,
after links.  Finding a key looks (lstat, readlink) and never opens a file.

What is *wanted* decides where a name ends and what may stand there (`Wanted`).  A file or directory is meant through
links; an entry, which is to be moved or deleted, is the link itself.

Theory.  A name means a file only as long as every directory and link it goes through stays what it is, so a
claim on a file comes with READ on each of those: who moves a directory or changes a link claims WRITE on it and
is ordered with everyone who went through.  A name that cannot be followed to its end (a circle, a file in a
directory's place, a way out) still claims what it went through: whether it is refused may depend on it.

Limits.  ``..`` after a directory that does not exist yet undoes it, where the system would say ENOENT: so the key
is the same before and after the directory is made.  Links may be followed on a way that leaves the workspace, if
it comes back; nothing outside is claimed.  A link with a slash behind it is no entry (the system would look behind
it or say ENOTDIR, by what is asked of it): say which is meant.
A directory that is mounted at two places counts as two.
"""

from __future__ import annotations

import enum
import errno
import functools
import os
from pathlib import PurePath

import attrs

from toolrt.model import READ, WRITE, Claim, Mode
from toolrt.workspace._disk import EXACT, NAME_MAX, PATH_MAX, Disk, Entry, Folding, Kind, Stat, parts_of
from toolrt.workspace._problem import UNSHOWN, FileProblem, from_os_error

__all__ = ["Identity", "Wanted", "identify"]

#: How many links one name may go through; Linux stops at the same number.
_MOST_LINKS = 40

#: How deep below the root a name may lead.  A claim on each directory of the way, each as long as its own depth, is
#: quadratic; no real tree is this deep.
_DEEPEST = 256

#: The claim of a name that means no file here: shared by all of them, and nobody writes it.
_REFUSED = Claim(("refused",), READ)


class Wanted(enum.Enum):
    """What a name is to mean, for what is to be done with it."""

    #: A regular file, or nothing yet: to read, write or edit.  Links are followed to their end.
    FILE = "a file"
    #: A directory, or nothing yet: to list, search or make.  Links are followed to their end.
    DIRECTORY = "a directory"
    #: Whatever stands there, or nothing yet: to move or delete.  A link in the last part is meant itself; the
    #: workspace's root is no entry.
    ENTRY = "an entry"


@attrs.frozen
class Identity:
    """What one name meant when it was looked at."""

    #: The folded parts below the root, or None: then `problem` says why the name means no file of the workspace.
    key: Entry | None
    #: The same parts as they are spelled, to reach the file by; empty without a key.
    entry: Entry
    #: What was there, or None for nothing.
    found: Stat | None
    #: The keys of the directories and links it went through, in that order, without `key` itself.
    through: tuple[Entry, ...]
    #: Why the name is not what was wanted, so that no tool may use it; or None.
    problem: FileProblem | None
    #: What the name was to mean.
    wanted: Wanted = Wanted.FILE

    @property
    def path(self) -> str:
        """The file relative to the workspace's root, as messages show it."""
        if self.key is None:
            return UNSHOWN
        return "/".join(self.entry) or "."

    @property
    def shared(self) -> bool:
        """Whether it is a file with more than one name."""
        return self.found is not None and self.found.links > 1 and self.found.kind is _FILE

    @property
    def is_there(self) -> bool:
        """Whether anything but a directory stood there."""
        return self.found is not None and self.found.kind is not _DIRECTORY

    @property
    def event_name(self) -> str:
        """The file as events name it: the same for all its names, hard links included."""
        if self.found is not None and self.shared:
            return f"hardlink:{self.found.device}:{self.found.inode}"
        return "/".join(self.key or ())

    def claims(self, mode: Mode, subtree: bool = False) -> tuple[Claim, ...]:
        """What a call claims that looks at this or changes it (`mode`: READ or WRITE); its own claim is first.

        A file with several names also claims ``("links", device)``: its other names are not known.

        Args:
            subtree: whether everything below is meant too, as for who lists, searches, moves or deletes a
                directory; then all files with several names are: which of them have a name below is not known.
                Who moves or deletes an entry changes no content of those, so there it is READ, and moves of
                different entries do not wait for each other.
        """
        claims: list[Claim] = []
        if self.key is not None:
            if mode is WRITE and not subtree:
                claims.append(_changed(self.key))
            else:
                claims.append(Claim(("file", *self.key), mode, subtree))
            if subtree:
                claims.append(Claim(("links",), READ if self.wanted is Wanted.ENTRY else mode, subtree=True))
            if self.found is not None and self.shared:
                claims.append(Claim(("links", self.found.device), mode))
        for passed in self.through:
            claims.append(_passed(passed))
        return tuple(claims) or (_REFUSED,)


def identify(disk: Disk, path: str, working_dir: PurePath | None = None, wanted: Wanted = Wanted.FILE) -> Identity:
    """What `path` means on `disk` now.

    Args:
        path: a name as the model gave it.
        working_dir: where relative names start; None and relative ones are below the disk's root.
        wanted: what it is to mean.

    Returns: never raises for a name, however wrong; `Identity.problem` says what is wrong.

    Checkpoint: never.
    """
    straight = _straight(disk, path, working_dir, wanted)
    if straight is not None:
        return straight
    walk = _Walk(disk)
    try:
        _check_text(path)
        if path == "~" or path.startswith("~/"):
            if disk.home is None:
                raise FileProblem(path, "a home directory", "none on this disk", "Use a path inside the workspace.")
            walk.follow(disk.home)
            path = "." + path[1:]
        elif not path.startswith("/") and working_dir is not None:
            walk.follow(working_dir.as_posix())
        walk.follow(path, to_end=wanted is not Wanted.ENTRY)
        problem = walk.final_problem(wanted)
    except FileProblem as refusal:
        return Identity(None, (), None, tuple(walk.through), refusal, wanted=wanted)
    key = walk.key()
    through = tuple(other for other in walk.through if other != key)
    found = _seen_at(disk, walk.here()) if walk.at_root() else walk.standing()
    return Identity(key, walk.entry(), found, through, problem, wanted)


def _straight(disk: Disk, path: str, working_dir: PurePath | None, wanted: Wanted) -> Identity | None:
    """What `path` means if it leads straight down from the root, as most names do; None: it has to be walked."""
    if disk.mounts:
        return None
    if working_dir is not None and not path.startswith(("/", "~")):
        path = f"{working_dir.as_posix()}/{path}".removeprefix("./")
    here = disk.root.rstrip("/")
    if path.startswith("/"):
        if not path.startswith(f"{here}/"):
            return None
        path = path[len(here) + 1 :]
    parts = path.split("/")
    if path.startswith("~") or len(parts) > _DEEPEST or not _NOT_PLAIN.isdisjoint(parts):
        return None
    if 4 * len(path) > NAME_MAX or "\0" in path or not path.isascii():
        return None
    through: list[Entry] = []
    key: Entry = ()
    found: Stat | None = _TOP
    folds, look = disk.folds, disk.lstat
    for part in parts:
        if found is None or found.kind is not _DIRECTORY:
            return None
        if key:
            through.append(key)
        folding = folds(here or "/")
        key = (*key, part if folding is EXACT else folding.fold(part))
        here = f"{here}/{part}"
        try:
            found = look(here)
        except FileNotFoundError:
            found = None
        except OSError:
            return None
    kind = None if found is None else found.kind
    if not (kind is None or (kind is _FILE if wanted is _A_FILE else kind is _DIRECTORY) or wanted is Wanted.ENTRY):
        return None
    return Identity(key, tuple(parts), found, tuple(through), None, wanted)


#: Looked up once: an attribute of an enumeration costs as much as a call.
_FILE, _DIRECTORY, _A_FILE = Kind.FILE, Kind.DIRECTORY, Wanted.FILE

#: Parts of a name that are more than a step down.
_NOT_PLAIN = frozenset(("", ".", ".."))


@functools.lru_cache(maxsize=4096)
def _passed(key: Entry) -> Claim:
    """The claim on a directory or a link that a name goes through; many names go through one."""
    return Claim(("file", *key), READ)


@functools.lru_cache(maxsize=4096)
def _changed(key: Entry) -> Claim:
    """The claim of who changes a file; it is made as the call is ordered, and again as it runs."""
    return Claim(("file", *key), WRITE)


def _seen_at(disk: Disk, root: str) -> Stat | None:
    """What stands at a root itself, which no walk looks at."""
    try:
        return disk.lstat(root)
    except OSError:
        return None


def _check_text(path: str) -> None:
    if not path:
        raise FileProblem(UNSHOWN, "a file's name", "an empty one", "Name a file, relative to the workspace.")
    if "\0" in path:
        raise FileProblem(UNSHOWN, "a file's name", "one with a NUL character", "Remove the NUL character.")
    try:
        encoded = path.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FileProblem(
            UNSHOWN, "a name in Unicode", f"half a surrogate pair at character {error.start}", "Use whole characters."
        ) from None
    if len(encoded) <= NAME_MAX:
        return
    longest = max(len(part) for part in encoded.split(b"/"))
    if len(encoded) > PATH_MAX or longest > NAME_MAX:
        raise FileProblem(
            UNSHOWN,
            f"at most {PATH_MAX} bytes, {NAME_MAX} in each part",
            f"{len(encoded)} bytes, {longest} in the longest part",
            "Use a shorter name.",
        )


_OUTSIDE = ("a path inside the workspace", "one that leads outside", "Name a file inside the workspace.")

#: What "/" and the directories on the way to the root are known to be.
_TOP = Stat(Kind.DIRECTORY, 0o755, 0, 0, 0, 0, 1)


class _Walk:
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
        # The four lists are equally long: one item for each part of the real path so far, from "/" down.
        self._names: list[str] = list(self._root)
        self._keys: list[str] = list(self._root)
        self._paths: list[str] = list(_way_down(self._root))
        #: What stands at each part; None from the first missing one on.
        self.found: list[Stat | None] = [_TOP] * len(self._root)
        #: Whether that path is the root or below it.
        self._inside = True
        #: The keys of all directories and links passed inside the root, in order.
        self.through: dict[Entry, None] = {}
        self._links = 0
        self._directory_meant = False

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
            self._directory_meant = part in ("", ".", "..")
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

    def final_problem(self, wanted: Wanted) -> FileProblem | None:
        """Why what was reached is not what is wanted, or None.

        Raises:
            FileProblem: it is outside the workspace.
        """
        if not self._inside:
            raise FileProblem(UNSHOWN, *_OUTSIDE)
        found, shown = self.standing(), "/".join(self.entry()) or "."
        here = self.here()
        # A character is at most four bytes, so a short path needs no closer look.
        if 4 * len(here) > PATH_MAX and len(os.fsencode(here)) > PATH_MAX:
            return from_os_error(shown, OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG)))
        if wanted is Wanted.DIRECTORY:
            if found is None or found.kind is Kind.DIRECTORY:
                return None
            return FileProblem(shown, "a directory", found.kind.value, "Name the directory it is in.")
        if found is None:
            if self._directory_meant:
                return FileProblem(shown, "a file's name", "the name of a directory", "Leave the last slash away.")
            return None
        if wanted is Wanted.ENTRY:
            if self.at_root():
                got = "a directory that is mounted there" if self.entry() else "the workspace itself"
                return FileProblem(shown, "an entry of the workspace", got, "Name what is in it.")
            return None
        if found.kind is Kind.DIRECTORY:
            return FileProblem(shown, "a file", "a directory", "Name a file inside it.")
        if found.kind is not Kind.FILE:
            return FileProblem(shown, "a regular file", found.kind.value, "It was not opened.")
        return None

    def standing(self) -> Stat | None:
        """What stands at the path so far."""
        return self.found[-1] if self.found else _TOP

    def entry(self) -> Entry:
        return self._mounted + tuple(self._names[len(self._root) :])

    def key(self) -> Entry:
        return self._mounted_key + tuple(self._keys[len(self._root) :])

    def at_root(self) -> bool:
        """Whether the path so far, which is inside, is that of a root."""
        return len(self._names) == len(self._root)

    def _to_top(self) -> None:
        self._names.clear()
        self._keys.clear()
        self._paths.clear()
        self.found.clear()
        self._by_name = False
        self._inside = not self._base
        if self._inside:
            self._enter(())

    def _enter(self, root: Entry) -> None:
        """The path so far is that of this root."""
        self._inside, self._root = True, root
        name = self._mounts.get(root)
        self._mounted = () if name is None else (name,)
        self._mounted_key = () if name is None else (self._disk.folds(self._disk.root).fold(name),)

    def _go_to(self, root: Entry) -> None:
        """The path so far is that of `root`, whatever it was."""
        self._names[:], self._keys[:], self._paths[:] = root, root, _way_down(root)
        self.found[:] = [_TOP] * len(root)
        self._enter(root)

    def _up(self) -> None:
        if self._by_name and self._inside and self.at_root():
            self._by_name = False
            self._go_to(self._base)
        elif self._names:
            self._names.pop()
            self._keys.pop()
            self._paths.pop()
            self.found.pop()
            self._inside = self._inside and len(self._names) >= len(self._root)

    def here(self) -> str:
        """The path so far."""
        return self._paths[-1] if self._paths else "/"

    def _refuse(self, name: str, error: OSError) -> FileProblem:
        """What to say about an error at `name` in this directory, without showing what is outside."""
        if not self._inside:
            return FileProblem(UNSHOWN, *_OUTSIDE)
        return from_os_error("/".join((*self.entry(), name)), error)

    def _require_directory(self) -> None:
        found = self.standing()
        if found is None or found.kind is Kind.DIRECTORY:
            return
        if not self._inside:
            raise FileProblem(UNSHOWN, *_OUTSIDE)
        raise FileProblem(
            "/".join(self.entry()), "a directory", found.kind.value, "Check the names of the directories."
        )

    def _step(self, part: str, *, follow: bool) -> str | None:
        """Go to `part` of this directory; for a link to be followed stay, and return its target."""
        depth = len(self._names)
        on_the_way = None if self._inside else self._on_the_way(part)
        if on_the_way is not None:
            self._push(on_the_way, on_the_way, _TOP)
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
        key = self._folding(depth).fold(part) if self._inside else part
        if target is None:
            self._push(part, key, found)
            return None
        if self._inside:
            self.through[(*self.key(), key)] = None
        self._links += 1
        if self._links > _MOST_LINKS:
            raise self._refuse(part, OSError(errno.ELOOP, os.strerror(errno.ELOOP)))
        return target

    def _below(self, name: str) -> str:
        return f"{self._paths[-1] if self._paths else ''}/{name}"

    def _push(self, name: str, key: str, found: Stat | None) -> None:
        self._paths.append(self._below(name))
        self._names.append(name)
        self._keys.append(key)
        self.found.append(found)
        if not self._inside:
            path = tuple(self._names)
            if path == self._base or path in self._mounts:
                self._enter(path)
        if self._inside and self.entry():
            if len(self._names) - len(self._root) > _DEEPEST:
                raise FileProblem(UNSHOWN, f"at most {_DEEPEST} directories deep", "more", "Use a shorter path.")
            self.through[self.key()] = None

    def _on_the_way(self, part: str) -> str | None:
        """The next part of a root's path, if `part` of this directory, which is outside, is that."""
        depth = len(self._names)
        here = tuple(self._names)
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
        if not self._mounts or not self._inside or self._root != self._base or not self.at_root():
            return None
        folding = self._disk.folds(self._disk.root)
        wanted = folding.fold(part)
        return next((root for root, name in self._mounts.items() if folding.fold(name) == wanted), None)

    def _folding(self, depth: int) -> Folding:
        """How the directory at the first `depth` parts folds names; a missing one will as the one it is made in."""
        while depth > 0 and self.found[depth - 1] is None:
            depth -= 1
        return self._disk.folds(self._paths[depth - 1] if depth else "/")


@functools.lru_cache(maxsize=256)
def _way_down(root: Entry) -> tuple[str, ...]:
    """The paths of the first part, the first two, and so on."""
    return tuple("/" + "/".join(root[:depth]) for depth in range(1, len(root) + 1))


#: Takes more spellings for the same than any directory does.
_LOOSEST = Folding(case=True, unicode=True)
