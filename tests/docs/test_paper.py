"""docs/paper.md and docs/artifact.py: each figure stands behind the command that makes it."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.benchmarks.head_to_head import page as head_to_head
from toolrt.invariants import LAWS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def artifact() -> ModuleType:
    spec = importlib.util.spec_from_file_location("artifact", ROOT / "docs" / "artifact.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["artifact"] = module
    spec.loader.exec_module(module)
    return module


def figure(command: str, shown: str, more: str = "") -> str:
    return f"Text.\n\n<!-- figure: one\nfull: {command}\n{more}-->\n```text\n{shown}```\n\nMore.\n"


def test_every_figure_is_filled_and_its_program_exists(artifact: ModuleType) -> None:
    """No figure is left for later, and no command names a file that is not there."""
    found = artifact.figures(artifact.PAPER.read_text(encoding="utf-8"))
    assert len(found) >= 8
    for one in found:
        assert one.shown.strip(), one.name
        for word in shlex.split(f"{one.full} {one.quick}"):
            if re.fullmatch(r"(docs|tests|notebooks)/\S+", word):
                assert (ROOT / word).is_file(), (one.name, word)


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize("name", ["wild"])
def test_figure_is_made_again(artifact: ModuleType, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """The command prints what the paper shows."""
    pytest.importorskip("socksio")
    assert artifact.main(["--only", name]) == 0, capsys.readouterr().out
    assert "as in the paper" in capsys.readouterr().out


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "shown", "more", "ending", "code"),
    [
        ("echo one", "one\n", "", "as in the paper", 0),
        ("echo two", "one\n", "", "DIFFERS", 1),
        ("echo two", "one\n", "varies: times\n", "made", 0),
        ("echo one; exit 3", "one\n", "", "FAILED with exit code 3", 1),
        ("echo one", "one\n", "keep: two\n", "FAILED: nothing", 1),
        ("echo one; echo two", "two\n", "keep: tw\n", "as in the paper", 0),
        ("echo one", "one\n", "quick: echo three\n", "made", 0),
        ("false", "Runs.\n", "committed: docs/artifact.py\nkeep: ^Runs[.]$\n", "DIFFERS", 1),
        ("false", "figures\n", "committed: docs/decisions/nosuch.md\n", "FAILED: no file", 1),
        ("echo", "a 1\nb 2\n", "quick: echo a 1; echo c\nsame: ^a\n", "is the same", 0),
        ("echo", "a 1\nb 2\n", "quick: echo a 3\nsame: ^a\n", "DIFFERS", 1),
    ],
)
def test_what_is_printed_is_held_against_the_paper(
    artifact: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    shown: str,
    more: str,
    ending: str,
    code: int,
) -> None:
    """A figure that differs, a command that fails and an empty figure are each an error."""
    paper = tmp_path / "paper.md"
    paper.write_text(figure(command, shown, more))
    monkeypatch.setattr(artifact, "PAPER", paper)
    assert artifact.main([]) == code
    assert ending in capsys.readouterr().out


def test_figure_that_is_changed_by_hand_differs_from_the_committed_result(
    artifact: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The paper as it is agrees; with one digit changed it does not."""
    assert artifact.main(["--only", "mutation"]) == 0, capsys.readouterr().out
    [one] = [one for one in artifact.figures(artifact.PAPER.read_text(encoding="utf-8")) if one.name == "mutation"]
    changed = re.sub(r"after (\d+) examples", lambda found: f"after {int(found[1]) - 1} examples", one.shown, count=1)
    assert changed != one.shown
    paper = tmp_path / "paper.md"
    paper.write_text(artifact.with_shown(artifact.PAPER.read_text(encoding="utf-8"), "mutation", changed))
    monkeypatch.setattr(artifact, "PAPER", paper)
    assert artifact.main(["--only", "mutation"]) == 1
    assert "DIFFERS" in capsys.readouterr().out


#: Numbers as sentences have them.
_WORDS = {13: "thirteen", 17: "seventeen"}


def test_numbers_in_sentences_are_those_of_the_results() -> None:
    """Bugs in the wild, laws and frameworks are counted where they are kept."""
    paper = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    wild = json.loads((ROOT / "docs/explanation/wild.json").read_text(encoding="utf-8"))
    bugs = f"{len(wild)} bugs in {len({one['library'] for one in wild.values()})} libraries"
    assert bugs in " ".join(paper.split())
    peers = (ROOT / "docs/explanation/peers.md").read_text(encoding="utf-8")
    rows = peers.partition("| framework |")[2].partition("\n\n")[0].count("\n") - 1
    assert f"{_WORDS[len(LAWS)]} laws" in paper
    assert f"{_WORDS[rows]} Python frameworks" in paper
    programs = f"{len(head_to_head.buggy())} with a bug and {len(head_to_head.correct())} without"
    loop = head_to_head.kept()["rows"]["trio loop"]["programs"]
    found = sum(head_to_head.is_found(loop[name]) for name in head_to_head.buggy())
    assert programs in " ".join(paper.split())
    assert f"a plain loop of `trio.run` finds {found}." in " ".join(paper.split())


def test_figure_of_explorers_is_the_committed_result(artifact: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of the page, unchanged."""
    assert artifact.main(["--only", "head-to-head"]) == 0, capsys.readouterr().out


@pytest.mark.process
def test_write_puts_the_new_figure_into_the_paper(
    artifact: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else changes; a figure whose command fails stays."""
    paper = tmp_path / "paper.md"
    paper.write_text(figure("printf 'a\\n\\\\1\\n'", "old\n"))
    monkeypatch.setattr(artifact, "PAPER", paper)
    assert artifact.main(["--full", "--write"]) == 0
    assert paper.read_text() == figure("printf 'a\\n\\\\1\\n'", "a\n\\1\n")
    paper.write_text(figure("false", "old\n"))
    assert artifact.main(["--full", "--write"]) == 1
    assert paper.read_text() == figure("false", "old\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!-- figure: one\nquick: a\n-->\n```text\n```\n", "expected full"),
        ("<!-- figure: one\nfull: a\nother: b\n-->\n```text\n```\n", "other"),
        (figure("a", "") * 2, "got two"),
        ("<!-- figure: one\nfull: a\n-->\nno block\n", "expected a block of text"),
    ],
)
def test_a_figure_that_cannot_be_read_is_refused(artifact: ModuleType, text: str, said: str) -> None:
    """Before any command runs."""
    with pytest.raises(ValueError, match=said):
        artifact.figures(text)
