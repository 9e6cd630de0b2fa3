"""``toolrt explore --checkpoint``: what was run is kept, and the same command goes on from there."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests._profile import FULL
from toolrt.cli.experiment import _experiment

#: Two calls of one file, and a cancel at any step: some hundreds of traces.
CALLS = (("write_file", {"path": "a", "content": "x"}), ("edit_file", {"path": "a", "old": "x", "new": "y"}))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """An empty directory."""
    made = tmp_path / "shop"
    made.mkdir()
    return made


def outcomes(document: dict[str, Any]) -> dict[str, int]:
    """How often each ending came."""
    return {one["ending"]: one["count"] for one in document["outcomes"]}


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_sittings_show_what_one_would_show(
    toolrt: Any, shop: Path, tmp_path: Path, written: Callable[..., Path], jobs: int
) -> None:
    """The same traces and endings, and the file is gone with the last; each sitting counts its own executions.

    One call has 132 traces with a cancel at any step; two, which the full run explores, have 926.
    """
    calls, executions = (CALLS, 350) if FULL else (CALLS[:1], 50)
    searched = ("--strategy", "dpor", "--cancel-at", "any", "--seconds", 3_600, "--json")
    what = ("explore", written(*calls), "--workspace", shop, *searched)
    whole = json.loads(toolrt(*what).out)
    assert whole["complete"]
    file = tmp_path / "kept"
    sittings = ("--executions", executions, "--checkpoint", file, "--jobs", jobs)
    codes, earlier = [], 0
    for _ in range(10):
        ended = toolrt(*what, *sittings)
        found = json.loads(ended.out)
        codes.append(ended.code)
        assert found["goes_on"] == file.exists() == ("same command goes on" in ended.err) == (ended.code == 3)
        counted = re.search(r"(\d+) executions in .*\(.*/s\)(?: \((\d+) in earlier sittings\))?", ended.err)
        assert counted is not None
        assert (int(counted[1]), int(counted[2] or 0)) == (found["executions"] - earlier, earlier)
        earlier = found["executions"]
        if ended.code == 0:
            break
    assert codes == [3, 3, 0]
    for key in ("verdict", "claim", "executions", "distinct", "complete"):
        assert found[key] == whole[key], key
    assert outcomes(found) == outcomes(whole)


@pytest.mark.seldom
def test_interrupted_sitting_is_kept(
    toolrt: Any, shop: Path, tmp_path: Path, written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C loses nothing of what was run."""
    check = _experiment.Experiment.check

    def pressing(self: Any, execution: Any, twice: bool = False) -> Any:
        if execution.index == 30:
            signal.raise_signal(signal.SIGINT)
        return check(self, execution, twice)

    file = tmp_path / "kept"
    what = ("explore", written(*CALLS), "--workspace", shop, "--strategy", "dpor", "--checkpoint", file)
    with monkeypatch.context() as patched:
        patched.setattr(_experiment.Experiment, "check", pressing)
        ended = toolrt(*what, "--cancel-at", "any")
    assert ended.code == 130
    assert "kept: the same command goes on from here" in ended.out
    ended = toolrt(*what, "--cancel-at", "any", "--executions", 1)
    assert ended.code == 3
    earlier = re.search(r"1 execution in .* \((\d+) in earlier sittings\)", ended.out)
    assert earlier is not None
    assert int(earlier[1]) >= 30


@pytest.mark.seldom
def test_what_was_kept_of_something_else_is_refused(
    toolrt: Any, shop: Path, tmp_path: Path, written: Callable[..., Path]
) -> None:
    """Another response, other options, a directory that has changed; the file stays as it is."""
    file = tmp_path / "kept"
    calls = written(*CALLS)
    what = ("--workspace", shop, "--strategy", "dpor", "--cancel-at", "any", "--executions", 5, "--checkpoint", file)
    assert toolrt("explore", calls, *what).code == 3
    before = file.read_bytes()

    def refused(*arguments: Any) -> None:
        ended = toolrt("explore", *arguments)
        assert (ended.code, ended.out.count("PASS")) == (2, 0)
        assert "expected one of" in ended.err
        assert file.read_bytes() == before

    refused(calls, *what, "--lanes", "serial")
    refused(calls, *what, "--limit", 1)
    calls.write_text(calls.read_text().replace("edit_file", "write_file"))
    refused(calls, *what)
    calls = written(*CALLS)
    (shop / "new").write_text("")
    refused(calls, *what)
    (shop / "new").unlink()
    assert toolrt("explore", calls, *what).code == 3


def test_nothing_is_kept_in_the_directory(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """It is never written to."""
    ended = toolrt("explore", written(*CALLS), "--workspace", shop, "--checkpoint", shop / "kept")
    assert ended.code == 2
    assert "lies in the workspace" in ended.err
    assert not [*shop.iterdir()]
