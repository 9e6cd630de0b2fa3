"""What the worker of the page answers: a program's text in, what was explored out, as JSON values.

Rules.
    1. A program is a module: ``async def program()``, and ``def check(execution)`` where a value must be judged; or one
       that explores by itself and keeps a report, or has no such function, as the examples of the documentation: the
       last report is shown.
       A batch is a module, too: ``tools``, ``response`` (what a model answered), and where they are wanted ``state``,
       ``seconds`` and ``begin()``, which is called before each schedule.
    2. The text is written to a file and run anew for each question, so the lines of an answer are those of the editor.
    3. What is wrong with the text is an answer ("error"), never an exception.
    4. Tools need no schema where nothing derives one: the names of their inputs are checked, and no types.

Limits.  Nothing ends a program that never ends: the page ends the worker.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import json
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import attrs

import toolrt
from toolrt import sim, view
from toolrt.errors import MisuseError, ToolrtError
from toolrt.interop import read_response
from toolrt.sim.exploring._judge import judge
from toolrt.sim.programs.given._constraints import CodeLine, Constraint
from toolrt.teaching.litmus import Litmus
from toolrt.teaching.play import Game
from toolrt.teaching.play._tree import PlayedTree
from toolrt.trace import stable_text

Tell = Callable[[str], object]
Answer = dict[str, Any]

#: So many executions at most, unless the page asks for another number.
_MOST = 2_000

#: So many schedules are on the page to be played.
_PLAYED = 300

#: So many schedules show whether timing decides what comes of a batch.
_BATCHES = 200

_STRATEGIES: Mapping[str, Callable[[int], sim.Strategy]] = {
    "classes": lambda most: sim.DPOR(),
    "schedules": lambda most: sim.Exhaustive(),
    "sample": lambda most: sim.Portfolio(most),
}


_CONSTRAINTS = {kind.__name__: kind for kind in get_args(Constraint)}


class PlaygroundSession:
    """The questions of one page; it keeps the last failure, whose repairs may be asked for."""

    def __init__(self) -> None:
        self._failure: sim.Failure | None = None
        self._cells: Any = None
        derives = importlib.util.find_spec("msgspec") is not None
        self._tool = toolrt.tool if derives else partial(toolrt.tool, schema=None)

    def answer(self, question: str, tell: Tell) -> str:
        """Answer a question.

        Args:
            question: a JSON object with ``kind``: explore, replay, repairs, play, batch or cell; ``source``; and what
                that kind takes besides.
            tell: is called with a text each time there is progress.

        Returns:
            A JSON object, with ``error`` where there is no other answer.
        """
        asked = json.loads(question)
        kinds = {
            "explore": self._explore,
            "replay": self._replay,
            "repairs": self._repairs,
            "play": self._play,
            "batch": self._batch,
            "cell": self._cell,
        }
        try:
            with _replaced(toolrt, "tool", self._tool):
                found = kinds[asked["kind"]](asked, tell)
        except (Exception, SystemExit) as error:
            found = {"error": _told(error)}
        return json.dumps(found)

    def _explore(self, asked: Mapping[str, Any], tell: Tell) -> Answer:
        printed, own, explore = io.StringIO(), list[sim.Report](), sim.explore
        file = _written(asked["source"])
        given = {"given": constraints} if (constraints := _constraints(asked, file)) else {}

        def noted(*arguments: Any, **settings: Any) -> sim.Report:
            own.append(explore(*arguments, **settings | given))
            return own[-1]

        with contextlib.redirect_stdout(printed), _replaced(sim, "explore", noted):
            module = _loaded(file)
        if hasattr(module, "program") and not any(isinstance(value, sim.Report) for value in vars(module).values()):
            own.clear()  # explorations on the way to its program
        elif not own and printed.getvalue():
            return {"verdict": "", "text": "It explored nothing.", "outcomes": [], "printed": printed.getvalue()}
        report = own[-1] if own else _explored(*_program_in(module, asked), asked, tell)
        self._failure = report.failures[0] if report.failures else None
        found = _report(report) | {"printed": printed.getvalue()}
        if self._failure is not None:
            return found | _failure(self._failure, asked["source"])
        if own:
            return found
        program, _, settings = _program_in(module, asked)
        return found | {"page": view.show(sim.run(program, details=True, **settings), names=["passes"]).html}

    def _replay(self, asked: Mapping[str, Any], tell: Tell) -> Answer:
        program, check, settings = _program_in(_loaded(_written(asked["source"])), asked)
        execution = sim.replay(program, asked["schedule"], details=True, **settings)
        judged = judge(execution, check)
        verdict = "fail" if judged.failed else "inconclusive" if judged.undecided else "pass"
        told = f"outcome: {stable_text(execution.outcome)}"
        about = [(verdict.upper(), told), ("schedule", execution.schedule.short)]
        page = view.show(execution, names=[verdict], about=about).html
        return {
            "verdict": verdict,
            "text": f"{verdict.upper()}: this schedule, {told}",
            "page": page,
            "schedule": execution.schedule.short,
        }

    def _repairs(self, asked: Mapping[str, Any], tell: Tell) -> Answer:
        if self._failure is None:
            return {"repairs": []}
        tell("looking for repairs, each explored as the failure was found")
        return {
            "repairs": [
                _report(one.report)
                | {"repair": str(one), "lost": list(one.lost), "may_overfit": one.may_overfit}
                | {"given": [*(asked.get("given") or ()), _told_constraint(one.constraint)]}
                for one in self._failure.repairs()
            ]
        }

    def _play(self, asked: Mapping[str, Any], tell: Tell) -> Answer:
        # As it is: what a constraint holds back is no choice of the player.
        program, check, settings = _program_in(_loaded(_written(asked["source"])), {**asked, "given": None})
        del settings["given"]
        tell("running the schedules to be played")

        def read(execution: sim.Execution) -> str:
            said = "fails" if judge(execution, check).failed else "passes"
            return f"{said}: {stable_text(execution.outcome)}"

        seen: set[str] = set()

        def note(execution: sim.Execution) -> bool:
            seen.add(read(execution))
            return True

        for strategy in (sim.DPOR(), sim.Random(sim.RandomWalk(seed=0), _MOST)):
            sim.explore(program, strategy, note, _MOST, **settings)
        game = Litmus(
            "your_program",
            "Choose which task runs next, and try to make it go wrong.",
            program,
            right=[one for one in seen if one.startswith("passes")],
            wrong=[one for one in seen if one.startswith("fails")],
            read=read,
            text=asked["source"],
            **settings,
        )
        tree = Game(game).tree(_PLAYED)
        return {"page": view.play(PlayedTree(tree)).html}

    def _batch(self, asked: Mapping[str, Any], tell: Tell) -> Answer:
        module = _loaded(_written(asked["source"]))
        if not hasattr(module, "tools") or not hasattr(module, "response"):
            raise MisuseError("a batch needs `tools`, a list of tools, and `response`, what a model answered")
        seconds: dict[str, float] = getattr(module, "seconds", {})
        seconds.update({name: each for name, each in asked.get("seconds", {}).items() if name in seconds})
        registry = toolrt.Registry(module.tools)
        calls = read_response(module.response).calls
        lanes, limit = getattr(toolrt, asked.get("lanes", "by_claims")), int(asked.get("limit", 10))

        begin = getattr(module, "begin", lambda: None)

        async def program() -> toolrt.BatchOutcome:
            begin()
            runtime = toolrt.Runtime(registry, lanes=lanes, limit=limit)
            return await runtime.run(calls, getattr(module, "state", toolrt.State()))

        execution = sim.run(program, details=True)
        if execution.error is not None:
            raise execution.error
        tell(f"running it under {_BATCHES} schedules")
        strategy = sim.Random(sim.RandomWalk(seed=0), _BATCHES)
        outcomes = {_outcome(execution.value)}

        def same(execution: sim.Execution) -> bool:
            if execution.value is not None:
                outcomes.add(_outcome(execution.value))
            return execution.error is None

        report = sim.explore(program, strategy, same)
        took = execution.trace.steps[-1].time
        plural = "" if len(outcomes) == 1 else "s"
        return {
            "seconds": seconds,
            "lanes": [
                {"index": lane.index, "shared": lane.safe, "calls": [call.name for call in lane.calls]}
                for lane in toolrt.partition(calls, registry, getattr(module, "state", toolrt.State()), lanes)
            ],
            "results": [
                [str(one.call_index), one.name, one.outcome.name, str(one.content)] for one in execution.value.results
            ],
            "state": {str(key): stable_text(value) for key, value in execution.value.state.items()},
            "text": f"{len(outcomes)} outcome{plural} in {report.executions} schedules; {took:g} virtual seconds",
            "page": view.show(execution, names=["batch"]).html,
        }

    def _cell(self, asked: Mapping[str, Any], tell: Tell) -> Answer:
        if self._cells is None or asked["begins"]:
            # Late: lessons import exercises and workloads, by which every page's memory snapshot would be 2 MB larger.
            from toolrt.playground._cells import Cells

            self._cells = Cells()
        file = _written(asked["source"])
        shown: Answer = self._cells.run(asked["source"], str(file), asked["guess"], asked["first"])
        return shown


def _outcome(done: toolrt.BatchOutcome) -> str:
    told = [f"{one.outcome.name} {one.content}" for one in done.results]
    return "\n".join([*told, stable_text(dict(done.state))])


@contextlib.contextmanager
def _replaced(owner: ModuleType, name: str, value: Any) -> Iterator[None]:
    # Not `unittest.mock`: with it the memory snapshot is larger.
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _written(source: str) -> Path:
    # A name that no earlier text had: what was learned of that one's lines is kept by name.
    file = Path(tempfile.mkdtemp(prefix="playground-"), "program.py")
    file.write_text(source, encoding="utf-8")
    return file


def _loaded(file: Path) -> ModuleType:
    """Run a text as the module ``program``."""
    code = compile(file.read_text(encoding="utf-8"), str(file), "exec")
    spec = importlib.util.spec_from_file_location("program", file)
    assert spec is not None
    module = sys.modules["program"] = importlib.util.module_from_spec(spec)
    exec(code, module.__dict__)
    return module


def _program_in(module: ModuleType, asked: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Give the program, its check or None, and what `toolrt.sim.explore` takes besides."""
    program = getattr(module, "program", None)
    if program is None:
        others = [name for name, value in vars(module).items() if inspect.iscoroutinefunction(value)]
        known = f"; the text has {', '.join(others)}" if others else ""
        raise MisuseError(f"there is no program: write `async def program():`{known}")
    settings = {
        "order": asked.get("order", "any"),
        "track": bool(asked.get("track", False)),
        "given": _constraints(asked, Path(str(module.__file__))),
    }
    return program, getattr(module, "check", None), settings


def _told_constraint(constraint: Constraint) -> Answer:
    """Give a constraint as JSON, for a link: its lines are those of the editor, in whatever file they are."""
    kept = attrs.asdict(constraint, filter=lambda field, _: field.name != "file")
    return {"kind": type(constraint).__name__, **kept}


def _constraints(asked: Mapping[str, Any], file: Path) -> list[Constraint]:
    """Give the constraints of a question, on the lines of `file`; most questions have none."""

    def placed(told: Any) -> Any:
        if isinstance(told, Mapping):
            return CodeLine(str(file), **told)
        return tuple(map(placed, told)) if isinstance(told, list) else told

    return [
        _CONSTRAINTS[told["kind"]](**{name: placed(value) for name, value in told.items() if name != "kind"})
        for told in asked.get("given") or ()
    ]


def _explored(program: Any, check: Any, settings: dict[str, Any], asked: Mapping[str, Any], tell: Tell) -> sim.Report:
    most, strategy = int(asked.get("most", _MOST)), asked.get("strategy", "auto")

    def explored(name: str) -> sim.Report:
        made = _STRATEGIES[name](most)
        return sim.explore(program, made, check, most, progress=lambda so_far: tell(str(so_far)), **settings)

    report = explored("classes" if strategy == "auto" else strategy)
    if strategy == "auto" and not report.complete and not report.failures:
        # Too many for one of each: a sample reaches farther than the beginning of a search.
        report = explored("sample")
    return report


def _report(report: sim.Report) -> Answer:
    return {
        "verdict": report.verdict.value,
        "claim": report.claim,
        "text": str(report),
        "executions": report.executions,
        "failed": report.failed,
        "complete": report.complete,
        "outcomes": [[stable_text(value), count] for value, count in report.outcomes.items()],
    }


def _failure(failure: sim.Failure, source: str) -> Answer:
    schedule = failure.minimal.short
    return {
        "headline": failure.headline,
        "explanation": failure.explain(),
        "schedule": schedule,
        "page": failure.show().html,
        "test": _as_test(failure, source),
    }


def _as_test(failure: sim.Failure, source: str) -> str:
    """Give a file for pytest that fails as long as the bug is there."""
    told = failure.explain(verbose=True).partition("As a test")[2].partition("\n")[2]
    lines = [line.removeprefix("    ") for line in told.splitlines() if line.strip()]
    imported = "" if "from toolrt import sim" in source else "from toolrt import sim\n\n"
    return f'"""{failure.headline}"""\n\n{imported}{source.rstrip()}\n\n\n' + "\n".join(lines) + "\n"


def _told(error: BaseException) -> str:
    """Say what went wrong, with the lines of the program's own."""
    if isinstance(error, ToolrtError | MisuseError):
        return str(error)
    said = "".join(traceback.format_exception_only(error)).rstrip()
    # Of the file's path the reader knows nothing: it is the text in the editor.
    said = re.sub(r'^ *File ".*program\.py", ', "", said)
    if isinstance(error, ModuleNotFoundError):
        said += "\nThe page has Python's standard library, Trio and toolrt, and cannot install what else there is."
    if "stack switching" in said:
        said = "asyncio.run cannot wait in a browser: write `async def program():` with Trio."
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith("program.py")]
    return "\n".join([said, *(f"line {frame.lineno}, in {frame.name}" for frame in frames)])
