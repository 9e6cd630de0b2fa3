"""The child of the test of a graph that is killed: it runs one message of a tool node whose runtime has a journal."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import interrupt

from tests.plugins.langgraph._graphs import asks, graph_of
from toolrt import WRITE, Claim, Journal, Registry, Runtime
from toolrt.plugins.langgraph import tool_node
from toolrt.plugins.langgraph._kept import Ledger

CONFIG: Any = {"configurable": {"thread_id": "1"}}

#: What the child is asked to run, by what kills it.
MESSAGES = {
    "tool": (("pay", {"to": "a"}), ("pay", {"to": "dies"}), ("pay", {"to": "c"})),
    "ledger": (("pay", {"to": "a"}), ("ask", {"question": "may I?"}), ("pay", {"to": "c"})),
}


def die() -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def graph_in(directory: Path, dies: bool = False) -> Any:
    """The graph of a process on the files of `directory`; the payment to ``dies`` kills the one that `dies`."""

    @tool
    def pay(to: str) -> str:
        """Pay."""
        with (directory / "effects").open("a") as file:
            file.write(f"{to}\n")
        if to == "dies" and dies:
            die()
        return f"paid {to}"

    @tool
    def ask(question: str) -> str:
        """Ask a person."""
        return str(interrupt(question))

    claims = {"pay": [Claim("bank", WRITE)], "ask": [Claim("bank", WRITE)]}
    runtime = Runtime(Registry(), journal=Journal(directory / "journal.db"))
    saver = SqliteSaver(sqlite3.connect(directory / "graph.db", check_same_thread=False))
    return graph_of(tool_node([pay, ask], claims=claims, runtime=runtime), checkpointer=saver)


def process(directory: str, what: str) -> None:
    """Run the message of `what`, which kills this process: inside a tool, or before LangGraph saves an interrupt."""
    if what == "ledger":
        Ledger.save = lambda *_: die()  # type: ignore[assignment,method-assign]
    graph_in(Path(directory), dies=True).invoke(asks(*MESSAGES[what]), CONFIG, durability="sync")
