"""The checks of a change, for the environment that is active: `nox -f .ci/noxfile.py` runs the fast ones.

    pip install -e '.[dev]' nox
    nox -f .ci/noxfile.py                  fast: style, shape, types, and the quick tests of what was changed
    nox -f .ci/noxfile.py -s fast -- sim   the same, with the tests of these rooms, also those that start processes
    nox -f .ci/noxfile.py -s full          everything: `.ci/run`, in environments of its own
    nox -f .ci/noxfile.py -s pythons       the whole suite on Python 3.12 and 3.13; `-- python3.12` for one
    nox -f .ci/noxfile.py -s adapters      test the adapters with their agent frameworks; `-- openai` for some
    nox -f .ci/noxfile.py -s mcp_1         test the plugin for MCP servers with version 1 of the SDK
    nox -f .ci/noxfile.py -s campaigns     the explorer's big counts, and a real cluster (extra "cluster"); takes hours
    nox -f .ci/noxfile.py -s wild_bugs     find the bugs of released libraries again; needs the network
    nox -f .ci/noxfile.py -s wild          explore the suites of other libraries, downloaded; some minutes each
    nox -f .ci/noxfile.py -s misbehaving   explore tests that misbehave, each in a way of its own; a minute or two
    nox -f .ci/noxfile.py -s frameworks    hold agent frameworks to the laws, each at its pinned version; takes an hour
    nox -f .ci/noxfile.py -s network       run Trio's own tests of sockets, TLS and DTLS over the network in memory
    nox -f .ci/noxfile.py -s mutation      judge mutants by machine with random examples; after `--`: see --help

A room is changed when a file of it differs from where the branch left origin/main, also when it is not
committed yet.  Behind its tests come those of the rooms that import a changed module, by the graph that import-linter
reads.  The markers `slow` and `process` are those of pyproject.toml.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import nox

ROOT = Path(__file__).parents[1]

nox.options.sessions = ["fast"]
nox.options.default_venv_backend = "none"

#: Tests of rooms whose folder has another name, and of files that belong to no room.
_TESTS = {
    "errors": "model",
    "probe": "order",
    "_aside": "runtime",
    "_plain": "trace",
    "_without_io": "playground",
    "processes": "services",
    "_pytest_plugin": "testing",
}


def changed_files() -> list[str]:
    """Name the files that differ from where the branch began, committed or not, and those that are new."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""

    base = git("merge-base", "HEAD", "origin/main").strip() or "HEAD"
    return sorted({*git("diff", "--name-only", base).split(), *git("ls-files", "-o", "--exclude-standard").split()})


def tests_for(files: list[str]) -> list[str]:
    """Name the folders of tests that belong to `files`."""
    found = set()
    for file in files:
        match file.split("/"):
            case ["toolrt", room, *_]:
                room = room.removesuffix(".py")
                found.add(f"tests/{_TESTS.get(room, room)}")
            case ["tests", folder, *below] if below:
                found.add(f"tests/{folder}")
            case ["docs" | "notebooks" | "README.md", *_]:
                found.add("tests/docs")
    return sorted(folder for folder in found if list((ROOT / folder).glob("test_*.py")))


def importers_of(files: list[str]) -> list[str]:
    """Name a file of each room that imports a module of `files`, or what its room hands on of it."""
    import grimp

    graph = grimp.build_graph("toolrt")
    changed = {".".join(Path(file).with_suffix("").parts).removesuffix(".__init__") for file in files}
    found = set(changed & graph.modules)
    for module in sorted(found):
        room = ".".join(module.split(".")[:2])
        within = {one for one in graph.find_downstream_modules(module) if one == room or one.startswith(f"{room}.")}
        found |= {one for each in (module, *within) for one in graph.find_modules_that_directly_import(each)}
    return sorted(f"{module.replace('.', '/')}.py" for module in found)


@nox.session
def fast(session: nox.Session) -> None:
    """Check style, shape and types, and run the tests of changed rooms, then those of their importers."""
    session.chdir(ROOT)
    session.run("ruff", "format", "--check", "--quiet", ".")
    session.run("ruff", "check", "--quiet", ".")
    session.run("python", "-m", "pytest", "-q", "-x", "tests/docs/test_house.py")
    session.run("lint-imports", "--no-cache", "--no-logo")
    session.run("mypy")
    changed = changed_files()
    folders = [f"tests/{room}" for room in session.posargs] or tests_for(changed)
    marked = "not slow" if session.posargs else "not slow and not process"
    importers = [] if session.posargs else [one for one in tests_for(importers_of(changed)) if one not in folders]
    for some in filter(None, (folders, importers)):
        command = ["python", "-m", "pytest", "-q", "-x", "-n", "2", "--dist", "worksteal", "-m", marked, *some]
        session.run(*command, success_codes=[0, 5])
    if not folders:
        session.log("no room was changed")


@nox.session
def full(session: nox.Session) -> None:
    """Run everything that a change has to pass."""
    session.run(str(ROOT / ".ci" / "run"), *session.posargs, external=True)


@nox.session
def pythons(session: nox.Session) -> None:
    """Run the whole suite on Python 3.12 and 3.13, in environments of their own; `-- python3.12` for one."""
    session.chdir(ROOT)
    for name in session.posargs or ("python3.12", "python3.13"):
        environment = Path(session.create_tmp(), Path(name).name)
        python = str(environment / "bin" / "python")
        session.run(name, "-m", "venv", str(environment), external=True)
        session.run(python, "-m", "pip", "install", "-qq", "-c", ".ci/constraints.txt", "-e", ".[dev]", external=True)
        options = ["-p", "no:cacheprovider", "-p", "no:toolrt", "-n", "2", "--dist", "worksteal"]
        session.run(python, "-m", "pytest", *options, external=True)


@nox.session
def adapters(session: nox.Session) -> None:
    """Test the adapters with their agent frameworks, in an environment of their own; `-- NAME ...` for some."""
    session.chdir(ROOT)
    session.run("python", ".ci/run_adapters.py", *session.posargs)


@nox.session
def mcp_1(session: nox.Session) -> None:
    """Test the plugin for MCP servers with version 1 of the SDK, in an environment of its own."""
    session.chdir(ROOT)
    environment = Path(session.create_tmp(), "venv")
    python = str(environment / "bin" / "python")
    needed = ["-e", ".[schema,search,cli,testing]", "pytest-timeout", "mcp>=1.27,<2"]
    session.run("python", "-m", "venv", str(environment))
    session.run(python, "-m", "pip", "install", "-qq", *needed, external=True)
    options = ["-q", "-rs", "-p", "no:cacheprovider", "-p", "no:toolrt"]
    tests = ["tests/plugins/mcp", *session.posargs]
    session.run(python, "-m", "pytest", *options, *tests, external=True)


@nox.session
def mutation(session: nox.Session) -> None:
    """Judge every mutant by machine, and keep the result in the docs; `-- --every 10` takes a sample."""
    session.chdir(ROOT)
    session.run("python", "-m", "tests.mutation.run", "--write", *session.posargs, success_codes=[0, 1])
    session.run("python", ".ci/write_mutation.py")


@nox.session
def campaigns(session: nox.Session) -> None:
    """Test the explorer with its big counts, on a real cluster too, and keep the result; `-- FILE ...` for some."""
    session.chdir(ROOT)
    session.run("python", ".ci/run_campaigns.py", *session.posargs, success_codes=[0, 1])


@nox.session
def wild_bugs(session: nox.Session) -> None:
    """Find the bugs of released libraries again, and keep the result in the docs; `-- NAME ...` for some."""
    session.chdir(ROOT)
    session.run("python", "-m", "tests.wild.bugs", "--write", *session.posargs)


@nox.session
def wild(session: nox.Session) -> None:
    """Explore the test suites of other libraries as they were published; `-- tricycle anyio` for some."""
    session.chdir(ROOT)
    session.run("python", "-m", "tests.wild", "--plain", *session.posargs)


@nox.session
def misbehaving(session: nox.Session) -> None:
    """Explore tests that spin, block, fork and swallow all that is raised, and keep how each ended in the docs."""
    session.chdir(ROOT)
    session.run("python", "-m", "tests.wild.misbehaving", "--write", *session.posargs)


@nox.session
def frameworks(session: nox.Session) -> None:
    """Hold agent frameworks to the laws, each in its own environment, and keep the result; `-- langgraph` for some."""
    session.chdir(ROOT)
    session.run("python", "-m", "tests.frameworks", *session.posargs)


@nox.session
def network(session: nox.Session) -> None:
    """Explore Trio's own tests of sockets over the network in memory, and keep the counts; `-- --explore=100`."""
    session.chdir(ROOT)
    session.run("python", "-m", "pip", "install", "-q", "-c", ".ci/constraints.txt", "pyopenssl", "trustme")
    session.run("python", ".ci/measure_network.py", "--write", *session.posargs)
