"""Tools: a function, and what its author promises about it; and the registry that holds tools by name.

"Safe", claims and "modifiers are pure" are promises; the laws hold for tools that keep them.  What a tool does
not promise is assumed to be the worst: undeclared is exclusive, a failing ``safe`` is not safe, failing
``claims`` claim everything.
"""

from __future__ import annotations

import copy
import difflib
import functools
import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any, Literal, TypeVar, overload

import attrs

from toolrt._plain import at_once, json_copy, stable_text
from toolrt.errors import DefinitionRefused, asks_to_exit, error_text
from toolrt.model._bounded import is_a_bound
from toolrt.model._call import ToolCall
from toolrt.model._callable import described, is_async
from toolrt.model._claim import EVERYTHING, READ, Claim, Rate
from toolrt.model._invalid_call import unknown_tool
from toolrt.model._mismatch import Mismatch, Mismatches, describe
from toolrt.model._promises import CLAIMS, require_context, require_promise, require_sync, require_two
from toolrt.model._retry import retried
from toolrt.model._row import FieldClaims, FieldModes
from toolrt.model._schema import (
    BareValidator,
    DerivedValidator,
    GivenValidator,
    Validator,
)
from toolrt.model._schema_check import Schema
from toolrt.model._state import State

T = TypeVar("T")

ClaimsOf = Callable[[Mapping[str, Any], State], Iterable[Claim]]
#: What a call answers that happened; False if nothing happened, None if that cannot be known.
Landed = Callable[[list[Any]], Awaitable[str | bool | None]]
#: What a tool's function is called with: its input as one value or as it is, and by name.
Arguments = tuple[Any, Mapping[str, Any]]


class _Derived:
    """The wish that the schema come from the type hints."""

    def __repr__(self) -> str:
        return "DERIVED"


#: The default of ``tool(schema=...)``: derive it from the type hints.
DERIVED = _Derived()


def _by_field(
    claims: ClaimsOf | tuple[Claim, ...] | FieldModes | None,
) -> ClaimsOf | tuple[Claim, ...] | None:
    return FieldClaims.of(claims) if isinstance(claims, Mapping) else claims


def _with_context_by_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, whose first parameter is none by name: its ``**input`` may have a field of that name."""
    if not isinstance(function, FunctionType):
        return function
    if function.__code__.co_posonlyargcount or not function.__code__.co_argcount:
        return function
    code = function.__code__.replace(co_posonlyargcount=1)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(made, function)


@attrs.define(eq=False, on_setattr=attrs.setters.NO_OP)
class Tool:
    """A function that a model may call, with its author's promises.

    Calling the tool calls its function.  Make one with the `tool` decorator.
    """

    #: What the model calls it by.
    name: str
    #: The function; its first parameter is the `ToolContext`.
    function: Callable[..., Any] = attrs.field(repr=False)
    #: Whether it may overlap its neighbours under `by_safety`; True declares that it claims nothing.
    safe: bool | Callable[[Mapping[str, Any]], bool] = False
    #: What it will touch; None says nothing.  A mapping of fields or `Row` objects becomes a function.
    claims: ClaimsOf | tuple[Claim, ...] | None = attrs.field(default=None, converter=_by_field)
    #: Seconds of its own execution; None takes the runtime's.
    timeout: float | None = None
    #: Whether its failure skips every later call of the batch.
    stops_batch: bool | Callable[[Mapping[str, Any]], bool] = False
    #: "finish": a cancel waits for it and keeps its real result.
    interrupt: Literal["cancel", "finish"] = "cancel"
    #: The description that models read.
    description: str = ""
    #: Who owns the resources it claims (a workspace), or None: then the runtime does.
    owner: Any = attrs.field(default=None, repr=False)
    #: Whether its calls share the batch's read budget (`ToolContext.read_budget`).
    shares_read_budget: bool = attrs.field(default=False, kw_only=True)
    #: Whether its calls have a lane to themselves, though it says what it touches: that is what counts in a sub-batch.
    alone: bool = attrs.field(default=False, kw_only=True)
    #: Whether it leaves out what its approval withholds (`ToolContext.withheld`): then a rule about a part of what it
    #: claims need not deny the call.
    leaves_out: bool = attrs.field(default=False, kw_only=True)
    #: Whether its calls have no effect but their content and modifiers, and so may run again on another state.
    pure: bool = attrs.field(default=False, kw_only=True)
    #: Whether a call that may have happened, because the process ended while it ran, may simply run again.
    idempotent: bool = attrs.field(default=False, kw_only=True)
    #: Tells of such a call whether it happened, from what it said it was about to do; None: the tool cannot tell.
    landed: Landed | None = attrs.field(default=None, kw_only=True, repr=False)
    #: How often, and when, its function is called again where it fails: a ``tenacity.AsyncRetrying``; None: never.
    retry: Any = attrs.field(default=None, kw_only=True, repr=False)
    #: What `claims` looks at: it is asked when these claims are granted; None says that it looks at nothing that an
    #: earlier call may change.
    claims_after: ClaimsOf | tuple[Claim, ...] | None = attrs.field(default=None, converter=_by_field, kw_only=True)
    #: Characters that a result of it may have; None takes the runtime's.
    max_result: int | None = attrs.field(default=None, kw_only=True)
    #: Whether the function, first thing, compares what its input means with what the call holds.
    looks_again: bool = attrs.field(default=False, kw_only=True)
    #: Whether the function is a coroutine function; others run in a worker thread.
    is_async: bool = attrs.field(init=False, repr=False)
    _validator: Validator | None = attrs.field(init=False, default=None, repr=False)
    _wish: Schema | _Derived | None = attrs.field(default=DERIVED, alias="schema", repr=False)
    _defaults: Mapping[str, Any] = attrs.field(init=False, factory=dict, repr=False)
    _bare: bool = attrs.field(init=False, default=False, repr=False)

    def __attrs_post_init__(self) -> None:
        what = f"tool {self.name!r}"
        if not isinstance(self.name, str) or not self.name:
            raise DefinitionRefused("a tool's name", "a string that is not empty", self.name)
        if not callable(self.function):
            raise DefinitionRefused(what, "a function", self.function)
        require_promise(f"{what}: safe", self.safe)
        require_promise(f"{what}: stops_batch", self.stops_batch)
        if self.interrupt not in ("cancel", "finish"):
            raise DefinitionRefused(f"{what}: interrupt", '"cancel" or "finish"', self.interrupt)
        if self.timeout is not None and not (_is_number(self.timeout) and 0 < self.timeout <= sys.float_info.max):
            raise DefinitionRefused(f"{what}: timeout", "finite seconds above 0, or None", self.timeout)
        if self.landed is not None and not callable(self.landed):
            raise DefinitionRefused(f"{what}: landed", "an async function of what a call was about to do", self.landed)
        if not isinstance(self.idempotent, bool):
            raise DefinitionRefused(f"{what}: idempotent", "True or False", self.idempotent)
        if self.max_result is not None and not is_a_bound(self.max_result):
            raise DefinitionRefused(
                f"{what}: max_result", "a number of characters, 1 or more, or None", self.max_result
            )
        if self.owner is not None and not hasattr(self.owner, "claim_table"):
            raise DefinitionRefused(f"{what}: owner", "an object with a claim_table, such as a Workspace", self.owner)
        if isinstance(self.claims, tuple) and not all(isinstance(claim, Claim) for claim in self.claims):
            raise DefinitionRefused(f"{what}: claims", CLAIMS, self.claims)
        require_sync(f"{what}: claims", self.claims)
        after = self.claims_after
        if isinstance(after, tuple) and not all(isinstance(claim, Claim) for claim in after):
            raise DefinitionRefused(f"{what}: claims_after", CLAIMS, after)
        if after is not None and not (isinstance(after, tuple) or callable(after)):
            raise DefinitionRefused(f"{what}: claims_after", CLAIMS, after)
        if after is not None and not callable(self.claims):
            raise DefinitionRefused(
                f"{what}: claims_after", "claims= too, as a function of input and state", self.claims
            )
        require_sync(f"{what}: claims_after", after)
        require_two(f"{what}: claims", self.claims)
        require_two(f"{what}: claims_after", after)
        signature = inspect.signature(self.function)
        parameters = list(signature.parameters.values())
        require_context(what, signature)
        self.is_async = is_async(self.function)
        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            raise DefinitionRefused(what, "a function that returns its answer", "a generator function")
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            self.function = _with_context_by_place(self.function)
        if self.retry is not None:
            harmless = self.idempotent or self.pure or self.safe is True
            self.function = retried(what, self.function, self.retry, harmless)
        self._bare = len(parameters) == 1
        fields = self._fields(parameters[1:])
        for claims, of in ((self.claims, "claims"), (after, "claims_after")):
            if isinstance(claims, FieldClaims) and fields is not None:
                claims.check(f"{what}: {of}", fields)
        self._defaults = {
            parameter.name: parameter.default
            for parameter in parameters[1:]
            if parameter.default is not parameter.empty
        }

    def _fields(self, parameters: list[inspect.Parameter]) -> Iterable[str] | None:
        """The fields of the input; None: only the call knows them."""
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            return [parameter.name for parameter in parameters]
        properties = self._wish.get("properties") if isinstance(self._wish, Mapping) else None
        return properties if isinstance(properties, Mapping) and properties else None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @classmethod
    def from_pydantic_ai(cls, tool: Any, deps: Any = None, **promises: Any) -> Tool:
        """A tool of pydantic-ai's, with what it does not say by itself as `promises`, options of `toolrt.tool`.

        A coroutine function awaits the event loop, so its batch is awaited by `toolrt.aio`; others run in a thread.

        Args:
            tool: a ``pydantic_ai.Tool``; its schema and timeout are kept.
            deps: what its ``RunContext`` holds as ``deps``.
            promises: what it promises.

        Raises:
            MissingExtra: pydantic-ai is not installed.
            DefinitionRefused: `tool` is none, or an agent would have to ask for its approval.

        Example::

            Tool.from_pydantic_ai(pydantic_ai.Tool(search), safe=True)
        """
        return _made_by("pydantic_ai", "_tool_from_pydantic_ai", tool, deps=deps, **promises)

    @classmethod
    def from_langchain(cls, tool: Any, **promises: Any) -> Tool:
        """A tool of LangChain's, with what it does not say by itself as `promises`, options of `toolrt.tool`.

        One with a coroutine awaits the event loop, so its batch is awaited by `toolrt.aio`; others run in a thread.

        Raises:
            MissingExtra: langchain-core is not installed.
            DefinitionRefused: `tool` is none, or a graph would have to inject something into it.

        Example::

            Tool.from_langchain(search, safe=True)
        """
        return _made_by("langgraph", "_tool_from_langchain", tool, **promises)

    @classmethod
    def from_callable(cls, function: Callable[..., Any], /, **options: Any) -> Tool:
        """Make a tool of any function, as it stands: its first parameter need not take the `ToolContext`.

        A first parameter that is annotated as a `ToolContext`, or is called ``ctx`` and not annotated, takes the
        context.  An ``async def`` function may await Trio; where `toolrt.aio` runs the batch, Trio or asyncio.  A
        plain ``def`` runs in a worker thread.

        Args:
            function: a function, a bound method, a ``functools.partial`` or an object that is called.
            options: as of `tool`.  By default the name is the function's, the description is the docstring without
                its lines on arguments (Google, NumPy or reST; the ``schema`` extra reads them), which become the
                descriptions of the schema's fields, and the schema is derived from the annotations.

        Raises:
            DefinitionRefused: something here cannot work; the text says what.

        Example::

            Tool.from_callable(shop.order, claims={"order_id": WRITE})
        """
        made = described(function, isinstance(options.get("schema", DERIVED), _Derived))
        defaults: dict[str, Any] = {"description": made.description}
        if made.name != "<lambda>":
            defaults["name"] = made.name
        if made.schema is not None:
            defaults["schema"] = made.schema
        found: Tool = tool(**{**defaults, **options})(made.function)
        return found

    @classmethod
    def from_mcp(cls, session: Any, tool: Any, **options: Any) -> Tool:
        """A tool of an MCP server over a session that you hold; `toolrt.plugins.mcp.connect` opens its own.

        Args:
            session: a ``ClientSession`` of the ``mcp`` package, initialized, on Trio or asyncio; it has to stay open.
            tool: one of those that ``session.list_tools()`` gives.
            options: `name`, `trusted`, `owner` and `timeout`, as of `toolrt.plugins.mcp.McpServer` and `connect`.

        Raises:
            MissingExtra: the ``mcp`` extra is not installed.
            DefinitionRefused: `session` or `tool` is none; or an InputRefused: its schema cannot be used.

        Example::

            tools = [Tool.from_mcp(session, tool) for tool in (await session.list_tools()).tools]
        """
        return _made_by("mcp", "_tool_from_mcp", session, tool, **options)

    def rebound(
        self,
        function: Callable[..., Any],
        *,
        claims: ClaimsOf | None,
        owner: Any,
        claims_after: ClaimsOf | None = None,
    ) -> Tool:
        """The same tool for another `owner`: a `function` of the same signature and kind, `claims` and `claims_after`.

        Nothing is looked at again, so this is cheap: what was derived from the signature is shared.
        """
        tool = copy.copy(self)
        tool.function, tool.claims, tool.owner, tool.claims_after = function, claims, owner, claims_after
        return tool

    @property
    def validator(self) -> Validator:
        """The strict check of this tool's input.

        Raises:
            MissingExtra: the schema must be derived and the ``schema`` extra is not installed.
            DefinitionRefused: the type hints have no schema.
        """
        if self._validator is None:
            if isinstance(self._wish, _Derived) and not self._bare:
                self._validator = DerivedValidator(self.function, self.name)
            elif self._wish is None or isinstance(self._wish, _Derived):
                self._validator = BareValidator(inspect.signature(self.function))
            else:
                self._validator = GivenValidator(inspect.signature(self.function), self._wish, self.name)
        return self._validator

    @property
    def schema(self) -> Schema:
        """The JSON schema of the input, as models are shown it."""
        return self.validator.schema

    def decode(self, input: object) -> Arguments | Mismatches:
        """The function's arguments after the context, or everything that is wrong with `input`."""
        if type(input) is not dict and not isinstance(input, Mapping):
            return Mismatches([Mismatch("input", "object", describe(input))])
        if not input and self._bare:
            return _NO_ARGUMENTS
        try:
            return (self._validator or self.validator)(input)
        except Exception as error:
            # A mapping that cannot be read, or text that UTF-8 cannot hold: half a surrogate pair, say.
            return Mismatches([Mismatch("input", "JSON values", f"something else ({type(error).__name__}: {error})")])

    def complete(self, input: Mapping[str, Any]) -> Mapping[str, Any]:
        """`input` with the function's defaults filled in; what ``safe``, ``claims`` and ``stops_batch`` are given."""
        if not self._defaults:
            return input
        return {**self._defaults, **input}

    def is_safe(self, input: Mapping[str, Any]) -> bool:
        """Whether it may overlap its neighbours for this input; False when its author's function fails."""
        safe = self.safe
        if safe is True or safe is False:
            return safe
        return self._asked(at_once, None, safe, input) is True

    def may_stop(self, input: Mapping[str, Any]) -> bool:
        """Whether its failure stops the batch for this input; True when its author's function fails."""
        if isinstance(self.stops_batch, bool):
            return self.stops_batch
        stops = self.stops_batch
        return self._asked(lambda answer: bool(at_once(answer)), True, stops, input)

    def _asked(
        self, read: Callable[[Any], T], otherwise: T, ask: Callable[..., Any], input: Mapping[str, Any], *state: State
    ) -> T:
        """What `read` makes of the answer of `ask`, the author's; `otherwise` where one of them fails.

        A wish to exit goes out.
        """
        try:
            return read(ask(self.complete(input) if self._defaults else input, *state))
        except BaseException as error:  # noqa: ASYNC103  it is not async: no cancel comes up in it
            if asks_to_exit(error) is not None:
                raise
            return otherwise  # noqa: ASYNC104

    def describe_error(self, error: BaseException) -> str:
        """What a result says about an exception of this tool: in its owner's words, if the owner has some.

        An owner's ``describe_error(error)`` keeps out of the model's sight what only the owner can tell from the
        rest, such as paths of the machine.
        """
        describe = getattr(self.owner, "describe_error", None)
        if describe is None:
            return error_text(error)
        try:
            return str(describe(error))
        except Exception:
            # Its own words failed: then none of the exception's, which may be what must not be seen.
            return type(error).__name__

    @property
    def declares(self) -> bool:
        """Whether it says what it touches, apart from `is_safe`."""
        return self.claims is not None

    def claims_for(self, input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
        """What it will touch for this `input` and the lane's `state`; everything when its author's function fails."""
        return () if self.claims is None else self._claimed(self.claims, input, state)

    def claims_after_for(self, input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
        """What `claims` looks at for this `input` and `state`; everything when its author's function fails."""
        return () if self.claims_after is None else self._claimed(self.claims_after, input, state)

    @staticmethod
    def _listed(claims: Iterable[Claim]) -> tuple[Claim, ...]:
        return tuple(claims if type(claims) is list else at_once(claims))

    def _claimed(self, ask: ClaimsOf | tuple[Claim, ...], input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
        if isinstance(ask, tuple):
            return ask
        failed: tuple[Claim, ...] = (EVERYTHING,)
        claims = self._asked(self._listed, failed, ask, input, state)
        for claim in claims:
            if not isinstance(claim, Claim):
                return (EVERYTHING,)
        return claims


_NO_ARGUMENTS: Arguments = ((), {})

#: Characters of a name that is compared with those of tools.
_COMPARED_MOST = 200


def _made_by(plugin: str, function: str, *args: Any, **options: Any) -> Tool:
    """What a function of a plugin makes; plugins are imported at their first use."""
    made: Tool = getattr(importlib.import_module(f"toolrt.plugins.{plugin}"), function)(*args, **options)
    return made


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def reads_only(claims: tuple[Claim, ...]) -> bool:
    """Whether a call with these claims is declared to have no effects: all READ, at least one."""
    reads = bool(claims) and all(claim.mode is READ for claim in claims)
    # A rate alone says nothing of what the call touches.
    return reads and any(not isinstance(claim, Rate) for claim in claims)


def _kept(claims: ClaimsOf | Iterable[Claim] | FieldModes | None) -> ClaimsOf | tuple[Claim, ...] | FieldModes | None:
    return claims if claims is None or callable(claims) or isinstance(claims, Mapping) else tuple(claims)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = ...,
    safe: bool | Callable[[Mapping[str, Any]], bool] = ...,
    claims: ClaimsOf | Iterable[Claim] | FieldModes | None = ...,
    claims_after: ClaimsOf | Iterable[Claim] | FieldModes | None = ...,
    timeout: float | None = ...,
    stops_batch: bool | Callable[[Mapping[str, Any]], bool] = ...,
    interrupt: Literal["cancel", "finish"] = ...,
    schema: Schema | _Derived | None = ...,
    description: str | None = ...,
    owner: Any = ...,
    shares_read_budget: bool = ...,
    alone: bool = ...,
    pure: bool = ...,
    idempotent: bool = ...,
    landed: Landed | None = ...,
    retry: Any = ...,
    max_result: int | None = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    safe: bool | Callable[[Mapping[str, Any]], bool] = False,
    claims: ClaimsOf | Iterable[Claim] | FieldModes | None = None,
    claims_after: ClaimsOf | Iterable[Claim] | FieldModes | None = None,
    timeout: float | None = None,
    stops_batch: bool | Callable[[Mapping[str, Any]], bool] = False,
    interrupt: Literal["cancel", "finish"] = "cancel",
    schema: Schema | _Derived | None = DERIVED,
    description: str | None = None,
    owner: Any = None,
    shares_read_budget: bool = False,
    alone: bool = False,
    pure: bool = False,
    idempotent: bool = False,
    landed: Landed | None = None,
    retry: Any = None,
    max_result: int | None = None,
) -> Any:
    """Make a tool of a function whose first parameter is the `ToolContext`.

    An ``async def`` function runs as a Trio task; a plain ``def`` runs in a worker thread.

    Args:
        function: what is decorated; without it this gives the decorator.
        name: what the model calls it by; the function's own name by default.
        safe: whether it may overlap its neighbours: a bool, or a function of the input.  True declares that it
            claims nothing.
        claims: what it will touch: claims; or, for each field of the input or `Row` that names it, `READ` or `WRITE`;
            or a function of the input (defaults filled in) and the lane's start state, which must not wait, open or
            write anything.
        claims_after: what the function `claims` looks at, where an earlier call may change that: claims, or a function
            of the input and the state.  Tickets for these are taken in call order, `claims` is called when they are
            granted, and until then every later call waits.
        timeout: seconds of its own execution, above 0; None takes the runtime's default.
        stops_batch: whether its failure skips every later call: a bool, or a function of the input.
        interrupt: "cancel" ends it when the batch is cancelled; "finish" lets it end by itself and keeps its result.
        schema: a JSON schema; None checks the names only; by default it is derived from the type hints, which
            needs the ``schema`` extra.
        description: what models read; the docstring by default.
        owner: whose claim table orders it (a workspace); None is the runtime's own.
        shares_read_budget: whether its calls count among the reads that share the context's budget, because its
            answers grow with what it reads; it keeps to ``ctx.read_budget`` then.
        alone: whether its calls run alone, although `claims` says what they touch: for a tool whose modifiers later
            calls must see.  In a sub-batch it needs no more than its claims from the parent, and runs alone there.
        pure: whether its calls have no effect but their content and modifiers.  One whose modifiers would set an old
            value of the state then runs again, on what the earlier calls of its lane leave, and is not refused.
        idempotent: whether its calls may run twice and leave what one run leaves.  A call during which the process
            ended runs again when its batch is resumed (`Runtime.resume`); without this it is INTERRUPTED then.
        landed: an async function that tells of such a call whether it happened: it is given what the call said with
            ``ctx.about_to``, in order, and gives the call's answer, False if nothing happened, or None if that cannot
            be known.  A call that said nothing has done nothing.
        retry: how often, and when, the function is called again where it fails, as a ``tenacity.AsyncRetrying``; each
            wait is told as progress.  All attempts are one execution, which keeps its tickets and has one timeout.  It
            needs an ``async def`` that is `idempotent`, `pure` or `safe`.
        max_result: how many characters a result may have, 1 or more; None takes the runtime's default.  What is longer
            loses its middle, and says so: a tool that can answer page by page looks at ``ctx.max_result`` and says how
            to go on.

    Raises:
        DefinitionRefused: something here cannot work; the text says what.

    Example::

        @toolrt.tool(safe=True)
        async def lookup(ctx: toolrt.ToolContext, key: str) -> str:
            return ctx.state[key]
    """

    def decorate(target: Callable[..., Any]) -> Tool:
        if isinstance(target, Tool):
            raise DefinitionRefused(f"tool {target.name!r}", "a function", "a tool already")
        for what, value in (("claims", claims), ("claims_after", claims_after)):
            if not (value is None or callable(value) or isinstance(value, Iterable)) or isinstance(value, Claim | str):
                raise DefinitionRefused(f"a tool's {what}", CLAIMS, value)
        given, after = _kept(claims), _kept(claims_after)
        known = getattr(target, "__name__", "")
        if name is None and known == "<lambda>":
            raise DefinitionRefused("a tool's name", 'name="..." for a function without a name of its own', known)
        return Tool(
            name=known if name is None else name,
            function=target,
            safe=safe,
            claims=given,
            claims_after=after,
            timeout=timeout,
            stops_batch=stops_batch,
            interrupt=interrupt,
            description=(inspect.getdoc(target) or "") if description is None else description,
            schema=schema,
            owner=owner,
            shares_read_budget=shares_read_budget,
            alone=alone,
            pure=pure,
            idempotent=idempotent,
            landed=landed,
            retry=retry,
            max_result=max_result,
        )

    return decorate if function is None else decorate(function)


class Registry:
    """An immutable collection of tools with distinct names, in the order given.

    Raises:
        DefinitionRefused: something is not a tool, two tools share a name, or a tool's type hints have no schema.
        MissingExtra: a tool's schema must be derived and the ``schema`` extra is not installed.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        if not isinstance(tools, Iterable):
            raise DefinitionRefused("a registry", "a list of tools, such as [tool]", tools)
        for tool in tools:
            if not isinstance(tool, Tool):
                raise DefinitionRefused(
                    "a registry's tool",
                    "a function decorated with @toolrt.tool, or toolrt.Tool.from_callable(function)",
                    tool,
                )
            if tool.name in self._tools:
                raise DefinitionRefused("a registry", "tools with distinct names", f"two tools named {tool.name!r}")
            tool.validator  # noqa: B018  a definition that cannot work is refused here, not at the first call
            self._tools[tool.name] = tool
        #: The owners of the resources that the tools claim, each once, in the tools' order.
        self.owners: tuple[Any, ...] = tuple(
            {id(tool.owner): tool.owner for tool in self._tools.values() if tool.owner is not None}.values()
        )

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def get(self, name: object) -> Tool | None:
        """The tool of that name, or None."""
        # A kind of text may have a hash of its own.
        return self._tools.get(str.__str__(name)) if isinstance(name, str) else None

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in order."""
        return tuple(self._tools)

    def reads_in(self, calls: Iterable[ToolCall]) -> int:
        """How many of `calls` share the batch's read budget; at least 1 (``open_batch(expected_reads=...)``)."""
        tools = (self.get(call.name) for call in calls if isinstance(call, ToolCall))
        return max(1, sum(1 for tool in tools if tool is not None and tool.shares_read_budget))

    def nearest(self, name: object) -> list[str]:
        """Up to three names that look most like `name`, best first."""
        if isinstance(name, str) and len(name) > _COMPARED_MOST:
            return []
        return difflib.get_close_matches(stable_text(name, str), self._tools, n=3, cutoff=0.5)

    def __repr__(self) -> str:
        return f"Registry({', '.join(self._tools)})"


def decoded(call: ToolCall, tool: Tool | None, registry: Registry) -> tuple[Any, Arguments | Mismatches]:
    """A copy of the call's input, and the arguments of `tool`, or what is wrong in words that a model can act on.

    The input is the model's, and its author may go on to change it.

    Args:
        tool: the one that the call names; None: there is none of that name in `registry`.
    """
    if tool is None:
        return call.input, Mismatches([unknown_tool(call.name, registry.names, registry.nearest(call.name))])
    try:
        input = call.input
        input = {} if type(input) is dict and not input else json_copy(input)
    except RecursionError:
        return call.input, Mismatches([Mismatch("input", "JSON values", "a value nested too deeply")])
    except Exception as error:
        got = f"a mapping that cannot be read ({error_text(error)})"
        return call.input, Mismatches([Mismatch("input", "JSON values", got)])
    return input, tool.decode(input)
