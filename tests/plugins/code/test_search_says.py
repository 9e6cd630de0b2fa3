"""A search of code says which files it does not have the text of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.code._code_index import ask, index_of, write

TOOLS = [("search_code", {"query": "needle"}), ("find_references", {"name": "needle"})]


@pytest.mark.parametrize(("tool", "input"), TOOLS)
def test_a_search_of_code_names_what_it_could_not_read(tmp_path: Path, tool: str, input: dict[str, str]) -> None:
    """Binary data and other encodings are counted and named, below the directory that is searched alone."""
    root = tmp_path.resolve() / "work"
    root.mkdir()
    write(root / "a.py", "needle = 1\n")
    write(root / "d/wide.py", "needle = 2\n".encode("utf-16"))
    write(root / "d/old.py", "# caf\xe9\nneedle = 3\n".encode("latin-1"))
    write(root / "d/japanese.py", "# \u65e5\u672c\n".encode("shift_jis"))
    code = index_of(root)
    answer = ask(code, tool, **input)
    assert "(1 file not searched, binary data: d/wide.py)" in answer
    assert "(2 files searched as UTF-8, in another encoding: d/japanese.py, d/old.py)" in answer
    assert "d/old.py:2" in answer
    assert "not searched" not in ask(code, tool, **input, path="a.py")
    code.close()
