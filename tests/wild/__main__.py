"""Explore the test suites of other libraries, as their authors published them.

    python -m tests.wild                        every suite of suites.json; some minutes each
    python -m tests.wild tricycle anyio         these
    python -m tests.wild --sample 20            twenty async tests of each, evenly spread
    python -m tests.wild --executions 100       so many executions of each test; 10 unless said otherwise
    python -m tests.wild --plain                also run each without --explore, with the plugin and without it
    python -m tests.wild --crashes-alone        a test that fails is told, and is no error: what .ci/run asks for
    python -m tests.wild --json results.json    keep what was found of each test, too
    python -m tests.wild --list                 name the suites

A suite is a pinned sdist, checked by its hash.  Its requirements go to a virtual environment beside it, which has
what this Python has, too.  The exit code is 1 when a suite crashed, when a test failed for which suites.json has no
reason, or when the plugin alone changed a plain outcome; 3 when a suite could not be had.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import urllib.request
import venv
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["SUITES", "read_suites", "row_of"]

HERE = Path(__file__).parent
SUITES = HERE / "suites.json"
_INDEX = "https://pypi.org/simple"
_JSON = "application/vnd.pypi.simple.v1+json"

#: The columns of the table: what heads each, and what it counts.
COLUMNS = ("async tests", "explored", "one class", "undecided", "refused", "failed", "skipped", "executions", "seconds")


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


def environment(suites: Sequence[dict[str, Any]], directory: Path) -> Path:
    """Give the Python of a virtual environment with what `suites` need, and with all that this Python has."""
    place = directory / "venv"
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
    try:
        done = subprocess.run(
            command, cwd=place, env=known, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"").decode(errors="replace")
    return done.returncode, done.stdout + done.stderr


def outcomes(file: Path) -> dict[str, str]:
    """Give how each test of a JUnit file ended."""
    found = {}
    for case in ElementTree.parse(file).iter("testcase"):
        ends = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        found[f"{case.get('classname')}::{case.get('name')}"] = ends[0] if ends else "passed"
    return found


def plain_differences(python: Path, suite: dict[str, Any], place: Path, options: Sequence[str], seconds: float) -> Any:
    """Name the tests that end otherwise when the plugin is there and has nothing to do."""
    ends = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, extra in enumerate((["-p", "no:toolrt"], [])):
            file = Path(scratch, f"{number}.xml")
            _, output = run_pytest(python, suite, place, [*options, *extra, f"--junitxml={file}"], seconds)
            if not file.exists():
                return [f"no result: {output[-500:]}"]
            ends.append(outcomes(file))
    without, with_plugin = ends
    return sorted(name for name in without.keys() | with_plugin.keys() if without.get(name) != with_plugin.get(name))


def row_of(tests: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Count what was found of a suite's async tests."""
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
        "executions": sum(test["executions"] for test in tests.values()),
    }


def explore_suite(suite: dict[str, Any], python: Path, place: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Explore one suite; give its row, its tests, and what is wrong."""
    sample = [] if asked.sample is None else ["-p", "wild_sample", f"--wild-sample={asked.sample}"]
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "explored.json")
        began = time.perf_counter()
        # Order, files of failing schedules: each run is the first.
        options = [*sample, f"--explore={asked.executions}", f"--explore-json={file}", f"--explore-database={scratch}"]
        code, output = run_pytest(python, suite, place, options, asked.seconds)
        took = time.perf_counter() - began
        tests = json.loads(file.read_text(encoding="utf-8"))["tests"] if file.exists() else {}
    if code not in (0, 1):
        wrong.append(f"pytest ended with {code}: {output[-1500:]}")
    known = suite.get("known", {})
    unknown = [name for name, test in tests.items() if test["kind"] == "failed" and name not in known]
    told = [f"failed, and suites.json does not say why: {name}" for name in unknown]
    if not asked.crashes_alone:
        wrong += told
    row: dict[str, Any] = row_of(tests) | {"seconds": round(took)}
    if asked.plain and (differ := plain_differences(python, suite, place, sample, asked.seconds)):
        wrong += [f"ends otherwise with the plugin alone: {name}" for name in differ]
    return {"row": row, "wrong": wrong, "told": told, "tests": tests}


def table_of(results: dict[str, dict[str, Any]]) -> str:
    """Give the table, in Markdown."""
    rows = [["suite", *COLUMNS], ["---", *("---:" for _ in COLUMNS)]]
    rows += [[name, *(str(result["row"][column]) for column in COLUMNS)] for name, result in results.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def causes_of(tests: dict[str, dict[str, Any]]) -> list[str]:
    """Give the reasons of what was not explored, with how many tests each has."""
    causes = Counter((test["kind"], test["why"]) for test in tests.values() if test["kind"] in ("refused", "undecided"))
    return [f"{times:>5}  {kind}: {why[:100]}" for (kind, why), times in causes.most_common()]


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.wild", description="Explore the suites of other libraries.")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    parser.add_argument("--executions", type=int, default=10)
    parser.add_argument("--sample", type=int, help="so many async tests of each suite")
    parser.add_argument("--seconds", type=float, default=3600, help="end a run of a suite after so long")
    parser.add_argument("--plain", action="store_true", help="compare plain outcomes with and without the plugin")
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
        python = environment(suites, directory)
    except CannotBeHad as missing:
        print(f"cannot be had: {missing}", file=sys.stderr)
        return 3
    results = {}
    for suite, place in zip(suites, places, strict=True):
        print(f"--- {suite['name']} ({suite['sdist'].removesuffix('.tar.gz')})", flush=True)
        results[suite["name"]] = result = explore_suite(suite, python, place, asked)
        print("\n".join([*causes_of(result["tests"]), *dict.fromkeys(result["told"] + result["wrong"])]), flush=True)
    print(table_of(results))
    if asked.json is not None:
        asked.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(result["wrong"] for result in results.values()))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
