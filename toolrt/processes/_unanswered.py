"""Why a question to a server has no answer.  Each text says so in words for a model: no path, nothing private."""

from __future__ import annotations


class Unanswered(Exception):
    """A question has no answer."""


class Gone(Unanswered):
    """The connection was lost while the question waited; whether the question had its effects is not known."""


class Unsent(Unanswered):
    """The question never reached the server."""


class GivenUp(Unsent):
    """The question never reached the server, and no later one will."""


class Refused(Unanswered):
    """The server answered with a protocol error, or with what is no answer."""


class NotStarted(Unanswered):
    """A program could not be started."""
