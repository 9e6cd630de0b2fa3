"""Tries to get out of a sandbox, and prints each try that went well, one name a line.

It runs as a script, in the workspace.  Its arguments are a directory outside with the file ``secret`` and the Unix
sockets ``stream`` and ``datagrams`` in it, the number of a process outside, the port of a server, and the name of an
abstract socket.
"""

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

outside, process, server, abstract = sys.argv[1:] if __name__ == "__main__" else ("", "0", "0", "")
pid, port = int(process), int(server)
secret = os.path.join(outside, "secret")


def read(path: str) -> None:
    with open(path, "rb") as file:
        assert file.read()


def linked() -> None:
    os.symlink(outside, "link")
    try:
        read("link/secret")
    finally:
        os.unlink("link")


def hard_linked() -> None:
    os.link(secret, "hard")
    os.unlink("hard")


def moved_out() -> None:
    with open("mine", "w") as file:
        file.write("mine")
    os.rename("mine", os.path.join(outside, "mine"))


def swapped() -> None:
    """Open a name while another process makes it a link to what is outside."""
    os.mkdir("real")
    with open("real/secret", "w") as file:
        file.write("mine")
    swapping = os.fork()
    while swapping == 0:
        for target in (outside, "real"):
            os.symlink(target, "new")
            os.replace("new", "turning")
    refused, found = 0, ""
    while refused < 200 and found != "secret":
        try:
            with open("turning/secret") as file:
                found = file.read()
        except FileNotFoundError:
            continue  # the other process has not begun
        except PermissionError:
            refused += 1
    os.kill(swapping, signal.SIGKILL)
    os.waitpid(swapping, 0)
    shutil.rmtree("real")
    for name in ("turning", "new"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    assert found == "secret"


def traced() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.ptrace(16, pid, None, None) == 0  # PTRACE_ATTACH
    os.waitpid(pid, 0x40000000)  # __WALL
    libc.ptrace(17, pid, None, None)


def connected(kind: int, address: str) -> None:
    with socket.socket(socket.AF_UNIX, kind) as one:
        one.connect(address)


def datagram_of_a_pair() -> None:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        one.sendto(b"out", os.path.join(outside, "datagrams"))


def called() -> None:
    socket.create_connection(("127.0.0.1", port)).close()


def datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"out", ("127.0.0.1", port))


def new_privileges() -> None:
    with open("/proc/self/status") as file:
        assert "NoNewPrivs:\t0" in file.read()


def setuid_program() -> None:
    """Run a program that another user owns, as that user."""
    program = shutil.copy(shutil.which("id") or "/usr/bin/id", "id")
    try:
        os.chown(program, 65534, -1)
        os.chmod(program, 0o4755)
        shown = subprocess.run([os.path.abspath(program), "-u"], capture_output=True, text=True, check=True).stdout
    finally:
        os.unlink(program)
    assert shown.strip() == "65534"


def ring() -> None:
    parameters = ctypes.create_string_buffer(120)
    assert ctypes.CDLL(None, use_errno=True).syscall(425, 1, parameters) >= 0  # io_uring_setup


TRIES: dict[str, Callable[[], object]] = {
    "read": lambda: read(secret),
    "write": lambda: open(secret, "a").close(),
    "truncate": lambda: os.truncate(secret, 6),
    "list": lambda: os.listdir(outside),
    "make": lambda: os.mkdir(os.path.join(outside, "made")),
    "execute": lambda: subprocess.run([os.path.join(outside, "program")], check=True),
    "link": linked,
    "hard link": hard_linked,
    "move": moved_out,
    "swap": swapped,
    "toolrt's key": lambda: read(os.path.join(outside, "state", "key")),
    "environment of a process": lambda: read(f"/proc/{pid}/environ"),
    "root of a process": lambda: read(f"/proc/{pid}/root{secret}"),
    "directory of a process": lambda: os.listdir(f"/proc/{pid}/cwd"),
    "trace": traced,
    "signal": lambda: os.kill(pid, 0),
    "limits of a process": lambda: resource.prlimit(pid, resource.RLIMIT_CPU),
    "Unix socket": lambda: connected(socket.SOCK_STREAM, os.path.join(outside, "stream")),
    "abstract socket": lambda: connected(socket.SOCK_STREAM, f"\0{abstract}"),
    "datagram of a pair": datagram_of_a_pair,
    "TCP": called,
    "UDP": datagram,
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close(),
    "new privileges": new_privileges,
    "setuid": setuid_program,
    "io_uring": ring,
    "other user": lambda: os.setuid(65534),  # the last, as it takes rights away
}

if __name__ == "__main__":
    for name, attempt in TRIES.items():
        try:
            attempt()
        except (OSError, AssertionError, subprocess.SubprocessError):
            continue
        print(name)
