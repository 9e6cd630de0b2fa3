"""Whatever an approval check answers, and however, decides what is executed, and what the call may touch."""

from __future__ import annotations

from typing import Any

import attrs
import trio
from hypothesis import example, given
from hypothesis import strategies as st

import toolrt
from tests.runtime._tools import WRITE, call, runtime
from toolrt import Allow, Claim, Deny, Rewrite, ToolCall, ToolContext, sim
from toolrt.invariants import check

FILES = st.lists(st.sampled_from("abc"), unique=True, max_size=3).map(sorted)
#: How the check gives its answer.
FORMS = ("at once", "later", "later, by an awaitable", "one for each lane", "one for each lane, later")
#: What the tool of the asked call says of itself.
KINDS: dict[str, dict[str, Any]] = {
    "claims files": {"claims": lambda input, state: _claims(input["files"])},
    "is alone": {"claims": lambda input, state: _claims(input["files"]), "alone": True},
    "declares nothing": {},
}


def _claims(files: list[str]) -> list[Claim]:
    return [Claim(("file", name), WRITE) for name in files]


@attrs.frozen
class Verdict:
    """What the check answers of the call."""

    #: ``allow``, ``deny``, ``rewrite``, ``raise`` or ``nothing``.
    kind: str
    #: The files of the rewritten input; None: an input that does not fit.
    files: list[str] | None
    #: Whether the rewritten input stops the batch where it fails.
    stops: bool
    #: The files that the call is narrowed to; None: it is not; a text: what is no claim.
    within: list[str] | str | None

    def answer(self) -> Any:
        claims: Any = _claims(self.within) if isinstance(self.within, list) else self.within and 17
        if self.kind == "raise":
            raise OSError("offline")
        if self.kind == "rewrite":
            fits = {"files": self.files, "stops": self.stops, "fails": True}
            return Rewrite(fits if self.files is not None else {"file": "a"}, within=claims)
        return {"allow": Allow(within=claims), "deny": Deny("too risky"), "nothing": None}[self.kind]


#: What few random examples come to: a call is narrowed, more than it holds is left to it, and a rewrite would stop the
#: batch.  The other arguments of these are the plainest.
NAMED = [
    Verdict("allow", None, False, ["a"]),
    Verdict("allow", None, False, ["c"]),
    Verdict("rewrite", ["a"], True, None),
]
PLAIN: dict[str, Any] = {"kind": "claims files", "files": ["a", "b"], "form": "at once", "opened": False}

VERDICTS = st.builds(
    Verdict,
    st.sampled_from(["allow", "allow", "deny", "rewrite", "rewrite", "rewrite", "raise", "nothing"]),
    FILES | st.none(),
    st.booleans(),
    st.none() | FILES | st.just("no claim"),
)


def _refused(verdict: Verdict, kind: str, files: list[str], stops: bool) -> str | None:
    """Why a call on these `files` does not run; None: it does."""
    if verdict.kind not in ("allow", "rewrite"):
        return {"deny": "denied: too risky", "raise": "raised OSError: offline", "nothing": "answered None"}[
            verdict.kind
        ]
    rewritten = verdict.kind == "rewrite"
    if rewritten and verdict.files is None:
        return "the rewritten input does not fit"
    limited = kind == "claims files"  # the others hold everything
    if rewritten and verdict.stops and not stops:
        return "the rewritten input stops the batch when it fails, the call's own does not"
    if isinstance(verdict.within, str):
        return "what are no claims"
    if verdict.within is not None and limited and not set(verdict.within) <= set(files):
        return "the approval narrows the call to write file/"
    # What its claims look at may change until it is granted, so those of a new input are looked at then.
    claims_more = rewritten and limited and not set(verdict.files or ()) <= set(files)
    return "the rewritten input claims write file/" if claims_more else None


@given(
    verdict=VERDICTS,
    kind=st.sampled_from(sorted(KINDS)),
    files=FILES,
    stops=st.booleans(),
    fails=st.booleans(),
    form=st.sampled_from(FORMS),
    opened=st.booleans(),
)
@example(verdict=NAMED[0], stops=False, fails=False, **PLAIN)
@example(verdict=NAMED[1], stops=False, fails=False, **PLAIN)
@example(verdict=NAMED[2], stops=False, fails=False, **PLAIN)
def test_call_does_what_was_approved_and_no_more(
    verdict: Verdict, kind: str, files: list[str], stops: bool, fails: bool, form: str, opened: bool
) -> None:
    """It runs with the input and the claims of the answer, once; a call behind it is skipped where it stops the batch.

    Args:
        form: how the check answers; while it has not, a call that is not ordered behind runs in the only slot.
    """
    asked: list[str] = []
    shown: list[Any] = []
    free_at: list[float] = []

    def at_once(request: toolrt.ApprovalRequest) -> Any:
        asked.append(request.name)
        shown.append((request.call_index, dict(request.input), request.claims, request.batch_id))
        if request.name != "asked":
            return True
        request.input.clear()  # it is a copy
        return verdict.answer()

    async def later(request: toolrt.ApprovalRequest) -> Any:
        answer: Any = OSError
        try:
            answer = at_once(request)
        except OSError as error:
            answer = error
        if request.name == "asked":
            await trio.sleep(3)
        if isinstance(answer, OSError):
            raise answer
        return answer

    class EachLane:
        def __call__(self, request: toolrt.ApprovalRequest) -> Any:
            raise AssertionError("it has a check for each lane")

        def for_lane(self) -> Any:
            return later if form.endswith("later") else at_once

    forms: dict[str, Any] = {"at once": at_once, "later": later, "later, by an awaitable": lambda one: later(one)}

    async def body(ctx: ToolContext, files: list[str], stops: bool = False, fails: bool = False) -> Any:
        if fails:
            raise LookupError("failed")
        return [files, sorted(map(str, ctx.claims))]

    async def free(ctx: ToolContext) -> str:
        free_at.append(trio.current_time())
        await trio.sleep(1)
        return "free"

    async def behind(ctx: ToolContext) -> str:
        return "behind"

    asked_tool = toolrt.tool(name="asked", stops_batch=lambda input: input["stops"], **KINDS[kind])(body)
    tools = runtime(
        asked_tool,
        toolrt.tool(name="free", safe=True)(free),
        toolrt.tool(name="behind", claims=_claims(["a", "b", "c", "d"]))(behind),
        approve=forms.get(form, EachLane()),
        limit=1,
    )
    first = ToolCall("asked", "asked", {"files": files, "stops": stops, "fails": fails})
    calls = [first, call("free"), call("behind")]

    async def program() -> toolrt.BatchOutcome:
        if not opened:
            return await tools.run(calls)
        async with tools.open_batch() as batch:
            for one in calls:
                batch.submit(one)
                await trio.lowlevel.checkpoint()
        return batch.outcome

    execution = sim.run(program)
    # The trace has the input that was asked for: a rewrite that takes the stop away is not in it.
    assert check(execution.trace) == [] or (stops and verdict.kind == "rewrite" and not verdict.stops)
    result, beside, last = execution.value.results
    why = _refused(verdict, kind, files, stops)
    ran = verdict.files if verdict.kind == "rewrite" and why is None else files
    failed = fails if verdict.kind != "rewrite" else True
    if why is not None:
        assert (result.outcome.value, why in result.error) == ("denied", True)
    elif failed:
        assert (result.outcome.value, result.error) == ("error", "LookupError: failed")
    else:
        holds = verdict.within if verdict.within is not None else ran
        everything = kind != "claims files" and verdict.within is None
        assert result.outcome.value == "ok"
        expected = [ran, sorted(map(str, _claims(list(holds))))]
        assert everything or result.content == expected
    # Whether it stops the batch is that of the new input as soon as this fits.
    fitted = verdict.kind == "rewrite" and not (why or "").startswith(
        ("the rewritten input does", "the rewritten input stops")
    )
    stopped = (why is not None or failed) and (verdict.stops if fitted else stops)
    assert last.outcome.value == ("skipped" if stopped else "ok")
    assert shown[0][1] == {"files": files, "stops": stops, "fails": fails}
    assert asked.count("asked") == 1
    if kind == "claims files" and not stops:  # one that may stop the batch lets no other begin
        assert beside.outcome.value == "ok"
        assert free_at == [0.0]
