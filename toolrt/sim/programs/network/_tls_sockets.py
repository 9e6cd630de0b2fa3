"""What an `ssl.SSLSocket` of the network asks of OpenSSL.

Rules.  The class is the standard library's, with all that it has in Python.  OpenSSL, which would read from the
operating system's socket, has two buffers instead; what goes between them and the socket blocks as any other read or
write of that socket does: a worker thread waits, and a task is refused.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

# So many bytes are read at once.
_MOST = 65_536


def wrapped(plain: type, context: Any, sock: Any, server_side: bool, server_hostname: Any, **options: Any) -> Any:
    """Give what an `ssl.SSLSocket` has for OpenSSL's object.

    Args:
        plain: has the methods that move bytes as they are.
        context: the `ssl.SSLContext`.
        sock: the socket.
        server_side: as OpenSSL is asked.
        server_hostname: as OpenSSL is asked.
        options: as OpenSSL is asked.
    """
    return _OpenSSL(plain, context, sock, server_side, server_hostname, options)


class _OpenSSL:
    def __init__(
        self, plain: Any, context: Any, sock: Any, server_side: bool, server_hostname: Any, options: dict[str, Any]
    ) -> None:
        self._plain, self._sock = plain, sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._inner = context._wrap_bio(self._incoming, self._outgoing, server_side, server_hostname, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def context(self) -> Any:
        """The context that it is in; a server picks another one by the name that it is asked for."""
        return self._inner.context

    @context.setter
    def context(self, context: Any) -> None:
        self._inner.context = context

    def do_handshake(self) -> None:
        """Make the handshake."""
        self._done(self._inner.do_handshake)

    def read(self, *args: Any) -> Any:
        """Read what was decrypted."""
        return self._done(self._inner.read, *args)

    def write(self, data: Any) -> Any:
        """Encrypt and write."""
        return self._done(self._inner.write, data)

    def shutdown(self) -> Any:
        """End the encryption on both sides, and give the socket."""
        self._done(self._inner.shutdown)
        return self._sock

    def _done(self, operation: Callable[..., Any], *args: Any) -> Any:
        while True:
            try:
                result = operation(*args)
            except ssl.SSLWantReadError:
                self._flush()
                try:
                    received = self._plain.recv(self._sock, _MOST)
                except BlockingIOError:
                    raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "The operation did not complete") from None
                if received:
                    self._incoming.write(received)
                else:
                    self._incoming.write_eof()
            except ssl.SSLError:
                # The other side is told what was wrong, if it still listens.
                with suppress(OSError):
                    self._flush()
                raise
            else:
                try:
                    self._flush()
                except (BrokenPipeError, ConnectionResetError):
                    # A server of OpenSSL overlooks that the other side does not wait for session tickets.
                    is_handshake = operation == self._inner.do_handshake
                    if not (is_handshake and self._inner.server_side and self._inner.version() == "TLSv1.3"):
                        raise
                return result

    def _flush(self) -> None:
        if data := self._outgoing.read():
            self._plain.sendall(self._sock, data)
