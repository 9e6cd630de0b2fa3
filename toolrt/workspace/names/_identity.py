"""Finds what a name means: one key for all names of a file, and the claims that follow from it.

Rules (RULES 17 and 18).  The key of a file is its entry: the parts of its real directory below the workspace's root,
then its own name, each folded as its directory folds names.  Below a mounted root the key begins with the mount's name.
A key does not depend on whether the file exists, nor on its inode (replacing a file changes that).  Relative names
start at the state's working directory, absolute names and ``~`` where the disk has them; `NameWalk` follows them.

A name of the disk's own (`is_own`), at the end or on the way, is refused whatever stands there.

`Wanted` decides where a name ends and what may stand there.  Links are followed to a file or a directory; an entry,
which is to be moved or deleted, is the link itself.

Theory.  A name means a file only while every directory and link on its way stays the same.  So a claim on a file comes
with READ on each of those, and a call that moves a directory or changes a link claims WRITE on it: the two are ordered.
A name that cannot be followed to its end (a circle, a file in a directory's place, a way out) still claims what it went
through, because the refusal may depend on it.

Claims look at names, so the engine asks for them once no earlier call can change these names.  What a file's name means
is a resource below its entry (`_MEANING`).  A call that moves or deletes the entry, or a directory above it, claims
that resource with the subtree.  A call that changes the file's content does not.

Limits.  A link with a slash behind it is not an entry: the system would look behind it or raise ENOTDIR, depending on
the operation.  A directory that the system has mounted at two places counts as two.
"""

from __future__ import annotations

import enum
import errno
import functools
import os
from pathlib import PurePath

import attrs

from toolrt.model import READ, WRITE, Claim, Mode
from toolrt.workspace._problem import UNSHOWN, FileProblem, from_os_error
from toolrt.workspace.disk._disk import DEEPEST, EXACT, NAME_MAX, OWN, PATH_MAX, Disk, Entry, Folding, Kind, Stat
from toolrt.workspace.names._mounts import path_on, stat_or_none
from toolrt.workspace.names._name_walk import OUTSIDE, TOP, NameWalk
from toolrt.workspace.names._naming import meant_path, shown_at

#: The claim of a name that means no file here.  All such names share it, and no call writes it.
_REFUSED = Claim(("refused",), READ)


#: The part below an entry that stands for what a name means there: no file has this name.
_MEANING = "/means"


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

    @functools.cached_property
    def path(self) -> str:
        """The file relative to the workspace's root, as messages show it."""
        if self.key is None:
            return UNSHOWN
        return shown_at(self.entry)

    @functools.cached_property
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
            subtree: whether everything below is meant too, as to list, search, move or delete a directory.  This
                includes all files with several names, because it is not known which of them have a name below.
                Moving or deleting an entry changes none of their contents, so it claims READ on them, and moves of
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

    def looks_at(self) -> tuple[Claim, ...]:
        """What decides which file the name means, to be claimed: its entry, and each link or obstacle on the way."""
        passed = self.through if self.key is None else (*self.through, self.key)
        ends = [key for at, key in enumerate(passed) if at + 1 == len(passed) or passed[at + 1][: len(key)] != key]
        return tuple(_meaning(key) for key in ends)


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
    walk = NameWalk(disk)
    try:
        path = _checked(path)
        if path == "~" or path.startswith("~/"):
            if disk.home is None:
                raise FileProblem(path, "a home directory", "none on this disk", "Use a path inside the workspace.")
            walk.follow(disk.home)
            path = "." + path[1:]
        elif not path.startswith("/") and working_dir is not None:
            walk.follow(working_dir.as_posix())
        walk.follow(path, to_end=wanted is not Wanted.ENTRY)
        problem = _final_problem(walk, wanted)
    except FileProblem as refusal:
        return Identity(None, (), None, tuple(walk.through), refusal, wanted=wanted)
    key = walk.key()
    through = tuple(other for other in walk.through if other != key)
    # No walk looks at a root itself.
    found = stat_or_none(disk, walk.here()) if walk.at_root() else walk.standing()
    return Identity(key, walk.entry(), found, through, problem, wanted)


class KeysBelow:
    """The keys of what a walk finds below a directory, without following each name anew.

    Args:
        disk: whose directory it is.
        base: the directory.
    """

    def __init__(self, disk: Disk, base: Identity) -> None:
        self._disk = disk
        self._base = base
        #: The keys of the directories met so far, by their entries, and how each folds names.
        self._directories: dict[Entry, tuple[Entry, Folding]] = {}

    def key(self, entry: Entry) -> Entry:
        """The key of an entry below the base."""
        key, folding = self._directory(entry[:-1])
        return (*key, folding.fold(entry[-1]))

    def identity(self, names: Entry, found: Stat) -> Identity:
        """The identity of what was `found` below the base, at these names from there."""
        entry = (*self._base.entry, *names)
        return Identity(self.key(entry), entry, found, (), None)

    def _directory(self, entry: Entry) -> tuple[Entry, Folding]:
        known = self._directories.get(entry)
        if known is None:
            key = (self._base.key or ()) if entry == self._base.entry else self.key(entry)
            known = self._directories[entry] = key, self._disk.folds(path_on(self._disk, entry))
        return known


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
    if path.startswith("~") or len(parts) > DEEPEST or not _NOT_PLAIN.isdisjoint(parts):
        return None
    if 4 * len(path) > NAME_MAX or not _NOT_STRAIGHT.isdisjoint(path) or not path.isascii() or OWN in path.lower():
        return None
    through: list[Entry] = []
    key: Entry = ()
    found: Stat | None = TOP
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

#: Characters of a name that is refused, or may be quoted.
_NOT_STRAIGHT = frozenset('\0"')


@functools.lru_cache(maxsize=4096)
def _passed(key: Entry) -> Claim:
    """The claim on a directory or a link that a name goes through; many names go through one."""
    return Claim(("file", *key), READ)


@functools.lru_cache(maxsize=4096)
def _meaning(key: Entry) -> Claim:
    """The claim of a call that depends on what a name means at an entry."""
    return Claim(("file", *key, _MEANING), READ)


@functools.lru_cache(maxsize=4096)
def _changed(key: Entry) -> Claim:
    """The claim of a call that changes a file; it is made as the call is ordered, and again as it runs."""
    return Claim(("file", *key), WRITE)


def _checked(path: str) -> str:
    """What a model's text for a name means, if it can be one; see `toolrt.workspace.names._naming.meant_path`."""
    if not path:
        raise FileProblem(UNSHOWN, "a file's name", "an empty one", "Name a file, relative to the workspace.")
    if "\0" in path:
        raise FileProblem(UNSHOWN, "a file's name", "one with a NUL character", "Remove the NUL character.")
    try:
        path.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FileProblem(
            UNSHOWN, "a name in Unicode", f"half a surrogate pair at character {error.start}", "Use whole characters."
        ) from None
    path = meant_path(path)
    if not path or "\0" in path:
        raise FileProblem(UNSHOWN, "a file's name", "an empty one, or one with a NUL character", "Name a file.")
    encoded = path.encode("utf-8", "surrogateescape")
    if len(encoded) <= NAME_MAX:
        return path
    longest = max(len(part) for part in encoded.split(b"/"))
    if len(encoded) > PATH_MAX or longest > NAME_MAX:
        raise FileProblem(
            UNSHOWN,
            f"at most {PATH_MAX} bytes, {NAME_MAX} in each part",
            f"{len(encoded)} bytes, {longest} in the longest part",
            "Use a shorter name.",
        )
    return path


def _final_problem(walk: NameWalk, wanted: Wanted) -> FileProblem | None:
    """Why what was reached is not what is wanted, or None.

    Raises:
        FileProblem: it is outside the workspace.
    """
    if not walk.inside:
        raise FileProblem(UNSHOWN, *OUTSIDE)
    found, shown = walk.standing(), shown_at(walk.entry())
    here = walk.here()
    # A character is at most four bytes, so a short path needs no closer look.
    if 4 * len(here) > PATH_MAX and len(os.fsencode(here)) > PATH_MAX:
        return from_os_error(shown, OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG)))
    if wanted is Wanted.DIRECTORY:
        if found is None or found.kind is Kind.DIRECTORY:
            return None
        return FileProblem(shown, "a directory", found.kind.value, "Name the directory it is in.")
    if found is None:
        if walk.directory_meant:
            return FileProblem(shown, "a file's name", "the name of a directory", "Leave the last slash away.")
        return None
    if wanted is Wanted.ENTRY:
        if walk.at_root():
            got = "a directory that is mounted there" if walk.entry() else "the workspace itself"
            return FileProblem(shown, "an entry of the workspace", got, "Name what is in it.")
        return None
    if found.kind is Kind.DIRECTORY:
        return FileProblem(shown, "a file", "a directory", "Name a file inside it.")
    if found.kind is not Kind.FILE:
        return FileProblem(shown, "a regular file", found.kind.value, "It was not opened.")
    return None
