"""The nodes of a disk in memory, and the values that tests plant in it."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from toolrt.workspace.disk._disk import Folding, Kind


@attrs.frozen
class Directory:
    """Plants a directory, which may be empty."""

    #: How it folds names; None: as the directory it is in.
    fold: Folding | None = None
    #: Permission bits.
    mode: int = 0o755


@attrs.frozen
class Symlink:
    """Plants a symbolic link."""

    #: The link's text, relative to the directory it is in or absolute; it need not lead anywhere.
    target: str


@attrs.frozen
class HardLink:
    """Plants another name of a file that is planted too."""

    #: The file's path, relative to the root or absolute.
    target: str


@attrs.frozen
class Special:
    """Plants what is neither file nor directory: a pipe, a socket, a device."""

    #: What it is.
    kind: Kind = Kind.FIFO


#: What a `MemoryDisk` is planted with; text is encoded as UTF-8.
Planted = str | bytes | Directory | Symlink | HardLink | Special


@attrs.frozen
class User:
    """The user of a `MemoryDisk`, bound by permission bits."""

    #: The user's number; not 0, which is root.
    uid: int
    #: The numbers of the user's groups; new files belong to the first.  At least one.
    gids: tuple[int, ...]


@attrs.frozen
class RecoveryCopy:
    """What a recovery copy holds."""

    #: The name, in the copy's own directory, that the file was written under.
    name: str
    #: The file's number.
    inode: int
    #: What was there, and what was to be.
    old: bytes
    new: bytes


@attrs.define(eq=False)
class FileNode:
    """A regular file; it may stand under several names."""

    content: bytes
    mode: int
    inode: int
    uid: int = 0
    gid: int = 0
    links: int = 1
    mtime_ns: int = 0
    ctime_ns: int = 0
    #: How often it was changed: what the time may hide within one step of the clock.
    changes: int = 0
    #: Whether it ever had several names.  From then on a look at one of them counts as a look at all, even when only
    #: one name is left.
    shared: bool = False
    #: Whether a living writer holds it.
    held: bool = False
    #: Where the disk itself gave it a name of its own, and which: the directory's number and the name.  It is the
    #: disk's own as long as it stands there.
    made_as: tuple[int, str] | None = None
    #: Of a recovery copy that is whole: what it holds.
    saved: RecoveryCopy | None = None

    def changed(self, now_ns: int) -> None:
        """Something about it is another than it was."""
        self.changes += 1
        self.ctime_ns = now_ns


@attrs.define(eq=False)
class Other:
    """A link or a special file: nothing about it changes."""

    kind: Kind
    target: str
    inode: int
    uid: int = 0
    gid: int = 0
    mode: int = 0o777


@attrs.define(eq=False)
class Branch:
    """A directory."""

    folding: Folding
    mode: int
    inode: int
    uid: int = 0
    gid: int = 0
    #: Whether a living writer is removing it.
    held: bool = False
    #: As of a file.
    made_as: tuple[int, str] | None = None
    #: By folded name: the name as it was made, and what stands there.
    names: dict[str, tuple[str, Node]] = attrs.field(factory=dict)


Node = FileNode | Other | Branch


def copied(node: Branch, known: dict[int, FileNode]) -> Branch:
    """A directory like `node`, with files of its own that no writer holds.

    `known` keeps several names of one file together.
    """
    made = attrs.evolve(node, names={}, held=False)
    for key, (name, below) in node.names.items():
        if isinstance(below, Branch):
            made.names[key] = (name, copied(below, known))
        elif isinstance(below, FileNode):
            if below.inode not in known:
                known[below.inode] = attrs.evolve(below, held=False)
            made.names[key] = (name, known[below.inode])
        else:
            made.names[key] = (name, below)
    return made


def nodes_of(node: Node) -> Iterator[Node]:
    """`node` and all that is below it, once for each name."""
    yield node
    if isinstance(node, Branch):
        for _, below in node.names.values():
            yield from nodes_of(below)


def files_of(node: Node) -> Iterator[FileNode]:
    """Every regular file at `node` and below it, once for each of its names."""
    return (found for found in nodes_of(node) if isinstance(found, FileNode))
