"""An agent that is killed in the middle of a model's response goes on with a result for each of its calls."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests._forked import forked, pipe
from tests.store._agents import MESSAGES, NOTES, agent, listener, runtime_in
from toolrt import Outcome
from toolrt.interop import read_response, render_calls, render_results

#: Commits at which an agent kills itself; even ones are before a commit: see `tests.store._killed`.
_MOMENTS = {"anthropic": (2, 5), "openai-responses": (3, 8), "openai-chat": (1, 6)}


def ids_in(answers: Any) -> list[str]:
    """The calls that the messages answer."""
    items = answers["content"] if isinstance(answers, dict) else answers
    return [item.get("tool_use_id") or item.get("call_id") or item.get("tool_call_id") for item in items]


def one_process(directory: Path, format: str, moment: int | None) -> Any:
    """What an agent's process answers; None: it was killed."""
    ours, theirs = pipe()
    child = forked(agent, str(directory), format, moment, theirs)
    theirs.close()
    try:
        return json.loads(ours.recv())
    except EOFError:
        return None
    finally:
        child.join()
        ours.close()


@pytest.mark.process
@pytest.mark.parametrize("format", MESSAGES)
def test_a_killed_agent_runs_its_message_again_and_nothing_happens_twice(format: str, tmp_path: Path) -> None:
    """It gives the same message to the same code: what ran is answered, what is unsure says so, the rest runs."""
    for moment in _MOMENTS[format]:
        assert one_process(tmp_path, format, moment) is None
    answers = one_process(tmp_path, format, None)
    assert ids_in(answers) == ["t0", "t1", "t2"]
    assert one_process(tmp_path, format, None) == answers
    counts = Counter((tmp_path / "effects").read_text().split())
    for at, note in enumerate(NOTES):
        assert counts[note] <= 1
        assert counts[note] == 1 or f"noted {note}" not in json.dumps(answers), f"call {at} did not happen"


@pytest.mark.process
@pytest.mark.parametrize("format", MESSAGES)
async def test_a_reply_that_a_kill_broke_off_is_found_by_its_own_id(format: str, tmp_path: Path) -> None:
    """The journal has the calls that were spoken, and each of them gets its result."""
    child = forked(listener, str(tmp_path), format)
    child.join()
    assert child.exitcode == -signal.SIGKILL
    runtime = runtime_in(tmp_path)
    assert runtime.journal is not None
    [batch_id] = await runtime.journal.unfinished()
    assert batch_id == MESSAGES[format]["id"]
    asked, done = await runtime.journal.calls(batch_id), await runtime.resume(batch_id)
    assert read_response(render_calls(asked, format)).calls == tuple(asked)
    assert ids_in(render_results(done.results, format)) == ["t0", "t1"]
    assert [result.outcome for result in done.results] == [Outcome.OK, Outcome.INTERRUPTED]
    assert (tmp_path / "effects").read_text().split() == ["first", "second"]
