"""The replay file: everything ``toolrt replay`` needs to repeat one execution.

One JSON object: ``toolrt_replay`` (the format's version), ``response`` (its name and text), ``workspace`` (its path,
and a digest of what was in it), ``options`` (``lanes``, ``limit``, and what else could
happen), ``schedule`` (the schedule's own JSON form),
``violations`` (what was found, for people) and ``made_with`` (versions).

Limits.  The file does not hold the workspace's content: the directory has to be as it was.  The digest shows whether it
is; the replay shows whether a difference matters.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from toolrt.cli._made_with import versions
from toolrt.cli.experiment._input import read_limited
from toolrt.cli.experiment._roots import Roots, roots_of
from toolrt.cli.experiment._variation import NOTHING_ELSE, Variation
from toolrt.errors import InputRefused, ScheduleRefused
from toolrt.order import LANE_POLICIES
from toolrt.sim import Schedule

_VERSION = 1

#: Bytes of a replay file: a response of the largest size, its text escaped, and a long schedule.
_MAX_BYTES = 256 * 1024 * 1024

_REMEDY = "Give the file that toolrt explore wrote, unchanged."


@attrs.frozen
class FailureFile:
    """One execution of a recorded response, to be repeated."""

    #: What the response was called when it was explored.
    response_name: str
    #: The response.
    response: str
    #: The directory, as an absolute path.
    workspace: str
    #: What was in it: `Experiment.tree_digest`.
    tree: str
    #: The lane policy's name.
    lanes: str
    #: How many calls run at once.
    limit: int
    #: What happened, step by step.
    schedule: Schedule
    #: What was wrong, each as a text; empty when nothing was.
    violations: tuple[str, ...]
    #: What else could happen.
    variation: Variation = NOTHING_ELSE
    #: The directories that are mounted in the first one, as absolute paths, by name.
    mounts: Mapping[str, str] = attrs.field(factory=dict)
    #: The slot policy's name; None: ready calls take slots in call order.
    slots: str | None = None

    def to_json(self) -> str:
        """One line of JSON, the same for the same execution and versions."""
        return json.dumps(
            {
                "toolrt_replay": _VERSION,
                "response": {"name": self.response_name, "text": self.response},
                "workspace": {"path": self.workspace, "digest": self.tree, **self._mounts()},
                "options": {"lanes": self.lanes, "limit": self.limit, **self._slots(), **self.variation.to_json()},
                "schedule": json.loads(self.schedule.to_json()),
                "violations": list(self.violations),
                "made_with": versions(),
            },
            sort_keys=True,
        )

    def _slots(self) -> dict[str, str]:
        return {} if self.slots is None else {"slots": self.slots}

    def _mounts(self) -> dict[str, Any]:
        return {"mounts": dict(self.mounts)} if self.mounts else {}

    def roots(self, workspace: str | None) -> Roots:
        """The directories; the first is `workspace` if that is given.

        Raises:
            InputRefused: one of them is not there.
        """
        mounts = [f"{name}={where}" for name, where in self.mounts.items()]
        return roots_of(self.workspace if workspace is None else workspace, mounts)

    @property
    def default_name(self) -> str:
        """The name of the file it is kept in unless another is given; the same execution has the same name."""
        return f"toolrt-failure-{hashlib.sha256(self.to_json().encode()).hexdigest()[:8]}.json"

    @classmethod
    def load(cls, path: str) -> FailureFile:
        """What `to_json` gave, read from the file at `path`.

        Raises:
            InputRefused: it cannot be read, or is no such file; the text names the place.
        """
        content = read_limited(path, _MAX_BYTES, _REMEDY)
        try:
            document = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise InputRefused(path, f"it cannot be read as JSON: {error}", _REMEDY) from None
        if not isinstance(document, dict) or document.get("toolrt_replay") != _VERSION:
            raise InputRefused(path, f'expected an object with "toolrt_replay": {_VERSION}', _REMEDY)
        fields = _Fields(path, document)
        lanes = fields.text("options", "lanes")
        if lanes not in LANE_POLICIES and ":" not in lanes:
            raise fields.refusal("options.lanes", f"one of {', '.join(LANE_POLICIES)}, or MODULE:NAME", lanes)
        slots = document["options"].get("slots")
        if slots is not None and not isinstance(slots, str):
            raise fields.refusal("options.slots", "MODULE:NAME, or nothing", slots)
        limit = fields.value("options", "limit")
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise fields.refusal("options.limit", "a whole number, 1 or more", limit)
        try:
            variation = Variation.from_json(document["options"])
        except ValueError as error:
            raise InputRefused(path, f"options.{error}", _REMEDY) from None
        try:
            schedule = Schedule.from_json(json.dumps(document.get("schedule")))
        except ScheduleRefused as error:
            raise InputRefused(path, f"schedule: {error.why}", _REMEDY) from None
        return cls(
            fields.text("response", "name"),
            fields.text("response", "text"),
            fields.text("workspace", "path"),
            fields.text("workspace", "digest"),
            lanes,
            limit,
            schedule,
            fields.violations(),
            variation,
            fields.mounts(),
            slots,
        )

    def saved_beside(self, roots: Roots) -> Path:
        """Where it is kept by default: in the current directory, or next to the directory that lies in."""
        here = Path.cwd().resolve()
        inside = [root for root in roots.all if here.is_relative_to(root)]
        if inside:
            here = inside[0].parent
        return here / self.default_name


@attrs.frozen
class _Fields:
    """The parts of a replay file; whatever is wrong with one is refused by its place."""

    _path: str
    _document: Mapping[str, Any]

    def refusal(self, place: str, expected: str, got: object) -> InputRefused:
        return InputRefused(self._path, f"{place}: expected {expected}, got {got!r:.60}", _REMEDY)

    def value(self, part: str, key: str) -> Any:
        inside = self._document.get(part)
        if not isinstance(inside, dict):
            raise self.refusal(part, "an object", inside)
        return inside.get(key)

    def text(self, part: str, key: str) -> str:
        value = self.value(part, key)
        if not isinstance(value, str):
            raise self.refusal(f"{part}.{key}", "a string", value)
        return value

    def mounts(self) -> dict[str, str]:
        found = self.value("workspace", "mounts")
        if found is None:
            return {}
        if not isinstance(found, dict) or not all(isinstance(where, str) for where in found.values()):
            raise self.refusal("workspace.mounts", "an object of strings", found)
        return found

    def violations(self) -> tuple[str, ...]:
        found = self._document.get("violations")
        if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
            raise self.refusal("violations", "an array of strings", found)
        return tuple(found)
