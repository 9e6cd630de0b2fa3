"""The directories that commands work on: ``--workspace``, and with ``--mount`` others at names of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import attrs
from cyclopts import Parameter

from toolrt._plain import counted
from toolrt.cli.experiment._input import checked_directory
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._screen import complain
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.workspace import Disk, Fault, MemoryDisk, MountedDisk, Skeleton, Workspace, head_and_tail

T = TypeVar("T")

#: How many names a notice shows.
_SHOWN = 5

#: The option.
Mounts = Annotated[
    tuple[str, ...],
    Parameter(
        name="--mount",
        negative=(),
        consume_multiple=False,
        help="Take NAME=DIRECTORY into the workspace as well, as NAME/... there.",
    ),
]

#: The option that changes files through hard links that lead out of the workspace.
KeepHardLinks = Annotated[
    bool,
    Parameter(
        name="--keep-hard-links",
        negative=(),
        help="Change all names of a file, also those outside; else the changed name gets a file of its own.",
    ),
]


@attrs.frozen
class Roots:
    """The directories of one workspace; links resolved."""

    base: Path
    mounts: Mapping[str, Path] = attrs.field(factory=dict)

    @property
    def all(self) -> tuple[Path, ...]:
        """Each of them, the base first."""
        return (self.base, *self.mounts.values())

    def workspace(self, skeleton: Skeleton = head_and_tail, keep_hard_links: bool = False) -> Workspace:
        """The workspace of the files themselves; the arguments are its.

        Raises:
            InputRefused: they cannot be one.
        """
        workspace = _refused_as_input(
            lambda: Workspace(self.base, mounts=self.mounts, skeleton=skeleton, keep_hard_links=keep_hard_links)
        )
        if found := workspace.left_alone:
            shown = ", ".join(on_one_line(path, 200) for path in found[:_SHOWN])
            more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
            complain(
                f"toolrt leaves alone {counted(len(found), 'name')} like its own that it did not make: {shown}{more}."
                " They are not shown to tools; delete them if they are not yours."
            )
        return workspace

    def twin(self, fault: Fault | None = None) -> Disk:
        """A copy of the files in memory.

        Args:
            fault: what may fail, as of `MemoryDisk`; its paths are relative to the workspace's root.

        Raises:
            InputRefused: they cannot be one, or cannot be copied.
        """
        base = MemoryDisk.copy_of(self.base, fault=fault)
        if not self.mounts:
            return base
        others = {
            name: MemoryDisk.copy_of(where, fault=None if fault is None else _below(name, fault))
            for name, where in self.mounts.items()
        }
        return _refused_as_input(lambda: MountedDisk(base, others))


def roots_of(workspace: str, mount: Sequence[str] = ()) -> Roots:
    """The directories that the options name.

    Raises:
        InputRefused: one of them is none.
    """
    mounts: dict[str, Path] = {}
    for text in mount:
        name, equals, where = text.partition("=")
        if not equals or not name or not where:
            raise InputRefused(f"--mount {text!r:.200}", "expected NAME=DIRECTORY", "Such as --mount docs=../docs.")
        if name in mounts:
            raise InputRefused(f"--mount {text!r:.200}", f"there is another {name!r}", "Give each a name of its own.")
        mounts[name] = checked_directory(where)
    return Roots(checked_directory(workspace), mounts)


def as_options(disk: Disk) -> str:
    """The options that name the roots of `disk`, as a shell takes them."""
    mounts = "".join(f" --mount {_quoted(f'{name}={where}')}" for name, where in disk.mounts.items())
    return f"--workspace {_quoted(disk.root)}{mounts}"


def fresh(disk: Disk) -> Disk:
    """A copy of a twin, as `Roots.twin` made it."""
    return disk.over(_copied) if isinstance(disk, MountedDisk) else _copied(disk)


def _copied(disk: Disk) -> Disk:
    assert isinstance(disk, MemoryDisk)
    return disk.copy()


def _below(name: str, fault: Fault) -> Fault:
    """`fault` as a disk asks that is mounted at `name`."""
    return lambda effect, path: fault(effect, f"{name}/{path}" if path else name)


def _refused_as_input(made: Callable[[], T]) -> T:
    try:
        return made()
    except DefinitionRefused as error:
        raise InputRefused(
            f"--mount ({error.what})", f"expected {error.expected}, got {error.got!r:.200}", "Name others."
        ) from None


def _quoted(text: str) -> str:
    return shlex.quote(on_one_line(text, 1_000))
