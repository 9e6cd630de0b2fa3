"""Policies: which calls share a lane, and which ready call takes the next slot.

Rules.
    1. A lane policy is a function ``(tool, input) -> bool``, or a `LaneRule`, which sees the call and the lane as it
       stands.  That lane is what the rule itself has put together: a lane that the runtime splits later, because of a
       claim on a state key, looks to the rule as if it were whole.  So it never matters how fast the calls come.
    2. A slot policy is asked only where more calls are ready than there are free slots.  It names one of them.
    3. A policy decides from what it is shown.  One that keeps state of its own has a method ``for_batch()``, which
       gives a fresh policy for each batch and sub-batch.
    4. A function that fails means no.  A rule that fails lets the call run alone, and a slot policy that fails is asked
       no more: ready calls then take slots in call order.  The batch goes on, and tells of the error when it is left.

Theory.  Tickets order the calls that conflict, whatever a policy says, so a policy decides how long a batch takes and
seldom what comes of it.  The laws that a lane policy does not keep stand in its ``gives_up``, by name.  A slot policy
gives up the call order of slots and nothing else: it has to name a ready call, so the batch ends.

Limits.  A slot policy looks at all ready calls for each slot: n ready calls cost n * n / 2 looks.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from toolrt._plain import at_once
from toolrt.errors import DefinitionRefused, PolicyRefused
from toolrt.model import Tool
from toolrt.order._lanes import by_claims, shares_a_lane

#: So often a ready call is overtaken by calls that got ready after it, while more calls may come; then the slot policy
#: starves it, and is refused.
MOST_OVERTAKEN = 1_000

#: The law that compares with a serial run: a policy that is a function gives it up, unless it says otherwise.
_AS_SERIAL = "same_as_serial"

#: The laws that no lane policy can give up: they hold for every plan.
_NEVER_GIVEN_UP = ("answered_once", "same_as_oracle", "nothing_left", "batch_ends", "same_schedule_same_trace")


class LaneChoice(enum.Enum):
    """What a lane rule says of a call."""

    #: It shares the lane as it stands; where there is none, it opens one that others may join.
    JOIN = "join"
    #: It opens another lane, which others may join.
    OPEN = "open"
    #: It runs alone.
    ALONE = "alone"

    def __repr__(self) -> str:
        return f"LaneChoice.{self.name}"


_CHOICES: Mapping[object, LaneChoice] = {True: LaneChoice.JOIN, False: LaneChoice.ALONE}


@attrs.frozen
class PolicyCall:
    """A valid call as policies see it."""

    #: Its place in the batch, from 0.
    call_index: int
    #: The tool's name, as the model gave it.
    name: str
    #: What the tool is given.
    input: Mapping[str, Any]
    #: Its tool: `toolrt.by_claims` and the others say what they think of it.
    tool: Tool = attrs.field(repr=False)


class LaneRule(Protocol):
    """A lane policy that sees the lane as it stands.

    Three more attributes may be there: ``__name__`` (a text; else the name of the class), ``gives_up`` (names of laws;
    else none) and ``for_batch()`` (gives the rule for one batch; else all batches share this one).
    """

    def place(self, call: PolicyCall, lane: tuple[PolicyCall, ...]) -> LaneChoice | bool:
        """Where `call` goes; True is `LaneChoice.JOIN`, False is `LaneChoice.ALONE`.

        Args:
            call: the call that comes.
            lane: the calls of the lane that it may join, in call order; empty where there is none.
        """


#: Which calls share a lane: a function of tool and input, or a rule that sees the lane, too.
LanePolicy = Callable[[Tool, Mapping[str, Any]], bool] | LaneRule

#: Which of the ready calls, given in call order, takes the next slot.
SlotPolicy = Callable[[Sequence[PolicyCall]], PolicyCall]


def is_rule(policy: object) -> bool:
    """Whether `policy` is a `LaneRule`."""
    return callable(getattr(policy, "place", None))


def policy_name(policy: object) -> str:
    """What `policy` is called: its ``__name__``, or that of its class."""
    name = getattr(policy, "__name__", None)
    return name if isinstance(name, str) and name else type(policy).__name__


def policy_text(policy: object) -> str:
    """The code that makes `policy`, as far as it can be told: without a memory address, so the same in each process."""
    has_own_text = not inspect.isroutine(policy) and type(policy).__repr__ is not object.__repr__
    name = policy_name(policy)
    return repr(policy) if has_own_text else name if inspect.isroutine(policy) else f"{name}()"


def promises_serial(policy: object) -> bool:
    """Whether a batch under this lane policy is to end like a serial run: by claims, or by a rule that says nothing."""
    given_up = gives_up(policy)
    return policy is by_claims if given_up is None else _AS_SERIAL not in given_up


def left_out(lanes: object, slots: object = None) -> tuple[str, ...]:
    """What is not checked of batches under these policies, each as a text: a report says it.

    Args:
        lanes: the lane policy.
        slots: the slot policy; None: ready calls take slots in call order.
    """
    found = [f"{law}, which the lane policy {policy_name(lanes)} gives up" for law in gives_up(lanes) or ()]
    if gives_up(lanes) is None and not promises_serial(lanes):
        found.append(f"{_AS_SERIAL}, as the lane policy {policy_name(lanes)} does not say that it keeps it")
    if slots is not None:
        found.append(f"the call order of slots (RULES 7), which the slot policy {policy_name(slots)} replaces")
    return tuple(found)


def gives_up(policy: object) -> tuple[str, ...] | None:
    """The laws that a lane policy declares that it gives up; None: it declares nothing, and is no rule."""
    declared = getattr(policy, "gives_up", None)
    if declared is None:
        return () if is_rule(policy) else None
    return tuple(declared)


def checked_lanes(where: str, policy: Any) -> LanePolicy:
    """Give `policy` back, if it can be a lane policy.

    Args:
        where: what takes it, for the error.

    Raises:
        DefinitionRefused: it cannot; the text says why.
    """
    expected = "a lane policy, such as toolrt.by_claims, or an object with place(call, lane)"
    if isinstance(policy, type):
        raise DefinitionRefused(where, f"{expected}; this is a class: give an instance of it", policy)
    if not is_rule(policy) and not callable(policy):
        raise DefinitionRefused(where, expected, policy)
    if inspect.iscoroutinefunction(getattr(policy, "place", None)):
        raise DefinitionRefused(where, f"{expected}, which answers at once (def, not async def)", policy)
    _check_factory(where, policy)
    declared = getattr(policy, "gives_up", None)
    if declared is None:
        return policy  # type: ignore[no-any-return]
    what = f"{where}: gives_up of {policy_name(policy)}"
    is_list = isinstance(declared, Iterable) and not isinstance(declared, str | bytes | Mapping)
    if not is_list or not all(isinstance(name, str) for name in declared):
        raise DefinitionRefused(what, "names of laws, such as ('same_as_serial',)", declared)
    if never := [name for name in declared if name in _NEVER_GIVEN_UP]:
        raise DefinitionRefused(what, f"laws that depend on the plan; never {', '.join(_NEVER_GIVEN_UP)}", never)
    return policy  # type: ignore[no-any-return]


def checked_slots(where: str, policy: Any) -> SlotPolicy | None:
    """Give `policy` back, if it can be a slot policy or is None.

    Args:
        where: what takes it, for the error.

    Raises:
        DefinitionRefused: it cannot; the text says why.
    """
    if policy is None:
        return None
    expected = "a slot policy, a function of the ready calls that gives one of them, or None"
    if isinstance(policy, type):
        raise DefinitionRefused(where, f"{expected}; this is a class: give an instance of it", policy)
    if not callable(policy):
        raise DefinitionRefused(where, expected, policy)
    if inspect.iscoroutinefunction(policy) or inspect.iscoroutinefunction(getattr(policy, "__call__", None)):  # noqa: B004
        raise DefinitionRefused(where, f"{expected}; it answers at once (def, not async def)", policy)
    if getattr(policy, "gives_up", ()):
        why = "no gives_up: a slot policy gives up the call order of slots (RULES 7), and no law"
        raise DefinitionRefused(where, why, policy.gives_up)
    _check_factory(where, policy)
    return policy  # type: ignore[no-any-return]


def _check_factory(where: str, policy: Any) -> None:
    factory = getattr(policy, "for_batch", None)
    if factory is not None and (not callable(factory) or inspect.iscoroutinefunction(factory)):
        raise DefinitionRefused(f"{where}: for_batch", "a method without arguments that gives a policy", factory)


def _for_batch(kind: str, policy: Any, batch_id: str | None) -> Any:
    """The policy for one batch.

    Raises:
        PolicyRefused: its ``for_batch()`` failed.
    """
    factory = getattr(policy, "for_batch", None)
    if factory is None:
        return policy
    expected = "for_batch() to give a policy"
    try:
        fresh = at_once(factory())
    except Exception as error:
        raise PolicyRefused(kind, policy_name(policy), expected, error, batch_id) from error
    if not (is_rule(fresh) if kind == "lane" else callable(fresh)):
        raise PolicyRefused(kind, policy_name(policy), expected, fresh, batch_id)
    return fresh


class LanePlacing:
    """Asks the lane policy of one batch about its calls, in call order, and keeps the lane as it stands.

    Args:
        policy: any lane policy.
        batch_id: names the batch, for errors; None: nothing is run.

    Raises:
        PolicyRefused: its ``for_batch()`` failed.
    """

    __slots__ = ("_batch_id", "_lane", "_name", "_policy", "_rule")

    def __init__(self, policy: LanePolicy, batch_id: str | None = None) -> None:
        self._policy: Any = policy
        self._batch_id = batch_id
        self._rule: Any = _for_batch("lane", policy, batch_id) if is_rule(policy) else None
        self._name = policy_name(policy)
        self._lane: tuple[PolicyCall, ...] = ()

    def place(self, call: PolicyCall) -> LaneChoice:
        """Where `call` goes, which comes next.

        Raises:
            PolicyRefused: the rule raised, or gave something that is no answer.  For the rule, the call runs alone.
        """
        lane, self._lane = self._lane, ()
        if self._rule is None:
            choice = _CHOICES[shares_a_lane(self._policy, call.tool, call.input)]
        else:
            choice = self._asked(call, lane)
        if choice is not LaneChoice.ALONE:
            self._lane = (*lane, call) if choice is LaneChoice.JOIN else (call,)
        return choice

    def _asked(self, call: PolicyCall, lane: tuple[PolicyCall, ...]) -> LaneChoice:
        expected = "place(call, lane) to give a LaneChoice, True or False"
        try:
            answer = at_once(self._rule.place(call, lane))
        except Exception as error:
            raise PolicyRefused("lane", self._name, expected, error, self._batch_id, call.call_index) from error
        if isinstance(answer, LaneChoice):
            return answer
        if isinstance(answer, bool):
            return _CHOICES[answer]
        raise PolicyRefused("lane", self._name, expected, answer, self._batch_id, call.call_index)


class SlotChooser:
    """Asks the slot policy of one batch.

    Args:
        policy: any slot policy.
        batch_id: names the batch, for errors.

    Raises:
        PolicyRefused: its ``for_batch()`` failed.
    """

    __slots__ = ("_batch_id", "_name", "_overtaken", "_policy", "_since", "_turn")

    def __init__(self, policy: SlotPolicy, batch_id: str) -> None:
        self._batch_id = batch_id
        self._policy: SlotPolicy = _for_batch("slot", policy, batch_id)
        self._name = policy_name(policy)
        #: How often it was asked, and of each ready call the first time at which it was one.
        self._turn = 0
        self._since: dict[int, int] = {}
        self._overtaken: dict[int, int] = {}

    def choose(self, ready: Sequence[PolicyCall], more_may_come: bool) -> int:
        """The call_index of the call that takes the next slot.

        Args:
            ready: the calls that lack nothing else, in call order.
            more_may_come: whether the batch still takes calls.

        Raises:
            PolicyRefused: the policy raised, named no call that is ready, or starves one.
        """
        expected = "one of the ready calls"
        self._turn += 1
        shown = tuple(ready)
        try:
            answer = at_once(self._policy(shown))
        except Exception as error:
            raise PolicyRefused("slot", self._name, expected, error, self._batch_id) from error
        if not any(answer is call for call in shown):
            indices = ", ".join(str(call.call_index) for call in shown)
            raise PolicyRefused("slot", self._name, f"{expected} (call {indices})", answer, self._batch_id)
        chosen: int = answer.call_index
        for call in shown:
            self._since.setdefault(call.call_index, self._turn)
        if more_may_come:
            self._count(shown, chosen)
        return chosen

    def _count(self, ready: Iterable[PolicyCall], chosen: int) -> None:
        """Count the ready calls that a later one has overtaken: only while more may come can that go on for ever."""
        for call in ready:
            index = call.call_index
            if self._since[index] < self._since[chosen]:
                times = self._overtaken[index] = self._overtaken.get(index, 0) + 1
                if times > MOST_OVERTAKEN:
                    expected = f"no ready call to be overtaken more than {MOST_OVERTAKEN:,} times by later ones"
                    got = f"call {chosen}, which got ready after call {index}"
                    raise PolicyRefused("slot", self._name, expected, got, self._batch_id, index)
