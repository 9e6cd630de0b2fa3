"""Every block of code on every page is run by a test, or it is listed here why it cannot be.

Python blocks are run by test_examples.py, all of them, in every page.  Of commands and of what they print, this module
knows who runs them.
"""

from __future__ import annotations

import importlib.util
import io
import json
import math
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from toolrt import sim
from toolrt.cli import main
from toolrt.teaching.litmus import LITMUS

_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LAWS = "docs/explanation/laws/"

#: Who runs the commands of a page, or why nobody does.  The text of the first line names the block where a page has
#: several of different kinds.
COMMANDS = {
    "README.md": "run by .ci/run, each in a clean copy of the checkout, as they stand there",
    "docs/README.md": "installs packages; .ci/check_docs.py builds the same site with the same warnings",
    "docs/explanation/head-to-head.md": "installs other explorers from an index; test_head_to_head.py runs some rows",
    "docs/explanation/mutation.md": "run by tests/testing/test_mutation_score.py with fewer examples",
    "docs/explanation/peers.md": "installs other frameworks from an index, which no test may need",
    "docs/explanation/proof.md": "installs a package of the system; the check is run by tests/properties/test_proof.py",
    "docs/how-to/code-intelligence.md": "installs a package from an index, which no test may need",
    "docs/how-to/explore-your-test.md": "run by test_explore_page.py",
    "docs/how-to/playground.md": "installs packages with npm; .ci/run writes the site, and tests/playground opens it",
    "docs/how-to/see-a-schedule.md": "run below",
    "docs/how-to/teach-a-class.md": "run by test_lesson_plan.py, but for the installation, which needs an index",
    "docs/index.md": "README's first command, which .ci/run runs as it stands there",
    "docs/notebooks/index.md": "installs packages from an index; .ci/check_notebooks.py runs the notebooks",
    "docs/talk/talk.md": "run by test_talk.py",
    "docs/tutorial/00-ten-minutes.md": "run by test_ten_minutes.py",
}
#: The same for what is shown and is neither a program nor a command.
SHOWN = {
    "docs/talk/talk.md": "the output is compared by test_talk.py; the two calls of the first slide are no program",
    "docs/reference/cli.md": "it writes into the home directory; tests/cli/test_doctor.py checks the scripts",
    "docs/explanation/frameworks.md": "a long command; the rest is compared by tests/frameworks",
    "docs/how-to/anthropic.md": "a loop as it is written without toolrt",
    "docs/how-to/openai.md": "a loop as it is written without toolrt",
    "docs/explanation/litmus.md": "compared below",
    "docs/explanation/simulator.md": "compared below",
    "docs/paper.md": "figures, which docs/artifact.py makes again: test_paper.py runs some",
    "docs/tutorial/00-ten-minutes.md": "outputs are compared by test_ten_minutes.py; an installation",
    "docs/how-to/judge-histories.md": "compared below",
    "docs/how-to/ci.md": "steps of a job on a CI server, and a setting",
    "docs/how-to/serve.md": "an installation, and settings of other programs",
    "docs/how-to/watch-a-run.md": "a line of half a minute's wait: tests/cli/test_live.py holds its form",
    "docs/how-to/explore-your-test.md": "outputs are compared by test_explore_page.py; an installation and a setting",
}


def _blocks(page: Path) -> Iterator[tuple[str, str]]:
    yield from _BLOCK.findall(page.read_text(encoding="utf-8"))


def test_blocks_of_page_are_run_or_listed(page: Path, root: Path) -> None:
    """Each has a language, and each language somebody who runs it."""
    name = page.relative_to(root).as_posix()
    blocks = list(_blocks(page))
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^ *(```|~~~)", text, re.MULTILINE)) == 2 * len(blocks), "a fence that is indented, or open"
    for language, block in blocks:
        if language == "python":
            continue
        if name.startswith(_LAWS):
            assert language in ("sh", "text"), block  # both are held by test_law_pages.py
        elif language == "sh":
            assert name in COMMANDS, block
        else:
            assert language in ("output", "text"), block
            assert name in SHOWN, block
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(page)
    assert len(list(document.examples())) == sum(language == "python" for language, _ in blocks)


def test_lists_name_pages_that_have_such_blocks(root: Path) -> None:
    """What is said of a page is dropped with the block that it is said of."""
    for listed, languages in ((COMMANDS, {"sh"}), (SHOWN, {"text", "output"})):
        for name in listed:
            assert languages & {language for language, _ in _blocks(root / name)}, name


@pytest.fixture
def place(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the files that the page on pictures speaks of."""
    from toolrt.cli.experiment._experiment import Experiment
    from toolrt.cli.experiment._failure import FailureFile
    from toolrt.interop import parse_response
    from toolrt.workspace import MemoryDisk

    monkeypatch.chdir(tmp_path)
    example = root / "docs" / "examples"
    for copy in ("DIR", "before"):  # the first is changed by the first command
        shutil.copytree(example / "shop", copy, symlinks=True)
    text = (example / "response.json").read_text(encoding="utf-8")
    Path("response.json").write_text(text)
    experiment = Experiment(parse_response(text, "x").calls, MemoryDisk.copy_of("before"), "by_claims", 10)
    for name, seed in (("one", 1), ("other", 2)):
        execution = sim.run(experiment.program, sim.RandomWalk(seed))
        Path(f"{name}.json").write_text(execution.trace.to_json())
    kept = FailureFile("x", text, "before", experiment.tree_digest, "by_claims", 10, execution.schedule, ())
    Path("failure.json").write_text(kept.to_json())
    return tmp_path


@pytest.mark.seldom
def test_commands_on_pictures_run(root: Path, place: Path) -> None:
    """They end well, one after the other; the file that each is told to write is there, and new."""
    (block,) = (text for language, text in _blocks(root / "docs/how-to/see-a-schedule.md") if language == "sh")
    for line in block.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "toolrt"
        if arguments[0] == "explore":
            arguments += ["--executions", "5"]  # the page says what is drawn, not how long is searched
        for written in ("page.html", "picture.svg"):
            (place / written).unlink(missing_ok=True)
        assert main(arguments) == (1 if arguments[0] == "run" else 0), line  # two calls of the example are not OK
        assert all((place / name).is_file() for name in arguments if name.endswith((".html", ".svg", "trace.json")))


def _contains(output: str, wanted: str) -> bool:
    """Whether the lines of `wanted` are in `output` in order; ``...`` stands for any."""
    place = 0
    for line in (line for line in wanted.splitlines() if line != "..."):
        place = output.find(f"{line}\n", place)
        if place < 0:
            return False
        place += len(line)
    return True


def test_litmus_programs_print_what_their_page_shows(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is verified, and one that is played."""
    verified, played = (text for language, text in _blocks(root / "docs/explanation/litmus.md") if language == "text")
    command, wanted = verified.split("\n", 1)
    assert main(shlex.split(command.removeprefix("$ toolrt "))) == 0
    assert _contains(capsys.readouterr().out, wanted)
    monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))
    assert main(["litmus", "lost_update_2x1", "--play"]) == 0
    assert _contains(capsys.readouterr().out, played)


def test_failure_says_what_the_page_on_the_simulator_shows(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it, with the lines of the program as it stands there; its repair however long the search has taken."""
    monkeypatch.setattr("toolrt.sim.exploring._explore.QUICK", math.inf)
    blocks = list(_blocks(root / "docs/explanation/simulator.md"))
    (at,) = (number for number, (language, _) in enumerate(blocks) if language == "text")
    path = tmp_path / "update.py"
    path.write_text("import trio\nfrom toolrt import sim\n\n\n" + blocks[at - 1][1])
    spec = importlib.util.spec_from_file_location("update", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.failure.explain().rstrip() == blocks[at][1].rstrip()


def test_page_on_peers_names_what_is_there(root: Path) -> None:
    """Each command of toolrt's own table has its test or script, and the last table is the script's."""
    text = (root / "docs/explanation/peers.md").read_text(encoding="utf-8")
    own = text.split("## toolrt, and what shows it")[1].split("\n## ")[0]
    commands = [shlex.split(row.rsplit("`", 2)[1]) for row in own.splitlines() if row.endswith("` |")]
    assert len(commands) == len([row for row in own.splitlines() if row.startswith("|")]) - 2
    for program, *arguments in commands:
        if program == "toolrt":
            assert arguments == ["laws"] or (arguments[0] == "litmus" and arguments[1] in LITMUS)
            continue
        assert program in ("pytest", "python")
        file, _, function = arguments[0].partition("::")
        assert (root / file).exists(), file
        assert not function or f"def {function}(" in (root / file).read_text(encoding="utf-8"), function
    script = (root / "tests/benchmarks/peers.py").read_text(encoding="utf-8")
    shown = text.split("<!-- peers: begin -->")[1].split("<!-- peers: end -->")[0].strip().splitlines()
    assert all(json.dumps(cell.strip()) in script for cell in shown[0].strip("|").split("|"))
    assert [row.split("|")[1].strip() for row in shown[2:]] == re.findall(
        r'^    "([\w -]+)": \(\w+, ', script, re.MULTILINE
    )


def test_page_of_judges_shows_what_its_program_prints(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first text block is the output of the block before it."""
    page = root / "docs/how-to/judge-histories.md"
    examples = list(Sybil(parsers=[PythonCodeBlockParser()]).parse(page).examples())
    for example in examples[:2]:
        example.evaluate()
    shown = [block for language, block in _blocks(page) if language == "text"]
    assert capsys.readouterr().out == shown[0]


def test_first_example_of_the_readme_is_told_with_its_values(root: Path, tmp_path: Path) -> None:
    """Both read 0, both write 1, on one screen, and a lock round the three lines is what mends it."""
    program = next(text for language, text in _blocks(root / "README.md") if language == "python")
    path = tmp_path / "first_of_readme.py"
    path.write_text(program, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
        told = module.report.failures[0].explain()
    finally:
        del sys.modules[path.stem]
    steps = re.findall(r"(?:reads|writes) stock\['tea'\] (?:= \d|\d -> \d)", told.partition("step  task")[2])
    assert steps[:4] == [
        "reads stock['tea'] = 0",
        "reads stock['tea'] = 0",
        "writes stock['tea'] 0 -> 1",
        "writes stock['tea'] 1 -> 1",
    ]
    assert len(told.splitlines()) <= 20
    assert "`async with lock:` round lines 9 to 11 of add: 1,000 of 1,000 pass" in told
