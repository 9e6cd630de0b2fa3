"""The words of the gallery that a newcomer may not know, and what they mean.

Rules.  A word that the documentation's glossary has means the same there, in the same sentence.  Trio's words are
explained as far as the programs use them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Each word, the other forms in which texts have it, and its meaning.
_WORDS = (
    ("step", "steps", "the code a task runs between two of its checkpoints"),
    ("checkpoint", "checkpoints", "a place where a task may be put aside for another one: most awaits of Trio are one"),
    ("task", "tasks", "code that runs on its own beside others; main.0 is the first task that main started"),
    ("schedule", "schedules", "the choices of one execution: enough to replay it"),
    (
        "class",
        "classes",
        "the schedules of a program that differ only in the order of independent steps: a Mazurkiewicz trace",
    ),
    (
        "preemption",
        "preemptions",
        "a choice that gives a step to another task although the one before could go on; in Trio's orders a step out "
        "of turn",
    ),
    ("race", "races", "two accesses that nothing else orders, when at least one writes"),
    ("tracked", "tracking", "code that was rewritten so that plain objects report what it reads and writes"),
    ("cell", "cells", "a variable that tasks share, and that reports each read and write: toolrt.sim.Cell"),
    ("deadlock", "deadlocks", "nothing can run, and no deadline is pending"),
    ("livelock", "livelocks", "all tasks that can run go round in circles that write nothing"),
    ("mutant", "mutants", "a small broken variant of the runtime that a law must catch"),
    ("law", "laws", "what holds under every schedule; an invariant with a number"),
    ("linearizable", "", "each operation can take effect at one moment between its call and its return"),
    ("serializable", "", "some order of the whole operations explains their results"),
    ("batch", "batches", "all calls of one model response"),
    ("claim", "claims", "what a call will touch and how"),
    ("ticket", "tickets", "a claim's place in the order; taken synchronously, in call order, before any task exists"),
    ("lane", "lanes", "calls of one batch that may overlap, or one call alone"),
    ("state", "", "the immutable value that calls share and modifiers change"),
    ("call order", "", "the order in which the model gave the calls"),
    ("lock", "locks|Lock|StrictFIFOLock", "one task at a time holds it; the others wait in line until it is released"),
    ("condition", "conditions|Condition", "tasks wait at it until another one notifies them; it remembers nothing"),
    ("notify", "notifies|notified|notification", "wake a task that waits at a condition; without one it has no effect"),
    ("event", "events|Event", "one task sets it, and all who wait for it go on; it stays set"),
    ("semaphore", "semaphores|Semaphore", "a number of permits; who finds none waits for one"),
    ("permit", "permits", "one unit of a semaphore"),
    ("barrier", "barriers", "no task goes on before all have come to it"),
    ("CapacityLimiter", "", "lets so many tasks in at once, and the others wait"),
    ("channel", "channels|open_memory_channel", "a queue between tasks: one end sends, the other receives"),
    ("buffer", "buffers", "the places of a channel in which items wait to be received"),
    ("nursery", "nurseries|open_nursery", "starts tasks, and waits until all of them have ended"),
    ("cancel", "cancelled|cancels|cancellation", "ask code to stop: its next checkpoint raises trio.Cancelled"),
    ("scope", "scopes|CancelScope", "a block of code that can be cancelled as a whole: trio.CancelScope"),
    ("shield", "shielded", "code behind it does not see a cancel from outside"),
    ("timeout", "timeouts|move_on_after|fail_after", "a cancel that comes by itself after so many seconds"),
    ("virtual time", "virtual seconds", "the simulated clock; it moves only when nothing can run"),
    ("thread", "threads", "code that the system runs beside Trio; simulated, it is a step between two hand-overs"),
    ("hand-over", "hand-overs", "a worker thread of a simulated program gives the turn back"),
    ("socket", "sockets", "one end of a connection; simulated, bytes may come in parts"),
    ("random walk", "", "each choice is made by chance"),
    ("PCT", "", "a random scheduler that gives tasks priorities, and changes a few of them (Burckhardt et al., 2010)"),
)


def words_in(texts: Iterable[str]) -> list[list[str]]:
    """Give each word that is in `texts`, by its forms: the word, its forms with ``|`` between, its meaning."""
    text = "\n".join(texts)
    found = []
    for word, others, meaning in _WORDS:
        forms = "|".join(filter(None, (word, others)))
        if re.search(rf"\b(?:{forms})\b", text, re.IGNORECASE):
            found.append([word, forms, meaning])
    return found
