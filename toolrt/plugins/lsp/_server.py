"""Which language server, for which files, how long it is waited for, and who speaks with it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.plugins.lsp._port import Talk
from toolrt.processes import ProgramNotes
from toolrt.processes._given import check_server

_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,32}")

#: What LSP calls the language of a file with such an end; what is not here is called by its end.
_LANGUAGES = {
    ".c": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".h": "c",
    ".hpp": "cpp",
    ".js": "javascript",
    ".jsx": "javascriptreact",
    ".md": "markdown",
    ".py": "python",
    ".pyi": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".sh": "shellscript",
    ".ts": "typescript",
    ".tsx": "typescriptreact",
    ".yml": "yaml",
}


def _words(value: Sequence[str] | None) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else value


@runtime_checkable
class LanguagePeer(Protocol):
    """The other side of a connection: a program, or a record."""

    async def serve(self, server: LanguageServer, root: str, talk: Talk, notes: ProgramNotes) -> None:
        """Connect, and `talk` until it returns or the connection is lost; then nothing of it is left.

        Raises:
            NotStarted: there was no connection at all.

        Checkpoint: always.  Also when it is cancelled, nothing is left on return; that is bounded.
        """


@attrs.frozen
class LanguageServer:
    """A language server to ask about files.

    Raises:
        DefinitionRefused: a value is out of range, or there is not exactly one of `command` and `server`.

    Example::

        LanguageServer("ruff", ["ruff", "server"], suffixes=[".py", ".pyi"], reads="file")
    """

    #: What it is known by: 1 to 32 letters, digits, ``_``, ``.``, ``+`` and ``-``.
    name: str
    #: The program that speaks LSP over its standard streams, and its arguments; no shell reads them.
    command: Sequence[str] | None = attrs.field(default=None, converter=_words)
    #: The ends of the names of the files that it is asked about, each with its dot.
    suffixes: Sequence[str] = attrs.field(kw_only=True, converter=_words)
    #: Instead of a program: a `RecordedServer`.
    server: LanguagePeer | None = attrs.field(default=None, kw_only=True, repr=False)
    #: What its findings on a file depend on: "file" is that file, and settings as of the lane's start; "workspace" is
    #: anything in it.  The first lets a lane go on beside it; the second has each question run alone.
    reads: Literal["file", "workspace"] = attrs.field(default="workspace", kw_only=True)
    #: What it is answered when it asks for its configuration, by section: ``{"ty": {"diagnosticMode": "workspace"}}``.
    settings: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True, repr=False)
    #: What it is given as ``initializationOptions``.
    options: Any = attrs.field(default=None, kw_only=True, repr=False)
    #: Variables of the program beside those of every command (`toolrt.services.INHERITED` and `FIXED`).
    env: Mapping[str, str] = attrs.field(factory=dict, kw_only=True, repr=False)
    #: Seconds that one question waits, a start or restart included; then the answer says that it is not there yet.
    wait: float = attrs.field(default=10.0, kw_only=True)
    #: Seconds in which a program that was started has to be usable.
    start_timeout: float = attrs.field(default=30.0, kw_only=True)
    #: How many times in a row it may be started anew without one answer between; then it is given up.
    restarts: int = attrs.field(default=3, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or _NAME.fullmatch(self.name) is None:
            raise DefinitionRefused("a language server's name", "1 to 32 letters, digits and _.+-", self.name)
        what = f"language server {self.name!r}"
        check_server(self, what, '["ruff", "server"]', seconds=("wait", "start_timeout"), whole=("restarts",))
        if self.server is not None and not callable(getattr(self.server, "serve", None)):
            raise DefinitionRefused(f"{what}: server", "a RecordedServer", self.server)
        if not isinstance(self.suffixes, tuple) or not self.suffixes or not all(map(_is_suffix, self.suffixes)):
            expected = 'the ends of names, each with its dot: [".py", ".pyi"]'
            raise DefinitionRefused(f"{what}: suffixes", expected, self.suffixes)
        if self.reads not in ("file", "workspace"):
            raise DefinitionRefused(f"{what}: reads", '"file" or "workspace"', self.reads)
        if not isinstance(self.settings, Mapping) or not all(isinstance(key, str) for key in self.settings):
            raise DefinitionRefused(f"{what}: settings", "values by name", self.settings)

    def is_for(self, path: str) -> bool:
        """Whether it is asked about the file at `path`, by its name."""
        return path.endswith(tuple(self.suffixes))

    def language_of(self, path: str) -> str:
        """What LSP calls the language of the file at `path`."""
        suffix = os.path.splitext(path)[1].lower()
        return _LANGUAGES.get(suffix, suffix[1:] or "plaintext")


def _is_suffix(suffix: object) -> bool:
    return isinstance(suffix, str) and len(suffix) > 1 and suffix.startswith(".") and "/" not in suffix
