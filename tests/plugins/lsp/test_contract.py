"""The double of a language server answers as the real ones do."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

pytest.importorskip("lsprotocol", reason="the lsp extra is not installed")

from tests.plugins.lsp._language_servers import asks, edits, ran, ruff, ty, writes
from toolrt import Diagnostic, MemoryDisk, Workspace, sim
from toolrt.plugins.lsp import LanguageServer, LanguageServers, RecordedServer

CONTRACT_FILES = {"a.py": "import os\n", "b.py": "from a import x\n\nx.nope\n"}

CONTRACT_CALLS = [
    asks("a.py"),
    edits("a.py", "import os\n", "x: int = 'é', y\n"),
    asks("a.py"),
    asks("b.py"),
    writes("a.py", "class X:\n    nope = 1\n\n\nx = X()\n"),
    asks("a.py"),
    asks("b.py"),
    writes("c.txt", "no code"),
    asks("c.txt"),
    asks("d.py"),
]


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize("make", [ruff, ty])
def test_double_answers_as_the_real_server(tmp_path: Path, make: Callable[[], LanguageServer]) -> None:
    """What a real server found, recorded, gives the same results in a simulation."""
    server = make()
    assert server.command is not None
    if shutil.which(server.command[0]) is None:
        pytest.skip(f"{server.name} is not installed")
    (tmp_path / "w").mkdir()
    for path, text in CONTRACT_FILES.items():
        (tmp_path / "w" / path).write_text(text)
    workspace = Workspace(tmp_path / "w", state_dir=tmp_path)
    record: dict[tuple[str, str], list[tuple[Diagnostic, ...]]] = {}
    check = LanguageServers.check

    async def recorded(self: LanguageServers, path: str, content: bytes) -> Any:
        checked = await check(self, path, content)
        record.setdefault((path, content.decode()), []).append(checked.findings)
        return checked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LanguageServers, "check", recorded)
        real = trio.run(ran, workspace, [server], CONTRACT_CALLS)
    assert real[0] != real[2] != real[5]
    # ty looks at what another file has become; ruff looks at one file at a time.
    assert (real[3] != real[6]) is (server.reads == "workspace")
    assert not any("not known" in str(answer) for answer in real)
    # What ty finds in one text depends on the other: those questions run alone, so they come in call order.
    replayed = RecordedServer(lambda path, text: record[path, text].pop(0))
    twin = LanguageServer(server.name, suffixes=[".py"], reads=server.reads, server=replayed)
    assert sim.run(lambda: ran(Workspace(MemoryDisk(CONTRACT_FILES)), [twin], CONTRACT_CALLS)).value == real


def test_columns_are_characters_whatever_the_server_counts() -> None:
    """Of UTF-8 and UTF-16 as well."""
    from toolrt.plugins.lsp._wire import Wire

    item = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "message": "m"}
    text = "é\N{GRINNING FACE}x"
    for encoding, column in (("utf-8", 6), ("utf-16", 3), ("utf-32", 2)):
        item["range"]["start"]["character"] = column  # type: ignore[index]
        (finding,), unread = Wire().findings([item], text, encoding)
        assert (finding.line, finding.column, unread) == (1, 3, 0)
