"""Has the host ask its person whether a call may run: the protocol's elicitation, as the `ask` of `Permissions`.

Rules.
    1. A question is a request of the server's, ``elicitation/create``, with one field to answer.  All questions that
       are open at one time are sent; the host asks them in whatever order it likes.
    2. Whatever is no clear yes denies the call: a refusal, a form that was closed, an error, an answer that was not
       offered, and a host that cannot ask.
    3. A question whose call is given up is withdrawn by ``notifications/cancelled``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import trio

from toolrt.errors import DefinitionRefused

#: Characters of a call's input that a question shows.
_SHOWN = 1_000


class _ElicitedQuestion(Protocol):
    """What a question is about: a `toolrt.workspace.Question`, or whatever has the same."""

    @property
    def name(self) -> str: ...

    @property
    def input(self) -> Mapping[str, Any]: ...

    @property
    def paths(self) -> tuple[str, ...]: ...

    @property
    def why(self) -> str: ...


class Elicitation:
    """What a server asks the person at its host; for one connection.

    Args:
        answers: what a person may choose beside ``no``, and what each gives an approval check; None: ``yes`` alone.

    Example::

        asked = mcp.Elicitation({permit.value: permit for permit in Permit})
        approve = Permissions(workspace, [Rule("run_command", None, "ask")], asked.put, default="allow")
        await mcp.serve(Runtime(registry, approve=approve), incoming, outgoing, elicitation=asked)
    """

    def __init__(self, answers: Mapping[str, object] | None = None) -> None:
        self._answers = {"yes": True} if answers is None else dict(answers)
        field = {"type": "string", "title": "May it?", "enum": [*self._answers, "no"]}
        self._schema = {"type": "object", "properties": {"answer": field}, "required": ["answer"]}
        self._send: Callable[[dict[str, Any]], None] | None = None
        self._numbers = itertools.count(1)
        #: The questions without an answer, by the id of their request: what wakes the one that asked, and the answer.
        self._open: dict[str, tuple[trio.Event, list[dict[str, Any]]]] = {}

    def connect(self, send: Callable[[dict[str, Any]], None], capabilities: object) -> None:
        """The host has said what it can do; from here on it is asked, if it can.

        Args:
            send: sends the host a message.
            capabilities: what the host's ``initialize`` says that it can do.

        Raises:
            DefinitionRefused: this is another connection's already.
        """
        if self._send is not None:
            raise DefinitionRefused("mcp.serve(elicitation)", "one of its own for each connection", "a used one")
        if isinstance(capabilities, dict) and "elicitation" in capabilities:
            self._send = send

    def take(self, message: dict[str, Any]) -> None:
        """Take the host's answer to a request; one that nothing waits for is dropped.

        Args:
            message: the JSON-RPC response.
        """
        found = self._open.pop(str(message.get("id")), None)
        if found is not None:
            found[1].append(message)
            found[0].set()

    async def put(self, question: _ElicitedQuestion) -> object:
        """Ask, and give one of the answers' values or the reason against it.

        Args:
            question: as `Permissions` gives it.

        Checkpoint: always.
        """
        if self._send is None:
            await trio.lowlevel.checkpoint()
            return "The host cannot ask a person: it does not know the protocol's elicitation."
        id, answered = f"ask-{next(self._numbers)}", trio.Event()
        answers: list[dict[str, Any]] = []
        self._open[id] = answered, answers
        shown = json.dumps(dict(question.input), ensure_ascii=False)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]} ..."
        paths = ", ".join(question.paths) or "no path that is known"
        params = {
            "message": f"{question.name} {shown}: may it touch {paths}? {question.why}",
            "requestedSchema": self._schema,
        }
        self._send({"id": id, "method": "elicitation/create", "params": params})
        try:
            await answered.wait()
        except trio.Cancelled:
            del self._open[id]
            self._send({"method": "notifications/cancelled", "params": {"requestId": id}})
            raise
        return self._meant(answers[0].get("result"))

    def _meant(self, result: object) -> object:
        """What a host's answer stands for."""
        if not isinstance(result, dict) or result.get("action") not in ("accept", "decline"):
            return "The user gave no answer."
        content = result.get("content")
        answer = content.get("answer") if result["action"] == "accept" and isinstance(content, dict) else None
        return self._answers.get(str(answer), "The user said no.")
