"""What an earlier version wrote is still read: schedules, kept failures, traces and replay files.

`recorded/` has a folder for each version, written once by `_record.py` and left as it is.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.formats._record import RECORDED, RESPONSE, TEST, lost_update, shop
from toolrt import invariants, sim
from toolrt.cli import main
from toolrt.errors import InputRefused, ScheduleRefused
from toolrt.testing._saved import ScheduleDirectory  # the plugin reads it from there
from toolrt.trace import Trace

VERSIONS = sorted(path.name for path in RECORDED.iterdir())


@pytest.fixture(params=VERSIONS)
def recorded(request: pytest.FixtureRequest) -> Path:
    """The files of one version."""
    return RECORDED / str(request.param)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_schedule_of_an_earlier_version_is_replayed(recorded: Path) -> None:
    """Step by step, to the value that it had."""
    schedule = sim.Schedule.from_json(_text(recorded / "schedule.json"))
    assert sim.replay(lost_update, schedule).value == 1


def test_kept_failure_of_an_earlier_version_is_found_and_fits(recorded: Path) -> None:
    """By the name of its test, and it is the same lost update."""
    (kept,) = ScheduleDirectory(recorded / "failures").load(TEST)
    assert sim.replay(lost_update, kept).value == 1


def test_trace_of_an_earlier_version_keeps_the_laws(recorded: Path) -> None:
    """The predicates of today understand its events."""
    text = _text(recorded / "trace.json")
    trace = Trace.from_json(text)
    assert len(trace.events) == len(json.loads(text)["events"])
    assert invariants.check(trace) == []
    said = [str(verdict) for verdict in invariants.verdicts(trace).values()]
    assert said.count("held") > 5


def test_replay_file_of_an_earlier_version_is_read(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is repeated, or the command says that the program offers other choices now; it is never refused."""
    code = main(["replay", str(recorded / "replay.json"), "--workspace", str(shop(tmp_path / "shop"))])
    answer = capsys.readouterr().out
    assert "The workspace is not as it was" not in answer
    assert code == 0 or (code == 3 and "cannot be repeated" in answer), answer
    assert json.loads(_text(recorded / "replay.json"))["response"]["text"] == RESPONSE


@pytest.mark.parametrize("name", ["schedule", "trace", "replay"])
def test_format_of_another_version_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer names the version that was expected; nothing is guessed."""
    document = json.loads(_text(RECORDED / VERSIONS[-1] / f"{name}.json"))
    document[f"toolrt_{name}"] = 99
    text = json.dumps(document)
    if name == "schedule":
        with pytest.raises(ScheduleRefused, match=r'"toolrt_schedule": \d'):
            sim.Schedule.from_json(text)
    elif name == "trace":
        with pytest.raises(InputRefused, match="toolrt_trace is 99, expected"):
            Trace.from_json(text)
    else:
        file = tmp_path / "replay.json"
        file.write_text(text, encoding="utf-8")
        assert main(["replay", str(file), "--workspace", str(tmp_path)]) == 2
        assert '"toolrt_replay"' in capsys.readouterr().err
