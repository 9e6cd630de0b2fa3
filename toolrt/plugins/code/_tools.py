"""The tools that a model asks about code.

Rules.  What is shown can be given to the other tools as it is: paths are relative to the working directory.  An answer
that is cut short says by how much.  Each tool only reads.  One that is about a single file claims that file, each other
one READ on all of the workspace: so in one lane it sees exactly what calls of a lower index changed.
"""

from __future__ import annotations

import functools
import inspect
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from toolrt._plain import counted
from toolrt.model import READ, Claim, State, Tool
from toolrt.plugins.code._facts import Facts
from toolrt.plugins.code._graph import CodeEdge, Graph, Place
from toolrt.plugins.code._index import FactIndex
from toolrt.plugins.code._languages import LANGUAGES, Language, language_of
from toolrt.plugins.code._reading import facts_of, in_utf8
from toolrt.plugins.code._resolve import Target
from toolrt.plugins.code._search import Hit, References, is_below, references, searched
from toolrt.plugins.code._skeleton import grammars_of_thread, outline
from toolrt.plugins.code._tree import SourceTree
from toolrt.workspace import (
    CallContext,
    FileProblem,
    Identity,
    Wanted,
    Workspace,
    held,
    path_on,
    shown_path,
    withheld_note,
    withholding,
)
from toolrt.workspace.tools._tools import schema_of

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

#: The most lines that any of them shows, whatever its limit.
_LIMIT_MOST = 1000

#: How deep a change is followed.
_DEPTH_MOST = 10

_LINE_LONGEST = 300


class _AskContext(CallContext, Protocol):
    """What the tools use of the runtime's context."""

    def progress(self, message: Any) -> None: ...


class _Index(Protocol):
    """What the tools use of a `CodeIndex`."""

    _index: FactIndex

    @property
    def workspace(self) -> Workspace: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    async def ask(
        self,
        question: Callable[[sqlite3.Connection, Graph], T],
        told: Callable[[Any], None] | None = None,
        known: Callable[[str], bool] | None = None,
    ) -> T: ...

    async def vector_of(self, query: str) -> Sequence[float] | None: ...


async def list_symbols(code: _Index, ctx: _AskContext, path: str) -> str:
    """List the classes, functions and other symbols of a source file, each with its line and its signature.

    Symbols inside of others are indented. Known are Python, JavaScript, TypeScript, Go, Rust, Java, C, C++ and Ruby.
    """
    ask = _Ask(code, ctx)
    identity = ask.held(path)
    facts = await ask.facts(identity)
    if not facts.symbols:
        return f"{identity.path} has no symbols{f' ({facts.note})' if facts.note else ''}"
    return "\n".join(outline(facts)[0])


async def read_symbol(code: _Index, ctx: _AskContext, symbol: str, path: str | None = None) -> str:
    """Read the whole text of one function, class or other symbol.

    symbol is its name, or Class.method. path is the file it is in; without path it is looked for everywhere, and must
    be the only one of that name.
    """
    ask = _Ask(code, ctx)
    if path is None:
        target_path, _ = await ask.asked(lambda _, graph: ask.only(graph, symbol, None).path)
        identity = code.workspace.identify(f"./{shown_path(target_path)}")
        if identity.problem is not None:
            raise identity.problem
    else:
        identity = ask.held(path)
    facts = await ask.facts(identity)
    found = [one for one in facts.symbols if one.qualified == symbol or one.qualified.endswith(f".{symbol}")]
    found = [one for one in found if one.qualified == symbol] or found
    if not found:
        names = ", ".join(dict.fromkeys(one.qualified for one in facts.symbols)) or "nothing"
        raise FileProblem(
            identity.path, f"a symbol {symbol!r}", f"none of that name; it defines {names[:500]}", "Check the name."
        )
    content = (await ask.content(identity))[1]
    shown = ask.shown("/".join(identity.entry))
    parts = []
    for one in found:
        text = content[one.start : one.end].decode("utf-8", "replace")
        begin = content.rfind(b"\n", 0, one.start) + 1
        lead = content[begin : one.start].decode("utf-8", "replace")
        parts.append(
            f"{shown}:{one.line}-{one.end_line} {one.kind} {one.qualified}\n{lead if not lead.strip() else ''}{text}"
        )
    return "\n\n".join(parts)


async def find_references(code: _Index, ctx: _AskContext, name: str, path: str = ".", limit: int = 100) -> str:
    """Find every place where a name stands in the code, told apart: definitions, imports, calls, other uses.

    name is one word, such as read_file; path narrows to a directory or a file. At most limit places are shown.
    """
    _check_limit(limit)
    if not name.replace("_", "").replace("$", "").isalnum():
        raise FileProblem(
            "name", "one word: letters, digits and underscores", repr(name[:40]), "Use search for others."
        )
    ask = _Ask(code, ctx)
    below = ask.below(path)

    def asked(connection: Any, graph: Graph) -> Iterator[str]:
        found = references(connection, graph.tree, name, below, limit)
        yield from _references_shown(ask, found) if found.places else [f"{name} stands nowhere"]
        if found.cut_short:
            yield f"(only the first {limit} places are shown; narrow it by path)"
        yield from _noted(_unread(graph.tree, below))

    return await ask.answer(asked)


async def search_code(code: _Index, ctx: _AskContext, query: str, path: str = ".", limit: int = 20) -> str:
    """Search the code for what it is about, and return the best places: definitions first, then usages.

    query is some words or names; parts of names are found too, so "user name" finds getUserName and user_name. path
    narrows to a directory or a file. For an exact text or a regular expression use search.
    """
    _check_limit(limit)
    if not any(letter.isalnum() for letter in query):
        raise FileProblem("query", "words to look for", repr(query[:40]), "Say what the code is about.")
    ask = _Ask(code, ctx)
    below = ask.below(path)
    failed: list[str] = []
    vector = None
    try:
        vector = await code.vector_of(query)
    except Exception as error:
        failed = [f"search by meaning failed ({type(error).__name__}); these are found by words alone"]

    def asked(connection: Any, graph: Graph) -> Iterator[str]:
        hits = searched(connection, graph.tree, query, below, limit, vector)
        yield from _hits_shown(ask, hits) if hits else ["nothing is found"]
        yield from _noted([*failed, *_unread(graph.tree, below)])

    return await ask.answer(asked)


async def find_callers(code: _Index, ctx: _AskContext, symbol: str, path: str | None = None, limit: int = 100) -> str:
    """Find who calls a function, a method or a class: each call, with the symbol it is in.

    symbol is its name, or Class.method; path is the file that defines it, where there are several of that name. Calls
    of the same name whose receiver is not known are listed apart.
    """
    _check_limit(limit)
    ask = _Ask(code, ctx)

    def asked(_: Any, graph: Graph) -> Iterator[str]:
        target = ask.only(graph, symbol, ask.file(path))
        known, possible = graph.callers(target)
        yield f"callers of {ask.where(graph.place(target))}: {len(known)}"
        yield from map(ask.call, known[:limit])
        yield from _more(len(known), limit)
        if possible:
            yield f"maybe: {counted(len(possible), 'call')} of that name whose receiver is not known"
            yield from map(ask.call, possible[: max(0, limit - len(known))])

    return await ask.answer(asked)


async def find_callees(code: _Index, ctx: _AskContext, symbol: str, path: str | None = None, limit: int = 100) -> str:
    """Find what a function, a method or a class calls: each call, with what it leads to.

    symbol is its name, or Class.method; path is the file that defines it, where there are several of that name. Calls
    that lead out of the workspace, or to an unknown place, are named at the end.
    """
    _check_limit(limit)
    ask = _Ask(code, ctx)

    def asked(_: Any, graph: Graph) -> Iterator[str]:
        target = ask.only(graph, symbol, ask.file(path))
        edges = graph.callees(target)
        known = [(edge, edge.callee) for edge in edges if edge.callee is not None]
        unknown = list(dict.fromkeys(edge.written for edge in edges if edge.callee is None))
        yield f"calls of {ask.where(graph.place(target))}: {len(known)}"
        for edge, callee in known[:limit]:
            yield f"line {edge.line}: {edge.written} -> {ask.where(callee)}{_by_name(edge)}"
        yield from _more(len(known), limit)
        if unknown:
            more = f" and {len(unknown) - 50} more" if len(unknown) > 50 else ""
            yield f"not known: {', '.join(unknown[:50])}{more}"

    return await ask.answer(asked)


async def find_call_path(
    code: _Index,
    ctx: _AskContext,
    source: str,
    target: str,
    source_path: str | None = None,
    target_path: str | None = None,
) -> str:
    """Find the shortest way of calls from one symbol to another.

    source and target are names, or Class.method; source_path and target_path are the files that define them, where
    there are several of that name.
    """
    ask = _Ask(code, ctx)

    def asked(_: Any, graph: Graph) -> Iterator[str]:
        first = ask.only(graph, source, ask.file(source_path))
        steps, complete = graph.way(first, ask.only(graph, target, ask.file(target_path)))
        if steps is None:
            whole = "" if complete else "; not all calls were followed, there are too many"
            yield f"no way of known calls leads from {source} to {target}{whole}"
        for place, line in steps or ():
            yield ask.where(place) + (f", which calls at line {line}" if line else "")

    return await ask.answer(asked)


async def file_dependencies(code: _Index, ctx: _AskContext, path: str) -> str:
    """List which files of the workspace a source file imports, which import it, and what it imports from elsewhere."""
    ask = _Ask(code, ctx)
    file = ask.file(path)

    def asked(_: Any, graph: Graph) -> Iterator[str]:
        if file is None or file not in graph.tree.files:
            raise FileProblem(
                shown_path(file or path),
                "a source file that is known here",
                "none",
                "Check the name; what .gitignore leaves out is not.",
            )
        for title, found in (("imports", graph.imports(file)), ("is imported by", graph.importers(file))):
            yield f"{ask.shown(file)} {title} {counted(len(found), 'file')}"
            yield from (f"  {ask.shown(other)} (line {line})" for other, line in found[:_LIMIT_MOST])
            yield from _more(len(found), _LIMIT_MOST)
        if outside := graph.outside(file):
            yield f"from elsewhere: {', '.join(outside[:100])}"

    return await ask.answer(asked)


async def blast_radius(
    code: _Index,
    ctx: _AskContext,
    symbol: str | None = None,
    path: str | None = None,
    depth: int = 3,
    limit: int = 100,
) -> str:
    """Find what a change of a symbol, or of a whole file, may reach: callers, their callers, classes that inherit.

    Give symbol (a name, or Class.method), or path for all that a file defines, or both. depth is how many calls away is
    looked.
    """
    _check_limit(limit)
    if not 1 <= depth <= _DEPTH_MOST:
        raise FileProblem("depth", f"1 to {_DEPTH_MOST}", str(depth)[:20], "Say how far to look.")
    ask = _Ask(code, ctx)
    file = ask.file(path)
    if symbol is None and file is None:
        raise FileProblem("symbol", "a symbol or a path", "neither", "Name what is to change.")

    def asked(_: Any, graph: Graph) -> Iterator[str]:
        if symbol is not None:
            starts = [ask.only(graph, symbol, file)]
            what = graph.place(starts[0]).name
        else:
            assert file is not None
            if file not in graph.tree.files:
                raise FileProblem(shown_path(file), "a source file that is known here", "none", "Check the name.")
            starts = [Target(file, one.ordinal) for one in graph.tree.facts(file).symbols]
            what = ask.shown(file)
        found, complete = graph.reached(starts, depth)
        files = dict.fromkeys(place.path for _, place, _ in found)
        yield (
            f"a change of {what} may reach {counted(len(found), 'symbol')} in {counted(len(files), 'file')}, "
            f"{counted(depth, 'call')} away or less"
        )
        for away, place, through in found[:limit]:
            yield f"{away}  {ask.where(place)}, through {through.name or 'the file'}"
        yield from _more(len(found), limit)
        if not complete:
            yield "(too many to follow all: there are more)"
        if symbol is None and file is not None:
            importers = [ask.shown(one) for one, _ in graph.importers(file)]
            yield f"{counted(len(importers), 'file')} import it: {', '.join(importers[:50])}"

    return await ask.answer(asked)


#: All of them, in the order that models are shown them.
_TOOLS: tuple[Callable[..., Any], ...] = (
    list_symbols,
    read_symbol,
    search_code,
    find_references,
    find_callers,
    find_callees,
    find_call_path,
    file_dependencies,
    blast_radius,
)


def code_tools(code: _Index) -> list[Tool]:
    """The tools of one index."""
    return [
        Tool(
            name=function.__name__,
            function=functools.partial(function, code),
            safe=True,
            claims=functools.partial(_claims, code, function.__name__),
            description=inspect.getdoc(function) or "",
            schema=schema_of(function),
            owner=code.workspace,
            leaves_out=True,
        )
        for function in _TOOLS
    ]


_OF_ONE_FILE = ("list_symbols", "read_symbol")


def _claims(code: _Index, name: str, input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
    """READ on all of the workspace, or on the one file."""
    workspace = code.workspace
    claims: dict[Claim, None] = {}
    path = input.get("path")
    if path is not None:
        wanted = Wanted.DIRECTORY if name in ("search_code", "find_references") else Wanted.FILE
        claims.update(dict.fromkeys(workspace.claims(path, state, READ, wanted=wanted)))
    if name in _OF_ONE_FILE and path is not None:
        return tuple(claims)
    whole = workspace.claims(workspace.disk.root, State(), READ, wanted=Wanted.DIRECTORY, subtree=True)
    return tuple(dict.fromkeys((*whole, *claims)))


# What they have in common


class _Ask:
    """One call that asks: what it may know, and how places are shown to it."""

    def __init__(self, code: _Index, ctx: _AskContext) -> None:
        self._code = code
        self._ctx = ctx
        self._workspace = code.workspace

    # What is asked

    async def answer(self, question: Callable[[Any, Graph], Iterable[str]]) -> str:
        """The lines that `question` gives, and what is to be said of what could not be known."""
        answer, notes = await self.asked(lambda connection, graph: "\n".join(question(connection, graph)))
        return "\n".join([answer, *_noted(notes)])

    async def asked(self, question: Callable[[Any, Graph], T]) -> tuple[T, list[str]]:
        """The answer to `question`, by what the call may know, and what is to be said of the rest."""
        ctx, disk = self._ctx, self._workspace.disk
        rules = withholding(disk, ctx, self._workspace.identify("./", None, Wanted.DIRECTORY))
        left_out: list[str] = []

        def known(path: str) -> bool:
            entry = tuple(path.split("/"))
            try:
                stat = disk.lstat(path_on(disk, entry))
            except OSError:
                return False
            if rules is None or rules.why(entry, stat) is None:
                return True
            left_out.append(path)
            return False

        code = self._code
        answer = await code.ask(
            question, lambda building: ctx.progress(str(building)), None if rules is None else known
        )
        return answer, [*code.notes, *([withheld_note(len(left_out))] if left_out else [])]

    async def facts(self, identity: Identity) -> Facts:
        """The facts of one file, read now; no other file is looked at."""
        language, content = await self.content(identity)
        return await self._code._index.in_thread(lambda: facts_of(grammars_of_thread(), language, content))

    async def content(self, identity: Identity) -> tuple[Language, bytes]:
        """The language of one file, and what it has, in UTF-8; read now."""
        language = language_of("/".join(identity.entry))
        if language is None:
            names = ", ".join(sorted(LANGUAGES))
            raise FileProblem(identity.path, f"a file in a known language ({names})", "another one", "Use read_file.")
        return language, in_utf8(language, (await self._workspace.files.scan(self._ctx, identity)).content)

    # What it is asked about

    def held(self, path: str) -> Identity:
        """The file at `path`, which the call holds."""
        return held(self._workspace, self._ctx, path, READ)

    def file(self, path: str | None) -> str | None:
        """The same from the root; None for None."""
        return None if path is None else "/".join(self.held(path).entry)

    def below(self, path: str) -> str:
        """The directory or file that a search is narrowed to, from the root; "" is the root."""
        identity = self._workspace.identify(path, self._ctx.state, Wanted.DIRECTORY)
        if identity.key is None and identity.problem is not None:
            raise identity.problem
        if identity.found is None:
            raise FileProblem(identity.path, "a directory or a file", "nothing of that name", "Check the name.")
        return "/".join(identity.entry)

    def only(self, graph: Graph, wanted: str, path: str | None) -> Target:
        """The one symbol that is called so.

        Raises:
            FileProblem: there is none, or there are several.
        """
        found = graph.found(wanted.replace("::", ".").replace("#", "."), path)
        if not found:
            where = "" if path is None else f" in {path}"
            raise FileProblem(
                "symbol",
                f"the name of a symbol{where}",
                f"{wanted[:80]!r}, which nothing is called",
                "Search for it with search_code.",
            )
        if len(found) > 1:
            places = [self.where(graph.place(one)) for one in found[:20]]
            more = "" if len(found) <= 20 else f" and {len(found) - 20} more"
            got = f"{len(found)} of that name: {'; '.join(places)}{more}"
            raise FileProblem("symbol", "one symbol", got, "Say Class.method, or give path.")
        return found[0]

    # How it is shown

    @functools.cached_property
    def _here(self) -> str:
        return "/" + "/".join(self._workspace.identify(".", self._ctx.state, Wanted.DIRECTORY).entry)

    def shown(self, path: str) -> str:
        """A path from the root, as the working directory has it."""
        return shown_path(posixpath.relpath("/" + path, self._here))

    def where(self, place: Place) -> str:
        """A place, with the symbol that stands there."""
        name = f" {place.kind} {place.name}" if place.name else ""
        return f"{self.shown(place.path)}:{place.line}{name}"

    def call(self, edge: CodeEdge) -> str:
        """A call, with the symbol it is in."""
        inside = edge.caller.name or "the file itself"
        return f"{self.shown(edge.path)}:{edge.line} in {inside}: {edge.written}{_by_name(edge)}"


#: How many files an answer names with the note that the index has of each.
_UNREAD = {"no text": "not searched, binary data", "not UTF-8": "searched as UTF-8, in another encoding"}
_NAMED = 5


def _unread(tree: SourceTree, below: str) -> list[str]:
    """What a search says of the files below a directory whose text it does not have."""
    found: dict[str, list[str]] = {}
    for path, row in tree.files.items():
        if row.note in _UNREAD and is_below(path, below):
            found.setdefault(_UNREAD[row.note], []).append(path)
    return [
        f"{counted(len(paths), 'file')} {why}: {', '.join(map(shown_path, paths[:_NAMED]))}"
        + (f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else "")
        for why, paths in sorted(found.items())
    ]


def _noted(notes: Sequence[str]) -> list[str]:
    return [f"({note})" for note in notes]


def _by_name(edge: CodeEdge) -> str:
    return " (the only one of that name)" if edge.by_name else ""


def _more(count: int, limit: int) -> list[str]:
    return [f"({count - limit} more are not shown)"] if count > limit else []


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= _LIMIT_MOST:
        raise FileProblem("limit", f"1 to {_LIMIT_MOST}", str(limit)[:20], "Say how many lines to show at most.")


def _cut(line: str) -> str:
    return line if len(line) <= _LINE_LONGEST else f"{line[:_LINE_LONGEST]} ..."


def _hits_shown(ask: _Ask, hits: Sequence[Hit]) -> Iterator[str]:
    for title, is_definition in (("definitions:", True), ("usages:", False)):
        chosen = [hit for hit in hits if hit.is_definition is is_definition]
        if chosen:
            yield title
        for hit in chosen:
            where = f"{ask.shown(hit.path)}:{hit.line}"
            if is_definition:
                yield f"{where}: {hit.kind} {hit.name} | {_cut(hit.text)}"
            else:
                yield f"{where}{f' in {hit.name}' if hit.name else ''}: {_cut(hit.text)}"


def _references_shown(ask: _Ask, found: References) -> Iterator[str]:
    for kind in ("definition", "import", "call", "use"):
        chosen = [one for one in found.places if one.kind == kind]
        if chosen:
            yield f"{kind}s:"
        for one in chosen:
            inside = f" in {one.inside}" if one.inside and kind != "definition" else ""
            yield f"{ask.shown(one.path)}:{one.line}{inside}: {_cut(one.text)}"
