"""What the kernel forbids a program and all that it starts: Landlock, seccomp, and no privileges.

Rules.
    1. `confine` restricts the calling thread for good, so the process calls it that is about to become the program.
       Each restriction holds for all that this process starts, and none of them can take it back.
    2. It restricts as it was asked to or raises; no restriction is left out in silence.  It returns the names of those
       that hold.
    3. This module imports the standard library alone: the supervisor loads it, which has nothing else.

What is restricted, by name:

``files``
    Landlock: what is not stated to be readable or writable cannot be opened, listed, executed, made, moved or removed,
    whatever link, descriptor in ``/proc`` or race of names leads to it.  The same forbids to trace processes outside
    the sandbox and to open what ``/proc`` shows of them.
``privileges``
    ``no_new_privs``: no setuid program or file capability gives any.  Of capabilities only those stay that concern
    files.
``ipc``
    seccomp: no Unix socket but connected pairs, no shared memory, queue or key of another program, no io_uring, and no
    limits (prlimit) for another process.
``network``
    seccomp: no socket of any kind; and, where the kernel's Landlock knows it, no TCP.
``signals``
    Landlock from ABI 6 (Linux 6.12) on: no signal to a process outside of the sandbox.

Limits.  Landlock does not hide that a name exists, nor its size and times (stat), and does not keep a program from
changing the mode, the owner, the times or the extended attributes of a file outside that its user owns.

Sources: the kernel's Documentation/userspace-api/landlock.rst, seccomp_filter.rst and no_new_privs.rst; landlock(7),
capabilities(7) and unix(7).
"""

from __future__ import annotations

import ctypes
import os
import platform
import stat
import struct
import sys
from collections.abc import Sequence

#: The oldest Landlock that this uses, of Linux 6.2: before it a file that cannot be written can be truncated.
OLDEST_ABI = 3

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _OPENAT2 = 444, 445, 446, 437

#: Rights of a rule, by their bits (linux/landlock.h).
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_TCP, _SCOPES = 3, 3  # bind and connect; abstract sockets and signals

_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS = 2, 4

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _SECCOMP_MODE_FILTER = 22, 38, 47, 2

#: CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_FSETID: root has the workspace's files as before.
_CAPABILITIES_OF_FILES = 1 | 1 << 1 | 1 << 3 | 1 << 4

#: Families of sockets: Unix, IPv4, IPv6, and netlink, by which programs ask for the addresses of this machine.
_AF_UNIX, _INTERNET = 1, (2, 10, 16)

#: For each machine: its mark in a filter, then the numbers of socket, socketpair, prlimit64, and of the calls that are
#: refused whatever their arguments are (shmget, semget, msgget, mq_open, add_key, request_key, keyctl, io_uring_setup).
_MACHINES = {
    "x86_64": (0xC000003E, 41, 53, 302, (29, 64, 68, 240, 248, 249, 250, 425)),
    "aarch64": (0xC00000B7, 198, 199, 261, (194, 190, 186, 180, 217, 218, 219, 425)),
}

# Instructions of a classic BPF filter (linux/filter.h), and where a filter finds what it is asked about.
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_AT_LEAST = 0x15, 0x35
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | 13, 0x80000000  # refused: EACCES


def landlock_abi() -> int:
    """The version of Landlock in this kernel; 0: it has none, or it is switched off."""
    try:
        return max(0, int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)))
    except (OSError, AttributeError):
        return 0


def sandbox_lacks() -> str | None:
    """What this system lacks for `confine`; None: nothing."""
    if not sys.platform.startswith("linux"):
        return f"Linux, and this is {sys.platform}"
    if platform.machine() not in _MACHINES:
        return f"a machine whose system calls are known ({', '.join(_MACHINES)}), and this is {platform.machine()}"
    abi = landlock_abi()
    if abi < OLDEST_ABI:
        return f"Landlock ABI {OLDEST_ABI} (Linux 6.2), and this kernel has {f'ABI {abi}' if abi else 'none'}"
    return None


def confine(arguments: Sequence[str]) -> list[str]:
    """Restrict the calling thread, and all that it starts, for good.

    Args:
        arguments: ``net`` to leave the network open; and absolute paths behind their mark: ``w`` may be written, and
            no link leads to it; ``r`` may be read and executed; ``d`` is a device or a file that may be read and
            written.  What does not exist behind ``r`` and ``d`` is left out.

    Returns:
        The names of the restrictions that hold.

    Raises:
        OSError: one of them cannot be put up.  Others may hold by then: the process is to end.
    """
    libc, abi = _libc(), landlock_abi()
    network = "net" in arguments
    if sandbox_lacks() is not None:
        raise OSError(0, "no sandbox here")
    handled = (1 << (16 if abi >= 5 else 15)) - 1
    ruleset = _checked(libc.syscall(_CREATE_RULESET, *_attributes(abi, handled, network)))
    for argument in arguments:
        if argument != "net":
            _allow(libc, ruleset, argument[0], argument[1:], handled)
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _drop_capabilities(libc)
    _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)
    _filter(libc, network)
    found = {"files": True, "privileges": True, "ipc": True, "network": not network, "signals": abi >= 6}
    return [name for name, holds in found.items() if holds]


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


def _attributes(abi: int, handled: int, network: bool) -> tuple[object, object, int]:
    """The arguments that make a ruleset; an older kernel takes a shorter record."""
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    record = struct.pack("=QQQ", handled, 0 if network else _TCP, _SCOPES)[:size]
    return record, ctypes.c_size_t(size), 0


def _allow(libc: ctypes.CDLL, ruleset: int, mark: str, path: str, handled: int) -> None:
    """Add the rule for one path to `ruleset`."""
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_NO_MAGICLINKS | _RESOLVE_NO_SYMLINKS)
    try:
        if mark == "w":
            # A command of earlier may have put a link there, where one workspace is inside another.
            arguments = (-100, os.fsencode(path), how, ctypes.c_size_t(len(how)))
            descriptor = _checked(libc.syscall(_OPENAT2, *arguments))
        else:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        if mark == "w":
            raise
        return
    rights = _READING if mark == "r" else handled
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        rights &= _OF_FILES
    rule = struct.pack("=Qi", rights & handled, descriptor)
    _checked(libc.syscall(_ADD_RULE, ruleset, 1, rule, 0))
    os.close(descriptor)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Keep what root may do with files, and nothing else; for other users there is nothing to drop."""
    libc.prctl(_PR_CAP_AMBIENT, 4, 0, 0, 0)  # clear all; an older kernel has none
    header = struct.pack("=Ii", 0x20080522, 0)
    held = ctypes.create_string_buffer(24)
    _checked(libc.capget(header, held))
    kept = struct.unpack_from("=II", held)
    low = [value & _CAPABILITIES_OF_FILES for value in kept]
    _checked(libc.capset(header, struct.pack("=6I", *low, 0, 0, 0, 0)))


def _filter(libc: ctypes.CDLL, network: bool) -> None:
    """Refuse the system calls of the restrictions ``ipc`` and ``network``."""
    architecture, socket, socketpair, prlimit, refused = _MACHINES[platform.machine()]
    families = _INTERNET if network else ()
    # Each call that depends on an argument has a block of its own, which ends with an answer.
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        # Numbers of the x32 interface, which would be other names of the same calls.
        (_IF_AT_LEAST, 0, 1, 0x40000000),
        (_RETURN, 0, 0, _REFUSE),
        *_one_of(refused, _REFUSE),
        *_block(socket, _argument(0) + _one_of(families, _ALLOW) + [(_RETURN, 0, 0, _REFUSE)]),
        # A pair that is not connected for good, of datagrams, can be turned to any address.
        *_block(
            socketpair,
            [
                *_argument(0),
                (_IF_EQUAL, 1, 0, _AF_UNIX),
                (_RETURN, 0, 0, _REFUSE),
                *_argument(1),
                (_AND, 0, 0, 0xF),
                *_one_of((1, 5), _ALLOW),  # SOCK_STREAM, SOCK_SEQPACKET
                (_RETURN, 0, 0, _REFUSE),
            ],
        ),
        *_block(prlimit, [*_argument(0), *_one_of((0,), _ALLOW), (_RETURN, 0, 0, _REFUSE)]),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in program))
    given = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    _checked(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, given, 0, 0))


_Instruction = tuple[int, int, int, int]


def _argument(place: int) -> list[_Instruction]:
    """Load the lower half of an argument, which is all that the kernel looks at in an int; little-endian machines."""
    return [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * place)]


def _one_of(values: Sequence[int], answer: int) -> list[_Instruction]:
    """Answer if what is loaded is one of `values`, else go on."""
    return [one for value in values for one in ((_IF_EQUAL, 0, 1, value), (_RETURN, 0, 0, answer))]


def _block(number: int, block: list[_Instruction]) -> list[_Instruction]:
    """Do `block` if the system call is `number`, else go on."""
    return [(_IF_EQUAL, 0, len(block), number), *block]
