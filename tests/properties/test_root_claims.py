"""Claims on everything against a serial execution that is written here, and knows nothing of lanes or tickets."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from toolrt import ToolContext, ToolOutput
from toolrt.model import EVERYTHING, READ, WRITE, Claim, State, ToolCall


def _raises(input: Any, state: Any) -> list[Claim]:
    raise ValueError("no claims")


#: What a tool claims, by its name; each of these covers the key.
CLAIMS: dict[str, Any] = {
    "key": lambda input, state: [Claim(("state", "k"), WRITE)],
    "keys": lambda input, state: [Claim(("state",), WRITE, subtree=True)],
    "everything": lambda input, state: [EVERYTHING],
    "raises": _raises,
    "undeclared": None,
    "reads_key": lambda input, state: [Claim(("state", "k"), READ)],
    "reads_keys": lambda input, state: [Claim(("state",), READ, subtree=True)],
    "reads_everything": lambda input, state: [Claim((), READ, subtree=True)],
}
WRITERS = [name for name in CLAIMS if not name.startswith("reads")]
#: Those that may run the others inside a call.
PARENTS = ["everything", "raises", "undeclared"]


def _tool(name: str, late: bool) -> toolrt.Tool:
    said: dict[str, Any] = {} if CLAIMS[name] is None else {"claims": CLAIMS[name]}
    if late and said:
        said["claims_after"] = CLAIMS["reads_key"]

    @toolrt.tool(name=f"{name}{'_late' * late}", schema=None, **said)
    async def made(ctx: ToolContext, add: int, inside: Any) -> ToolOutput:
        seen = ctx.state.get("k", 0)
        children: Any = []
        if inside:
            outcome = await ctx.run([ToolCall(str(at), *one) for at, one in enumerate(inside)])
            children = [result.content for result in outcome.results]
        await trio.lowlevel.checkpoint()
        text = f"{seen} {children}"
        if name.startswith("reads"):
            return ToolOutput(text)
        return ToolOutput(text, modifiers=[lambda state: state.set("k", 10 * seen + add)])

    return made


REGISTRY = toolrt.Registry([_tool(name, late) for name in CLAIMS for late in (False, True) if CLAIMS[name] or not late])
NAMES = [tool.name for tool in REGISTRY]


def _calls(names: list[str], inside: Any) -> Any:
    return st.tuples(st.sampled_from(names), st.fixed_dictionaries({"add": st.integers(1, 9), "inside": inside}))


CHILDREN = st.lists(_calls(NAMES, st.just([])), max_size=3)
BATCHES = st.lists(_calls(NAMES, st.just([])) | _calls(PARENTS, CHILDREN), min_size=1, max_size=5)


def _one_at_a_time(calls: Any, k: int) -> tuple[list[str], int]:
    """What the calls answer and leave, where each has ended before the next begins."""
    answers = []
    for name, input in calls:
        children, _ = _one_at_a_time(input["inside"], k)
        answers.append(f"{k} {children}")
        if not name.startswith("reads"):
            k = 10 * k + input["add"]
    return answers, k


@given(calls=BATCHES)
def test_same_as_serial_where_calls_claim_everything(calls: Any) -> None:
    """A call that claims the root reads the state that every earlier call leaves."""
    wanted, k = _one_at_a_time(calls, 0)

    async def main() -> toolrt.BatchOutcome:
        return await toolrt.Runtime(REGISTRY).run([ToolCall(str(at), *one) for at, one in enumerate(calls)], State())

    outcome = trio.run(main)
    assert [result.content for result in outcome.results] == wanted, outcome.results
    if any(not name.startswith("reads") for name, _ in calls):
        assert outcome.state["k"] == k


@pytest.mark.parametrize("name", ["everything", "raises", "reads_everything", "reads_keys"])
def test_claim_on_everything_sees_what_an_earlier_call_set(name: str) -> None:
    """A subtree claim that covers a key of the state waits for the call that writes this key."""
    calls = [ToolCall("a", "key", {"add": 1, "inside": []}), ToolCall("b", name, {"add": 2, "inside": []})]
    outcome = trio.run(toolrt.Runtime(REGISTRY).run, calls, State())
    assert outcome.results[1].content == "1 []"
