"""The pages that commands write say what failed, of which program, and how to run it again."""

from __future__ import annotations

import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from toolrt import sim
from toolrt.teaching.litmus import LITMUS
from toolrt.workspace.names._identity import Identity


def _bar(page: Path) -> tuple[str, dict[str, str]]:
    """Give the verdict's line of a page, and the rows below it."""
    html = page.read_text(encoding="utf-8")
    bar = html.split('<details id="verdict"')[1].split("</details>")[0]
    head = unescape(re.sub("<[^>]*>", "", bar.split("<summary>")[1].split("</summary>")[0]))
    names = re.findall(r"<dt>(.*?)</dt>", bar, re.S)
    texts = [unescape(re.sub("<[^>]*>", "", text)) for text in re.findall(r"<dd>(.*?)</dd>", bar, re.S)]
    return head, dict(zip(names, texts, strict=True))


def test_litmus_page_says_what_is_wrong_and_how_to_run_it_again(toolrt: Any, tmp_path: Path) -> None:
    """The bug's outcome, the story, and a line that repeats the schedule."""
    page = tmp_path / "page.html"
    assert toolrt("litmus", "lost_update_2x1", "--html", page).code == 0
    head, rows = _bar(page)
    assert "FAIL" in head
    assert "the outcome is 1, which is the bug" in head
    assert rows["Value"] == "1"
    assert rows["Program"] == f"lost_update_2x1: {LITMUS['lost_update_2x1'].story}"
    again = eval(rows["Run it again"], {"sim": sim, "LITMUS": LITMUS})
    assert again.value == 1
    assert again.schedule.short == rows["Schedule"]


def test_litmus_page_of_a_right_program_says_what_was_shown(toolrt: Any, tmp_path: Path) -> None:
    """Where nothing goes wrong the bar has the claim, and the schedule that is drawn can be run again."""
    page = tmp_path / "page.html"
    assert toolrt("litmus", "lock_2", "--html", page).code == 0
    head, rows = _bar(page)
    assert "PASS" in head
    assert "exhaustive(schedules=6)" in head
    again = eval(rows["Run it again"], {"sim": sim, "LITMUS": LITMUS})
    assert str(again.value) == rows["Value"] == "2"


@pytest.mark.parametrize(("name", "meant"), [("two_looks_passes", "order='trio'"), ("plain_two_keys", "track=True")])
def test_page_says_what_a_replay_needs(toolrt: Any, tmp_path: Path, name: str, meant: str) -> None:
    """A schedule means the order that it was made in, and its program the tracking."""
    page = tmp_path / "page.html"
    assert toolrt("litmus", name, "--html", page).code == 0
    rows = _bar(page)[1]
    assert rows["Run it again"].endswith(f", {meant})")
    assert str(eval(rows["Run it again"], {"sim": sim, "LITMUS": LITMUS}).value) == rows["Value"]


@pytest.mark.seldom
def test_explore_page_names_the_law_and_the_replay_command(
    explored: Any, toolrt: Any, response: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the order taken away the page says which law is broken; its command repeats it, and draws the same bar."""
    page, again, kept = tmp_path / "page.html", tmp_path / "again.html", tmp_path / "a file.json"
    with monkeypatch.context() as patched:
        patched.setattr(Identity, "claims", lambda self, mode, subtree=False: ())
        ended = explored("--executions", 3, "--save", kept, "--html", page)
        assert ended.code == 1, ended.err
        head, rows = _bar(page)
        assert "FAIL" in head
        assert "does not hold" in head
        assert rows["Program"] == f"{response}: 14 calls, by_claims, at most 10 at once"
        assert "(digest of results, state and files: " in rows["Value"]
        command, *arguments = shlex.split(rows["Run it again"])
        assert command == "toolrt"
        repeated = toolrt(*arguments)
        assert repeated.code == 1, repeated.err
        assert head.split("FAIL ")[1] in repeated.out
        assert toolrt("timeline", kept, "--html", again).code == 0
    assert _bar(again) == (head, rows)


def test_explore_page_of_a_pass_says_what_was_shown(explored: Any, tmp_path: Path) -> None:
    """The verdict is the exploration's, with its claim."""
    page = tmp_path / "page.html"
    assert explored("--executions", 2, "--html", page).code == 0
    head, rows = _bar(page)
    assert "PASS" in head
    assert "sampled(n=2" in head
    assert "Run it again" not in rows
