"""What is known of the suites of other libraries, and how what was found of them is counted."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

RUNNER = runpy.run_path(str(Path(__file__).with_name("__main__.py")), run_name="tests.wild")


def test_suites_are_pinned() -> None:
    """Each has a version and a hash, and says why a test of it may fail."""
    suites = RUNNER["read_suites"]([])
    assert len({suite["name"] for suite in suites}) == len(suites)
    for suite in suites:
        assert suite["sdist"].endswith(".tar.gz")
        assert len(suite["sha256"]) == 64
        assert any("==" in need for need in suite["needs"])
        assert all(why.startswith(("ours: ", "bug: ", "the test: ")) for why in suite.get("known", {}).values())


def test_suites_are_chosen_by_name() -> None:
    """An unknown name is an error."""
    assert [suite["name"] for suite in RUNNER["read_suites"](["anyio"])] == ["anyio"]
    with pytest.raises(SystemExit, match="no-such-suite"):
        RUNNER["read_suites"](["no-such-suite"])


def test_suite_with_another_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was downloaded is compared before it is unpacked."""
    suite = RUNNER["read_suites"](["tricycle"])[0]
    (tmp_path / "link").write_bytes(b"something else")
    link = (tmp_path / "link").as_uri()
    (tmp_path / "index").write_text(json.dumps({"files": [{"filename": suite["sdist"], "url": link}]}))
    answers = iter([(tmp_path / "index").open("rb"), (tmp_path / "link").open("rb")])
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: next(answers))
    with pytest.raises(SystemExit, match="sha256"):
        RUNNER["unpacked"](suite, tmp_path)


def test_row_counts_by_kind_and_leaves_asyncio_out() -> None:
    """One class is counted among the explored."""
    found = {"alone": None, "executions": 10, "why": ""}
    kinds = ["explored", "explored", "refused", "undecided", "failed", "skipped", "asyncio", "fails plainly"]
    tests = {str(number): {"kind": kind} | found for number, kind in enumerate(kinds)}
    tests["1"]["alone"] = True
    row = RUNNER["row_of"](tests)
    assert row == {
        "async tests": 7,
        "explored": 2,
        "one class": 1,
        "undecided": 1,
        "refused": 1,
        "failed": 1,
        "skipped": 1,
        "fails plainly": 1,
        "executions": 70,
    }
