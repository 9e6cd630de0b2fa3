"""Rewrites a syntax tree so that its functions report what they touch.

Rules.  Only bodies of functions are rewritten.  Each new node has the place of the one it stands for, so tracebacks,
debuggers and coverage keep their lines.  What is called is a placeholder, which `fill` replaces in the compiled code;
no namespace changes.  Where a checkpoint may lie within an expression, the report is made when the operation is.

Limits.  What looks at its caller's frame (``super``, ``locals``) is left as it is.  A class that is made within a
function, and what reads a whole namespace, may have done anything.
"""

# The methods have the names that `ast` gives its nodes.
# ruff: noqa: N815

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

from toolrt.sim.programs.tracking import _calls, _items, _touch, _uses
from toolrt.sim.programs.tracking._scopes import Scope, scopes_of
from toolrt.sim.programs.tracking._syntax import OPERATORS, is_plain, may_wait, names_in, says_why

_MARK = "\0toolrt:"
_TOUCHES = "born load load_cell load_global made new_cells store store_cell store_global use wild"
_HELPERS: dict[str, Any] = {
    **{name: getattr(_touch, name) for name in _TOUCHES.split()},
    "item": _items.item,
    "load_item": _items.load_item,
    "storing": _items.storing,
    **{name: made for name, made in vars(_uses).items() if getattr(made, "__module__", "") == _uses.__name__},
    "call": _calls.call,
    "method": _calls.method,
    "slice": slice,
}

# What is visited outside of functions, too: what has their code, and an annotation, which is left alone.
_EVERYWHERE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.AnnAssign)

_PLAIN_CALLS = frozenset(("super", "locals", "globals", "vars", "dir", "eval", "exec", "breakpoint"))


def rewritten(tree: ast.Module, module: str) -> set[str]:
    """Rewrite `tree` in place; give the names that `global` statements name.

    Args:
        tree: a module.
        module: its name, which the names of its globals begin with.
    """
    scopes, declared = scopes_of(tree)
    _Rewriter(scopes, declared, module).visit(tree)
    for node in ast.walk(tree):
        # pytest's nodes do not say where they end.
        line = getattr(node, "lineno", None)
        if line is not None and getattr(node, "end_lineno", None) is None:
            node.end_lineno, node.end_col_offset = line, getattr(node, "col_offset", 0)  # type: ignore[attr-defined]
    ast.fix_missing_locations(tree)
    return declared


def fill(code: CodeType) -> CodeType:
    """Give `code` with what its placeholders stand for."""
    return code.replace(co_consts=tuple(map(_filled, code.co_consts)))


def _filled(constant: Any) -> Any:
    if isinstance(constant, CodeType):
        return fill(constant)
    if isinstance(constant, str) and constant.startswith(_MARK):
        return _HELPERS[constant.removeprefix(_MARK)]
    return constant


class _Rewriter(ast.NodeTransformer):
    def __init__(self, scopes: dict[ast.AST, Scope], declared: set[str], module: str) -> None:
        self._scopes = scopes
        self._declared = declared
        self._module = module
        self._scope: Scope = Scope("module", None, (0, 0))
        # Whether a function's code is being rewritten, and the class it is in.
        self._inside = False
        self._class: str | None = None
        self._temporaries = 0

    # ------------------------------------------------------------------ building

    def _do(self, helper: str, *arguments: Any, at: Any) -> ast.Call:
        nodes: list[Any] = [
            argument if isinstance(argument, ast.AST) else ast.Constant(argument) for argument in arguments
        ]
        made = ast.Call(ast.Constant(_MARK + helper), nodes, [])
        return ast.copy_location(made, at)

    def _say(self, helper: str, *arguments: Any, at: Any) -> ast.Expr:
        return ast.copy_location(ast.Expr(self._do(helper, *arguments, at=at)), at)

    def _use(self, node: Any, what: str) -> Any:
        return node if is_plain(node) else self._do("use", node, what, at=node)

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"_toolrt_{self._temporaries}"

    def _mangled(self, name: str) -> str:
        if self._class is None or not name.startswith("__") or name.endswith("__"):
            return name
        owner = self._class.lstrip("_")
        return f"_{owner}{name}" if owner else name

    def visit(self, node: ast.AST) -> Any:
        """Rewrite a node; outside of functions only functions are."""
        return super().visit(node) if self._inside or isinstance(node, _EVERYWHERE) else self.generic_visit(node)

    def _visit_all(self, nodes: list[Any]) -> list[Any]:
        done: list[Any] = []
        for node in nodes:
            after = self.visit(node)
            done += after if isinstance(after, list) else [after]
        return done

    # ------------------------------------------------------------------ variables

    def _of_name(self, name: str) -> str:
        """Say how a variable is reported: "cell", "global" or not."""
        owner = self._scope.owner(name)
        if owner is not None:
            return "cell" if name in owner.shared else ""
        return "global" if name in self._declared and not self._is_local(name) else ""

    def _is_local(self, name: str) -> bool:
        scope: Scope | None = self._scope
        return scope is not None and scope.owner(name) is not None

    def _cell(self, name: str, at: Any) -> ast.Lambda:
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.copy_location(ast.Lambda(nothing, ast.copy_location(ast.Name(name, ast.Load()), at)), at)

    def _global(self, name: str) -> ast.Tuple:
        return ast.Tuple([ast.Constant(self._module), ast.Constant(name)], ast.Load())

    def _bound(self, names: list[str], at: Any) -> list[ast.stmt]:
        """Give statements that report that `names` were bound."""
        said: list[ast.stmt] = []
        for name in names:
            how = self._of_name(name)
            if how == "cell":
                said.append(self._say("store_cell", self._cell(name, at), at=at))
            elif how == "global":
                said.append(self._say("store_global", self._global(name), at=at))
        return said

    def visit_Name(self, node: ast.Name) -> Any:
        if not isinstance(node.ctx, ast.Load):
            return node
        how = self._of_name(node.id)
        if how == "cell":
            return self._do("load_cell", self._cell(node.id, node), node, at=node)
        if how == "global":
            return self._do("load_global", self._global(node.id), node, at=node)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        node.value = self.visit(node.value)
        name = node.target.id
        how = self._of_name(name)
        if how == "cell":
            return self._do("store_cell", self._cell(name, node), node, at=node)
        if how == "global":
            return self._do("store_global", self._global(name), node, at=node)
        return node

    # ------------------------------------------------------------------ scopes

    def _visit_function(self, node: Any) -> Any:
        is_lambda = isinstance(node, ast.Lambda)
        inside = self._inside
        if inside and not is_lambda:
            node.decorator_list = [self._do("call", self.visit(each), at=each) for each in node.decorator_list]
        if inside:
            arguments = node.args
            arguments.defaults = [self.visit(each) for each in arguments.defaults]
            arguments.kw_defaults = [each and self.visit(each) for each in arguments.kw_defaults]
        before = self._scope, self._class
        in_class = self._scope.kind == "class"
        scope = self._scope = self._scopes[node]
        self._inside = True
        if is_lambda:
            node.body = self.visit(node.body)
        else:
            node.body = self._body_of(node, scope, in_class)
        self._scope, self._class = before
        self._inside = inside
        if is_lambda:
            return node
        return [node, *self._bound([node.name], node)] if inside else node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _visit_function

    def _body_of(self, node: Any, scope: Scope, in_class: bool) -> list[ast.stmt]:
        body = node.body
        head: list[Any] = []
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            head, body = [first], body[1:]
        at = body[0] if body else first
        if scope.shared:
            names = [ast.copy_location(ast.Name(name, ast.Load()), at) for name in sorted(scope.shared)]
            cells = self._cell("_", at)
            cells.body = ast.copy_location(ast.Tuple(names, ast.Load()), at)  # type: ignore[arg-type]
            head.append(self._say("new_cells", cells, at=at))
        arguments = [*node.args.posonlyargs, *node.args.args]
        if in_class and node.name == "__init__" and arguments:
            own = ast.copy_location(ast.Name(arguments[0].arg, ast.Load()), at)
            head.append(self._say("begins", own, at=at))
        for extra in (node.args.vararg, node.args.kwarg):
            if extra is not None and extra is node.args.kwarg:
                head.append(self._say("made", ast.copy_location(ast.Name(extra.arg, ast.Load()), at), at=at))
        return [*head, *self._visit_all(body)]

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        inside, before = self._inside, (self._scope, self._class)
        self._scope, self._class, self._inside = self._scopes[node], node.name, False
        node.body = self._visit_all(node.body)
        (self._scope, self._class), self._inside = before, inside
        return [self._say("wild", at=node), node, *self._bound([node.name], node)] if inside else node

    def _visit_comprehension(self, node: Any) -> Any:
        waits = may_wait(node) or isinstance(node, ast.GeneratorExp)
        node.generators[0].iter = self._iterated(node.generators[0], waits)
        before = self._scope
        self._scope = self._scopes[node]
        for place, generator in enumerate(node.generators):
            if place:
                generator.iter = self._iterated(generator, waits)
            generator.target = self.visit(generator.target)
            generator.ifs = [self._use(self.visit(each), "bool") for each in generator.ifs]
        if isinstance(node, ast.DictComp):
            node.key, node.value = self._use(self.visit(node.key), "hash"), self.visit(node.value)
        else:
            node.elt = self.visit(node.elt)
        self._scope = before
        return self._do("made", node, at=node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    def _iterated(self, loop: Any, waits: bool) -> Any:
        """Give what a loop goes through."""
        source = self.visit(loop.iter)
        at = loop.iter
        if getattr(loop, "is_async", False) or isinstance(loop, ast.AsyncFor):
            return self._do("iterates_async", source, at=at)
        source = self._do("slowly", source, at=at) if waits else self._use(source, "iter")
        return self._do("unpacks", source, at=at) if isinstance(loop.target, ast.Tuple | ast.List) else source

    # ------------------------------------------------------------------ loads

    def _root(self, node: Any) -> str:
        """Give the global that a chain of attributes begins with; "" for anything else."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if isinstance(node, ast.Name) and self._scope.owner(node.id) is None:
            return node.id
        return ""

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.ctx, ast.Load) and self._root(node) == "trio":
            return node
        value = self.visit(node.value)
        helper = "load" if isinstance(node.ctx, ast.Load) else "store"
        node.value = self._do(helper, value, self._mangled(node.attr), at=node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        value = self.visit(node.value)
        if not isinstance(node.ctx, ast.Load):
            node.value = self._do("storing", value, at=node.value)
            node.slice = self.visit(node.slice)
            return node
        key = node.slice
        if isinstance(key, ast.Slice):
            return self._do("born", self._do("item", value, self._slice(key), at=node), at=node)
        again = ast.Constant(key.value) if isinstance(key, ast.Constant) else None
        if isinstance(key, ast.Name) and self._of_name(key.id) == "":
            again = ast.Name(key.id, ast.Load())  # type: ignore[assignment]
        key = self.visit(key)
        if again is None:
            return self._do("item", value, key, at=node)
        node.value = self._do("load_item", value, ast.copy_location(again, node.slice), at=node.value)
        node.slice = key
        return node

    def _slice(self, node: ast.Slice) -> ast.Call:
        parts = [
            ast.Constant(None) if each is None else self.visit(each) for each in (node.lower, node.upper, node.step)
        ]
        return self._do("slice", *parts, at=node)

    def visit_Call(self, node: ast.Call) -> Any:
        function = node.func
        root = self._root(function)
        if root.startswith("@"):
            # What pytest puts into a test.
            return node
        plain = isinstance(function, ast.Name) and function.id in _PLAIN_CALLS
        is_harmless = root == "trio" and not isinstance(function, ast.Name)
        is_harmless = is_harmless and all(isinstance(each, ast.Constant) for each in node.args) and not node.keywords
        if not (plain or is_harmless):
            if isinstance(function, ast.Attribute) and root != "trio":
                thing = self.visit(function.value)
                node.func = self._do("method", thing, self._mangled(function.attr), at=function)
            else:
                node.func = self._do("call", self.visit(function), at=function)
        node.args = [self.visit(each) for each in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
            if keyword.arg is None:
                keyword.value = self._use(keyword.value, "iter")
        return self._do("late", node, at=node) if plain and function.id != "super" else node  # type: ignore[attr-defined]

    def visit_Starred(self, node: ast.Starred) -> Any:
        node.value = self.visit(node.value)
        if isinstance(node.ctx, ast.Load):
            node.value = self._use(node.value, "iter")
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        waits = may_wait(node.right)
        left, right = self.visit(node.left), self.visit(node.right)
        if waits:
            return self._do("binary", OPERATORS[type(node.op)], left, right, at=node)
        what = "str" if isinstance(node.op, ast.Mod) else "arith"
        node.left, node.right = self._use(left, "arith"), self._use(right, what)
        number = any(isinstance(each, ast.Constant) and isinstance(each.value, int | float) for each in (left, right))
        if number and not isinstance(node.op, ast.Mult):
            return node
        return self._do("result", node, at=node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        what = "bool" if isinstance(node.op, ast.Not) else "arith"
        node.operand = self._use(self.visit(node.operand), what)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        *tested, last = (self.visit(each) for each in node.values)
        node.values = [*(self._use(each, "bool") for each in tested), last]
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        waits = may_wait(node.comparators)
        first = node.left
        before: Any = self.visit(first)
        after = [self.visit(each) for each in node.comparators]
        operands = [before, *after]
        if len(after) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn) and not waits:
            simple = isinstance(first, ast.Constant) or (isinstance(first, ast.Name) and not self._of_name(first.id))
            if simple:
                again: Any = ast.Constant(first.value) if isinstance(first, ast.Constant) else None
                again = again or ast.Name(first.id, ast.Load())  # type: ignore[attr-defined]
                node.comparators = [self._do("within", after[0], ast.copy_location(again, first), at=after[0])]
                node.left = self._use(before, "eq")
                return node
        for place, operator in enumerate(node.ops):
            if isinstance(operator, ast.Is | ast.IsNot):
                continue
            for which in (place, place + 1):
                if isinstance(operator, ast.In | ast.NotIn):
                    what = "contains" if which > place else "eq"
                else:
                    what = "eq" if isinstance(operator, ast.Eq | ast.NotEq) else "order"
                operands[which] = self._use(operands[which], what)
        if waits:
            operands[1:] = [self._do("late", each, at=each) for each in operands[1:]]
        node.left, node.comparators = operands[0], operands[1:]
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        self.generic_visit(node)
        node.value = self._use(node.value, "str")
        return node

    def _visit_display(self, node: Any) -> Any:
        self.generic_visit(node)
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return node
        if isinstance(node, ast.Set):
            node.elts = [each if isinstance(each, ast.Starred) else self._use(each, "hash") for each in node.elts]
        if isinstance(node, ast.Dict):
            for place, key in enumerate(node.keys):
                if key is None:
                    node.values[place] = self._use(node.values[place], "iter")
                else:
                    node.keys[place] = self._use(key, "hash")
        return self._do("made", node, at=node)

    visit_List = visit_Set = visit_Dict = _visit_display

    def visit_Await(self, node: ast.Await) -> Any:
        trios = isinstance(node.value, ast.Call) and self._root(node.value.func) == "trio"
        node.value = self.visit(node.value)
        if not trios:
            node.value = self._do("awaits", node.value, at=node.value)
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> Any:
        node.value = self._do("delegates", self.visit(node.value), at=node.value)
        return node

    # ------------------------------------------------------------------ statements

    def visit_Assign(self, node: ast.Assign) -> Any:
        is_display = isinstance(node.value, ast.Tuple)
        node.value = self.visit(node.value)
        node.targets = [self.visit(each) for each in node.targets]
        if not is_display and any(isinstance(each, ast.Tuple | ast.List) for each in node.targets):
            node.value = self._use(node.value, "unpack")
        names = [name for target in node.targets for name in names_in(target)]
        return [node, *self._starred(node.targets, node), *self._bound(names, node)]

    def _starred(self, targets: list[Any], at: Any) -> list[ast.stmt]:
        """Name the lists that starred targets make."""
        return [
            self._say("made", ast.copy_location(ast.Name(each.value.id, ast.Load()), at), at=at)
            for target in targets
            for each in ast.walk(target)
            if isinstance(each, ast.Starred) and isinstance(each.value, ast.Name)
        ]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return node
        node.value = self.visit(node.value)
        node.target = self.visit(node.target)
        return [node, *self._bound(names_in(node.target), node)] if self._inside else node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        if isinstance(target, ast.Name):
            before = self.visit(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            node.value = self._do("augmented", before, self.visit(node.value), at=node.value)
            return [node, *self._bound([target.id], node)]
        # In three statements: a checkpoint may lie between the load and the store.
        owner, held = self._temporary(), self._temporary()

        def name(of: str, store: bool = False) -> ast.Name:
            return ast.copy_location(ast.Name(of, ast.Store() if store else ast.Load()), target)

        def let(of: str, value: Any) -> ast.Assign:
            return ast.copy_location(ast.Assign([name(of, True)], value), node)

        first = let(owner, self.visit(target.value))
        parts: list[ast.stmt] = [first]
        store: ast.expr
        if isinstance(target, ast.Attribute):
            attribute = self._mangled(target.attr)
            load: Any = ast.Attribute(self._do("load", name(owner), attribute, at=target), target.attr, ast.Load())
            store = ast.Attribute(self._do("store", name(owner), attribute, at=target), target.attr, ast.Store())
        else:
            key = self._temporary()
            sliced = isinstance(target.slice, ast.Slice)
            parts.append(let(key, self._slice(target.slice) if sliced else self.visit(target.slice)))  # type: ignore[arg-type]
            load = self._do("item", name(owner), name(key), at=target)
            if sliced:
                load = self._do("born", load, at=target)
            store = ast.Subscript(self._do("storing", name(owner), at=target), name(key), ast.Store())
        parts.append(let(held, ast.copy_location(load, target)))
        value = self._do("augmented", name(held), self.visit(node.value), at=node.value)
        parts.append(ast.copy_location(ast.AugAssign(name(held, True), node.op, value), node))
        parts.append(ast.copy_location(ast.Assign([ast.copy_location(store, target)], name(held)), node))
        return parts

    def visit_Delete(self, node: ast.Delete) -> Any:
        node.targets = [self.visit(each) for each in node.targets]
        names = [name for target in node.targets for name in names_in(target)]
        return [node, *self._bound(names, node)]

    def _visit_test(self, node: Any) -> Any:
        if isinstance(node, ast.If) and says_why(node):
            return node
        self.generic_visit(node)
        node.test = self._use(node.test, "bool")
        return node

    visit_If = visit_While = visit_Assert = visit_IfExp = _visit_test

    def _visit_for(self, node: Any) -> Any:
        node.iter = self._iterated(node, may_wait(node.body))
        node.target = self.visit(node.target)
        names = [*self._starred([node.target], node.target), *self._bound(names_in(node.target), node.target)]
        node.body = [*names, *self._visit_all(node.body)]
        node.orelse = self._visit_all(node.orelse)
        return node

    visit_For = visit_AsyncFor = _visit_for

    def _visit_with(self, node: Any) -> Any:
        helper = "enters_async" if isinstance(node, ast.AsyncWith) else "enters"
        bound: list[ast.stmt] = []
        for each in node.items:
            expression = each.context_expr
            trios = isinstance(expression, ast.Call) and self._root(expression.func) == "trio"
            value = self.visit(expression)
            each.context_expr = value if trios else self._do(helper, value, at=expression)
            if each.optional_vars is not None:
                each.optional_vars = self.visit(each.optional_vars)
                bound += self._bound(names_in(each.optional_vars), each.optional_vars)
        node.body = [*bound, *self._visit_all(node.body)]
        return node

    visit_With = visit_AsyncWith = _visit_with

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        self.generic_visit(node)
        if node.name:
            node.body = [*self._bound([node.name], node.body[0]), *node.body]
        return node

    def _visit_import(self, node: Any) -> Any:
        base = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        names = [base] if base else [each.name for each in node.names]
        bound = self._bound([each.asname or each.name.partition(".")[0] for each in node.names], node)
        return [*(self._say("imported", name, at=node) for name in names), node, *bound]

    visit_Import = visit_ImportFrom = _visit_import

    def visit_Match(self, node: ast.Match) -> Any:
        node.subject = self._use(self.visit(node.subject), "match")
        for case in node.cases:
            at = case.body[0]
            bound: list[str] = []
            fresh: list[str] = []
            for each in ast.walk(case.pattern):
                name = getattr(each, "name", None) or getattr(each, "rest", None)
                if isinstance(name, str):
                    bound.append(name)
                    if not isinstance(each, ast.MatchAs):
                        fresh.append(name)
            if case.guard is not None:
                waits = may_wait(case.guard)
                case.guard = self._use(self.visit(case.guard), "bool")
                if waits:
                    case.guard = self._do("late", case.guard, at=case.guard)
            case.body = [
                *(self._say("made", ast.copy_location(ast.Name(name, ast.Load()), at), at=at) for name in fresh),
                *self._bound(bound, at),
                *self._visit_all(case.body),
            ]
        return node
