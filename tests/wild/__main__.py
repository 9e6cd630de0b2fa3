"""Explore the test suites of other libraries, as their authors published them.

    python -m tests.wild                        every suite of suites.json; some minutes each
    python -m tests.wild tricycle anyio         these
    python -m tests.wild --sample 20            twenty async tests of each, evenly spread
    python -m tests.wild --executions 100       so many executions of each test; 10 unless said otherwise
    python -m tests.wild --plain                also run each without --explore: before without the plugin, then with it
    python -m tests.wild --crashes-alone        a test that fails is told, and is no error: what .ci/run asks for
    python -m tests.wild --json results.json    keep what was found of each test, too
    python -m tests.wild --list                 name the suites

A suite is a pinned sdist, checked by its hash.  Its requirements go to a virtual environment beside it, which has
what this Python has, too; a suite that needs older packages than others has one of its own.  The exit code is 1 when a
suite crashed, when a test failed for which suites.json has no reason, or when the plugin alone changed a plain outcome;
3 when a suite could not be had.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import urllib.request
import venv
from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SUITES = HERE / "suites.json"
_INDEX = "https://pypi.org/simple"
_JSON = "application/vnd.pypi.simple.v1+json"

# A run that takes too long has so many seconds to end after Ctrl-C.
_SECONDS_TO_END = 60

#: The columns of the table: what heads each, and what it counts.
COLUMNS = (
    *("async tests", "explored", "one class", "undecided", "refused", "failed", "skipped", "fails plainly"),
    *("share", "executions", "seconds"),
)

#: What a test is that was not explored, and fails without --explore and without the plugin, too: twice of twice.
PLAINLY = "fails plainly"


class CannotBeHad(Exception):
    """A suite, or what it needs, could not be downloaded."""


def read_suites(names: Sequence[str]) -> list[dict[str, Any]]:
    """Give the suites with these names; all when there are none."""
    suites: list[dict[str, Any]] = json.loads(SUITES.read_text(encoding="utf-8"))
    unknown = set(names) - {suite["name"] for suite in suites}
    if unknown:
        raise SystemExit(f"no suite in suites.json: {', '.join(sorted(unknown))}")
    return [suite for suite in suites if not names or suite["name"] in names]


def unpacked(suite: dict[str, Any], directory: Path) -> Path:
    """Give the folder of the suite's sdist, downloaded and checked unless it is there."""
    name = suite["sdist"].removesuffix(".tar.gz")
    place = directory / name
    if place.is_dir():
        return place
    project = name.rpartition("-")[0].replace("_", "-").lower()
    try:
        asked = urllib.request.Request(f"{_INDEX}/{project}/", headers={"Accept": _JSON})
        with urllib.request.urlopen(asked, timeout=20) as answer:
            files = json.load(answer)["files"]
        (link,) = (file["url"] for file in files if file["filename"] == suite["sdist"])
        with urllib.request.urlopen(link, timeout=60) as answer:
            content = answer.read()
    except (OSError, ValueError) as error:
        raise CannotBeHad(f"{suite['sdist']}: {error}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != suite["sha256"]:
        raise SystemExit(f"{suite['sdist']}: sha256 is {found}, expected {suite['sha256']}")
    archive = directory / suite["sdist"]
    archive.write_bytes(content)
    with tarfile.open(archive) as tar:
        # Pythons before 3.11.4 have no filters; the archive is the one whose hash is known.
        tar.extractall(directory, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return place


def environments(suites: Sequence[dict[str, Any]], directory: Path) -> dict[str, Path]:
    """Give for each suite the Python of the virtual environment that it shares, or that is its own."""
    found: dict[str, Path] = {}
    for place, its in groupby(sorted(suites, key=_environment_of), _environment_of):
        members = list(its)
        found |= dict.fromkeys((suite["name"] for suite in members), environment(members, directory / place))
    return found


def _environment_of(suite: dict[str, Any]) -> str:
    """Name the environment of a suite."""
    return f"venv-{suite['name']}" if suite.get("alone") else "venv"


def environment(suites: Sequence[dict[str, Any]], place: Path) -> Path:
    """Give the Python of a virtual environment with what `suites` need, and with all that this Python has."""
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=False, symlinks=True)
        inside = sysconfig.get_path("purelib", "venv", {"base": str(place), "platbase": str(place)})
        Path(inside, "borrowed.pth").write_text(
            f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n", encoding="utf-8"
        )
    needs = sorted({need for suite in suites for need in suite["needs"]})
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--disable-pip-version-check"]
    done = subprocess.run([*install, *needs], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBeHad(f"pip install {' '.join(needs)}: {done.stderr.strip()[-500:]}")
    return python


def run_pytest(
    python: Path, suite: dict[str, Any], place: Path, options: Sequence[str], seconds: float
) -> tuple[int | None, str]:
    """Run pytest on a suite; give its exit code, None when it took too long, and what it wrote."""
    # pytest-asyncio is there for this project's tests, and warns in suites that do not configure it.
    plugins = ["-p", "no:cacheprovider", "-p", "no:asyncio"]
    command = [str(python), "-m", "pytest", "-q", *plugins, *suite["arguments"], *options]
    known = os.environ | {"PYTHONPATH": str(HERE / "_plugin"), "PYTHONDONTWRITEBYTECODE": "1"}
    known["PATH"] = f"{python.parent}{os.pathsep}{known['PATH']}"
    for name in ("PYTEST_ADDOPTS", "PYTHONHOME"):
        known.pop(name, None)
    # A job in the background is born deaf to Ctrl-C, and some tests send one to themselves.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        running = subprocess.Popen(
            command, cwd=place, env=known, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        output = running.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        # With Ctrl-C it still writes what it has found.
        running.send_signal(signal.SIGINT)
    else:
        return running.returncode, output
    try:
        return None, running.communicate(timeout=_SECONDS_TO_END)[0]
    except subprocess.TimeoutExpired:
        running.kill()
        return None, running.communicate()[0]


def plain_outcomes(
    python: Path, suite: dict[str, Any], place: Path, asked: argparse.Namespace, *, plugin: bool, only: Collection[str]
) -> dict[str, str]:
    """Give how tests end without --explore, by name; empty when that cannot be told.

    Args:
        python: runs them.
        suite: has them.
        place: where that is.
        asked: what the command line says.
        plugin: whether toolrt's plugin is loaded.
        only: the tests that are run; none: all, or the sample.
    """
    with tempfile.TemporaryDirectory() as scratch:
        named, file = Path(scratch, "only.json"), Path(scratch, "outcomes.json")
        named.write_text(json.dumps(sorted(only)), encoding="utf-8")
        options = ["-p", "wild_outcomes", f"--wild-outcomes={file}", *([] if plugin else ["-p", "no:toolrt"])]
        options += [f"--wild-only={named}"] if only else sample_of(asked)
        run_pytest(python, suite, place, options, asked.seconds)
        found: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def different(without: dict[str, str], with_plugin: dict[str, str]) -> set[str]:
    """Name the tests that end otherwise."""
    return {name for name in without.keys() | with_plugin.keys() if without.get(name) != with_plugin.get(name)}


def sample_of(asked: argparse.Namespace) -> list[str]:
    """Give the options that leave a sample of the tests."""
    return [] if asked.sample is None else ["-p", "wild_sample", f"--wild-sample={asked.sample}"]


def row_of(tests: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Count what was found of a suite's async tests; what fails plainly is none of the explorer's."""
    tests = {name: test for name, test in tests.items() if test["kind"] != "asyncio"}
    kinds = Counter(test["kind"] for test in tests.values())
    explored = [test for test in tests.values() if test["kind"] == "explored"]
    return {
        "async tests": len(tests),
        "explored": kinds["explored"],
        "one class": sum(bool(test["alone"]) for test in explored),
        "undecided": kinds["undecided"],
        "refused": kinds["refused"],
        "failed": kinds["failed"],
        "skipped": kinds["skipped"],
        PLAINLY: kinds[PLAINLY],
        "executions": sum(test["executions"] for test in tests.values()),
    }


def explore_suite(suite: dict[str, Any], python: Path, place: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Explore one suite; give its row, its tests, and what is wrong."""
    wrong: list[str] = []
    run = partial(plain_outcomes, python, suite, place, asked)
    before = run(plugin=False, only=()) if asked.plain else {}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "explored.json")
        began = time.perf_counter()
        # Order, files of failing schedules: each run is the first.
        options = [f"--explore={asked.executions}", f"--explore-json={file}", f"--explore-database={scratch}"]
        options.append("--explore-order=trio")  # as unasked, without the advice on other orders
        code, output = run_pytest(python, suite, place, [*sample_of(asked), *options], asked.seconds)
        took = time.perf_counter() - began
        tests = json.loads(file.read_text(encoding="utf-8"))["tests"] if file.exists() else {}
    if code not in (0, 1):
        wrong.append(f"pytest ended with {code}: {output[-1500:]}")
    failing = [name for name, test in tests.items() if test["kind"] in ("failed", "refused", "undecided")]
    for _ in range(2):
        ends = run(plugin=False, only=failing) if failing else {}
        failing = [name for name in failing if ends.get(name) == "failed"]
    for name in failing:
        tests[name] |= {"kind": PLAINLY, "why": f"{tests[name]['kind']}: {tests[name]['why']}"}
    known = suite.get("known", {})
    unknown = [name for name, test in tests.items() if test["kind"] == "failed" and name not in known]
    told = [f"failed, and suites.json does not say why: {name}" for name in unknown]
    if not asked.crashes_alone:
        wrong += told
    row: dict[str, Any] = row_of(tests) | {"seconds": round(took)}
    if asked.plain:
        # What ends otherwise once may do so by itself.
        differ = different(before, run(plugin=True, only=()))
        for _ in range(2 if differ else 0):
            differ &= different(run(plugin=False, only=differ), run(plugin=True, only=differ)) if differ else set()
        row["plain"] = len(before)
        wrong += [f"ends otherwise with the plugin, after exploring: {name}" for name in sorted(differ)]
        wrong += [] if before else ["no plain outcomes"]
    return {"row": row, "wrong": wrong, "told": told, "tests": tests}


def table_of(results: dict[str, dict[str, Any]]) -> str:
    """Give the table, in Markdown."""
    rows = [["suite", *COLUMNS], ["---", *("---:" for _ in COLUMNS)]]
    for name, result in results.items():
        row = result["row"]
        meant = row["async tests"] - row["skipped"] - row[PLAINLY]
        shown = row | {"share": f"{100 * row['explored'] / meant:.1f} %" if meant else "-"}
        rows.append([name, *(str(shown[column]) for column in COLUMNS)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def causes_of(tests: dict[str, dict[str, Any]]) -> list[str]:
    """Give the reasons of what was not explored, with how many tests each has."""
    told = ("refused", "undecided", PLAINLY)
    causes = Counter((test["kind"], test["why"]) for test in tests.values() if test["kind"] in told)
    return [f"{times:>5}  {kind}: {why[:100]}" for (kind, why), times in causes.most_common()]


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.wild", description="Explore the suites of other libraries.")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    parser.add_argument("--executions", type=int, default=10)
    parser.add_argument("--sample", type=int, help="so many async tests of each suite")
    parser.add_argument("--seconds", type=float, default=3600, help="end a run of a suite after so long")
    parser.add_argument("--plain", action="store_true", help="compare plain outcomes before, and after with the plugin")
    parser.add_argument("--json", type=Path, help="keep the results here")
    parser.add_argument("--directory", type=Path, help="where sdists and the environment are kept")
    parser.add_argument("--crashes-alone", action="store_true", help="a test that fails is told, and is no error")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args(arguments)
    suites = read_suites(asked.suites)
    if asked.list:
        print("\n".join(f"{suite['name']:<12} {suite['sdist']}" for suite in suites))
        return 0
    directory: Path = asked.directory or Path(tempfile.gettempdir(), "toolrt-wild")
    directory.mkdir(parents=True, exist_ok=True)
    try:
        places = [unpacked(suite, directory) for suite in suites]
        pythons = environments(suites, directory)
    except CannotBeHad as missing:
        print(f"cannot be had: {missing}", file=sys.stderr)
        return 3
    results = {}
    for suite, place in zip(suites, places, strict=True):
        print(f"--- {suite['name']} ({suite['sdist'].removesuffix('.tar.gz')})", flush=True)
        results[suite["name"]] = result = explore_suite(suite, pythons[suite["name"]], place, asked)
        if asked.plain:
            print(f"{result['row']['plain']:>5}  plain outcomes were compared")
        print("\n".join([*causes_of(result["tests"]), *dict.fromkeys(result["told"] + result["wrong"])]), flush=True)
    print(table_of(results))
    if asked.json is not None:
        asked.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(result["wrong"] for result in results.values()))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
