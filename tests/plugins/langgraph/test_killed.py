"""A graph that is killed in the middle of a message goes on with what the runtime's journal has."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

pytest.importorskip("langgraph", reason="toolrt[langgraph]")

from langgraph.types import Command

from tests._forked import forked
from tests.plugins.langgraph._graphs import answers
from tests.plugins.langgraph._killed import CONFIG, graph_in, process


def killed(directory: Path, what: str) -> None:
    """Let a process run the message until it is killed."""
    child = forked(process, str(directory), what)
    child.join()
    assert child.exitcode == -signal.SIGKILL


@pytest.mark.process
def test_a_killed_tool_is_told_and_the_others_are_not_run_twice(tmp_path: Path) -> None:
    """The graph runs its task again, under the same name; what had returned keeps its answer."""
    killed(tmp_path, "tool")
    told = answers(graph_in(tmp_path).invoke(None, CONFIG))
    assert [told[0], told[2]] == [("call_0", "paid a"), ("call_2", "paid c")]
    assert "may have landed" in told[1][1]
    assert (tmp_path / "effects").read_text().split() == ["a", "dies", "c"]


@pytest.mark.process
def test_an_interrupt_that_langgraph_never_saw_is_raised_again(tmp_path: Path) -> None:
    """The call that asked begins once more, and a later one that it holds up waits for the answer, as before."""
    killed(tmp_path, "ledger")
    graph = graph_in(tmp_path)
    [asked] = graph.invoke(None, CONFIG)["__interrupt__"]
    assert asked.value == "may I?"
    assert (tmp_path / "effects").read_text().split() == ["a"]
    told = answers(graph.invoke(Command(resume="yes"), CONFIG))
    assert told == [("call_0", "paid a"), ("call_1", "yes"), ("call_2", "paid c")]
    assert (tmp_path / "effects").read_text().split() == ["a", "c"]
