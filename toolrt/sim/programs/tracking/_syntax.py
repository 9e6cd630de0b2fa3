"""Questions about pieces of syntax."""

from __future__ import annotations

import ast
from typing import Any

_AWAITS = (ast.Await, ast.Yield, ast.YieldFrom, ast.AsyncFor, ast.AsyncWith)
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp)
#: The name that `operator` gives each operation.
OPERATORS: dict[type, str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.MatMult: "matmul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.BitAnd: "and_",
}


def may_wait(*nodes: Any) -> bool:
    """Say whether a checkpoint may lie within, in the function itself."""
    todo = [node for node in nodes if node is not None]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, _AWAITS) or (isinstance(node, ast.comprehension) and node.is_async):
            return True
        elif not isinstance(node, _INNER):
            todo += ast.iter_child_nodes(node)
    return False


def is_plain(node: ast.expr) -> bool:
    """Say whether `node` gives something that cannot change."""
    return isinstance(node, ast.Constant | ast.JoinedStr | ast.Compare | ast.Lambda) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    )


def names_in(target: Any) -> list[str]:
    """Give the names that a target binds."""
    return [each.id for each in ast.walk(target) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)]


def says_why(node: ast.If) -> bool:
    """Say whether `node` is where pytest makes the text of an assertion that has failed."""
    test = node.test
    fails = isinstance(test, ast.UnaryOp) and isinstance(test.operand, ast.Name) and test.operand.id.startswith("@py_")
    return fails and any(isinstance(each, ast.Raise) for each in node.body)
