"""A task's path: its parent's path and how many tasks that parent had spawned before it.

``main`` is the program's root, ``main.0`` the first task it spawned (in whichever of its nurseries, or in
another task's), ``main.0.2`` the third that one spawned.  Paths are compared number by number, so ``main.2``
comes before ``main.10``.

``thread.2.0`` is the first worker thread that ``main.2`` has started, ``thread.0`` that of ``main``.  Threads come
after all tasks, and processes after them: ``process.2.0`` is the first that ``main.2`` has started, ``process.2.2`` the
second.  The tasks of a process have the odd numbers: ``process.2.0.1`` is the first of ``process.2.0``.
``real.2.0`` is the first wait for a real file or socket that ``main.2`` has begun.  ``deadline.0`` is the first
deadline that comes apart from another of its instant.

Three more names stand for what is no task's step: ``main.0=1`` is choice 1 of ``main.0``, ``cancel.0`` cancels the
first such scope that ``main`` has entered, ``cancel.2.0`` that of ``main.2``, and ``clock`` moves time.
These two come after all tasks, threads and processes.  Just before threads comes ``callbacks``, Trio's task that calls
what was given to ``run_sync_soon``, with the tasks that a callback has spawned, ``callbacks.0``; before it the waits,
and before them the deadlines.
"""

from __future__ import annotations

ROOT = "main"

#: The name of the step by which time moves although something else could happen.
CLOCK = "clock"

#: The name of the step that cancels a scope: this, the numbers of the task that entered it, and the scope's number
#: among those that this task has entered.
CANCEL = "cancel"

#: The path of Trio's task that calls what was given to ``run_sync_soon``.
CALLBACKS = "callbacks"

#: The name of a worker thread: this, the numbers of the task that started it, and its number among those.
THREAD = "thread"

#: The name of a child process: this, the numbers of the task that started it, and twice its number among those.
PROCESS = "process"

#: The name of a wait for a real file or socket: this, the numbers of the task that waits, and its number among those.
REAL = "real"

#: The name of a deadline that comes apart from others of its instant: this, and its number among such.
DEADLINE = "deadline"

# Higher than any number of tasks.
_LAST = 1 << 60


def key_of_path(path: str) -> tuple[int, ...]:
    """Read a path: ``main.0.2`` is ``(0, 2)``.

    Raises:
        ValueError: it is not a path, nor another name of a step.
    """
    if path == CLOCK:
        return (_LAST, 1)
    task, chosen, choice = path.partition("=")
    root, *numbers = task.split(".")
    scope = root == CANCEL and bool(numbers) and not chosen
    soon = root == CALLBACKS
    works = root in _BESIDE and bool(numbers)
    if (root != ROOT and not scope and not soon and not works) or not all(
        map(_is_number, (*numbers, choice) if chosen else numbers)
    ):
        raise ValueError(f"{path!r} is not a task path such as {ROOT} or {ROOT}.0.2")
    key = tuple(map(int, numbers))
    if scope:
        return (_LAST, 0, *key)
    if soon:
        key = (*CALLBACKS_KEY, *key)
    if works:
        key = (*_BESIDE[root], *key)
    return (*key, -1, int(choice)) if chosen else key


def task_of(path: str) -> str:
    """Give the task of a step: for a choice, the one that asked for it."""
    return path.partition("=")[0]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


#: Where that task stands among all, and where deadlines, real waits, threads and processes do.
CALLBACKS_KEY = (_LAST, -3)
_BESIDE = {DEADLINE: (_LAST, -5), REAL: (_LAST, -4), THREAD: (_LAST, -2), PROCESS: (_LAST, -1)}


class TaskPath:
    """What a task is called.  All executions of one Trio run share these: they mostly have the same tasks."""

    __slots__ = ("_children", "alone", "key", "name")

    def __init__(self, key: tuple[int, ...], name: str) -> None:
        #: How it is sorted.
        self.key = key
        self.name = name
        #: The list of its name.
        self.alone = (name,)
        self._children: list[TaskPath] = []

    def child(self, number: int) -> TaskPath:
        """Give the path of the task that it spawns after so many others."""
        children = self._children
        if number < len(children):
            return children[number]
        path = TaskPath((*self.key, number), f"{self.name}.{number}")
        if number == len(children) < _CHILDREN_KEPT:
            children.append(path)
        return path


# A task's further children get new paths in each execution.
_CHILDREN_KEPT = 1_000


def path_of_deadline(number: int) -> TaskPath:
    """Give the path of the deadline that comes apart from others after so many such."""
    return TaskPath((*_BESIDE[DEADLINE], number), f"{DEADLINE}.{number}")


def path_beside(kind: str, starter: TaskPath, number: int) -> TaskPath:
    """Give the path of what a task starts after so many others of its kind: a thread, a real wait, a child process."""
    if kind == PROCESS:
        number *= 2
        if starter.name.startswith(PROCESS):
            return starter.child(number)
    return TaskPath((*_BESIDE[kind], *starter.key, number), f"{kind}{starter.name.removeprefix(ROOT)}.{number}")
