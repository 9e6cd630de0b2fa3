"""What a call means in languages other than Python: by name, within the file and what it imports.

Rules, the first that gives anything counts:
    1. ``this``, ``self``, ``Self`` and ``super`` before the name: the methods of the class around it, then those of its
       bases.
    2. The name of a class, a trait or a namespace before it: what is in that, wherever rules 3 to 6 find it.
    3. What the file itself defines, the nearest around the call first.
    4. What an import of the file binds under that name, or what the imported file defines; a header also stands for
       the file beside it that has its name.
    5. What files of the same directory define (Go, Java, C, C++; a package or a module is a directory there).
    6. What is defined under that name only once in all files of the language and those it can call.
A receiver whose type is not known is passed over: ``x.run()`` is any ``run`` that these rules find, and a method only
by rules 3 to 6.  Where rule 6 decided, the answer says so.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from toolrt.plugins.code._facts import MODULE, Call, Symbol
from toolrt.plugins.code._languages import LANGUAGES
from toolrt.plugins.code._resolve import Target
from toolrt.plugins.code._tree import SourceTree

_OWN = frozenset(("this", "self", "Self", "super", "@self"))

#: What is no symbol to be called.
_HOLDERS = ("impl",)

_MOST = 6

_BY_DIRECTORY = frozenset(("go", "java", "c", "cpp"))


@attrs.frozen
class Guess:
    """What a call means, and whether nothing but the name's being the only one says so."""

    targets: tuple[Target, ...] = ()
    by_name_alone: bool = False


class ByName:
    """Resolves calls in files of one tree; it remembers, so make one for each age of it."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._imports: dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {}
        self._named: dict[tuple[str, str], tuple[Target, ...]] = {}

    def called(self, path: str, call: Call) -> Guess:
        """What the call in that file means."""
        if not call.name:
            return Guess()
        found = next(filter(None, self._by_rules(path, call)), None)
        if found is not None:
            return Guess(found)
        found = self._everywhere(path, call.name)
        return Guess(found, True) if len(found) == 1 else Guess()

    def _by_rules(self, path: str, call: Call) -> Iterator[tuple[Target, ...]]:
        """What each of the rules 1 to 5 gives, in their order."""
        receiver = call.callee[: -len(call.name)].rstrip(".")
        last = receiver.rpartition(".")[2].rstrip("!?")
        facts = self._tree.facts(path)
        if last in _OWN or (not receiver and LANGUAGES[facts.language].name in ("java", "cpp", "ruby")):
            own = self._class_around(facts.symbols, call.caller)
            if own is not None:
                yield self._members(path, own, call.name, skip=last == "super")
        if last and last not in _OWN:
            yield self._within(path, last, call.name)
        yield self._here(path, call.name, call.caller)
        yield self._from_imports(path, call.name, last)
        if facts.language in _BY_DIRECTORY:
            yield self._in(self._tree.siblings(path), path, call.name)

    def _here(self, path: str, name: str, scope: int) -> tuple[Target, ...]:
        symbols = self._tree.facts(path).symbols
        named = self._named_in(path, name)
        around = [scope]
        while around[-1] != MODULE:
            around.append(symbols[around[-1]].parent)
        for outer in around:
            inside = [symbol for symbol in named if symbol.parent == outer]
            if inside:
                return self._targets(path, inside)
        return self._targets(path, named)

    def _named_in(self, path: str, name: str) -> list[Symbol]:
        """What the file defines under that name."""
        symbols = self._tree.facts(path).symbols
        return [symbol for symbol in symbols if symbol.name == name and symbol.kind not in _HOLDERS]

    def _with_bodies(self, found: list[Target]) -> tuple[Target, ...]:
        """Those of `found` that are no prototypes, if there are any."""
        real = [one for one in found if self._symbol(one).kind != "prototype"]
        return tuple(real or found)[:_MOST]

    def _targets(self, path: str, symbols: list[Symbol]) -> tuple[Target, ...]:
        return self._with_bodies([Target(path, symbol.ordinal) for symbol in symbols])

    def _imported(self, path: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """For each import: the name it binds, the name it has there, and the files it means."""
        known = self._imports.get(path)
        if known is None:
            facts = self._tree.facts(path)
            found = []
            for one in facts.imports:
                files = list(self._tree.imported(path, one))
                if facts.language in ("c", "cpp"):
                    for header in list(files):
                        stem = header.rpartition(".")[0]
                        beside = [f"{stem}{ending}" for ending in (".c", ".cc", ".cpp", ".cxx")]
                        files += [file for file in beside if file in self._tree.files and file not in files]
                found.append((one.bound, one.name, tuple(files)))
            known = self._imports[path] = tuple(found)
        return known

    def _from_imports(self, path: str, name: str, receiver: str) -> tuple[Target, ...]:
        found: list[Target] = []
        for bound, own, files in self._imported(path):
            if bound == name and own not in ("", "*"):
                wanted = own
            elif bound in ("", "*", receiver) or (receiver and own == "*"):
                wanted = name
            else:
                continue
            for file in files:
                facts = self._tree.facts(file)
                if wanted == "default":
                    symbols = [symbol for symbol in facts.symbols if symbol.signature.startswith("export default")] or [
                        symbol for symbol in facts.symbols if symbol.name == name and symbol.parent == MODULE
                    ]
                else:
                    symbols = self._named_in(file, wanted)
                found += self._targets(file, symbols)
        return self._with_bodies(list(dict.fromkeys(found)))

    def _within(self, path: str, holder: str, name: str) -> tuple[Target, ...]:
        """The members called `name` of a class, trait or namespace called `holder`."""
        language = self._tree.facts(path).language
        places = [path, *(file for _, _, files in self._imported(path) for file in files)]
        if language in _BY_DIRECTORY:
            places += self._tree.siblings(path)
        for file in dict.fromkeys(places):
            if self._related(file, language) and (found := self._members_named(file, holder, name)):
                return found
        for file in self._tree.defining(name) if holder[:1].isupper() else ():
            if self._related(file, language) and (found := self._members_named(file, holder, name)):
                return found
        return ()

    def _members_named(self, path: str, holder: str, name: str) -> tuple[Target, ...]:
        end = f"{holder}.{name}"
        symbols = [
            symbol
            for symbol in self._tree.facts(path).symbols
            if symbol.name == name and (symbol.qualified == end or symbol.qualified.endswith(f".{end}"))
        ]
        if not symbols and name == "new":  # Ruby
            symbols = [symbol for symbol in self._tree.facts(path).symbols if symbol.name == holder]
        return self._targets(path, symbols)

    def _members(self, path: str, own: Symbol, name: str, skip: bool, depth: int = 0) -> tuple[Target, ...]:
        if not skip:
            found = self._members_named(path, own.name, name)
            if found:
                return found
        if depth > 8:
            return ()
        for base in own.bases:
            last = base.rpartition(".")[2]
            for one in (
                self._here(path, last, MODULE) or self._from_imports(path, last, "") or self._everywhere(path, last)
            ):
                symbol = self._symbol(one)
                if (one.path, symbol.name) != (path, own.name):
                    found = self._members(one.path, symbol, name, False, depth + 1)
                    if found:
                        return found
        return ()

    def bases(self, path: str, symbol: Symbol) -> tuple[Target, ...]:
        """What a class inherits from or implements."""
        found: list[Target] = []
        for base in symbol.bases:
            last = base.rpartition(".")[2]
            reached = self._here(path, last, MODULE) or self._from_imports(path, last, "")
            if not reached and self._tree.facts(path).language in _BY_DIRECTORY:
                reached = self._in(self._tree.siblings(path), path, last)
            found += reached or (self._everywhere(path, last) if len(self._everywhere(path, last)) == 1 else ())
        return tuple(dict.fromkeys(one for one in found if one != Target(path, symbol.ordinal)))

    def _class_around(self, symbols: tuple[Symbol, ...], scope: int) -> Symbol | None:
        while scope != MODULE:
            symbol = symbols[scope]
            if symbol.parent == MODULE and "." in symbol.qualified:  # C++ outside of its class, Go
                holder = symbol.qualified.rpartition(".")[0].rpartition(".")[2]
                return next((one for one in symbols if one.name == holder), symbol._replace(name=holder, bases=()))
            if symbol.kind not in ("function", "method", "constructor", "prototype"):
                return symbol
            scope = symbol.parent
        return None

    def _in(self, files: list[str], path: str, name: str) -> tuple[Target, ...]:
        language = self._tree.facts(path).language
        found: list[Target] = []
        wanted = set(self._tree.defining(name))
        for file in files:
            if file != path and file in wanted and self._related(file, language):
                found += self._targets(file, self._named_in(file, name))
        return self._with_bodies(found)

    def _everywhere(self, path: str, name: str) -> tuple[Target, ...]:
        language = self._tree.facts(path).language
        key = LANGUAGES[language].related, name
        known = self._named.get(key)
        if known is None:
            found: list[Target] = []
            for file in self._tree.defining(name):
                if self._related(file, language):
                    found += self._targets(file, self._named_in(file, name))
            known = self._named[key] = self._with_bodies(found)
        return known

    def _related(self, path: str, language: str) -> bool:
        own = self._tree.files[path].language if path in self._tree.files else ""
        return own != "" and LANGUAGES[own].related == LANGUAGES[language].related

    def _symbol(self, target: Target) -> Symbol:
        return self._tree.facts(target.path).symbols[target.symbol]
