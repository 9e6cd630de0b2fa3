"""Signs the names that the disk makes itself with a key that only this user has, and recognises them.

Rules.  A name of the disk's own has a random part and a signature over it and over the directory that it stands in (its
inode number).  A recovery copy is signed as a whole.  The key is 32 random bytes in the user's private state directory,
or else in the one that the workspace was given, in a file that belongs to this user and that only this user may read.
A start believes nothing else: not a name, not what
a file says, not where it stands.

Theory.  A cloned repository, an archive or a tool can plant any name and any content, but not a signature.  A name that
is copied to another directory, or with its tree to another place, is not believed there, because the inode number is
another one; a directory that is moved keeps its number.

Limits.  Without a private state directory (it cannot be written, or it is inside the workspace) the key lives as long
as the process, and a later start leaves what this one left where it is.  The same holds where the key was deleted.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import stat
from collections.abc import Sequence

_SIZE = 32

#: Characters of a signature, and of one in a name: 128 bits.
_LONG, _SHORT = 64, 32

#: For names of this process, where no key can be kept.
_of_this_process = os.urandom(_SIZE)

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Seal:
    """Signs with the key in the first of `directories`, and knows what was signed with one of their keys.

    Args:
        directories: private ones; where no key is there it is made when something is signed first.
        place: the history that knows what is kept aside.
    """

    def __init__(self, directories: Sequence[str], place: str = "") -> None:
        self.place = place
        self.directories = tuple(directories)
        self._paths = [os.path.join(directory, "key") for directory in directories]
        #: The keys that were found, or made, by path; None: that directory can have none.
        self._keys: dict[str, bytes | None] = {}

    def sign(self, *parts: str | int) -> str:
        """The signature over `parts`, in hexadecimal."""
        return _signature(self._own_key(), parts)

    def signed(self, signature: str, *parts: str | int) -> bool:
        """Whether that is the signature over `parts`, made by this user, or by this process."""
        return len(signature) == _LONG and self._fits(signature, parts)

    def name(self, prefix: str, suffix: str, above: int, place: str = "") -> str:
        """A new name between `prefix` and `suffix` for the directory with the inode number `above`.

        Args:
            place: what else the name is bound to.
        """
        nonce = os.urandom(8).hex()
        return f"{prefix}{nonce}-{self.sign(nonce, above, place)[:_SHORT]}{suffix}"

    def made(self, name: str, prefix: str, suffix: str, above: int, place: str = "") -> bool:
        """Whether `name` is one that `Seal.name` gave, of those arguments."""
        nonce, _, signature = name[len(prefix) : len(name) - len(suffix)].partition("-")
        if name != f"{prefix}{nonce}-{signature}{suffix}" or (len(nonce), len(signature)) != (16, _SHORT):
            return False
        return self._fits(signature, (nonce, above, place))

    def _fits(self, signature: str, parts: tuple[str | int, ...]) -> bool:
        given = signature.encode(errors="replace")
        return any(
            key is not None and hmac.compare_digest(given, _signature(key, parts)[: len(given)].encode())
            for key in (*(self._known(path) for path in self._paths), _of_this_process)
        )

    def _own_key(self) -> bytes:
        """The first key there is, or can be."""
        for path in self._paths:
            if self._known(path) is None and path not in self._keys:
                self._keys[path] = None
                with contextlib.suppress(OSError):
                    self._keys[path] = _made(path)
            if (key := self._keys[path]) is not None:
                return key
        return _of_this_process

    def _known(self, path: str) -> bytes | None:
        """The key at `path`, if there is one; that there is none yet is not remembered."""
        if path not in self._keys:
            try:
                self._keys[path] = _read(path)
            except FileNotFoundError:
                pass
            except OSError:
                self._keys[path] = None
        return self._keys.get(path)


def _signature(key: bytes, parts: tuple[str | int, ...]) -> str:
    # The text of a tuple says where each part ends.
    return hmac.digest(key, repr(parts).encode("utf-8", "backslashreplace"), "sha256").hex()


def _read(path: str) -> bytes | None:
    """The key; None where the file is not such that only this user can have written and read it."""
    descriptor = os.open(path, _FLAGS)
    try:
        found = os.fstat(descriptor)
        private = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
        key = os.read(descriptor, _SIZE + 1) if private else b""
        return key if len(key) == _SIZE else None
    finally:
        os.close(descriptor)


def _made(path: str) -> bytes | None:
    """A new key, or the one that another process has made meanwhile."""
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    new = f"{path}-{os.urandom(8).hex()}"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, os.urandom(_SIZE))
        os.fsync(descriptor)
        try:
            os.link(new, path)
        except FileExistsError:
            pass
        except OSError:
            os.rename(new, path)  # a file system without hard links
    finally:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            os.unlink(new)
    return _read(path)


def private_directories(roots: Sequence[str], given: str | os.PathLike[str] | None = None) -> list[str]:
    """The user's state directories that are outside all `roots`, the one to prefer first.

    ``$TOOLRT_STATE_DIR``, or else ``$XDG_STATE_HOME/toolrt`` or ``~/.local/state/toolrt`` (XDG Base Directory
    Specification 0.8), then the one that is `given`.  Nothing that is believed may lie in a tree that a tool can write:
    a directory inside a workspace holds no history and no key.

    Args:
        given: a state directory that the caller names.
    """
    named = os.environ.get("TOOLRT_STATE_DIR")
    bases = [os.path.abspath(named) if named else users_directory()]
    bases += [] if given is None else [os.path.abspath(os.fspath(given))]
    return [
        base
        for base in bases
        if os.path.isabs(base) and not any(contains(root, os.path.realpath(base)) for root in roots)
    ]


def users_directory() -> str:
    """The user's own, where no other is named."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "toolrt")


def contains(root: str, path: str) -> bool:
    """Whether `path` is `root` or below it."""
    return f"{path.rstrip('/')}/".startswith(f"{root.rstrip('/')}/")
