"""What a disk in memory is made of: the values it is planted with, and the nodes they become."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from toolrt.workspace._disk import Folding, Kind

__all__ = [
    "Branch",
    "Directory",
    "File",
    "HardLink",
    "Node",
    "Other",
    "Planted",
    "Special",
    "Symlink",
    "copied",
    "files_of",
]


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


@attrs.define(eq=False)
class File:
    """A regular file; it may stand under several names."""

    content: bytes
    mode: int
    inode: int
    links: int = 1
    mtime_ns: int = 0


@attrs.define(eq=False)
class Other:
    """A link or a special file: nothing about it changes."""

    kind: Kind
    target: str
    inode: int


@attrs.define(eq=False)
class Branch:
    """A directory."""

    folding: Folding
    mode: int
    inode: int
    #: By folded name: the name as it was made, and what stands there.
    names: dict[str, tuple[str, Node]] = attrs.field(factory=dict)


Node = File | Other | Branch


def copied(node: Branch, known: dict[int, File]) -> Branch:
    """A directory like `node`, with files of its own; `known` keeps several names of one file together."""
    made = Branch(node.folding, node.mode, node.inode)
    for key, (name, below) in node.names.items():
        if isinstance(below, Branch):
            made.names[key] = (name, copied(below, known))
        elif isinstance(below, File):
            if below.inode not in known:
                known[below.inode] = attrs.evolve(below)
            made.names[key] = (name, known[below.inode])
        else:
            made.names[key] = (name, below)
    return made


def files_of(node: Node) -> Iterator[File]:
    """Every regular file at `node` and below it, once for each of its names."""
    if isinstance(node, File):
        yield node
    elif isinstance(node, Branch):
        for _, below in node.names.values():
            yield from files_of(below)
