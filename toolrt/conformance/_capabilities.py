"""What is asked of an executor that says that it can: to go on after a kill, and to keep bounds.

Each question is a function of what was tried, as a law is; it gives a sentence that says what is wrong, or None.

Rules.
    1. A call that was running when its process was killed, or had ended less than `_DURABLE` before, may be answered as
       an error, because it may have happened.  So may a call that was about to start, which looks as if it was not: one
       before which no call that it conflicts with was still to end.
    2. Of any other call the answer is that of a serial run, and a call whose answer was durable does not run again.
    3. Contents of reads are not compared where a kill came in between: they depend on which writes happened.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolrt._plain import counted
from toolrt.conformance._laws import PROMPT, BlackBoxLaw, raised
from toolrt.conformance._plan import Answer, Happened, SampleCall, Tried, note_of

#: Virtual seconds after its tool's return within which an answer has to be durable.
_DURABLE = 0.5


def _unsure(tried: Tried) -> tuple[set[int], dict[int, int]]:
    """The calls that a kill may have caught; and those whose answer was durable before one, with their process."""
    caught, durable, over, calls = set[int](), dict[int, int](), set[int](), tried.plan.calls
    for process, killed_at in enumerate(tried.killed_at):
        over |= caught  # a later process may have answered them without running them
        mine = [one for one in tried.happened if one.process == process]
        ended = {one.call: one.time for one in mine if one.what == "end"}
        over |= ended.keys()
        durable.update((call, process) for call, time in ended.items() if time <= killed_at - _DURABLE)
        caught |= {one.call for one in mine if one.what == "start"}
        caught |= {later for later, call in enumerate(calls) if not _waits(calls[:later], call, over)}
    return caught - durable.keys(), durable


def _waits(before: Sequence[SampleCall], call: SampleCall, over: set[int]) -> bool:
    """Whether one of the calls `before` this one conflicts with it and is not among those that are `over`."""
    return any(other.conflicts(call) and index not in over for index, other in enumerate(before))


def _twice(tried: Tried) -> str | None:
    for name, text in tried.files.items():
        for index in range(len(tried.plan.calls)):
            if text.count(note_of(index)) > 1:
                return f"the effect of call {index} on {name} came {counted(text.count(note_of(index)), 'time')}"
    durable = _unsure(tried)[1]
    for one in tried.happened:
        if one.what == "start" and one.process > durable.get(one.call, one.process):
            return f"call {one.call} had its answer, and ran again"
    return None


def _lost(tried: Tried) -> str | None:
    if tried.answers is None:
        return raised(tried)
    unsure, _ = _unsure(tried)
    got = {answer.call_id: answer for answer in tried.answers}
    for index, (call, expected) in enumerate(zip(tried.plan.calls, tried.serial.answers, strict=True)):
        answer = got.get(expected.call_id)
        if answer is None:
            return f"{expected.call_id} has no answer"
        wrong = _wrong_answer(call, expected, answer)
        if wrong is not None and not (answer.is_error and index in unsure):
            return wrong
        if answer.is_error and index in unsure:
            continue
        for name, mode in call.touches.items():
            if mode == "write" and note_of(index) not in tried.files[name]:
                return f"{expected.call_id} is answered {answer.content!r}, and its effect on {name} is not there"
    return None


def _wrong_answer(call: SampleCall, expected: Answer, answer: Answer) -> str | None:
    if bool(answer.is_error) is not expected.is_error:
        what = "an error" if answer.is_error else "no error"
        return f"{expected.call_id} is answered as {what}: {answer.content!r}"
    if not answer.is_error and call.tool != "read_file" and answer.content != expected.content:
        return f"{expected.call_id} answers {answer.content!r}, in a serial run {expected.content!r}"
    return None


def _resumed_in_order(tried: Tried) -> str | None:
    if (wrong := _in_order(tried)) is not None:
        return wrong
    for name, text in tried.files.items():
        places = [text.find(note_of(index)) for index in range(len(tried.plan.calls))]
        there = [place for place in places if place >= 0]
        if there != sorted(there):
            return f"{name} holds {text!r}: calls changed it in another order than their own"
    return None


def _limit_kept(tried: Tried) -> str | None:
    bounds = tried.plan.bounds
    if bounds is None or bounds.limit is None:
        return None
    return _most_at_once(tried, tried.happened, bounds.limit, "calls") or _answered(tried)


def _slots_kept(tried: Tried) -> str | None:
    bounds = tried.plan.bounds
    for tool, most in ({} if bounds is None else bounds.slots).items():
        wrong = _most_at_once(tried, _of_tool(tried, tool), most, f"calls of {tool}") or _in_turn(tried, tool)
        if wrong is not None:
            return wrong
    return _answered(tried)


def _rates_kept(tried: Tried) -> str | None:
    bounds = tried.plan.bounds
    for tool, most in ({} if bounds is None else bounds.rates).items():
        starts = [one.time for one in _of_tool(tried, tool) if one.what == "start"]
        for first, later in zip(starts, starts[most:], strict=False):
            if later < first + 1 - PROMPT:
                return f"{most + 1} calls of {tool} started from {first:g} s to {later:g} s; {most} may in a second"
        wrong = _in_turn(tried, tool)
        if wrong is not None:
            return wrong
    return _answered(tried)


def _deadline_kept(tried: Tried) -> str | None:
    deadline = None if tried.plan.bounds is None else tried.plan.bounds.deadline
    if deadline is None:
        return None
    for one in tried.happened:
        if one.what == "start" and one.time > deadline + PROMPT:
            return f"call {one.call} started at {one.time:g} s, after the deadline at {deadline:g} s"
    if tried.ended_at is None or tried.ended_at > deadline + PROMPT:
        return f"the deadline was at {deadline:g} s, and the executor ended at {tried.ended_at or 0:g} s"
    if (wrong := _in_order(tried)) is not None:
        return wrong
    assert tried.answers is not None
    ended = {one.call for one in tried.happened if one.what == "end" and one.time < deadline - PROMPT}
    for index, (answer, expected) in enumerate(zip(tried.answers, tried.serial.answers, strict=True)):
        wrong = _wrong_answer(tried.plan.calls[index], expected, answer)
        if index in ended and wrong is not None:
            return f"{wrong}; it had ended by the deadline"
        if index not in ended and not answer.is_error:
            return f"{expected.call_id} had not ended by the deadline, and is answered {answer.content!r}"
    return None


def _of_tool(tried: Tried, tool: str) -> list[Happened]:
    return [one for one in tried.happened if tried.plan.calls[one.call].tool == tool]


def _most_at_once(tried: Tried, happened: Sequence[Happened], most: int, what: str) -> str | None:
    running = 0
    for one in happened:
        running += {"start": 1, "end": -1}.get(one.what, 0)
        if running > most:
            return f"{running} {what} ran at {one.time:g} s; {most} may at once"
    return None


def _in_turn(tried: Tried, tool: str) -> str | None:
    last = None
    for one in _of_tool(tried, tool):
        if one.what == "start":
            if last is not None and one.call < last.call and one.time > last.time + PROMPT:
                return f"call {one.call} started at {one.time:g} s, after call {last.call} at {last.time:g} s"
            last = one
    return None


def _in_order(tried: Tried) -> str | None:
    """What is wrong with which calls are answered, and in which order."""
    if tried.answers is None:
        return raised(tried)
    got = [answer.call_id for answer in tried.answers]
    return None if got == [one.call_id for one in tried.serial.answers] else f"the answers came as {', '.join(got)}"


def _answered(tried: Tried) -> str | None:
    """What is wrong with the answers of a batch whose bounds only make it slower."""
    if (wrong := _in_order(tried)) is not None:
        return wrong
    three = zip(tried.plan.calls, tried.serial.answers, tried.answers or (), strict=True)
    return next((wrong for one in three if (wrong := _wrong_answer(*one)) is not None), None)


_DURABLY = "an async method execute_durably(disk, tools, calls)"


def _within(what: str) -> str:
    return f"an async method execute_within(bounds, tools, calls), and {what!r} in its attribute keeps"


#: The questions, by name.
CAPABILITIES: dict[str, BlackBoxLaw] = {
    law.name: law
    for law in (
        BlackBoxLaw(
            "no_effect_twice",
            "After a kill no effect comes twice, and no answer is worked out again.",
            _twice,
            needs=_DURABLY,
        ),
        BlackBoxLaw(
            "no_effect_lost",
            "After a kill every call has its answer, and what is answered has happened.",
            _lost,
            needs=_DURABLY,
        ),
        BlackBoxLaw(
            "resumed_in_call_order",
            "After a kill answers and effects come in call order.",
            _resumed_in_order,
            needs=_DURABLY,
        ),
        BlackBoxLaw(
            "limit_kept", "No more calls run at once than may.", _limit_kept, needs=_within("limit"), bound="limit"
        ),
        BlackBoxLaw(
            "slots_kept",
            "No more calls of a tool run at once than it has slots; they start in call order.",
            _slots_kept,
            needs=_within("slots"),
            bound="slots",
        ),
        BlackBoxLaw(
            "rates_kept",
            "No second has more starts of a tool than its rate; they come in call order.",
            _rates_kept,
            needs=_within("rates"),
            bound="rates",
        ),
        BlackBoxLaw(
            "deadline_kept",
            "At a deadline all ends, and each answer says what had happened by then.",
            _deadline_kept,
            needs=_within("deadline"),
            bound="deadline",
        ),
    )
}
