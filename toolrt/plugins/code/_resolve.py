"""What a name in a Python file means, anywhere in the tree.

Rules.
    1. A name is looked up as Python does: in the function, in those around it, in the module; never in a class around
       a function.  ``global`` and ``nonlocal`` are not looked at.
    2. An import leads to what the other file binds under that name, through any number of files; ``from m import *``
       to all that m binds.
    3. ``self.name`` and ``cls.name``, as the first parameter of a method is called, are looked up in the class and,
       by C3 where it can be worked out and depth first where not, in its bases; ``super().name`` in the bases.
    4. A value has a type where the text says so: an annotation, a call of a class, a call of a function that says or
       returns what it gives, an attribute that some method assigns, ``with`` by what ``__enter__`` gives, a loop
       over what is annotated as ``list[T]`` and the like.  A list, a tuple, a set or a dict that is written out holds
       what is written there, whichever element is taken.  Where several assignments give different types, all count.
    5. What is not known this way is not guessed: then there is no edge.

Limits.  No flow: a later assignment counts as an earlier one does.  Types come neither from the arguments of calls nor
from libraries outside of the tree, and a decorator changes no signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from toolrt.plugins.code._facts import MODULE, Facts, Symbol
from toolrt.plugins.code._python import annotation_expression, outer_parts
from toolrt.plugins.code._tree import SourceTree

#: How deep one look-up may lead into others, and how many things a name may mean.
_DEEPEST = 24
_MOST = 16

_STEP = re.compile(r"\.([^\W\d]\w*)|(\(\))|(\[\])|(\*)|\{(:?\})")
_FIRST = re.compile(r"[^\W\d]\w*")


@attrs.frozen
class Target:
    """Something that a name may mean: a file, a symbol of one, or a value of that symbol's type."""

    path: str
    #: The symbol, or `MODULE`.
    symbol: int = MODULE
    #: Whether it is a value of the class, not the class.
    value: bool = False
    #: What the type is given in brackets, as it is written where; "" is nothing.
    inside: str = ""


Found = tuple[Target, ...]


class Python:
    """Resolves names in the Python files of one tree; it remembers, so make one for each age of it."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._scopes: dict[str, _Scopes] = {}
        self._known: dict[tuple[str, int, str], Found] = {}
        self._running: set[tuple[str, int, str]] = set()
        self._mros: dict[tuple[str, int], Found] = {}

    def called(self, path: str, scope: int, callee: str) -> Found:
        """The symbols that a call of `callee` in that scope means: functions, methods and classes."""
        found: dict[Target, None] = {}
        for one in self.meant(path, scope, callee):
            if one.symbol == MODULE:
                continue
            if one.value:  # a value that is called
                for inner in self._member(one, "__call__", 0):
                    found[attrs.evolve(inner, value=False, inside="")] = None
            else:
                found[attrs.evolve(one, inside="")] = None
        return tuple(found)

    def meant(self, path: str, scope: int, expression: str, depth: int = 0) -> Found:
        """What an expression in that scope means."""
        if depth > _DEEPEST or expression == "?" or not expression:
            return ()
        key = path, scope, expression
        known = self._known.get(key)
        if known is not None:
            return known
        if key in self._running:
            return ()
        self._running.add(key)
        try:
            found: dict[Target, None] = {}
            for part in expression.split("|"):
                for one in self._one(path, scope, part, depth):
                    found[one] = None
            result = tuple(found)[:_MOST]
        finally:
            self._running.discard(key)
        if not self._running:
            # What was found inside of a circle may be less than all.
            self._known[key] = result
        return result

    def _one(self, path: str, scope: int, expression: str, depth: int) -> Found:
        if expression.startswith("@"):
            return self._annotated(path, scope, expression[1:], depth)
        first = _FIRST.match(expression)
        if first is None:
            return ()
        name, place = first[0], first.end()
        found: Found
        if name == "super" and expression.startswith("super().", 0):
            own = self._class_around(path, scope)
            step = _STEP.match(expression, len("super()"))
            if own is None or step is None:
                return ()
            found = ()
            for base in self.order(own)[1:]:
                found = self._own_member(base, step[1], depth)
                if found:
                    break
            found = self._as_value(found, depth)
            place = step.end()
        else:
            found = self.name(path, scope, name, depth)
        while place < len(expression) and found:
            step = _STEP.match(expression, place)
            if step is None:
                return ()
            place = step.end()
            if step[5]:
                display = "sequence" if step[5] == "}" else "mapping"
                found = (Target(path, MODULE, True, f"{scope}:{{{display}}}:{expression[: step.start()]}"),)
                continue
            following: dict[Target, None] = {}
            for one in found:
                if step[1]:
                    reached = self._member(one, step[1], depth)
                elif step[2]:
                    reached = self._given(one, depth)
                else:
                    reached = self._element(one, bool(step[4]), depth)
                following.update(dict.fromkeys(reached))
            found = tuple(following)[:_MOST]
        return found

    # Names

    def name(self, path: str, scope: int, name: str, depth: int = 0) -> Found:
        """What a plain name means there."""
        if depth > _DEEPEST:
            return ()
        scopes = self._of(path)
        first = True
        while True:
            if first or scope == MODULE or scopes.facts.symbols[scope].kind != "class":
                found = self._bound(path, scope, name, depth)
                if found is not None:
                    return found
            if scope == MODULE:
                return ()
            first = False
            scope = scopes.facts.symbols[scope].parent

    def _bound(self, path: str, scope: int, name: str, depth: int) -> Found | None:
        """What the scope itself binds the name to; None: it does not."""
        scopes = self._of(path)
        bound = scopes.bound.get((scope, name))
        if bound is None:
            if scope == MODULE or name not in scopes.anything:
                return self._starred(path, scope, name, depth)
            return None
        found: dict[Target, None] = {}
        for kind, what in bound:
            if kind == "symbol":
                found[Target(path, int(what))] = None
            elif kind == "import":
                found.update(dict.fromkeys(self._imported(path, int(what), depth + 1)))
            elif kind == "self":
                own = scopes.facts.symbols[scope].parent
                marks = scopes.facts.symbols[scope].marks
                is_class = any(mark.endswith("classmethod") for mark in marks) or scopes.facts.symbols[scope].name in (
                    "__new__",
                    "__init_subclass__",
                    "__class_getitem__",
                )
                if not any(mark.endswith("staticmethod") for mark in marks):
                    found[Target(path, own, not is_class)] = None
            else:
                found.update(dict.fromkeys(self.meant(path, scope, str(what), depth + 1)))
        return tuple(found)[:_MOST]

    def _starred(self, path: str, scope: int, name: str, depth: int) -> Found | None:
        for one in self._of(path).stars:
            if one.scope == scope:
                module = self._tree.python_module(one.module, one.level, path)
                if module is not None and module != path and depth < _DEEPEST:
                    found = self._global(module, name, depth + 1)
                    if found:
                        return found
        return None

    def _global(self, path: str, name: str, depth: int) -> Found:
        """What a module binds the name to; of a package also its modules."""
        key = path, MODULE, f"={name}"
        if key in self._running or depth > _DEEPEST:
            return ()
        self._running.add(key)
        try:
            found = self._bound(path, MODULE, name, depth)
        finally:
            self._running.discard(key)
        if found:
            return found
        if self._tree.is_python_package(path):
            inner = self._tree.python_module(name, 1, path)
            if inner is not None:
                return (Target(inner),)
        return ()

    def _imported(self, path: str, number: int, depth: int) -> Found:
        one = self._of(path).facts.imports[number]
        if not one.name:
            module = self._tree.python_module(one.module, one.level, path)
            return () if module is None else (Target(module),)
        module = self._tree.python_module(one.module, one.level, path)
        if module is not None:
            if module == path:
                inner = self._tree.python_module(one.name, 1, path)
                return () if inner is None else (Target(inner),)
            found = self._global(module, one.name, depth)
            if found:
                return found
        inner = self._tree.python_module(f"{one.module}.{one.name}" if one.module else one.name, one.level, path)
        return () if inner is None or inner == path else (Target(inner),)

    # Members

    def _member(self, target: Target, name: str, depth: int) -> Found:
        if depth > _DEEPEST:
            return ()
        if target.symbol == MODULE:
            if target.value:
                # A method of a container that gives what it holds: calling it gives that.
                return (target,) if name in _HANDS_OUT else ()
            return self._global(target.path, name, depth + 1)
        symbol = self._of(target.path).facts.symbols[target.symbol]
        if symbol.kind != "class":
            return ()
        for one in self.order(target):
            found = self._own_member(one, name, depth + 1)
            if found:
                return self._as_value(found, depth) if target.value else found
        return ()

    def _own_member(self, target: Target, name: str, depth: int) -> Found:
        """What the class itself, or one of its methods, binds the name to."""
        scopes = self._of(target.path)
        bound = scopes.bound.get((target.symbol, name))
        found: dict[Target, None] = {}
        if bound is not None:
            found.update(dict.fromkeys(self._bound(target.path, target.symbol, name, depth) or ()))
        for scope, value in scopes.attributes.get((target.symbol, name), ()):
            found.update(dict.fromkeys(self.meant(target.path, scope, value, depth + 1)))
        return tuple(found)[:_MOST]

    def _as_value(self, found: Found, depth: int) -> Found:
        """What an attribute of a value is, where a class has `found`: a property is what it gives."""
        result: dict[Target, None] = {}
        for one in found:
            symbol = None if one.symbol == MODULE or one.value else self._of(one.path).facts.symbols[one.symbol]
            if symbol is not None and any(mark.endswith("property") for mark in symbol.marks):
                result.update(dict.fromkeys(self._given(one, depth + 1)))
            else:
                result[one] = None
        return tuple(result)

    def order(self, target: Target) -> Found:
        """The class and what it inherits from, in the order in which attributes are looked up."""
        key = target.path, target.symbol
        known = self._mros.get(key)
        if known is None:
            self._mros[key] = (Target(*key),)  # for a circle
            known = self._mros[key] = self._linear(Target(*key))
        return known

    def _linear(self, target: Target) -> Found:
        symbol = self._of(target.path).facts.symbols[target.symbol]
        bases: list[Target] = []
        for base in symbol.bases:
            for one in self.meant(target.path, symbol.parent, base.replace("[]", ""))[:1]:
                if (
                    one.symbol != MODULE
                    and not one.value
                    and self._of(one.path).facts.symbols[one.symbol].kind == "class"
                ):
                    bases.append(one)
        rows = [list(self.order(base)) for base in bases] + [bases]
        result = [target]
        while any(rows):
            rows = [row for row in rows if row]
            for row in rows:
                if not any(row[0] in other[1:] for other in rows):
                    break
            else:
                row = rows[0]
            head = row[0]
            if head not in result:
                result.append(head)
            rows = [[one for one in row if one != head] for row in rows]
        return tuple(result)

    def _class_around(self, path: str, scope: int) -> Target | None:
        symbols = self._of(path).facts.symbols
        while scope != MODULE:
            if symbols[scope].kind == "class":
                return Target(path, scope)
            scope = symbols[scope].parent
        return None

    # Values

    def _given(self, target: Target, depth: int) -> Found:
        """What calling it gives."""
        if target.symbol == MODULE or depth > _DEEPEST:
            return self._element(target, False, depth) if target.inside else ()
        symbol = self._of(target.path).facts.symbols[target.symbol]
        if symbol.kind == "class":
            if target.value:
                called = self._member(target, "__call__", depth + 1)
                return tuple(one for inner in called for one in self._given(inner, depth + 1))[:_MOST]
            return (Target(target.path, target.symbol, True),)
        if symbol.returns.startswith("@Self"):
            own = self._class_around(target.path, target.symbol)
            return () if own is None else (attrs.evolve(own, value=True),)
        if any(mark.endswith("contextmanager") for mark in symbol.marks):
            inside = symbol.returns.partition("[")[2]
            return (Target(target.path, MODULE, True, f"{symbol.parent}:with:{inside[:-1]}"),) if inside else ()
        # An annotation means what it means around the function, a returned name what it means inside.
        if symbol.returns.startswith("@"):
            return self.meant(target.path, symbol.parent, symbol.returns, depth + 1)
        if symbol.returns == "self" and symbol.kind == "method":
            return (Target(target.path, symbol.parent, True),)
        return self.meant(target.path, target.symbol, symbol.returns, depth + 1)

    def _annotated(self, path: str, scope: int, text: str, depth: int) -> Found:
        text = text.replace("/", "|")
        name, _, inside = text.partition("[")
        if name in ("Self", "typing.Self", "typing_extensions.Self", "t.Self"):
            own = self._class_around(path, scope)
            return () if own is None else (attrs.evolve(own, value=True),)
        found: list[Target] = []
        for one in self.meant(path, scope, name, depth + 1):
            if one.symbol != MODULE and not one.value:
                found.append(Target(one.path, one.symbol, True))
        if not found and inside:
            # A container of the language: only what it holds is of use, where the annotation stands.
            found.append(Target(path, MODULE, True, f"{scope}:{name}:{inside[:-1]}"))
        return tuple(found)

    def _element(self, target: Target, iterated: bool, depth: int) -> Found:
        """What is in a container, by a loop over it or by a subscript; a generic that is told its types is itself."""
        if target.symbol != MODULE and not target.value and not iterated:
            return (target,)
        if not target.inside:
            if target.symbol != MODULE and target.value and depth < _DEEPEST:
                called = self._member(target, "__iter__" if iterated else "__getitem__", depth + 1)
                given = tuple(one for inner in called for one in self._given(inner, depth + 1))
                return tuple(e for one in given for e in self._element(one, True, depth + 1)) if iterated else given
            return ()
        scope, name, inside = target.inside.split(":", 2)
        if name in ("{sequence}", "{mapping}"):  # one that is written out
            return () if name == "{mapping}" and iterated else self.meant(target.path, int(scope), inside, depth + 1)
        parts = outer_parts(inside, ",")
        if not parts:
            return ()
        mapping = name.rpartition(".")[2].lower() in _MAPPINGS
        wanted = parts[-1] if mapping and not iterated else parts[0]
        return self.meant(target.path, int(scope), annotation_expression(wanted), depth + 1)

    def _of(self, path: str) -> _Scopes:
        scopes = self._scopes.get(path)
        if scopes is None:
            scopes = self._scopes[path] = _Scopes(self._tree.facts(path))
        return scopes


#: Methods of containers and context managers that give what is in them.
_HANDS_OUT = frozenset(("get", "pop", "popleft", "popitem", "setdefault", "__enter__", "__aenter__", "__next__"))

_MAPPINGS = frozenset(("dict", "mapping", "mutablemapping", "defaultdict", "ordereddict", "weakvaluedictionary"))


class _Scopes:
    """The names that each scope of a file binds."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        #: By scope and name: what kind of binding, and which symbol, which import, or which expression.
        self.bound: dict[tuple[int, str], list[tuple[str, int | str]]] = {}
        #: By class and name: what methods assign to that attribute, and where.
        self.attributes: dict[tuple[int, str], list[tuple[int, str]]] = {}
        self.stars = [one for one in facts.imports if one.bound == "*"]
        symbols = facts.symbols
        for symbol in symbols:
            bound = self.bound.get((symbol.parent, symbol.name), [])
            # What overloads a function is no function of its own.
            bound[:] = [one for one in bound if not _is_overload(symbols[int(one[1])])]
            self._bind(symbol.parent, symbol.name, "symbol", symbol.ordinal)
        for number, one in enumerate(facts.imports):
            if one.bound and one.bound != "*":
                self._bind(one.scope, one.bound, "import", number)
        firsts = dict(_firsts(symbols, facts))
        for scope, name in firsts.items():
            self._bind(scope, name, "self", 0)
        for binding in facts.bindings:
            owner, _, attribute = binding.target.partition(".")
            if not attribute:
                if firsts.get(binding.scope) != binding.target:
                    self._bind(binding.scope, binding.target, "here", binding.value)
                continue
            method = binding.scope
            while method != MODULE and firsts.get(method) != owner:
                method = symbols[method].parent
            if method != MODULE:
                key = symbols[method].parent, attribute
                self.attributes.setdefault(key, []).append((binding.scope, binding.value))
        self.anything = frozenset(name for _, name in self.bound)

    def _bind(self, scope: int, name: str, kind: str, what: int | str) -> None:
        self.bound.setdefault((scope, name), []).append((kind, what))


def _is_overload(symbol: Symbol) -> bool:
    return any(mark.rpartition(".")[2] == "overload" for mark in symbol.marks)


def _firsts(symbols: tuple[Symbol, ...], facts: Facts) -> Iterator[tuple[int, str]]:
    """The first parameter of each method."""
    seen: set[int] = set()
    for binding in facts.bindings:
        scope = binding.scope
        if scope == MODULE or scope in seen or symbols[scope].kind != "method":
            continue
        seen.add(scope)
        head = symbols[scope].signature.partition("(")[2].lstrip()
        if re.match(rf"{re.escape(binding.target)}\b", head):
            yield scope, binding.target
