"""The facts of a Python file.

Rules.  What stands in decorators, defaults and annotations belongs to what is around the function; a lambda and a
comprehension belong to the function they are in.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolrt.plugins.code._facts import MODULE, Binding, Call, Facts, Import, Symbol
from toolrt.plugins.code._nesting import Nesting, one_line, text_of
from toolrt.plugins.code._parsing import captures, parsed

if TYPE_CHECKING:
    from tree_sitter import Node

    from toolrt.plugins.code._languages import Grammar

#: The end of a line.
_LINE_END = re.compile(rb"\r(?!\n)|\n")

_CHAIN = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*\Z")

#: How deep an expression is followed, and how many alternatives of one are kept, and of what a display holds.
_DEEPEST = 30
_ALTERNATIVES = 4
_HELD = 16

#: What may stand around the name of what is called: ``f[int]()``, ``(f)()``, ``(g := f)()``, ``[*f()]``.
_AROUND_A_NAME = frozenset(("subscript", "parenthesized_expression", "named_expression", "list_splat"))

#: How many values a function's result is taken from.
_RETURNS_MOST = 4


def python_facts(grammar: Grammar, content: bytes, lines: int) -> Facts:
    """What is known of the file with this content."""
    tree = parsed(grammar, content)
    if tree is None:
        return Facts("python", lines, note="too large or too deep to be parsed")
    found = captures(grammar, tree)
    return _PythonReader(content, found).facts(lines)


class _PythonReader:
    def __init__(self, content: bytes, found: dict[str, list[Node]]) -> None:
        self._content = content
        self._found = found
        # The parser may have been shown fewer lines than there are, so lines are told by bytes.
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(content))]

    def _line(self, at: int) -> int:
        """The line, from 1, that has that byte."""
        return bisect_right(self._starts, at)

    def _text(self, node: Node | None) -> str:
        # As Python does with names (PEP 3131).
        return "" if node is None else unicodedata.normalize("NFKC", text_of(self._content, node))

    def facts(self, lines: int) -> Facts:
        found, nesting = self._found, Nesting()
        definitions = [(node, "function") for node in found.get("def.function", ())]
        definitions += [(node, "class") for node in found.get("def.class", ())]
        definitions.sort(key=lambda pair: pair[0].start_byte)
        marks: dict[int, list[str]] = {}
        for decorator in found.get("decorator", ()):
            above = decorator.parent.parent if decorator.parent is not None else None
            if above is not None and above.type == "decorated_definition":
                marks.setdefault(above.end_byte, []).append(self.expression(decorator))
        symbols: list[Symbol] = []
        bindings: list[Binding] = []
        for node, kind in definitions:
            name, body = self._text(node.child_by_field_name("name")), node.child_by_field_name("body")
            if not name or body is None:
                continue
            ordinal = len(symbols)
            parent = nesting.current(node.start_byte)
            if kind == "function" and parent != MODULE and symbols[parent].kind == "class":
                kind = "method"
            # The span has the decorators too.
            above = node.parent
            whole = above if above is not None and above.type == "decorated_definition" else node
            qualified = name if parent == MODULE else f"{symbols[parent].qualified}.{name}"
            bases: tuple[str, ...] = ()
            returns = ""
            if kind == "class":
                arguments = node.child_by_field_name("superclasses")
                if arguments is not None:
                    bases = tuple(
                        self.expression(base) for base in arguments.named_children if base.type != "keyword_argument"
                    )
            else:
                returns = self._annotation(node.child_by_field_name("return_type"))
                self._parameters(node.child_by_field_name("parameters"), ordinal, bindings)
            symbols.append(
                Symbol(
                    ordinal,
                    name,
                    qualified,
                    kind,
                    parent,
                    self._line(whole.start_byte),
                    self._line(node.end_byte - 1),
                    whole.start_byte,
                    node.end_byte,
                    one_line(self._content[node.start_byte : body.start_byte]),
                    self._line(node.start_byte),
                    bases,
                    returns,
                    tuple(marks.get(node.end_byte, ())),
                )
            )
            nesting.add(body.start_byte, body.end_byte, ordinal)
        nesting.seal()
        self._bind(nesting, bindings)
        self._result(nesting, symbols)
        return Facts(
            "python", lines, tuple(symbols), tuple(self._calls(nesting)), tuple(self._imports(nesting)), tuple(bindings)
        )

    def _calls(self, nesting: Nesting) -> list[Call]:
        calls = []
        for node in sorted(self._found.get("call", ()), key=lambda node: node.end_byte):
            last: Node | None = node
            while last is not None and last.type in _AROUND_A_NAME:
                last = last.child_by_field_name("value") or last.named_child(0)
            if last is not None and last.type == "attribute":
                last = last.child_by_field_name("attribute")
            if last is None:
                continue
            name = self._text(last) if last.type == "identifier" else ""
            line = self._line(last.start_byte)
            caller = nesting.enclosing(node.start_byte)
            calls.append(Call(caller, self.expression(node), name, line, last.start_byte - self._starts[line - 1]))
        calls.sort(key=lambda call: (call.line, call.column))
        return calls

    def _imports(self, nesting: Nesting) -> list[Import]:
        imports: list[Import] = []
        for node in self._found.get("import", ()):
            scope, line = nesting.enclosing(node.start_byte), self._line(node.start_byte)
            if node.type == "future_import_statement":
                continue
            if node.type == "import_statement":
                for name in node.named_children:
                    if name.type == "aliased_import":
                        module = self._text(name.child_by_field_name("name"))
                        imports.append(
                            Import(scope, self._text(name.child_by_field_name("alias")), module, "", 0, line)
                        )
                    elif name.type == "dotted_name":
                        module = self._text(name)
                        # ``import a.b`` binds a; the second entry records that a.b is known too.
                        imports.append(Import(scope, module.partition(".")[0], module.partition(".")[0], "", 0, line))
                        if "." in module:
                            imports.append(Import(scope, "", module, "", 0, line))
                continue
            source = self._text(node.child_by_field_name("module_name")).replace(" ", "")
            module = source.lstrip(".")
            level = len(source) - len(module)
            names = node.children_by_field_name("name")
            for name in names:
                if name.type == "aliased_import":
                    own, bound = (self._text(name.child_by_field_name(part)) for part in ("name", "alias"))
                else:
                    own = bound = self._text(name)
                imports.append(Import(scope, bound, module, own, level, self._line(name.start_byte)))
            if not names and any(child.type == "wildcard_import" for child in node.named_children):
                imports.append(Import(scope, "*", module, "*", level, line))
        imports.sort(key=lambda one: one.line)
        return imports

    def _bind(self, nesting: Nesting, bindings: list[Binding]) -> None:
        for node in self._found.get("assign", ()):
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            scope = nesting.enclosing(node.start_byte)
            annotation = self._annotation(node.child_by_field_name("type"))
            if annotation:
                self._add(bindings, scope, left, annotation)
            elif right is not None:
                self._assign(bindings, scope, left, right)
        for node in self._found.get("walrus", ()):
            scope = nesting.enclosing(node.start_byte)
            self._add(
                bindings, scope, node.child_by_field_name("name"), self.expression(node.child_by_field_name("value"))
            )
        for node in self._found.get("as", ()):
            target = node.child_by_field_name("alias")
            value = node.named_child(0)
            if target is None or value is None or not target.named_children:
                continue
            name = target.named_children[0]
            scope = nesting.enclosing(node.start_byte)
            above = node.parent
            if above is not None and above.type == "except_clause":
                parts = value.named_children if value.type == "tuple" else [value]
                self._add(bindings, scope, name, "|".join(f"@{self.expression(part)}" for part in parts[:4]))
            elif above is not None and above.type == "with_item":
                self._add(bindings, scope, name, _then(self.expression(value), f".{_enters(above)}()"))
        for node in self._found.get("for", ()):
            scope = nesting.enclosing(node.start_byte)
            iterated = self.expression(node.child_by_field_name("right"))
            self._add(bindings, scope, node.child_by_field_name("left"), _then(iterated, "*"))

    def _assign(self, bindings: list[Binding], scope: int, left: Node | None, right: Node) -> None:
        if left is None:
            return
        if right.type == "assignment":  # a = b = value
            last = right
            while last.type == "assignment" and (value := last.child_by_field_name("right")) is not None:
                last = value
            right = last
        several = left.type in ("pattern_list", "tuple_pattern") and right.type in ("expression_list", "tuple")
        if several and left.named_child_count == right.named_child_count:
            for target, value in zip(left.named_children, right.named_children, strict=True):
                self._add(bindings, scope, target, self.expression(value))
            return
        self._add(bindings, scope, left, self.expression(right))

    def _add(self, bindings: list[Binding], scope: int, target: Node | None, value: str) -> None:
        if target is None:
            return
        if target.type in ("pattern_list", "tuple_pattern", "list_pattern"):
            for part in target.named_children:
                self._add(bindings, scope, part, "?")
            return
        if target.type == "identifier":
            bindings.append(Binding(scope, self._text(target), value))
        elif target.type == "attribute":
            name = self._text(target)
            if name.count(".") == 1 and _CHAIN.match(name) and "?" not in value:
                bindings.append(Binding(scope, name, value))

    def _parameters(self, parameters: Node | None, scope: int, bindings: list[Binding]) -> None:
        for parameter in () if parameters is None else parameters.named_children:
            name = parameter.child_by_field_name("name") or parameter
            annotation = parameter.child_by_field_name("type")
            if name.type in ("typed_parameter", "list_splat_pattern", "dictionary_splat_pattern"):
                inner = name.named_child(0)
                if inner is None:
                    continue
                splat = inner if inner.type.endswith("splat_pattern") else name
                if splat.type.endswith("splat_pattern"):
                    annotation, inner = None, splat.named_child(0)
                    if inner is None:
                        continue
                name = inner
            if name.type == "identifier":
                value = self._annotation(annotation) or self.expression(parameter.child_by_field_name("value"))
                bindings.append(Binding(scope, self._text(name), value))

    def _result(self, nesting: Nesting, symbols: list[Symbol]) -> None:
        """What functions without an annotation give, by what they return."""
        yields = {nesting.enclosing(node.start_byte) for node in self._found.get("yield", ())}
        given: dict[int, list[str]] = {}
        for node in self._found.get("return", ()):
            scope = nesting.enclosing(node.start_byte)
            if scope != MODULE and not symbols[scope].returns and scope not in yields:
                given.setdefault(scope, []).append(self.expression(node))
        for scope, values in given.items():
            known = [value for value in dict.fromkeys(values) if "?" not in value][:_RETURNS_MOST]
            if known:
                symbols[scope] = symbols[scope]._replace(returns="|".join(known))

    def _annotation(self, node: Node | None) -> str:
        """An annotation as an expression for a value of that type."""
        if node is None:
            return ""
        text = re.sub(r"\s+", "", self._text(node)).strip("\"'")
        return annotation_expression(text)

    def expression(self, node: Node | None, depth: int = 0) -> str:
        """What resolving needs to know of an expression."""
        if node is None or depth > _DEEPEST:
            return "?"
        kind = node.type
        if kind == "identifier":
            return self._text(node)
        if kind == "attribute":
            text = self._text(node)
            if _CHAIN.match(text):
                return text
            name = self._text(node.child_by_field_name("attribute"))
            return _then(self.expression(node.child_by_field_name("object"), depth + 1), f".{name}")
        if kind == "call":
            function = node.child_by_field_name("function")
            arguments = node.child_by_field_name("arguments")
            given = self.expression(function, depth + 1)
            if given in ("cast", "typing.cast", "t.cast") and arguments is not None and arguments.named_child_count:
                return self._annotation(arguments.named_child(0)) or "?"
            if given in ("partial", "functools.partial") and arguments is not None and arguments.named_child_count:
                return self.expression(arguments.named_child(0), depth + 1)
            return _then(given, "()")
        if kind == "subscript":
            return _then(self.expression(node.child_by_field_name("value"), depth + 1), "[]")
        if kind in ("await", "parenthesized_expression", "type", "list_splat"):
            return self.expression(node.named_child(0), depth + 1)
        if kind == "named_expression":
            return self.expression(node.child_by_field_name("value"), depth + 1)
        if kind == "boolean_operator":
            return self._either([node.child_by_field_name("left"), node.child_by_field_name("right")], depth)
        if kind == "conditional_expression":
            parts = node.named_children
            return self._either([parts[0], parts[-1]] if len(parts) == 3 else [], depth)
        if kind in ("list", "tuple", "set", "expression_list"):
            return self._either(node.named_children[:_HELD], depth, "{}")
        if kind == "dictionary":
            return self._either([one.child_by_field_name("value") for one in node.named_children[:_HELD]], depth, "{:}")
        return "?"

    def _either(self, nodes: Sequence[Node | None], depth: int, held: str = "") -> str:
        """What any of `nodes` is, each with `held` behind it."""
        parts: dict[str, None] = {}
        for node in nodes:
            for part in self.expression(node, depth + 1).split("|"):
                if "?" not in part:
                    parts[part + held] = None
        return "|".join(list(parts)[: _HELD if held else _ALTERNATIVES]) or "?"


def _then(expression: str, step: str) -> str:
    """The expression with one more step, for each of its alternatives."""
    return "|".join(part + step for part in expression.split("|"))


def _enters(item: Node) -> str:
    """What a ``with`` calls as it begins."""
    clause = item.parent
    statement = clause.parent if clause is not None and clause.type == "with_clause" else clause
    first = statement.children[0] if statement is not None and statement.children else None
    return "__aenter__" if first is not None and first.type == "async" else "__enter__"


_WRAPPED = re.compile(r"(?:\w+\.)*(?:Optional|Annotated|Final|ClassVar|Required|NotRequired|Awaitable)\[(.*)\]\Z")
_UNION = re.compile(r"(?:\w+\.)*Union\[(.*)\]\Z")
_TYPE = re.compile(r"(?:\w+\.)*[Tt]ype\[(.*)\]\Z")


def annotation_expression(text: str, depth: int = 0) -> str:
    """The annotation `text`, without spaces, as an expression for a value of that type; "" is not known."""
    if not text or depth > 5:
        return ""
    parts = outer_parts(text, "|")
    if len(parts) == 1:
        text = parts[0].strip("\"'")
        if match := _WRAPPED.match(text):
            first = outer_parts(match[1], ",")
            return annotation_expression(first[0] if first else "", depth + 1)
        if match := _UNION.match(text):
            parts = outer_parts(match[1], ",")
        elif match := _TYPE.match(text):
            return match[1] if _CHAIN.match(match[1]) else ""
        else:
            if text == "None" or not re.match(r"[^\W\d][\w.]*(\[.*\])?\Z", text):
                return ""
            return f"@{text}".replace("|", "/")
    found = [one for part in parts if (one := annotation_expression(part, depth + 1))]
    return "|".join(dict.fromkeys(found))


def outer_parts(text: str, separator: str) -> list[str]:
    """`text` at the separators outside of brackets."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        if letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif letter == separator and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part for part in parts if part]
