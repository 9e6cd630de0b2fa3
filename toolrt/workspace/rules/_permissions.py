"""Decides which tool may do what to which file: rules, questions and grants.

Rules.
    1. A call is judged by the files it claims, not by how its input spells them.  Claims that only say which way a
       name led (directories and links passed through) are not judged; every other file, directory and subtree is,
       each by the first rule that speaks of the tool and of it.  The strictest answer is the call's: deny, then
       ask, then allow.  A rule that denies a part of a directory denies all of it to a tool that claims the directory,
       unless the tool leaves out what is withheld (`Tool.leaves_out`).  The workspace's own tools do: `list_dir`,
       `glob` and `search` leave denied entries out and say how many, `move_path` and `delete_path` refuse a directory
       that has one in it when they are judged, and again when they run.  Without `ask`, entries that
       would need a question are withheld in the same way.
    2. What is allowed is what was judged: the call is narrowed to those claims, so one whose name means another file
       by the time it runs touches nothing.
    3. A grant is an answer that outlives its question.  It only ever turns "ask" into "allow".
    4. What a lane's calls may do is decided by the grants there are when its first call is asked for.  A grant made
       while the lane runs counts from the next lane on, so no call's answer depends on when another's came.
    5. Nothing waits here but each call for its own answer.

Theory.  Rule 4 is what lanes do with state: a call sees what was there at its lane's start.  Which grants are kept
when there are too many is decided by the lane and the place of the call they were made for, never by the time of the
answer, so it is the same in whatever order the answers come.

Limits.  Whether a name that is to be moved or deleted stands for a file or for a directory with all that is in it is
seen when the call is judged.  Patterns are about one name of a file.  A file that has several (hard links) may have
one that another rule speaks of; where that could be, allowing it is not enough: it is asked about, and only a grant
for its own path helps.  So is a directory with such a file in it, for a tool that does more than list names; one with
more than 10,000 names is not looked through, and taken to have one.  Without `ask`, a search leaves out the
files that have several names.  In directories that take several spellings for
one name, a path is shown as it is folded.  A
tool that is not the workspace's own, or says nothing about what it touches (a shell), has no paths: rules with a path
do not speak of it.
"""

from __future__ import annotations

import enum
import fnmatch
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from toolrt import probe
from toolrt._aside import Aside
from toolrt.errors import DefinitionRefused
from toolrt.model import (
    READ,
    WRITE,
    Allow,
    ApprovalRequest,
    Claim,
    Deny,
    Mode,
    Rewrite,
    State,
    Withheld,
    decision,
)
from toolrt.workspace.change._held import FileAccess
from toolrt.workspace.disk._disk import Entry, Folding, Kind, Stat
from toolrt.workspace.names._mounts import path_on, stat_or_none
from toolrt.workspace.names._naming import shown_at
from toolrt.workspace.rules._ignore import IGNORE_FILE
from toolrt.workspace.rules._rules import WORDS, PathPattern, Places, Rule, Word, foldings_of

#: The tools that tell of a directory no more than which names are in it.
_NAMES_ALONE = ("glob", "list_dir")

#: How many names of a directory are looked at, in Trio's thread, before it is judged: some 20 ms.
_LOOKED_AT_MOST = 10_000


class Permit(enum.Enum):
    """How far a yes reaches; what `Permissions(ask=...)` may answer beside what an approval check may."""

    #: This call alone.  The same as True.
    ONCE = "once"
    #: This tool on these paths, until the session ends; for a call without paths, this call alone.
    PATH = "path"
    #: This tool on every path that no rule denies, until the session ends.
    SESSION = "session"


@attrs.frozen
class Grant:
    """A yes that outlives its question."""

    #: The tool it was given to.
    tool: str
    #: The path it was given for, as `Question.paths` has it; None is every path.
    path: str | None = None


@attrs.frozen
class Question:
    """What a person, or a program in their place, is asked: whether this call may run."""

    #: The call: its tool's name, its input, the state it sees.
    request: ApprovalRequest
    #: What it would touch, relative to the workspace's root and sorted; ``src/**`` is ``src`` and all below it.
    paths: tuple[str, ...]
    #: Why it is asked.
    why: str

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.request.name

    @property
    def input(self) -> Mapping[str, Any]:
        """What the tool would be given."""
        return self.request.input


Ask = Callable[[Question], Any]


@attrs.frozen
class _Target:
    """Something that a call would touch."""

    key: Entry
    mode: Mode
    subtree: bool
    #: Whether it has other names, which are not known.
    shared: bool = False
    #: Whether a walk reads it only to know what to leave out: it is not shown, so no rule stops the walk for it.
    guides: bool = False

    @property
    def path(self) -> str:
        """As questions and grants show it: one text for each target."""
        if self.subtree:
            return f"{shown_at(self.key)}/**" if self.key else "**"
        # A file may be called "**": with a backslash, as in a pattern, it is not taken for all of its directory.
        escaped = "\\" if self.key and self.key[-1].lstrip("\\") == "**" else ""
        return shown_at((*self.key[:-1], escaped + self.key[-1])) if self.key else "."


@attrs.frozen
class _Judgement:
    """What the rules say about a call."""

    answer: Word
    why: str
    #: What the call would touch; empty for a call without paths.
    paths: tuple[str, ...] = ()
    #: Those of them that are to be asked about.
    asked: tuple[str, ...] = ()
    #: Whether a grant for every path is not enough.
    hidden: bool = False
    #: Whether some of what is below a directory has to be left out.
    in_part: bool = False
    #: What the call has to leave out; None: nothing.
    withheld: Withheld | None = None


@attrs.frozen
class _LaneGrants:
    """What decides about one lane's calls beside the rules."""

    #: How many lanes were asked for, this one included.
    number: int
    #: The grants that there were when the lane was first asked for.
    granted: frozenset[Grant]

    def grants(self, tool: str, judged: _Judgement) -> bool:
        """Whether what the rules would ask about was granted."""
        if Grant(tool) in self.granted and not judged.hidden:
            return True
        return bool(judged.asked) and all(Grant(tool, path) in self.granted for path in judged.asked)


class Permissions:
    """The approval check of one session on one workspace: rules first, then grants, then a question.

    Give it to a runtime as ``approve=``.  The first rule that speaks of a tool and a path decides; where none does,
    `default`.  Make one for each session: its grants live as long as it does.

    Args:
        workspace: whose files the paths are.
        rules: in order; the first that matches wins.
        ask: called with a `Question` where the answer is "ask": a plain function in a thread, for one question after
            the other; an async one for all at once, and it answers as late as it likes or never.  It gives a `Permit`,
            or whatever an approval check may (yes, no, a reason against it, another input).  None: every call that
            would need a question is denied.
        default: the answer where no rule speaks.
        grants: the most that are kept, 1 or more; those for the earliest calls go first.

    Raises:
        DefinitionRefused: something here cannot work; the text says what.

    Example::

        permissions = Permissions(
            workspace,
            rules=[Rule("*", "**/.env", "deny"), Rule("read_file", "**", "allow"), Rule("*_file", "src/**", "allow")],
            ask=ask_a_person,
        )
        runtime = Runtime(Registry(workspace.tools()), approve=permissions)
    """

    def __init__(
        self,
        workspace: FileAccess,
        rules: Iterable[Rule] = (),
        ask: Ask | None = None,
        default: Word = "ask",
        grants: int = 1_000,
    ) -> None:
        if not hasattr(workspace, "claim_table") or not hasattr(workspace, "disk"):
            raise DefinitionRefused("Permissions(workspace)", "a toolrt.Workspace", workspace)
        rules = tuple(rules)
        for rule in rules:
            if not isinstance(rule, Rule):
                raise DefinitionRefused("Permissions(rules)", "a toolrt.workspace.Rule", rule)
        if ask is not None and not callable(ask):
            raise DefinitionRefused("Permissions(ask)", "a function of a Question, or None", ask)
        if default not in WORDS:
            raise DefinitionRefused("Permissions(default)", '"allow", "deny" or "ask"', default)
        if not isinstance(grants, int) or isinstance(grants, bool) or grants < 1:
            raise DefinitionRefused("Permissions(grants)", "a whole number, 1 or more", grants)
        self.workspace = workspace
        self.rules = rules
        self.ask = ask
        self._aside = Aside()
        self.default = default
        self._most = grants
        self._patterns = [None if rule.path is None else PathPattern(rule.path) for rule in rules]
        #: The grants, and for each the latest lane and call it was made for.
        self._grants: dict[Grant, tuple[int, int]] = {}
        self._lanes = 0

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What is granted now, in the order of the calls it was granted for."""
        return tuple(sorted(self._grants, key=lambda grant: self._grants[grant]))

    def grant(self, tool: str, path: str | None = None) -> Grant:
        """Grant `path` to `tool` without a question, from the next lane on; `path` as `Question.paths` has it.

        Returns:
            What was granted.

        Raises:
            DefinitionRefused: the name or the path is no text; nothing was changed.

        Checkpoint: never.
        """
        if not isinstance(tool, str) or not (path is None or isinstance(path, str)):
            raise DefinitionRefused("a grant", "a tool's name, and a path or None", (tool, path))
        grant = Grant(tool, path)
        self._keep(grant, (self._lanes, -1))
        return grant

    def revoke(self, grant: Grant | None = None) -> None:
        """Take back a grant, or all of them, from the next lane on.  One that is not there is no harm.

        Checkpoint: never.
        """
        if grant is None:
            self._grants.clear()
        else:
            self._grants.pop(grant, None)
        probe.access(("grants",), True)

    def for_lane(self) -> Callable[[ApprovalRequest], Any]:
        """The check for the calls of one lane, by the grants there are now."""
        probe.access(("grants",), False)
        self._lanes += 1
        return functools.partial(self._answer, _LaneGrants(self._lanes, frozenset(self._grants)))

    def __call__(self, request: ApprovalRequest) -> Any:
        """The check for one call, by the grants there are now.

        The runtime calls `for_lane` instead; a check that wraps this one should offer that too.
        """
        return self.for_lane()(request)

    def _keep(self, grant: Grant, made_for: tuple[int, int]) -> None:
        probe.access(("grants",), True)
        self._grants[grant] = max(made_for, self._grants.get(grant, made_for))
        if len(self._grants) > self._most:
            del self._grants[self.grants[0]]

    # Answering

    def _answer(self, lane: _LaneGrants, request: ApprovalRequest) -> Any:
        """Allow, deny, or ask and give the answer, or its awaitable."""
        claims = self._claims(request, request.input, request.state)
        judged = self._judge(request, self._targets(claims))
        if judged.answer == "deny":
            return Deny(judged.why)
        if judged.answer == "allow" or lane.grants(request.name, judged):
            return Allow(within=claims, withheld=judged.withheld)
        if self.ask is None:
            return Deny(f"it needs a person's permission, which this program does not ask for ({judged.why})")
        answer = self._aside.ask(self.ask, Question(request, judged.paths, judged.why))

        async def later() -> Any:
            return self._taken(lane, request, judged, claims, await answer)

        return later() if inspect.isawaitable(answer) else self._taken(lane, request, judged, claims, answer)

    def _taken(
        self,
        lane: _LaneGrants,
        request: ApprovalRequest,
        judged: _Judgement,
        claims: tuple[Claim, ...] | None,
        answer: Any,
    ) -> Allow | Deny | Rewrite:
        """What the answer means for the call, and for those to come."""
        if isinstance(answer, Permit):
            made_for = lane.number, request.call_index
            if answer is Permit.SESSION:
                self._keep(Grant(request.name), made_for)
            elif answer is Permit.PATH:
                for path in judged.asked:
                    self._keep(Grant(request.name, path), made_for)
            return Allow(within=claims, withheld=judged.withheld)
        meant = decision(answer)
        if isinstance(meant, Allow):
            return Allow(within=claims if meant.within is None else meant.within, withheld=judged.withheld)
        if isinstance(meant, Rewrite):
            return self._rewritten(lane, request, judged, meant)
        return meant

    def _rewritten(
        self, lane: _LaneGrants, request: ApprovalRequest, asked: _Judgement, meant: Rewrite
    ) -> Deny | Rewrite:
        """A new input was the answer.

        It needs no second question, if it is about what was asked about.  What is denied stays denied, and a name that
        means another file than it did in the question is not taken for an answer about that one.
        """
        tool = request.tool
        if tool is None or isinstance(tool.decode(meant.input), list):
            return meant  # the runtime refuses it, and says what does not fit
        claims = self._claims(request, meant.input, request.state)
        judged = self._judge(request, self._targets(claims))
        if judged.answer == "deny":
            return Deny(f"in the rewritten input, {judged.why}")
        beyond = [path for path in judged.asked if path not in asked.paths]
        if beyond and not lane.grants(request.name, judged):
            return Deny(f"the rewritten input is about {beyond[0]}, which was not asked about")
        within = claims if meant.within is None else meant.within
        return Rewrite(meant.input, within=within, withheld=judged.withheld)

    # Judging

    def _judge(self, request: ApprovalRequest, targets: tuple[_Target, ...]) -> _Judgement:
        """What the rules say; the strictest of what they say about each target."""
        leaves_out = request.tool is not None and request.tool.leaves_out
        found = [(self._of_target(request.name, target, leaves_out), target) for target in targets or (None,)]
        if leaves_out:
            found = [
                (one, target)
                for one, target in found
                if target is None or not target.guides or not self._refuses(one.answer)
            ]
        withheld = self._withheld(request.name) if any(one.in_part for one, _ in found) else None
        if withheld is not None:
            found += [(self._of_what_is_below(request.name, target, withheld), target) for target in targets]
        strictest = max((one for one, _ in found), key=lambda one: WORDS.index(one.answer))
        return attrs.evolve(
            strictest,
            withheld=withheld,
            paths=tuple(sorted({target.path for target in targets})),
            asked=tuple(
                dict.fromkeys(target.path for one, target in found if target is not None and one.answer == "ask")
            ),
            hidden=any(one.hidden for one, _ in found),
        )

    def _of_target(
        self, tool: str, target: _Target | None, leaves_out: bool = False, foldings: Sequence[Folding] | None = None
    ) -> _Judgement:
        """The answer for one target, and why.

        Args:
            leaves_out: whether the tool leaves out what is withheld of a directory.
            foldings: of the target's key, if they are known.
        """
        answer: Word = self.default
        why = "no rule speaks of it"
        in_part = False
        if foldings is None:
            foldings = () if target is None else foldings_of(self.workspace.disk, target.key)
        # Whether a rule might have decided otherwise about another name of the file.
        otherwise = False
        for rule, pattern in zip(self.rules, self._patterns, strict=True):
            if not fnmatch.fnmatchcase(tool, rule.tool):
                continue
            whole = rule.answer == "allow"
            if pattern is None or (target is not None and pattern.matches(foldings, target.key, target.subtree, whole)):
                if leaves_out and self._refuses(rule.answer) and _speaks_of_a_part(pattern, foldings, target):
                    in_part = otherwise = True
                    continue
                answer, why = rule.answer, rule.reason or f"a rule says {rule.answer}"
                otherwise = otherwise or (pattern is not None and not pattern.is_everything)
                break
            otherwise = otherwise or rule.answer != "allow"
        if target is None:
            return _Judgement(answer, why)
        if answer == "deny":
            doing = "change" if target.mode is WRITE else "read"
            return _Judgement("deny", f"{tool} may not {doing} {target.path}: {why}")
        if otherwise and target.subtree and leaves_out and self.ask is None:
            in_part = True
        elif otherwise and (target.shared or (target.subtree and tool not in _NAMES_ALONE and self._may_share(target))):
            has = "has files with" if target.subtree else "has"
            return _Judgement(
                "ask",
                f"{target.path} {has} other names too (hard links), which are not known",
                hidden=True,
                in_part=in_part,
            )
        return _Judgement(answer, why, in_part=in_part)

    def _refuses(self, answer: Word) -> bool:
        """Whether this answer withholds: "deny", or "ask" without an `ask` to call."""
        return answer == "deny" or (answer == "ask" and self.ask is None)

    def _withheld(self, tool: str) -> Withheld:
        """What calls of `tool` have to leave out of directories."""
        rules = [
            (rule.answer, pattern)
            for rule, pattern in zip(self.rules, self._patterns, strict=True)
            if fnmatch.fnmatchcase(tool, rule.tool)
        ]
        #: By directory: how names fold there, and how far each rule's pattern has come.
        known: dict[Entry, tuple[Sequence[Folding], list[Places | None]]] = {}

        def why(resource: tuple[Any, ...], links: int) -> str | None:
            key = resource[1:]
            if resource[:1] != ("file",) or not key:
                return None
            if key[:-1] not in known:
                above = foldings_of(self.workspace.disk, key)
                come = [None if pattern is None else pattern.places(above, key[:-1]) for _, pattern in rules]
                known[key[:-1]] = above, come
            foldings, places = known[key[:-1]]
            shared = links > 1 and tool not in _NAMES_ALONE
            # Most names are no business of any rule that refuses: that is found out here, the reason below.
            answer = next(
                (
                    answer
                    for (answer, pattern), place in zip(rules, places, strict=True)
                    if pattern is None or place is None or pattern.accepts(place, foldings[-1], key[-1])
                ),
                self.default,
            )
            if not shared and not self._refuses(answer):
                return None
            judged = self._of_target(tool, _Target(key, READ, subtree=False, shared=shared), foldings=foldings)
            return judged.why if self._refuses(judged.answer) else None

        return why

    def _of_what_is_below(self, tool: str, target: _Target, withheld: Withheld) -> _Judgement:
        """Whether something stands below the target that a change of all of it must not touch, as far as is looked."""
        if target.subtree and target.mode is WRITE:
            for key, found in self._below(target):
                why = withheld(("file", *key), found.links if found.kind is Kind.FILE else 1)
                if why is not None:
                    return _Judgement("deny", f"{tool} may not change {target.path}, {shown_at(key)} is in it: {why}")
        return _Judgement("allow", "")

    def _claims(self, request: ApprovalRequest, input: Mapping[str, Any], state: State) -> tuple[Claim, ...] | None:
        """What the call claims of this workspace's; None where its tool does not say."""
        tool = request.tool
        if tool is None or tool.owner is not self.workspace or not tool.declares:
            return None
        if input is request.input and not _is_everything(request.claims):
            return request.claims
        # An exclusive call holds everything, whatever it will touch.
        return tool.claims_for(input, state)

    def _targets(self, claims: tuple[Claim, ...] | None) -> tuple[_Target, ...]:
        """What of `claims` is touched, and not only gone through."""
        if claims is None:
            return ()
        if _is_everything(claims):
            return (_Target((), WRITE, subtree=True),)
        files = [claim for claim in claims if claim.resource[:1] == ("file",)]
        # Exactly one file, and it has several names.
        shared = any(len(claim.resource) == 2 and claim.resource[0] == "links" for claim in claims)
        above = {claim.resource[:depth] for claim in files for depth in range(1, len(claim.resource))}
        kinds = {claim.resource: self._kind(claim.resource[1:]) for claim in files if claim.resource not in above}
        # What is to be moved or deleted is claimed with all below it, whatever it is.  A file has nothing below, and
        # neither will what is not there yet, unless the call has a directory to put there.
        trees = {claim.resource for claim in files if claim.subtree}
        movable = any(kinds.get(resource, Kind.DIRECTORY) is Kind.DIRECTORY for resource in trees)
        targets: dict[Entry, _Target] = {}
        for claim in files:
            resource, kind = claim.resource, kinds.get(claim.resource, Kind.DIRECTORY)
            if claim.mode is READ and resource not in trees and kind in (Kind.DIRECTORY, Kind.SYMLINK):
                continue  # only gone through
            subtree = resource in trees and (kind is Kind.DIRECTORY or (kind is None and movable))
            before = targets.get(resource)
            if before is None or before.mode is READ:
                guides = claim.mode is READ and resource not in trees and resource[-1] == IGNORE_FILE
                targets[resource] = _Target(resource[1:], claim.mode, subtree, shared, guides)
        return tuple(targets.values())

    def _may_share(self, target: _Target) -> bool:
        """Whether a file in that directory may have other names; False where nothing can be seen."""
        below = [found for _, found in self._below(target)]
        return len(below) > _LOOKED_AT_MOST or any(found.kind is Kind.FILE and found.links > 1 for found in below)

    def _below(self, target: _Target) -> Iterator[tuple[Entry, Stat]]:
        """What stands below a directory, as far as can be seen; ends behind `_LOOKED_AT_MOST` names."""
        disk, looked_at = self.workspace.disk, 0
        # What is mounted is not among the names of the root.
        pending: list[Entry] = [target.key, *((name,) for name in (() if target.key else disk.mounts))]
        while pending:
            above = pending.pop()
            try:
                names = disk.listdir(path_on(disk, above))
            except OSError:
                continue
            folding = disk.folds(path_on(disk, above))
            for name in names:
                looked_at += 1
                found = stat_or_none(disk, path_on(disk, (*above, name)))
                if found is None:
                    continue
                yield (*above, folding.fold(name)), found
                if looked_at > _LOOKED_AT_MOST:
                    return
                if found.kind is Kind.DIRECTORY:
                    pending.append((*above, name))

    def _kind(self, key: Entry) -> Kind | None:
        """What stands there; None: nothing that can be seen."""
        found = stat_or_none(self.workspace.disk, path_on(self.workspace.disk, key))
        return None if found is None else found.kind


def _speaks_of_a_part(pattern: PathPattern | None, foldings: Sequence[Folding], target: _Target | None) -> bool:
    """Whether a pattern that matches a directory matches only what may be below it."""
    if pattern is None or target is None or not target.subtree:
        return False
    itself = pattern.matches(foldings, target.key, subtree=False, whole=False)
    return not itself and not pattern.matches(foldings, target.key, subtree=True, whole=True)


def _is_everything(claims: tuple[Claim, ...]) -> bool:
    return any(not claim.resource and claim.subtree for claim in claims)
