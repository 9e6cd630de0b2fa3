"""A failure as a person reads it: one column for each task, time downwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolrt.errors import SimulationStopped
from toolrt.sim._execution import Execution
from toolrt.sim._paths import key_of_path
from toolrt.trace import Step, stable_text

__all__ = ["explain"]

# Longer executions show their first and last steps.
_MAX_ROWS = 200


def explain(execution: Execution, violations: Sequence[Any], arguments: str = "") -> str:
    """Show the steps of `execution` in columns, then what is wrong with it and how to run it again.

    Args:
        execution: what is shown.
        violations: what a check complained of.
        arguments: what is to be added to the call that runs it again.
    """
    schedule = execution.schedule
    steps = schedule.steps
    parts = [f"{len(steps)} steps, {schedule.switches} preemption{'' if schedule.switches == 1 else 's'}", ""]
    parts += _columns(steps)
    parts.append("")
    parts += _wrong(execution, violations)
    parts += ["", "Run it again:", f'    sim.replay(program, "{schedule.short}"{arguments})']
    return "\n".join(line.rstrip() for line in parts)


def _columns(steps: Sequence[Step]) -> list[str]:
    tasks = sorted({step.task for step in steps}, key=key_of_path)
    rows: list[tuple[str, str, str]] = []
    for before, step in zip((None, *steps), steps, strict=False):
        done = ", ".join(map(str, step.accesses)) or "runs"
        preempts = before is not None and before.task != step.task and before.task == step.enabled[0]
        rows.append((step.task, f"{'> ' if preempts else ''}{done}", f"{step.time:g}"))
    with_time = any(step.time for step in steps)
    width = {task: max(len(task), *(len(text) for name, text, _ in rows if name == task)) for task in tasks}
    margin = max(len(str(len(steps) - 1)), len("step"))
    clock = max(len("time"), *(len(row[2]) for row in rows)) if with_time else 0

    def line(step: str, time: str, cells: dict[str, str]) -> str:
        fields = [step.rjust(margin)]
        if with_time:
            fields.append(time.rjust(clock))
        fields += [cells.get(task, "").ljust(width[task]) for task in tasks]
        return "  ".join(fields)

    lines = [line("step", "time", {task: task for task in tasks})]
    for index, (task, text, time) in enumerate(rows):
        if _MAX_ROWS // 2 <= index < len(rows) - _MAX_ROWS // 2:
            if index == _MAX_ROWS // 2:
                lines.append(f"  ... {len(rows) - _MAX_ROWS} steps are not shown ...")
            continue
        lines.append(line(str(index), time, {task: text}))
    if any(text.startswith("> ") for _, text, _ in rows):
        lines.append("(> marks a preemption: the task before could have gone on)")
    return lines


def _wrong(execution: Execution, violations: Sequence[Any]) -> list[str]:
    error = execution.error
    lines = []
    if error is not None:
        # A stop's text holds the list of who waits for what.
        text = str(error) if isinstance(error, SimulationStopped) else stable_text(error)
        lines.append(f"{type(error).__name__}: {text}" if isinstance(error, SimulationStopped) else text)
        lines += [f"  {stable_text(inner)}" for inner in _leaves(error) if inner is not error]
    for violation in violations:
        text = str(violation) if isinstance(violation, str | AssertionError) else stable_text(violation)
        lines.append(f"violation: {text or type(violation).__name__}")
    if error is None:
        lines.append(f"value: {stable_text(execution.value)}")
    return lines


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
