"""The messages as lsprotocol knows them; it is imported when the first server is to be used.

Rules.  What we send is made of lsprotocol's types.  Of what a server sends only the parts that are used are looked at,
each for itself, so that one odd value does not make the rest unreadable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
from lsprotocol import converters
from lsprotocol import types as lsp

from toolrt.model import Diagnostic, Severity
from toolrt.plugins.lsp._checked import in_order

#: Findings of one file that are kept; a server that has more is heard no further.
FINDINGS_MOST = 2_000
#: Characters of a finding's text.
_TEXT_MOST = 2_000

_CHANGES = {
    "created": lsp.FileChangeType.Created,
    "modified": lsp.FileChangeType.Changed,
    "deleted": lsp.FileChangeType.Deleted,
}


@attrs.frozen
class Abilities:
    """What a server can do."""

    #: Whether it can be asked for a file's findings (``textDocument/diagnostic``).
    is_asked: bool
    #: What its columns count: "utf-8", "utf-16" or "utf-32".
    encoding: str


class Wire:
    """Makes messages, and reads them."""

    def __init__(self) -> None:
        self._converter = converters.get_converter()
        self._plain = self._converter.unstructure

    def initialize(self, root_uri: str, options: Any) -> Any:
        """What a connection begins with."""
        workspace = lsp.WorkspaceClientCapabilities(
            apply_edit=False,
            configuration=True,
            workspace_folders=True,
            did_change_watched_files=lsp.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
            diagnostics=lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=True),
        )
        document = lsp.TextDocumentClientCapabilities(
            synchronization=lsp.TextDocumentSyncClientCapabilities(dynamic_registration=False),
            publish_diagnostics=lsp.PublishDiagnosticsClientCapabilities(version_support=True),
            diagnostic=lsp.DiagnosticClientCapabilities(dynamic_registration=False, related_document_support=False),
        )
        encodings = [lsp.PositionEncodingKind.Utf32, lsp.PositionEncodingKind.Utf16, lsp.PositionEncodingKind.Utf8]
        return self._plain(
            lsp.InitializeParams(
                capabilities=lsp.ClientCapabilities(
                    workspace=workspace,
                    text_document=document,
                    window=lsp.WindowClientCapabilities(work_done_progress=True),
                    general=lsp.GeneralClientCapabilities(position_encodings=encodings),
                ),
                # What it would watch to end itself; its supervisor does that.
                process_id=None,
                client_info=lsp.ClientInfo("toolrt"),
                root_uri=root_uri,
                workspace_folders=[lsp.WorkspaceFolder(root_uri, "workspace")],
                initialization_options=options,
            )
        )

    def abilities(self, result: Any) -> Abilities:
        """What a server says it can do.

        Raises:
            ValueError: it does not say so in a way that can be read.
        """
        said = result.get("capabilities") if isinstance(result, dict) else None
        if not isinstance(said, dict):
            raise ValueError("no capabilities")
        encoding = said.get("positionEncoding") or "utf-16"
        if encoding not in ("utf-8", "utf-16", "utf-32"):
            raise ValueError(f"an unknown position encoding: {str(encoding)[:20]!r}")
        return Abilities(isinstance(said.get("diagnosticProvider"), dict), encoding)

    def opened(self, uri: str, language: str, version: int, text: str) -> Any:
        """A document is open."""
        return self._plain(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, language, version, text)))

    def changed(self, uri: str, version: int, text: str) -> Any:
        """A document has another text, all of it."""
        return self._plain(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(version, uri),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def closed(self, uri: str) -> Any:
        """A document is not open any more."""
        return self._plain(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))

    def watched(self, changes: Sequence[tuple[str, str]]) -> Any:
        """Files on the disk are not what they were: pairs of URI and "created", "modified" or "deleted"."""
        return self._plain(
            lsp.DidChangeWatchedFilesParams([lsp.FileEvent(uri, _CHANGES[change]) for uri, change in changes])
        )

    def question(self, uri: str) -> Any:
        """The findings on a document are asked for."""
        return self._plain(lsp.DocumentDiagnosticParams(lsp.TextDocumentIdentifier(uri)))

    def findings(self, items: Any, text: str, encoding: str) -> tuple[tuple[Diagnostic, ...], int]:
        """The findings that a server sent, in the order of their places, and how many could not be read.

        Raises:
            ValueError: these are no findings.
        """
        if not isinstance(items, list):
            raise ValueError("no list of findings")
        lines = text.split("\n")
        found: set[Diagnostic] = set()
        unread = max(0, len(items) - FINDINGS_MOST)
        for item in items[:FINDINGS_MOST]:
            try:
                found.add(self._finding(item, lines, encoding))
            except Exception:
                unread += 1
        return tuple(sorted(found, key=in_order)), unread

    def _finding(self, item: Any, lines: Sequence[str], encoding: str) -> Diagnostic:
        known = {key: item.get(key) for key in ("range", "message", "severity", "source") if item.get(key) is not None}
        read = self._converter.structure(known, lsp.Diagnostic)
        start = read.range.start
        if start.line < 0 or start.character < 0 or not isinstance(known["message"], str):
            raise ValueError("no place")
        line = lines[start.line] if start.line < len(lines) else ""
        code = item.get("code")
        return Diagnostic(
            start.line + 1,
            _characters(line, start.character, encoding) + 1,
            read.message[:_TEXT_MOST],
            Severity.ERROR if read.severity is None else Severity(int(read.severity)),
            None if read.source is None else read.source[:100],
            str(code)[:100] if isinstance(code, str | int) else None,
        )


def _characters(line: str, column: int, encoding: str) -> int:
    """The column in characters, at most the line's end."""
    if encoding != "utf-32" and not line.isascii():
        name, size = ("utf-8", 1) if encoding == "utf-8" else ("utf-16-le", 2)
        column = len(line.encode(name, "surrogatepass")[: column * size].decode(name, "ignore"))
    return min(column, len(line))
