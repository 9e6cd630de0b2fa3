"""An agent that was stopped in the middle of a model's reply goes on with the results of its calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

import toolrt
from toolrt import Claim, Outcome, Registry, Runtime, ToolContext
from toolrt.errors import JournalRefused
from toolrt.interop import render_results
from toolrt.plugins import anthropic
from toolrt.store import MemoryRecords, _sqlite

RAN: list[str] = []


@toolrt.tool(claims=[Claim("notes", toolrt.WRITE)], schema=None)
async def note(ctx: ToolContext, what: str) -> str:
    """Counts its runs; the first is quick."""
    RAN.append(what)
    if what == "slow" and RAN.count("slow") == 1:
        await trio.sleep_forever()
    return f"noted {what}"


class Reply:
    """The events of a reply of three calls; the last is never whole."""

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        yield {"type": "message_start", "message": {"role": "assistant", "content": []}}
        for index, what in enumerate(("quick", "slow", "lost")):
            block = {"type": "tool_use", "id": f"t{index}", "name": "note", "input": {}}
            yield {"type": "content_block_start", "index": index, "content_block": block}
            if what == "lost":
                await trio.testing.wait_all_tasks_blocked()
                raise ConnectionError("the line is gone")
            delta = {"type": "input_json_delta", "partial_json": f'{{"what": "{what}"}}'}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}


async def test_an_agent_goes_on_with_the_results_of_a_broken_reply() -> None:
    """What ran is not run again, and each call that was spoken has its ``tool_result``."""
    RAN.clear()
    journal = toolrt.Journal(MemoryRecords())
    with pytest.raises(ConnectionError):
        await anthropic.run(Runtime(Registry([note]), journal=journal), Reply(), batch_id="turn-1")
    assert await journal.unfinished() == ["turn-1"]
    spoken = await journal.calls("turn-1")
    outcome = await Runtime(Registry([note]), journal=journal).resume("turn-1")
    assert [(call.call_id, call.input) for call in spoken] == [("t0", {"what": "quick"}), ("t1", {"what": "slow"})]
    assert [result.outcome for result in outcome.results] == [Outcome.OK, Outcome.INTERRUPTED]
    rendered = render_results(outcome.results, "anthropic")
    assert [one["tool_use_id"] for one in rendered["content"]] == ["t0", "t1"]  # type: ignore[call-overload,index]
    assert RAN == ["quick", "slow"]


async def test_a_journal_is_open_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one connection has it another is refused, as that of another process is, and then it is free at once."""
    monkeypatch.setattr(_sqlite, "_PATIENCE", 0.0)
    path = tmp_path / "journal.db"
    journal = toolrt.Journal(path)
    await Runtime(Registry([note]), journal=journal).run([], batch_id="b")
    other = _sqlite.SqliteRecords(str(path))
    with pytest.raises(JournalRefused, match="another process has it open"):
        other.read("b")
    journal.close()
    assert other.read("b")
    other.close()
