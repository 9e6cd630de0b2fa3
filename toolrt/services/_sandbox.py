"""What a sandboxed command may reach: the workspace, the system's programs, and a directory of its own.

Rules.
    1. The workspace's directories can be written; what is stated can be written or read; everything else is hidden.
    2. A command gets an empty directory of its own as ``HOME`` and ``TMPDIR``, which is removed when it has ended.
    3. The directories that hold toolrt's key and history are never in reach: a sandbox that would show them is refused.
    4. Where the kernel cannot hold what was asked for, the sandbox is refused; it is never left out in silence.

The restrictions and their limits: `toolrt.processes._sandbox`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.processes import sandbox_lacks
from toolrt.workspace import Disk, real_disks, state_directory

#: What can be read and executed unless a sandbox says otherwise: where programs, libraries and their settings are.
SYSTEM = ("/bin", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/sbin", "/sys", "/usr")

#: Devices of every command.
_DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")

#: The restrictions there can be; the last needs Linux 6.12.
_RESTRICTIONS = ("files", "privileges", "ipc", "network", "signals")


def _paths(given: object) -> object:
    return (given,) if isinstance(given, str | os.PathLike) else tuple(given) if isinstance(given, list) else given


@attrs.frozen
class Sandbox:
    """What commands may reach beside the workspace.

    Example::

        tool = shell_tool(workspace, sandbox=Sandbox(readable=("/home/me/.cargo",), network=True))
    """

    #: Whether they may use the network, this machine's own addresses included; Unix sockets stay refused.
    network: bool = False
    #: Directories and files that can be read and executed beside `SYSTEM`, the directories of ``PATH``, and the Python
    #: that runs this program; absolute paths; those that do not exist are left out.
    readable: tuple[str | os.PathLike[str], ...] = attrs.field(default=(), converter=_paths)
    #: Directories and files that can also be written; absolute paths without links in them.
    writable: tuple[str | os.PathLike[str], ...] = attrs.field(default=(), converter=_paths)

    @readable.validator
    @writable.validator
    def _check_paths(self, field: attrs.Attribute[object], paths: object) -> None:
        if not isinstance(paths, tuple) or not all(
            isinstance(path, str | os.PathLike) and os.path.isabs(path) for path in paths
        ):
            raise DefinitionRefused(f"Sandbox({field.name})", "absolute paths", paths)


def rights_of(sandbox: Sandbox | bool, disk: Disk, environment: Mapping[str, str]) -> list[str]:
    """What a command on `disk` is restricted to, as `toolrt.processes` takes it; empty: `sandbox` is False.

    Raises:
        DefinitionRefused: the kernel has no such sandbox, or toolrt's own key or history would be in reach.
    """
    if sandbox is False:
        return []
    asked = Sandbox() if sandbox is True else sandbox
    if not isinstance(asked, Sandbox):
        raise DefinitionRefused("RealShell(sandbox)", "True, False or a services.Sandbox", sandbox)
    lacks = sandbox_lacks()
    if lacks is not None:
        raise DefinitionRefused("RealShell(sandbox)", lacks, sandbox)
    hidden = list(_hidden(disk))
    roots = [part.root for part in real_disks(disk)]
    stated = [(name, os.path.realpath(path)) for name in ("readable", "writable") for path in getattr(asked, name)]
    for name, path in (*(("workspace", root) for root in roots), *stated):
        if _shows(path, hidden):
            expected = "no directory that holds toolrt's own key or history"
            raise DefinitionRefused(f"RealShell(sandbox), {name}", expected, path)
    found = [*SYSTEM, *environment["PATH"].split(os.pathsep), sys.prefix, sys.base_prefix]
    readable = [path for path in map(os.path.realpath, found) if not _shows(path, hidden)]
    return [
        *(("net",) if asked.network else ()),
        *(f"w{path}" for path in (*roots, *(path for name, path in stated if name == "writable"))),
        *(f"r{path}" for path in dict.fromkeys((*readable, *(path for name, path in stated if name == "readable")))),
        *(f"d{path}" for path in _DEVICES),
    ]


def restrictions(confined: Sequence[str]) -> str:
    """Which restrictions held, and which did not, for the answer of a call."""
    without = [name for name in _RESTRICTIONS if name not in confined]
    return f"sandbox: {', '.join(confined)}" + (f"; not: {', '.join(without)}" if without else "")


def _hidden(disk: Disk) -> Iterator[str]:
    """The directories that hold keys and histories, those of a user's other workspaces among them."""
    history = state_directory(disk, None)
    # None: the user's own directory for them is inside the workspace.
    yield disk.root if history is None else os.path.realpath(os.path.dirname(history))
    for part in real_disks(disk):
        yield from map(os.path.realpath, (*part.seal.directories, *filter(None, (part.seal.place,))))


def _shows(path: str, hidden: Sequence[str]) -> bool:
    return any(os.path.commonpath((path, one)) in (path, one) for one in hidden)
