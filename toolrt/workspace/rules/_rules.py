"""The rules of a session's permissions: which tools, which paths, which answer.

Rules.  A path is the key of a file, from the workspace's root, and a pattern is held against it part by part, each as
the directory that it stands in folds names.  Of a subtree, a pattern may match all, or only what may be below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.workspace.disk._disk import EXACT, Disk, Entry, Folding
from toolrt.workspace.names._mounts import path_on, stat_or_none
from toolrt.workspace.rules._patterns import Glob, PatternRefused, braces_expanded
from toolrt.workspace.rules._patterns import State as Place

Word = Literal["allow", "deny", "ask"]

#: From the mildest to the strictest.
WORDS: tuple[Word, ...] = ("allow", "ask", "deny")


@attrs.frozen
class Rule:
    """What is to be answered to calls of some tools on some paths.

    Raises:
        DefinitionRefused: a field cannot be meant; the text says why.

    Example::

        Rule("edit_file", "src/**", "allow")
    """

    #: The tool's name, or a pattern of it with ``*``, ``?`` and ``[...]``.
    tool: str = attrs.field(default="*")
    #: The paths, from the workspace's root: ``src/**`` is ``src`` and all below it, ``**/.env`` any file of that name,
    #: ``*.md`` those at the root alone; ``{a,b}`` is either.  None speaks of every call, also of one without paths.
    path: str | None = attrs.field(default=None)
    #: "allow", "deny" or "ask".
    answer: Word = attrs.field(default="ask")
    #: The reason shown to a model that is denied or to a person that is asked; None: a text with the rule and the path.
    reason: str | None = attrs.field(default=None)

    @tool.validator
    def _check_tool(self, _: object, tool: object) -> None:
        if not isinstance(tool, str) or not tool:
            raise DefinitionRefused("Rule(tool)", "a tool's name or a pattern of it", tool)

    @path.validator
    def _check_path(self, _: object, path: object) -> None:
        if path is None:
            return
        if not isinstance(path, str) or not path:
            raise DefinitionRefused("Rule(path)", "a pattern of paths below the workspace's root, or None", path)
        if path.startswith(("/", "~")) or path.endswith("/") or {"", ".", ".."} & set(path.split("/")):
            raise DefinitionRefused(
                "Rule(path)", "names and wildcards from the workspace's root, such as src/** or **/*.md", path
            )
        try:
            braces_expanded(path)
        except PatternRefused as error:
            raise DefinitionRefused("Rule(path)", f"a pattern without {error}", path) from None

    @answer.validator
    def _check_answer(self, _: object, answer: object) -> None:
        if answer not in WORDS:
            raise DefinitionRefused("Rule(answer)", '"allow", "deny" or "ask"', answer)

    @reason.validator
    def _check_reason(self, _: object, reason: object) -> None:
        if reason is not None and not isinstance(reason, str):
            raise DefinitionRefused("Rule(reason)", "a sentence, or None", reason)


#: How far the alternatives of a pattern have come along a path.
Places = list[Place]


class PathPattern:
    """A rule's pattern, held against what a call touches as each directory on the way folds names."""

    def __init__(self, pattern: str) -> None:
        self._texts = braces_expanded(pattern)
        #: The pattern's alternatives for each way to fold.
        #: They differ in letters only, so a place in one is a place in all.
        self._globs: dict[Folding, list[Glob]] = {}

    @property
    def is_everything(self) -> bool:
        """Whether it matches every path there can be."""
        return "**" in self._texts

    def matches(self, foldings: Sequence[Folding], key: Entry, subtree: bool, whole: bool) -> bool:
        """Whether `key` matches; of a subtree all must when `whole`, else what may be below it is enough.

        Args:
            foldings: as `foldings_of` gives them for `key`.
        """
        places = self.places(foldings, key)
        if subtree and not whole:
            return any(places)
        # What ends in ``**`` and matches a directory matches all below it.
        return any(
            glob.accepts(place) and (not subtree or text == "**" or text.endswith("/**"))
            for text, glob, place in zip(self._texts, self._of(EXACT), places, strict=True)
        )

    def places(self, foldings: Sequence[Folding], key: Entry) -> Places:
        """How far each of its alternatives has come at the directory of that `key`, for `accepts`."""
        places = [glob.start for glob in self._of(EXACT)]
        for name, folding in zip(key, foldings, strict=False):
            places = [glob.step(place, name) for glob, place in zip(self._of(folding), places, strict=True)]
        return places

    def accepts(self, places: Places, folding: Folding, name: str) -> bool:
        """Whether `name` matches in a directory that folds names so, whose `places` these are."""
        return any(
            glob.accepts(glob.step(place, name)) for glob, place in zip(self._of(folding), places, strict=True) if place
        )

    def _of(self, folding: Folding) -> list[Glob]:
        if folding not in self._globs:
            self._globs[folding] = [Glob.of(folding.fold(text)) for text in self._texts]
        return self._globs[folding]


def foldings_of(disk: Disk, key: Entry) -> list[Folding]:
    """How the directory that each part of `key` stands in folds names; a missing one as the one above it.

    They are the same for all that stands in one directory.
    """
    found: list[Folding] = []
    for depth in range(len(key)):
        path = path_on(disk, key[:depth])
        found.append(found[-1] if found and stat_or_none(disk, path) is None else disk.folds(path))
    return found
