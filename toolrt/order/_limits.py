"""Limits that are shared: by a runtime's batches, by several runtimes, by all conversations of a process.

Rules.
    1. A limit counts calls that run.  A call takes its share with its slot, when nothing else is missing, so one that
       waits takes none; it gives it back as it ends.
    2. Within a batch the ready call of the lowest call_index goes first, among those whose limits have room.  Batches
       that wait take turns: one call each.
    3. Calls of sub-batches, and of other batches that a tool opens, run in the share of the call that opened them.
       They are counted nowhere and never wait for a limit.
    4. Uses are counted as calls are submitted, in call order, whatever becomes of them: timing decides nothing.

Theory.  The share is taken at the last moment, and no call that runs waits for a share.  It may wait for a call that
does: a tool opens a batch whose call waits for a ticket of one that waits for the tool's share.  The call that closes
such a circle is refused (`toolrt.order._circle`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Protocol

from toolrt.errors import DefinitionRefused
from toolrt.order._rates import Rates
from toolrt.order._tickets import ClaimTable

#: Of so many conversations uses are remembered, at most; the one that was silent longest is forgotten first.
_CONVERSATIONS_MOST = 100_000

#: Names a limit: a tool, or several that share it; the empty one is that of all tools.
_Tools = tuple[str, ...]

_ALL: _Tools = ()


class Dispatcher(Protocol):
    """What limits ask of the machine of a batch that waits for them."""

    def dispatch(self, lane: Any, most: float = ...) -> None:
        """Let ready calls of `lane` start, `most` of them at most."""


class Named(Protocol):
    """What limits ask of a call."""

    @property
    def name(self) -> str:
        """The name of its tool."""


class _Tenure(ClaimTable):
    """Keeps batches of different Trio runs apart, as a claim table does."""

    def __init__(self, limits: CallLimits) -> None:
        super().__init__(limits.name)
        self._limits = limits

    def clear(self) -> None:
        super().clear()
        self._limits._forget_running()


class CallLimits:
    """Limits on the calls of all batches of all runtimes that have them.

    Give one object to each `toolrt.Runtime` that shares it.  The runtime's own ``limit`` holds for each batch apart.

    Args:
        limit: how many calls run at once, 1 or more; None is any number.
        tools: for a tool's name, or for a tuple of names that share it, how many of their calls run at once.
        uses: for the same keys, how many calls one conversation may make.  A conversation is the ``owner`` of its
            batches; batches without one are one conversation.  A call beyond that is DENIED, and says so.
        name: names it in events.

    Raises:
        DefinitionRefused: a number is no whole number of 1 or more, or a key neither a name nor a tuple of names.

    Example::

        limits = toolrt.Limits(20, tools={"render": 2}, uses={"search": 5})
        runtimes = [toolrt.Runtime(registry, limits=limits) for _ in range(2)]
        await runtimes[0].run(calls, owner="conversation 7")
    """

    def __init__(
        self,
        limit: int | None = None,
        *,
        tools: Mapping[str | tuple[str, ...], int] | None = None,
        uses: Mapping[str | tuple[str, ...], int] | None = None,
        name: str = "limits",
    ) -> None:
        if not isinstance(name, str):
            raise DefinitionRefused("Limits(name)", "a string", name)
        self.name = name
        self.limit = None if limit is None else _number("limit", limit)
        self.tools = _numbers("tools", tools)
        self.uses = _numbers("uses", uses)
        #: The starts of calls that claim a `toolrt.Rate`.
        self._rates = Rates()
        self._tenure = _Tenure(self)
        self._most: dict[_Tools, int] = dict(self.tools)
        if self.limit is not None:
            self._most[_ALL] = self.limit
        self._limits_of = _by_name(self.tools)
        self._uses_of = _by_name(self.uses)
        self._running: dict[_Tools, dict[Named, None]] = {tools: {} for tools in self._most}
        self._used: dict[Hashable, dict[_Tools, int]] = {}
        #: The machines with ready calls for which a limit has no room, and the lane of each, in the order of turns.
        self._waiting: dict[Dispatcher, Any] = {}

    def statistics(self) -> dict[str, int]:
        """How many calls run under each limit: ``""`` is that of all tools, ``"a, b"`` one that tools share.

        Checkpoint: never.
        """
        return {", ".join(tools): len(calls) for tools, calls in self._running.items()}

    def forget(self, owner: Hashable) -> None:
        """Forget the uses of a conversation that is over, the one of this `owner`.

        Checkpoint: never.
        """
        self._used.pop(owner, None)

    def __repr__(self) -> str:
        return f"Limits({self.limit}, tools={_told(self.tools)}, uses={_told(self.uses)})"

    def to_json(self) -> dict[str, Any]:
        """The limits on what runs, as events have them.

        Checkpoint: never.
        """
        return {"name": self.name, "most": [[list(tools), most] for tools, most in self._most.items()]}

    # What the machine of a batch asks

    def has_room(self, name: str) -> bool:
        """Whether a call of the tool `name` could run beside those that run."""
        return all(len(self._running[tools]) < self._most[tools] for tools in self._of(name))

    def waits_for(self, name: str) -> Iterable[tuple[list[Any], int]]:
        """Of each limit that has no room for a call of the tool `name`: the calls that run, and how many may go on."""
        full = [tools for tools in self._of(name) if len(self._running[tools]) >= self._most[tools]]
        return [(list(self._running[tools]), self._most[tools] - 1) for tools in full]

    def take(self, call: Named) -> bool:
        """Let the `call` take its share; False, and nothing was changed, where there is no room."""
        if not self.has_room(call.name):
            return False
        for tools in self._of(call.name):
            self._running[tools][call] = None
        return True

    def give(self, call: Named) -> None:
        """The `call` gives its share back."""
        for tools in self._of(call.name):
            del self._running[tools][call]

    def bounded_by(self, name: str) -> Iterable[str]:
        """The limits that calls of the tool `name` share, in words."""
        return [", ".join(tools) for tools in self._of(name)]

    def wait(self, machine: Dispatcher, lane: Any) -> None:
        """The batch of the `machine` has ready calls in `lane` for which there is no room."""
        self._waiting[machine] = lane

    def wait_no_more(self, machine: Dispatcher) -> None:
        """The batch of the `machine` has none any more."""
        self._waiting.pop(machine, None)

    def hand_out(self) -> None:
        """Let batches that wait start calls while there is room: one each, in turn."""
        goes_on = bool(self._waiting)
        while goes_on:
            goes_on = False
            for machine, lane in list(self._waiting.items()):
                if machine not in self._waiting:
                    continue
                before = self._count()
                machine.dispatch(lane, 1)
                if self._count() > before:
                    goes_on = True
                    if machine in self._waiting:
                        self._waiting[machine] = self._waiting.pop(machine)

    def use(self, owner: Hashable, name: str) -> str | None:
        """Count a call of the tool `name` in the conversation of `owner`; gives why it may not be made, or None."""
        refusal = None
        for tools in self._uses_of.get(name, ()):
            used = self._used.pop(owner, {})
            self._used[owner] = used
            used[tools] = count = used.get(tools, 0) + 1
            if count > self.uses[tools]:
                who = f"tool {name!r}" if tools == (name,) else f"the tools {', '.join(map(repr, tools))} together"
                most = self.uses[tools]
                refusal = f"denied: a conversation may use {who} {most:,} times, and this is use {count:,}"
        if len(self._used) > _CONVERSATIONS_MOST:
            del self._used[next(iter(self._used))]
        return refusal

    def _of(self, name: str) -> tuple[_Tools, ...]:
        mine = self._limits_of.get(name, ())
        return mine if self.limit is None else (_ALL, *mine)

    def _count(self) -> int:
        return sum(map(len, self._running.values()))

    def _forget_running(self) -> None:
        self._running = {tools: {} for tools in self._most}
        self._waiting.clear()


#: Its public name; a workspace has limits, too.
Limits = CallLimits


def _number(what: str, value: object) -> int:
    if type(value) is not int or value < 1:
        raise DefinitionRefused(f"Limits({what})", "a whole number, 1 or more", value)
    return value


def _numbers(what: str, given: Mapping[Any, Any] | None) -> dict[_Tools, int]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise DefinitionRefused(f"Limits({what})", "numbers by the names of tools", given)
    found: dict[_Tools, int] = {}
    for key, value in given.items():
        names = (key,) if isinstance(key, str) else key
        if not isinstance(names, tuple) or not names or not all(isinstance(name, str) for name in names):
            raise DefinitionRefused(f"Limits({what})", "a tool's name, or a tuple of names, for each number", key)
        found[names] = _number(what, value)
    return found


def _by_name(limits: Mapping[_Tools, int]) -> dict[str, tuple[_Tools, ...]]:
    found: dict[str, tuple[_Tools, ...]] = {}
    for tools in limits:
        for name in dict.fromkeys(tools):
            found[name] = (*found.get(name, ()), tools)
    return found


def _told(limits: Mapping[_Tools, int]) -> dict[Any, int]:
    return {tools[0] if len(tools) == 1 else tools: count for tools, count in limits.items()}
