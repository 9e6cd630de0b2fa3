"""What a call of a file tool claims, and how it is refused."""

from __future__ import annotations

import pytest

from toolrt.model import State
from toolrt.workspace import FileProblem


async def refusal(call, tree, name, **input):
    """The refusal of a call, which must have changed nothing."""
    before = tree.workspace.snapshot()
    with pytest.raises(FileProblem) as caught:
        await call(tree, name, **input)
    assert tree.workspace.snapshot() == before
    assert tree.root not in str(caught.value)
    assert tree.outside not in str(caught.value)
    return caught.value


def claims(tree, name, **input):
    tool = next(tool for tool in tree.workspace.tools() if tool.name == name)
    return tool.claims_for(input, State())
