"""Passes a runtime's telemetry on to sinks, without what is private.

Rules.
    1. Every sink gets every event in the same order; one that raises keeps nothing from the others.
    2. An exception that a sink raises is counted, warned about once, and goes no further.
    3. No text reaches a sink that was not looked through (`Scrubber`).
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from toolrt.errors import DefinitionRefused, ObserverWarning
from toolrt.model import Observer
from toolrt.plugins.otel._scrub import Scrubber


class Telemetry:
    """Observes runtimes and passes events on to sinks.

    Several runtimes may share one; it numbers all their batches in one row.  Sinks get sizes, types and paths relative
    to the workspace; no input, no content, no text of an error.  A tool's own events (``ctx.telemetry``) are scrubbed:
    other absolute paths and what looks like a secret are taken out.

    Args:
        sinks: each gets every event: `Counts`, `JsonLines`, `OtelSpans`, `OtelMetrics`, or any object with
            ``event(kind, fields)``; ``close()``, where it has one, is called by `close`.
        root: the workspace's directory; paths inside it are passed on relative to it.  None: no absolute path is.
        mounts: the directories that are mounted in it, by name, as of `toolrt.Workspace`.
        secrets: texts that must not reach a sink, whatever they look like, 4 characters or more.

    Raises:
        DefinitionRefused: an argument is not what it must be.

    Checkpoint: never, in all it does.

    Example::

        with Telemetry(Counts(), JsonLines("calls.jsonl"), root="path/to/repo") as telemetry:
            runtime = toolrt.Runtime(registry, telemetry=telemetry)
            ...
    """

    def __init__(
        self,
        *sinks: Observer,
        root: str | os.PathLike[str] | None = None,
        mounts: Mapping[str, str | os.PathLike[str]] | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        for sink in sinks:
            if isinstance(sink, type) or not callable(getattr(sink, "event", None)):
                raise DefinitionRefused("Telemetry(sinks)", "objects with event(kind, fields)", sink)
        if root is not None and not isinstance(root, str | os.PathLike):
            raise DefinitionRefused("Telemetry(root)", "a directory's path, or None", root)
        if mounts is not None and (root is None or not _are_mounts(mounts)):
            raise DefinitionRefused("Telemetry(mounts)", "directories' paths by name, beside a root", mounts)
        secrets = [secrets] if isinstance(secrets, str) else list(secrets)
        if not all(isinstance(secret, str) and len(secret) >= 4 for secret in secrets):
            # The refusal must not show them.
            raise DefinitionRefused("Telemetry(secrets)", "texts of 4 characters or more", "one that is not")
        #: The sinks.
        self.sinks = sinks
        self._tell = [sink.event for sink in sinks]
        self._failures = [0] * len(sinks)
        self._scrubber = Scrubber(
            None if root is None else os.path.abspath(os.fspath(root)),
            secrets,
            {name: os.path.abspath(os.fspath(where)) for name, where in (mounts or {}).items()},
        )

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Tell every sink that `kind` happened."""
        shown = self._scrubber.fields(fields)
        for place, tell in enumerate(self._tell):
            try:
                tell(kind, shown)
            except Exception as error:
                self._failed(place, kind, error)

    def _failed(self, place: int, kind: str, error: Exception) -> None:
        self._failures[place] += 1
        if self._failures[place] == 1:
            # Where warnings are errors, this one would be taken for a failure of ours.
            with contextlib.suppress(Warning):
                warnings.warn(
                    ObserverWarning(type(self.sinks[place]).__name__, kind, type(error).__name__), stacklevel=2
                )

    @property
    def failures(self) -> tuple[int, ...]:
        """How often each sink has raised, in the order in which they were given."""
        return tuple(self._failures)

    def close(self) -> None:
        """Close the sinks that can be closed; what they raise is counted.  Closing twice is no harm."""
        for place, sink in enumerate(self.sinks):
            close = getattr(sink, "close", None)
            if callable(close):
                try:
                    close()
                except Exception as error:
                    self._failed(place, "close", error)

    def __enter__(self) -> Telemetry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Telemetry({', '.join(type(sink).__name__ for sink in self.sinks)})"


def _are_mounts(mounts: object) -> bool:
    return isinstance(mounts, Mapping) and all(
        isinstance(name, str) and isinstance(where, str | os.PathLike) for name, where in mounts.items()
    )
