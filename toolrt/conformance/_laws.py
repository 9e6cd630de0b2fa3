"""The halves of the laws that can be seen from outside: effects, answers, and what runs after the end.

Each law is a function of what was tried; it gives a sentence that says what is wrong, or None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import attrs

from toolrt._plain import counted
from toolrt.conformance._loop import Stuck
from toolrt.conformance._plan import Tried

#: Virtual seconds that an executor may add to the sum of what its calls take.
_SLACK = 60.0

#: Virtual seconds within which what runs has to end after a cancel.
PROMPT = 1e-3


@attrs.frozen
class BlackBoxLaw:
    """One law, as far as it can be seen from outside."""

    #: As in the design; with ``_after_cancel`` where two halves of one law are asked apart.
    name: str
    #: What it says.
    sentence: str
    #: What is wrong with what was tried; None: nothing.
    broken: Callable[[Tried], str | None]
    #: Whether plans for it are cancelled.
    cancels: bool = False
    #: What an adapter has to have so that it is asked, in words; empty: nothing.
    needs: str = ""
    #: What of `SampleBounds` its plans give: "limit", "slots", "rates" or "deadline"; empty: nothing.
    bound: str = ""


def _answered_once(tried: Tried) -> str | None:
    starts = Counter(one.call for one in tried.happened if one.what == "start")
    for call, times in starts.items():
        if times > 1:
            return f"call {call} ran {counted(times, 'time')}"
    if tried.answers is None:
        return None if tried.error is None else raised(tried)
    expected = [answer.call_id for answer in tried.serial.answers]
    got = Counter(answer.call_id for answer in tried.answers)
    for call_id in expected:
        if got[call_id] != 1:
            return f"{call_id} has {got[call_id]} answers"
    for call_id in got:
        if call_id not in expected:
            return f"an answer is for {call_id!r}, which is no call"
    for index in range(len(expected)):
        if not starts[index]:
            return f"call {index} was answered and never ran"
    return None


def _in_call_order(tried: Tried) -> str | None:
    if tried.answers is None:
        return None
    got = [answer.call_id for answer in tried.answers]
    expected = [answer.call_id for answer in tried.serial.answers if answer.call_id in got]
    return None if got == expected else f"the answers came as {', '.join(got)}"


def _same_file(tried: Tried) -> str | None:
    return _order_broken(tried, alone=False)


def _alone(tried: Tried) -> str | None:
    return _order_broken(tried, alone=True)


def _order_broken(tried: Tried, alone: bool) -> str | None:
    """How two calls that conflict overlapped or changed places; `alone`: one of them must run alone."""
    calls, spans = tried.plan.calls, tried.spans()
    for later in range(len(calls)):
        for earlier in range(later):
            one, other = calls[earlier], calls[later]
            if not one.conflicts(other) or ("shell" in (one.tool, other.tool)) is not alone:
                continue
            if later not in spans:
                continue
            if earlier not in spans:
                return f"call {later} ran, and call {earlier} before it, which it conflicts with, did not"
            if spans[later][0] < spans[earlier][0]:
                return f"call {later} started before call {earlier}, which it conflicts with"
            if spans[later][0] < spans[earlier][1]:
                return f"call {later} started while call {earlier} ran, which it conflicts with"
    return None


def _as_serial(tried: Tried) -> str | None:
    if tried.answers is None:
        return None if tried.error is None else raised(tried)
    got = {answer.call_id: answer for answer in tried.answers}
    for expected in tried.serial.answers:
        answer = got.get(expected.call_id)
        if answer is None or expected.is_error or answer.is_error:
            continue
        if answer.content != expected.content:
            return f"{expected.call_id} answers {answer.content!r}, in a serial run {expected.content!r}"
    for name, text in tried.serial.files.items():
        if tried.files[name] != text:
            return f"{name} holds {tried.files[name]!r}, after a serial run {text!r}"
    return None


def _contained(tried: Tried) -> str | None:
    if tried.answers is None:
        return None if tried.error is None else raised(tried)
    got = {answer.call_id: answer for answer in tried.answers}
    for expected in tried.serial.answers:
        answer = got.get(expected.call_id)
        if answer is None:
            return f"{expected.call_id} has no answer"
        if bool(answer.is_error) is not expected.is_error:
            what = "an error" if answer.is_error else "no error"
            return f"{expected.call_id} is answered as {what}: {answer.content!r}"
    return None


def _cancelled(tried: Tried) -> str | None:
    cancel_at = tried.plan.cancel_at
    if cancel_at is None or (tried.ended_at is not None and tried.ended_at < cancel_at):
        return None
    for one in tried.happened:
        if one.what == "start" and one.time > cancel_at + PROMPT:
            return f"call {one.call} started at {one.time:g} s, after the cancel at {cancel_at:g} s"
    if tried.ended_at is not None and tried.ended_at > cancel_at + PROMPT:
        return f"the executor was cancelled at {cancel_at:g} s and ended at {tried.ended_at:g} s"
    for name, text in tried.files.items():
        if text not in tried.serial.versions[name]:
            return f"{name} holds {text!r}, which no serial run leaves at any time"
    return None


def _nothing_left(tried: Tried) -> str | None:
    for one in tried.happened[tried.ended_after :]:
        # A tool that the end itself cancels may tell so at that instant.
        return f"call {one.call} was still running when the executor had ended ({one.what} at {one.time:g} s)"
    return None


def _nothing_left_after_cancel(tried: Tried) -> str | None:
    cancel_at = tried.plan.cancel_at
    if cancel_at is None or (tried.ended_at is not None and tried.ended_at < cancel_at):
        return None
    return _nothing_left(tried)


def _ends(tried: Tried) -> str | None:
    if isinstance(tried.error, Stuck):
        return f"the executor does not end: {tried.error}"
    most = sum(call.seconds for call in tried.plan.calls) + _SLACK
    if tried.ended_at is not None and tried.ended_at > most:
        return f"the executor ended after {tried.ended_at:g} virtual seconds; its calls take {most - _SLACK:g}"
    return None


def raised(tried: Tried) -> str:
    """How the executor came to give no answers."""
    if tried.error is None:
        return "the executor was not cancelled, and gave no answers"
    return f"the executor raised {type(tried.error).__name__}: {tried.error}"


#: The laws, by name, in the order of the design.
LAWS: dict[str, BlackBoxLaw] = {
    law.name: law
    for law in (
        BlackBoxLaw("answered_once", "Every call runs once and is answered once.", _answered_once),
        BlackBoxLaw("results_in_call_order", "Results come back in call order.", _in_call_order),
        BlackBoxLaw(
            "same_file_in_call_order", "Calls that touch one file run in call order and never overlap.", _same_file
        ),
        BlackBoxLaw("exclusive_alone", "A call that must run alone overlaps nothing.", _alone),
        BlackBoxLaw("same_as_oracle", "Contents and files are those of a serial run.", _as_serial),
        BlackBoxLaw("failure_contained", "A failure is the answer of its own call and of no other.", _contained),
        BlackBoxLaw("cancel_truthful", "A cancel is prompt: nothing starts after it.", _cancelled, cancels=True),
        BlackBoxLaw("nothing_left", "Nothing runs after the end.", _nothing_left),
        BlackBoxLaw(
            "nothing_left_after_cancel", "Nothing runs after a cancel.", _nothing_left_after_cancel, cancels=True
        ),
        BlackBoxLaw("batch_ends", "The batch ends.", _ends),
    )
}
