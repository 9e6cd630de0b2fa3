"""What the documents show runs, and gives what they say it gives."""

from __future__ import annotations

import doctest
import importlib
import linecache
import pkgutil
import re
import runpy
import shutil
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

import toolrt
from tests.docs.conftest import PAGES, ROOT

ADAPTERS = runpy.run_path(str(ROOT / ".ci" / "run_adapters.py"), run_name="adapters")["ADAPTERS"]
#: The package that the programs of a page need, for the pages of adapters: `.ci/run_adapters.py` runs those.
NEEDED = {f"docs/how-to/{page}.md": adapter.package for adapter in ADAPTERS.values() for page in adapter.pages}
NAMED = {page.relative_to(ROOT).as_posix(): page for page in PAGES}
#: The pages whose programs take a second of a core or more.
LONG = {
    f"docs/{page}.md"
    for page in (
        "explanation/simulator",
        "how-to/language-servers",
        "how-to/mcp",
        "how-to/mend-a-failure",
        "how-to/own-law",
        "how-to/sliders-and-plots",
        "how-to/tables",
        "how-to/test-your-tools",
        "tutorial/01-first-batch",
    )
}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.seldom] * (name in LONG), id=name) for name, page in NAMED.items()],
    indirect=True,
)
def test_python_blocks_of_page_run(page: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every python block of a page runs as at the top of the checkout, in one namespace, from top to bottom."""
    if needed := NEEDED.get(page.relative_to(root).as_posix()):
        pytest.importorskip(needed, reason="the extra adapters is not installed")
    shutil.copytree(root / "docs" / "examples", tmp_path / "docs" / "examples", symlinks=True)
    (tmp_path / "toolrt").symlink_to(root / "toolrt")
    monkeypatch.chdir(tmp_path)  # what a page writes is not written into the checkout
    # What reads the source of a function finds it, in the lines where it stands on the page.
    source = _python_alone(page.read_text(encoding="utf-8"))
    monkeypatch.setitem(linecache.cache, str(page), (len(source), None, source.splitlines(keepends=True), str(page)))
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(page)
    for example in document.examples():
        example.evaluate()


def _python_alone(text: str) -> str:
    """Give a page with nothing but empty lines outside of its blocks of Python."""
    lines, inside = list[str](), False
    for line in text.splitlines():
        fence = line.startswith("```")
        lines.append(line if inside and not fence else "")
        inside = line.startswith("```python") if fence else inside
    return "\n".join(lines) + "\n"


def _modules_with_doctests() -> list[str]:
    found = []
    for module in pkgutil.walk_packages(toolrt.__path__, "toolrt."):
        spec = module.module_finder.find_spec(module.name, None)  # type: ignore[call-arg]
        if spec is None or spec.origin is None:
            continue
        if re.search(r"^ *>>> ", Path(spec.origin).read_text(encoding="utf-8"), re.MULTILINE):
            found.append(module.name)
    return found


@pytest.mark.parametrize("name", _modules_with_doctests())
def test_doctests_of_module_pass(name: str) -> None:
    """The examples in a module's docstrings give what they say."""
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted
    assert not result.failed
