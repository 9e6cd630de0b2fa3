"""Calls and plans in words: what would run, beside what, and behind what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from toolrt.cli._tally import calls_of
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._screen import Screen
from toolrt.model import Claim, Mode, Registry, State, ToolCall
from toolrt.order import ClaimTable, LanePolicy, claims_of, partition

#: The inputs that say best what a call is about, best first.
_TELLING = ("path", "file", "file_path", "name", "query", "command")

#: Of those a call waits for, so many are named.
_NAMED = 5


def in_words(call: ToolCall) -> str:
    """The call in a few words: the tool's name, and what it is about."""
    return " ".join(part for part in subject_of(call) if part)


def subject_of(call: ToolCall) -> tuple[str, str]:
    """The tool's name, and what the call is about; the latter may be empty."""
    about = ""
    if isinstance(call.input, Mapping):
        texts = {key: value for key, value in call.input.items() if isinstance(value, str)}
        about = next((texts[key] for key in _TELLING if key in texts), next(iter(texts.values()), ""))
        parts = call.input.get("parts")
        if not about and isinstance(parts, list):
            paths = [part.get("path") for part in parts[:_NAMED] if isinstance(part, Mapping)]
            about = ", ".join(path for path in paths if isinstance(path, str))
    return on_one_line(call.name, 60), on_one_line(about, 60)


@attrs.frozen
class PlannedCall:
    """One call of a plan."""

    #: Its place in the batch, from 0.
    index: int
    #: What was asked.
    call: ToolCall
    #: What it claims; everything when it runs alone.
    claims: tuple[Claim, ...]
    #: The calls of its lane whose tickets it waits for, by index; those that these wait for are not listed.
    behind: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """The call as a JSON object."""
        return {
            "call_index": self.index,
            "call_id": self.call.call_id,
            "name": self.call.name,
            "claims": [[claim.mode.value, list(claim.resource), claim.subtree] for claim in self.claims],
            "waits_for": list(self.behind),
        }


@attrs.frozen
class BatchPlan:
    """What a runtime would do."""

    #: For each lane: whether its calls may overlap, and its calls.
    lanes: tuple[tuple[bool, tuple[PlannedCall, ...]], ...]
    #: The calls that would be answered without a tool being run, by index, and why.
    refused: tuple[tuple[int, ToolCall, str], ...]

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        return {
            "lanes": [
                {"lane": index, "shared": shared, "calls": [call.to_json() for call in calls]}
                for index, (shared, calls) in enumerate(self.lanes)
            ],
            "invalid": [
                {"call_index": index, "call_id": call.call_id, "name": call.name, "error": why}
                for index, call, why in self.refused
            ],
        }


def plan_of(calls: Sequence[ToolCall], registry: Registry, policy: LanePolicy) -> BatchPlan:
    """What a runtime would do with `calls` on the files as they are now; nothing is run."""
    state = State()
    # Calls are values, and two may be equal: what tells them apart is which object they are.
    waiting = {id(call): index for index, call in enumerate(calls)}
    if len(waiting) != len(calls):
        calls = [ToolCall(call.call_id, call.name, call.input) for call in calls]
        waiting = {id(call): index for index, call in enumerate(calls)}
    lanes = []
    for lane in partition(calls, registry, state, policy):
        table = ClaimTable()
        planned = []
        for call in lane.calls:
            claims = claims_of(registry[call.name], call.input, state, lane.safe)
            index = waiting.pop(id(call))
            ticket = table.take(claims, index)
            planned.append(PlannedCall(index, call, claims, tuple(sorted(ticket.waits_for()))))
        lanes.append((lane.safe, tuple(planned)))
    refused = tuple((index, calls[index], _refusal(calls[index], registry)) for index in waiting.values())
    return BatchPlan(tuple(lanes), refused)


def _refusal(call: ToolCall, registry: Registry) -> str:
    tool = registry.get(call.name)
    if tool is None:
        return f"unknown tool; there are {', '.join(registry.names)}"
    return str(tool.decode(call.input))


def print_plan(plan: BatchPlan, screen: Screen) -> None:
    """Print what would run."""
    for number, (shared, calls) in enumerate(plan.lanes):
        screen.say(f"lane {number}: {calls_of(len(calls))}, {'may overlap' if shared else 'alone'}", "bold")
        for planned in calls:
            behind = ", ".join(map(str, planned.behind[:_NAMED]))
            more = ", ..." if len(planned.behind) > _NAMED else ""
            after = f"  after {behind}{more}" if behind else ""
            screen.say(f"[{planned.index}] {in_words(planned.call)}{after}", indent=2)
            screen.say(_claims_in_words(planned.claims), "dim", indent=6)
    for index, call, why in plan.refused:
        screen.say(f"[{index}] {in_words(call)}: invalid, {on_one_line(why)}", "yellow")
    screen.say("Nothing was run.")


def resource_in_words(claim: Claim, width: int) -> str:
    """What a claim is about, in at most about `width` characters."""
    name = on_one_line("/".join(map(str, claim.resource)), width) or "everything"
    return f"{name} and all below" if claim.subtree and claim.resource else name


def _claims_in_words(claims: Sequence[Claim]) -> str:
    """The claims, changes first; reads of the directories on the way are many and say little."""
    ordered = sorted(claims, key=lambda claim: claim.mode is not Mode.WRITE)
    texts = []
    for claim in ordered[:_NAMED]:
        texts.append(f"{claim.mode.value}s {resource_in_words(claim, 120)}")
    more = f", and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
    return f"{', '.join(texts)}{more}" if texts else "claims nothing"
