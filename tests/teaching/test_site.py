"""The gallery as a site: a page for each program, an index, and what each says of how much it has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from toolrt.errors import DefinitionRefused
from toolrt.teaching.litmus import LITMUS, THEMES, Litmus
from toolrt.teaching.litmus._litmus import LESSONS
from toolrt.teaching.play import GallerySite, Game, write_site
from toolrt.teaching.play._words import words_in

_FEW = {
    "shared memory": [LITMUS["lost_update_2x1"], LITMUS["lost_update_3x2"]],
    "locks": [LITMUS["lock_2"]],
    "many schedules": [LITMUS["needle_5x3"]],
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> GallerySite:
    """A site of four programs, of at most 60 schedules each."""
    return write_site(tmp_path_factory.mktemp("site") / "gallery", 60, _FEW)


def _document(page: Path) -> Any:
    found = re.search(r'id="document">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return json.loads(found[1])


@pytest.mark.seldom
def test_site_has_a_page_for_each_program_and_an_index(written: GallerySite) -> None:
    """Each links to the next one, and the index to all; the sizes are those of the files."""
    names = [program.name for each in _FEW.values() for program in each]
    files = sorted(path.name for path in written.directory.iterdir())
    assert files == sorted(["index.html", *(f"{name}.html" for name in names)])
    index = _document(written.directory / "index.html")
    assert [program["file"] for theme in index["themes"] for program in theme["programs"]] == [
        f"{name}.html" for name in names
    ]
    pages = [_document(written.directory / f"{name}.html") for name in names]
    assert [page["next"] for page in pages] == [*([name, f"{name}.html"] for name in names[1:]), None]
    assert written.programs == 4
    assert written.size == sum(path.stat().st_size for path in written.directory.iterdir())


@pytest.mark.seldom
def test_pages_with_a_part_of_the_schedules_say_so(written: GallerySite) -> None:
    """A program with more schedules than asked for is there in part; one of few classes has them all the same."""
    assert written.in_part == ("lost_update_3x2", "needle_5x3")
    page = _document(written.directory / "needle_5x3.html")
    assert (page["whole"], page["every_class"], page["classes"]) == (False, True, 20)
    assert page["stated"] == 305_540_235_000
    page = _document(written.directory / "lost_update_3x2.html")
    assert (page["whole"], page["every_class"]) == (False, False)
    assert len(page["ends"]) <= 60


@pytest.mark.seldom
def test_tree_of_a_part_leads_to_a_bug() -> None:
    """Where a program can go wrong, at least one schedule on its page does."""
    for name in ("uneven_25", "aba", "dining_3"):
        tree = Game(LITMUS[name]).tree(2)
        assert any(wrong for _, wrong, _ in tree["ends"].values()), name


def test_choices_that_were_not_explored_are_named() -> None:
    """Each place has as many choices as the game has there, in the same order."""
    tree = Game(LITMUS["lost_update_3x1"]).tree(4)
    game, at, barred = Game(LITMUS["lost_update_3x1"]), 0, 0
    while not game.over:
        while len(tree["nodes"][at][2]) == 1:
            [at] = tree["nodes"][at][2]
        after = tree["nodes"][at][2]
        tasks = [tree["texts"][-1 - each if each < 0 else tree["nodes"][each][0]] for each in after]
        assert tasks == [option.task for option in game.options]
        barred += sum(each < 0 for each in after)
        choice = next(choice for choice, each in enumerate(after) if each >= 0)
        game.choose(choice)
        at = after[choice]
    assert barred


def test_polling_ends_on_a_page_as_in_a_search() -> None:
    """A program that polls has seven schedules, and none is cut off."""
    tree = Game(LITMUS["poll"]).tree()
    assert [end[:2] for end in tree["ends"].values()] == [["1", False]] * 7


@pytest.mark.seldom
def test_difficulty_is_how_often_chance_finds_the_bug(written: GallerySite) -> None:
    """Half of all blind games lose the update; one in 32 finds the needle."""
    index = _document(written.directory / "index.html")
    found = {program["name"]: program["difficulty"] for theme in index["themes"] for program in theme["programs"]}
    assert found == {"lost_update_2x1": "easy", "needle_5x3": "hard", "lock_2": "easy", "lost_update_3x2": "easy"}


def test_chance_is_exact_where_all_is_known() -> None:
    """By hand: main.0 twice in a row, or main.1, is right; that is one game of two."""
    assert Game(LITMUS["lost_update_2x1"]).tree()["chance"] == 0.5


def test_every_program_and_theme_teaches_something() -> None:
    """Each has a line, in few words."""
    assert set(LESSONS) == set(THEMES)
    lines = {program.name: program.teaches for program in LITMUS.values()}
    assert {name for name, line in lines.items() if not 0 < len(line) <= 70} == set()


def test_words_are_found_by_their_forms() -> None:
    """In any case, in the plural, and not inside of other words."""
    assert [word for word, _, _ in words_in(["Two Tasks; a CancelScope", "unlocked"])] == ["task", "scope"]
    assert words_in([]) == []


@pytest.mark.parametrize("most", [0, -1, True, "60"])
def test_site_of_no_schedules_is_refused(tmp_path: Path, most: Any) -> None:
    """Nothing is written."""
    with pytest.raises(DefinitionRefused, match="1 or more"):
        write_site(tmp_path / "site", most, _FEW)
    assert not (tmp_path / "site").exists()


def test_site_replaces_no_index_but_its_own(tmp_path: Path) -> None:
    """Another index.html stays; a gallery's is written anew."""
    few: dict[str, list[Litmus]] = {"shared memory": [LITMUS["overdraw"]]}
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(DefinitionRefused, match="an earlier gallery"):
        write_site(tmp_path, 10, few)
    assert (tmp_path / "index.html").read_text() == "mine"
    write_site(tmp_path / "new", 10, few)
    assert write_site(tmp_path / "new", 10, few).programs == 1
