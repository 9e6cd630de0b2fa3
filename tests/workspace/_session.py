"""A workspace with permissions, some tools, and a note of what was asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import toolrt
from toolrt import READ, WRITE, MemoryDisk, State, ToolCall, ToolContext, Workspace
from toolrt.workspace import Directory, Permissions, Question, Rule, Symlink, Wanted

TREE = {
    "src/a.py": "a",
    "src/deep/b.py": "b",
    "docs/c.md": "c",
    ".env": "key",
    "src/.env": "key",
    "ok": Symlink(".env"),
    "way": Symlink("src/deep"),
    "empty": Directory(),
}

Answers = Callable[[Question], Any]


class Session:
    """A workspace with some tools, its permissions, and a note of what was asked."""

    def __init__(self, rules: Any = (), answers: Answers | None = None, tree: Any = None, **options: Any) -> None:
        runtime = {key: options.pop(key) for key in ("lanes", "limit") if key in options}
        self.workspace = Workspace(MemoryDisk(TREE if tree is None else tree, **options.pop("disk", {})))
        self.asked: list[str] = []
        self.permissions = Permissions(
            self.workspace, [Rule(*rule) for rule in rules], None if answers is None else self.ask(answers), **options
        )
        self.runtime = toolrt.Runtime(
            toolrt.Registry([*self.workspace.tools(), *self.own_tools()]), approve=self.permissions, **runtime
        )

    def ask(self, answers: Answers) -> Answers:
        def ask(question: Question) -> Any:
            self.asked.append(f"{question.name} {' '.join(question.paths)}".strip())
            return answers(question)

        async def asks(question: Question) -> Any:
            return await ask(question)

        return asks if inspect.iscoroutinefunction(answers) else ask

    def own_tools(self) -> list[toolrt.Tool]:
        workspace = self.workspace

        @toolrt.tool(
            claims=lambda input, state: (
                *workspace.claims(input["source"], state, WRITE, wanted=Wanted.ENTRY, subtree=True),
                *workspace.claims(input["target"], state, WRITE, wanted=Wanted.ENTRY, subtree=True),
            ),
            owner=workspace,
        )
        async def rename(ctx: ToolContext, source: str, target: str) -> str:
            return "renamed"

        @toolrt.tool(
            safe=True,
            claims=lambda input, state: workspace.claims(input["path"], state, READ, subtree=True),
            owner=workspace,
        )
        async def find(ctx: ToolContext, path: str) -> str:
            return "found"

        @toolrt.tool
        async def shell(ctx: ToolContext, command: str) -> str:
            return "ran"

        @toolrt.tool(owner=workspace)
        async def anything(ctx: ToolContext) -> str:
            return "did"

        return [rename, find, shell, anything]

    async def run(self, *calls: Any, state: State | None = None) -> list[str]:
        """The outcome of each call of one batch, as a word."""
        done = await self.runtime.run([as_call(*call) for call in calls], state)
        self.errors = [result.error for result in done.results]
        return [result.outcome.value for result in done.results]


def as_call(name: str, *arguments: str) -> ToolCall:
    fields = {
        "read_file": ["path"],
        "edit_file": ["path", "old", "new"],
        "write_file": ["path", "content"],
        "rename": ["source", "target"],
        "find": ["path"],
        "shell": ["command"],
        "anything": [],
    }
    return ToolCall("id", name, dict(zip(fields[name], arguments, strict=True)))
