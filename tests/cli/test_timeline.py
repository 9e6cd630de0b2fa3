"""``toolrt timeline``, and the pages of ``explore`` and ``litmus``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolrt import view
from toolrt.trace import Trace
from toolrt.workspace.names._identity import Identity

OPTIONS = ["--html", "--svg", "--text", "--chrome", "--mermaid"]


@pytest.fixture
def trace(toolrt: Any, response: Path, shop: Path, tmp_path: Path) -> Path:
    """The trace of a real run of the example."""
    path = tmp_path / "trace.json"
    assert toolrt("run", response, "--workspace", shop, "--trace", path).code == 1
    return path


def test_timeline_of_run_is_printed(toolrt: Any, trace: Path) -> None:
    """Without an option there is a row for each call, with how it ended."""
    ended = toolrt("timeline", trace, "--width", 100)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == view.text(Trace.from_json(trace.read_text()), width=100)
    assert "[13] read_file shop/cart.py" in ended.out


def test_every_picture_is_written(toolrt: Any, trace: Path, tmp_path: Path) -> None:
    """Each option writes its picture, the same as the function of that name gives, and nothing is printed."""
    out = {option: tmp_path / f"out{option}" for option in OPTIONS}
    arguments = [part for option, path in out.items() for part in (option, path)]
    ended = toolrt("timeline", trace, *arguments, "--width", 80)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    seen = Trace.from_json(trace.read_text())
    assert out["--svg"].read_text() == view.svg(seen, title="trace.json")
    assert out["--text"].read_text() == view.text(seen, width=80)
    assert out["--chrome"].read_text() == view.chrome(seen) + "\n"
    assert out["--mermaid"].read_text() == view.mermaid(seen)
    assert out["--html"].read_text() == view.show(seen, names=["trace.json"], title="trace.json").html


def test_page_takes_two(toolrt: Any, trace: Path, tmp_path: Path) -> None:
    """With --against two traces stand side by side, under two names."""
    page = tmp_path / "page.html"
    assert toolrt("timeline", trace, "--against", trace, "--html", page).code == 0
    block = page.read_text().split('id="document">')[1].split("</script>")[0]
    assert [run["name"] for run in json.loads(block)["runs"]] == ["trace.json (1)", "trace.json (2)"]


@pytest.mark.seldom
@pytest.mark.process
def test_trace_comes_from_standard_input(toolrt: Any, trace: Path) -> None:
    """A dash reads the trace there."""
    ended = toolrt.spawned("timeline", "-", given=trace.read_bytes())
    assert ended.code == 0
    assert "lane 0" in ended.out


def test_replay_file_is_replayed(toolrt: Any, response: Path, shop: Path, tmp_path: Path, failing: Path) -> None:
    """What explore kept is drawn like a trace."""
    ended = toolrt("timeline", failing, "--by", "calls")
    assert ended.code == 0, ended.err
    assert "batch batch-1" in ended.out


@pytest.fixture
def failing(response: Path, shop: Path, tmp_path: Path) -> Path:
    """A replay file, as explore keeps one when a law does not hold."""
    from toolrt import sim
    from toolrt.cli.experiment._experiment import Experiment
    from toolrt.cli.experiment._failure import FailureFile
    from toolrt.interop import parse_response
    from toolrt.workspace import MemoryDisk

    text = response.read_text()
    experiment = Experiment(parse_response(text, "x").calls, MemoryDisk.copy_of(shop), "by_claims", 10)
    schedule = sim.run(experiment.program, sim.RandomWalk(1)).schedule
    kept = FailureFile("x", text, str(shop), experiment.tree_digest, "by_claims", 10, schedule, ())
    path = tmp_path / "failure.json"
    path.write_text(kept.to_json())
    return path


@pytest.mark.parametrize(
    ("given", "arguments", "said"),
    [
        ("[1]", (), "the top level: expected an object"),
        ("no", (), "it cannot be read as JSON"),
        ('{"toolrt_trace":9}', (), "toolrt_trace is 9, expected 1"),
        (None, (), "cannot be read"),
        ('{"toolrt_trace":1,"meta":{},"notes":{},"steps":[],"events":[]}', ("--by", "calls"), "has no calls"),
        ("[1]", ("--against", "other.json"), "only a page has room for two"),
        ("[1]", ("--width", "0"), "expected a whole number, 1 or more"),
        ("[1]", ("--svg", "no/such/place.svg"), "its directory does not exist"),
        ("[1]", ("--by", "lanes"), "lanes"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    toolrt: Any, tmp_path: Path, given: str | None, arguments: tuple[str, ...], said: str
) -> None:
    """One line says what was refused; nothing is written."""
    path = tmp_path / "trace.json"
    if given is not None:
        path.write_text(given)
    ended = toolrt("timeline", path, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_nothing_is_written_when_one_picture_cannot_be_drawn(toolrt: Any, trace: Path, tmp_path: Path) -> None:
    """A trace without calls is refused by the picture that wants some, before another is written."""
    path = tmp_path / "plain.json"
    path.write_text(Trace().to_json())
    chrome = tmp_path / "out.json"
    assert toolrt("timeline", path, "--by", "calls", "--svg", tmp_path / "out.svg", "--chrome", chrome).code == 2
    assert not chrome.exists()


def test_explore_writes_a_page(explored: Any, shop: Path, tmp_path: Path) -> None:
    """Where every law holds the page shows one execution; it does not lie in the workspace."""
    page = tmp_path / "page.html"
    ended = explored("--executions", 2, "--html", page)
    assert ended.code == 0, ended.err
    block = json.loads(page.read_text().split('id="document">')[1].split("</script>")[0])
    assert [run["name"] for run in block["runs"]] == ["passes"]
    assert len(block["runs"][0]["batches"][0]["calls"]) == 14
    refused = explored("--html", shop / "page.html")
    assert refused.code == 2


@pytest.mark.seldom
def test_explore_writes_the_failure_beside_what_passes(
    explored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the order taken away, the page shows the simplest failure, and the nearest schedule that keeps the laws."""
    with monkeypatch.context() as patched:
        patched.setattr(Identity, "claims", lambda self, mode, subtree=False: ())
        page = tmp_path / "page.html"
        ended = explored("--executions", 3, "--save", tmp_path / "failure.json", "--html", page)
    assert ended.code == 1, ended.err
    block = json.loads(page.read_text().split('id="document">')[1].split("</script>")[0])
    assert block["title"].endswith("distinct=3)")
    assert [run["name"] for run in block["runs"]] in (["fails", "passes"], ["fails"])
    assert len(block["runs"][0]["batches"][0]["calls"]) == 14


def test_litmus_writes_what_goes_wrong_beside_what_does_not(toolrt: Any, tmp_path: Path) -> None:
    """The page of a program with a bug has both schedules; of one without, the simplest."""
    page = tmp_path / "page.html"
    names: Callable[[], list[str]] = lambda: [  # noqa: E731
        run["name"] for run in json.loads(page.read_text().split('id="document">')[1].split("</script>")[0])["runs"]
    ]
    assert toolrt("litmus", "lost_update_2x1", "--html", page).code == 0
    assert names() == ["wrong", "right"]
    assert toolrt("litmus", "lock_2", "--html", page).code == 0
    assert names() == ["right"]
    assert toolrt("litmus", "--html", page).code == 2
    assert toolrt("litmus", "lost_update_2x1", "--verify", "--html", page).code == 2
