"""Test the adapters of agent frameworks with the frameworks themselves, and run the examples of their pages.

    python .ci/run_adapters.py              all of them
    python .ci/run_adapters.py anthropic    some

The frameworks are no part of the extra "dev", so the test suite skips these tests.  This installs them into a virtual
environment in a temporary directory, one for each extra that `ADAPTERS` names, and runs the tests there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Adapter(NamedTuple):
    """What one adapter, a folder of `toolrt/plugins/` and of `tests/plugins/`, is tested with."""

    #: The package that its tests and pages import.
    package: str
    #: The pages of `docs/how-to/` whose programs need that package.
    pages: tuple[str, ...]
    #: The extra that installs it; those that cannot be installed together have an extra each.
    extra: str = "adapters"


ADAPTERS = {
    "anthropic": Adapter("anthropic", ("anthropic", "agent-loop")),
    "openai": Adapter("openai", ("openai",)),
    "langgraph": Adapter("langgraph", ("langgraph",)),
    "agent_framework": Adapter("agent_framework", ("agent-framework",)),
    "llama_index": Adapter("llama_index.core", ("llama-index",)),
    "pydantic_ai": Adapter("pydantic_ai", ("pydantic-ai",)),
    "openai_agents": Adapter("agents", ("openai-agents",)),
}


def tested(name: str) -> list[str]:
    """What pytest is asked to run for one adapter."""
    tests = [f"tests/plugins/{name}"]
    for page in ADAPTERS[name].pages:
        tests.append(f"tests/docs/test_examples.py::test_python_blocks_of_page_run[docs/how-to/{page}.md]")
    return tests


def run(extra: str, names: list[str]) -> int:
    """Install `extra` into a new environment, and run the tests of these adapters there."""
    with tempfile.TemporaryDirectory() as directory:
        python = Path(directory, "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
        install = [python, "-m", "pip", "install", "-qq", "--no-compile", "-c", ".ci/constraints.txt"]
        needed = ["-e", f".[schema,testing,{extra}]", "pytest-timeout", "sybil"]
        subprocess.run([*install, *needed], check=True, cwd=ROOT)
        # A framework that cannot be imported fails here; its tests alone would be skipped.
        packages = ", ".join(ADAPTERS[name].package for name in names)
        subprocess.run([python, "-c", f"import {packages}"], check=True)
        tests = ["tests/interop/test_sdk_conformance.py", *(test for name in names for test in tested(name))]
        options = ["-q", "-rs", "-p", "no:cacheprovider", "-p", "no:toolrt"]
        options += ["-W", "ignore::DeprecationWarning:inspect"]  # LlamaIndex inspects deprecated attributes of pydantic
        # The examples start programs of this environment.
        environment = {**os.environ, "VIRTUAL_ENV": directory, "PATH": f"{python.parent}:{os.environ['PATH']}"}
        return subprocess.run([python, "-m", "pytest", *options, *tests], cwd=ROOT, env=environment).returncode


def main(names: list[str]) -> int:
    """Run the tests of the adapters with these names, of all if there are none."""
    chosen = names or list(ADAPTERS)
    if unknown := set(chosen) - ADAPTERS.keys():
        print(f"no adapter: {', '.join(sorted(unknown))}; there are {', '.join(ADAPTERS)}", file=sys.stderr)
        return 2
    extras = dict.fromkeys(ADAPTERS[name].extra for name in chosen)
    return max(run(extra, [name for name in chosen if ADAPTERS[name].extra == extra]) for extra in extras)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
