"""The facts of files in all languages but Python, as their queries tell them.

Rules.  A symbol is what a language declares under a name and a query names so; the text before the
arguments names a call.  Which type a value has is never worked out: so a receiver is kept as it is written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolrt.plugins.code._facts import MODULE, Call, Facts, Import, Symbol
from toolrt.plugins.code._nesting import Nesting, last_line, one_line, text_of
from toolrt.plugins.code._parsing import matches, parsed

if TYPE_CHECKING:
    from tree_sitter import Node

    from toolrt.plugins.code._languages import Grammar, Language

#: How long a receiver may be that is kept.
_RECEIVER_LONGEST = 120

#: What a declarator of C or C++ leads to.
_NAMES = ("identifier", "field_identifier", "type_identifier", "destructor_name", "operator_name", "operator_cast")

#: Where a call is a node that has its receiver apart (Java, Ruby): the field of the receiver.
_RECEIVERS = {"method_invocation": "object", "call": "receiver"}

#: What brings another file in Ruby.
_REQUIRES = ("require", "require_relative", "load", "autoload")

_WORD = re.compile(r"[^\W\d][\w$]*[?!=]?")

_AROUND = ("export_statement", "template_declaration", "type_declaration")

#: Functions directly in one of these are methods.
_HOLDERS = frozenset(
    ("class", "interface", "struct", "trait", "enum", "union", "record", "annotation", "impl", "scope")
)


def declared_facts(language: Language, grammar: Grammar, content: bytes, lines: int) -> Facts:
    """What is known of the file with this content."""
    tree = parsed(grammar, content)
    if tree is None:
        return Facts(language.name, lines, note="too large or too deep to be parsed")
    return _DeclarationReader(language.name, content).facts(matches(grammar, tree), lines)


class _DeclarationReader:
    def __init__(self, language: str, content: bytes) -> None:
        self._language = language
        self._content = content

    def _text(self, node: Node | None) -> str:
        return "" if node is None else text_of(self._content, node)

    def facts(self, found: list[dict[str, list[Node]]], lines: int) -> Facts:
        declared: dict[tuple[int, int, str], dict[str, list[Node]]] = {}
        bases: dict[int, list[str]] = {}
        called: dict[tuple[int, int], Node] = {}
        sources: dict[int, Node] = {}
        for match in found:
            for capture, nodes in match.items():
                node = nodes[0]
                if capture.startswith("def.") or capture == "scope":
                    declared.setdefault((node.start_byte, -node.end_byte, capture), match)
                elif capture == "based":
                    bases.setdefault(node.start_byte, []).extend(self._bases(match.get("base", [])))
                elif capture == "call":
                    called[node.start_byte, node.end_byte] = node
                elif capture == "import":
                    sources[node.start_byte] = node
        symbols: list[Symbol] = []
        nesting = Nesting()
        for (_, _, capture), match in sorted(declared.items(), key=lambda item: item[0]):
            self._declare(capture, match, nesting, symbols, bases)
        nesting.seal()
        imports: list[Import] = []
        for start in sorted(sources):
            imports += self._import(sources[start])
        calls = self._calls(called, nesting, imports)
        return Facts(self._language, lines, tuple(symbols), tuple(calls), tuple(imports))

    def _declare(
        self,
        capture: str,
        match: dict[str, list[Node]],
        nesting: Nesting,
        symbols: list[Symbol],
        bases: dict[int, list[str]],
    ) -> None:
        node = match[capture][0]
        body = match["body"][0] if "body" in match else node.child_by_field_name("body")
        kind = capture.removeprefix("def.")
        named = match["name"][0] if "name" in match else self._declarator(node)
        if named is None:
            return
        name = self._text(named)
        parent = nesting.current(node.start_byte)
        above = "" if parent == MODULE else symbols[parent].qualified
        if "receiver" in match:  # Go: func (s *Server) Run()
            words = _WORD.findall(re.sub(r"\[.*?\]", "", self._text(match["receiver"][0])))
            above = words[-1] if words else ""
        if named.type in ("qualified_identifier", "scope_resolution"):
            *outer, name = [part for part in re.split(r"::", re.sub(r"<[^<>]*>", "", name)) if part] or [name]
            above = ".".join([above, *outer] if above else outer)
        if capture == "scope":
            words = _WORD.findall(re.sub(r"<.*", "", name, flags=re.DOTALL))
            name, kind = (words[-1] if words else name), "impl"
        name = " ".join(name.split()).strip("\"'")
        if not name or len(name) > _RECEIVER_LONGEST:
            return
        if kind == "function" and parent != MODULE and symbols[parent].kind in _HOLDERS:
            kind = "method"
        if kind == "function" and self._language in ("c", "cpp") and named.type == "qualified_identifier":
            kind = "method"
        if kind == "prototype" and parent != MODULE and symbols[parent].kind in ("class", "struct"):
            kind = "method"
        if kind == "method" and self._language == "ruby" and parent == MODULE:
            kind = "function"
        if symbols and parent == symbols[-1].ordinal and symbols[-1].start == node.start_byte:
            return  # the same declaration, by another pattern
        ordinal = len(symbols)
        inside = body if body is not None and body.end_byte > body.start_byte else None
        upto = node.end_byte if inside is None else inside.start_byte
        if inside is not None and inside.type == "interface_type":
            upto += len("interface")
        if self._language == "ruby":
            upto = self._ruby_header(node)
        qualified = f"{above}.{name}" if above else name
        if kind == "impl":
            qualified = name
        # ``export``, ``template <...>`` and Go's ``type`` belong to what they stand before.
        outside = node.parent
        around = outside is not None and outside.type in _AROUND and outside.named_child_count <= 2
        start = outside if around and outside is not None else node
        header = self._content[start.start_byte : upto]
        symbols.append(
            Symbol(
                ordinal,
                name,
                qualified,
                kind,
                parent,
                start.start_point.row + 1,
                last_line(node),
                start.start_byte,
                node.end_byte,
                one_line(header),
                named.start_point.row + 1,
                tuple(dict.fromkeys(bases.get(node.start_byte, ()))),
            )
        )
        if inside is not None:
            nesting.add(inside.start_byte, inside.end_byte, ordinal)
        elif self._language == "ruby" and node.end_byte > upto:
            nesting.add(upto, node.end_byte, ordinal)

    def _declarator(self, node: Node) -> Node | None:
        """The name that a declaration of C or C++ declares."""
        here: Node | None = node
        for _ in range(20):
            if here is None or here.type in _NAMES or here.type == "qualified_identifier":
                return here
            below = here.child_by_field_name("declarator")
            if below is None:
                below = next(
                    (child for child in here.named_children if child.type in _NAMES or "declarator" in child.type), None
                )
            here = below
        return None

    def _ruby_header(self, node: Node) -> int:
        for field in ("parameters", "superclass", "name"):
            part = node.child_by_field_name(field)
            if part is not None:
                return part.end_byte
        return node.start_byte

    def _bases(self, nodes: list[Node]) -> list[str]:
        found: list[str] = []
        for node in nodes:
            text = re.sub(r"<[^<>]*>", "", self._text(node))
            text = text.replace("::", ".")
            text = re.sub(
                r"\b(extends|implements|public|private|protected|virtual|class|where)\b|[:+*&<(){}]", " ", text
            )
            for part in re.split(r"[,\s]+", text):
                words = re.findall(r"[^\W\d][\w$.]*", part)
                found += [word.strip(".") for word in words]
        return found

    def _calls(self, called: dict[tuple[int, int], Node], nesting: Nesting, imports: list[Import]) -> list[Call]:
        """The calls, in order; those of Ruby that bring another file are added to `imports`."""
        calls = []
        for node in sorted(called.values(), key=lambda node: node.start_byte):
            last = self._last(node)
            if last is None or last.type in _RECEIVERS:
                continue
            name, scope = self._text(last), nesting.enclosing(node.start_byte)
            written = self._text(node)
            if node.type in _RECEIVERS:
                receiver = self._text(node.child_by_field_name(_RECEIVERS[node.type]))
                written = f"{receiver}.{name}" if receiver else name
            given = node.child_by_field_name("arguments")
            if self._language == "ruby" and written == name and name in _REQUIRES and given is not None:
                if text := re.search(r"[\"']([^\"']+)[\"']", self._text(given)):
                    relative, line = int(name == "require_relative"), node.start_point.row + 1
                    imports.append(Import(scope, "", text[1], "", relative, line))
                continue
            row, column = last.start_point
            calls.append(Call(scope, _written(written, name), name, row + 1, column))
        calls.sort(key=lambda call: (call.line, call.column))
        return calls

    def _last(self, node: Node) -> Node | None:
        """The last name of what is called."""
        here: Node | None = node
        for _ in range(20):
            if here is None:
                return None
            for field in ("name", "field", "property", "method"):
                below = here.child_by_field_name(field)
                if below is not None:
                    break
            else:
                if here.type in ("generic_type", "template_type", "scoped_type_identifier", "parenthesized_expression"):
                    below = (
                        here.named_child(0)
                        if here.type != "scoped_type_identifier"
                        else here.named_child(here.named_child_count - 1)
                    )
                else:
                    return here
            here = below
        return None

    # Imports

    def _import(self, node: Node) -> list[Import]:
        text, line = self._text(node)[:4000], node.start_point.row + 1
        if self._language in ("javascript", "typescript", "tsx"):
            return _script_imports(text, line)
        if self._language == "go":
            quoted = re.search(r"[\"`]([^\"`]+)[\"`]", text)
            if not quoted:
                return []
            own = text[: quoted.start()].strip()
            return [Import(MODULE, own or quoted[1].rpartition("/")[2], quoted[1], "", 0, line)]
        if self._language == "rust":
            if node.type == "mod_item":
                name = self._text(node.child_by_field_name("name"))
                return [Import(MODULE, name, f"self::{name}", "", 0, line)]
            return _rust_imports(text, line)
        if self._language == "java":
            words = text.removeprefix("import").rstrip("; \n").split()
            if not words:
                return []
            path = words[-1]
            module, _, name = path.rpartition(".")
            return [Import(MODULE, name, module, name, 0, line)]
        included = re.search(r"([\"<])([^\">]+)[\">]", text)
        return [Import(MODULE, "*", included[2], "*", int(included[1] == '"'), line)] if included else []


def _written(text: str, name: str) -> str:
    """A callee as it is written, with the arguments of calls in it left out."""
    text = "".join(text.split())
    if len(text) > _RECEIVER_LONGEST or not re.fullmatch(r"[\w$.:?!@=>&*-]+", text):
        plain = re.sub(r"(?:::)?<[^<>]*>", "", re.sub(r"\([^()]*\)", "()", text))
        if len(plain) > _RECEIVER_LONGEST or not re.fullmatch(r"[\w$.:?!()\[\]@=>&*-]+", plain):
            return f"?.{name}" if text != name else name
        text = plain
    return text.replace("::", ".").replace("->", ".").replace("?.", ".")


def _script_imports(text: str, line: int) -> list[Import]:
    quoted = re.search(r"(?:from|import|require\s*\()\s*[\"']([^\"']+)[\"']", text)
    if not quoted:
        return []
    module, imports = quoted[1], []
    head = text[: quoted.start()]
    if text.startswith("export") and "{" not in head:
        return [Import(MODULE, "*", module, "*", 0, line)]
    named = re.search(r"\{([^}]*)\}", head)
    for part in named[1].split(",") if named else ():
        words = re.split(r"\s+as\s+|\s*:\s*", part.strip().removeprefix("type ").strip())
        if words[0]:
            imports.append(Import(MODULE, words[-1], module, words[0], 0, line))
    rest = re.sub(r"\{[^}]*\}", "", head)
    if star := re.search(r"\*\s+as\s+([\w$]+)", rest):
        imports.append(Import(MODULE, star[1], module, "", 0, line))
    words = [word for word in re.findall(r"[\w$]+", re.sub(r"\*\s+as\s+[\w$]+", "", rest)) if word not in _KEYWORDS]
    if words:
        imports.append(Import(MODULE, words[0], module, "" if "require" in text else "default", 0, line))
    return imports or [Import(MODULE, "", module, "", 0, line)]


_KEYWORDS = frozenset(("import", "export", "type", "from", "const", "let", "var", "typeof", "await"))


def _rust_imports(text: str, line: int) -> list[Import]:
    body = re.sub(r"\s+", " ", text)
    body = re.sub(r"^(pub(\([^)]*\))? )?use ", "", body).rstrip("; ")
    imports = []
    for path in _rust_paths(body, 0):
        path, _, own = path.partition(" as ")
        module, _, name = path.strip().rpartition("::")
        if name == "self":
            module, _, name = module.rpartition("::")
        imports.append(Import(MODULE, own.strip() or name, module, name, 0, line))
    return imports


def _rust_paths(text: str, depth: int) -> list[str]:
    start = text.find("{")
    if start < 0 or depth > 8:
        return [part.strip() for part in text.split(",") if part.strip()] if start < 0 else []
    prefix, inner, level, begin, found = text[:start], text[start + 1 : text.rfind("}")], 0, 0, []
    before, _, prefix = prefix.rpartition(",")
    if before:
        found += _rust_paths(before, depth + 1)
    for place, letter in enumerate(inner + ","):
        if letter == "{":
            level += 1
        elif letter == "}":
            level -= 1
        elif letter == "," and level == 0:
            found += [prefix.strip() + one for one in _rust_paths(inner[begin:place], depth + 1)]
            begin = place + 1
    return found
