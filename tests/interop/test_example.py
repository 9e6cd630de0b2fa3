"""The example under docs: its two responses are one, and its calls end as its README says."""

import functools
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from toolrt.interop import parse_response
from toolrt.model import ToolCall

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

#: Calls that touch shop/cart.py; by the README, those that edit it need this order.
CART = (0, 2, 3, 5, 6, 8, 10, 13)
CART_EDITS = (2, 3, 6, 8, 10)
FAILS = 9
INVALID = 11


@functools.cache
def calls() -> tuple[ToolCall, ...]:
    """The example's calls."""
    return parse_response((EXAMPLES / "response.json").read_bytes(), "response.json").calls


class Failed(Exception):
    """A call that is not OK."""


def perform(call: ToolCall, root: Path) -> str:
    """The smallest file tools there are: the meaning of the calls, apart from any runtime."""
    path = root / call.input["path"]
    if call.name == "read_file":
        return path.read_text()
    if call.name == "write_file":
        path.write_text(call.input["content"])
        return ""
    assert call.name == "edit_file"
    if not {"old", "new"} <= set(call.input):
        raise Failed("invalid")
    text = path.read_text()
    found = text.count(call.input["old"])
    if found == 0 or (found > 1 and not call.input.get("all")):
        raise Failed(f"old text found {found} times")
    path.write_text(text.replace(call.input["old"], call.input["new"]))
    return ""


def performed(order: Sequence[int], root: Path) -> dict[int, str | None]:
    """What each call answered when performed in that order on a copy of the shop; None when it failed."""
    shutil.copytree(EXAMPLES / "shop", root, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    answers: dict[int, str | None] = {}
    for index in order:
        try:
            answers[index] = perform(calls()[index], root)
        except Failed:
            answers[index] = None
    return answers


def files(root: Path) -> dict[str, str]:
    """Every file's text, and where links lead."""
    return {
        path.relative_to(root).as_posix(): f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.fixture(scope="module")
def in_order(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[int, str | None], Path]:
    """The answers, and the shop afterwards."""
    root = tmp_path_factory.mktemp("example") / "shop"
    return performed(range(len(calls())), root), root


def total(root: Path, *order: str) -> str:
    """What the shop says that an order costs."""
    command = [sys.executable, "-B", "-m", "shop", *order]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def test_example_has_its_14_calls() -> None:
    """The README counts them."""
    assert len(calls()) == 14


def test_example_in_openai_form_is_the_same_calls() -> None:
    """Names and inputs agree; ids are each provider's own."""
    other = parse_response((EXAMPLES / "response-openai.json").read_bytes(), "response-openai.json")
    assert other.format == "openai-responses"
    assert [(call.name, call.input) for call in other.calls] == [(call.name, call.input) for call in calls()]


def test_example_ids_are_distinct() -> None:
    """The example is an ordinary response."""
    assert len({call.call_id for call in calls()}) == len(calls())


def test_example_fails_only_where_said(in_order: tuple[dict[int, str | None], Path]) -> None:
    """In call order, all but the two are OK."""
    answers, _ = in_order
    assert [index for index, answer in answers.items() if answer is None] == [FAILS, INVALID]


def test_example_reaches_one_file_by_four_names() -> None:
    """The calls on shop/cart.py are those the README names, and they spell it in four ways."""
    shop = EXAMPLES / "shop"
    cart = (shop / "shop" / "cart.py").resolve()
    touching = [index for index, call in enumerate(calls()) if (shop / call.input["path"]).resolve() == cart]
    assert tuple(touching) == CART
    assert {calls()[index].input["path"] for index in CART} == {
        "shop/cart.py",
        "./shop/cart.py",
        "data/../shop/cart.py",
        "shop/basket.py",
    }


@pytest.mark.parametrize(("first", "second"), list(itertools.pairwise(CART_EDITS)))
def test_example_edits_need_their_order(
    first: int, second: int, tmp_path: Path, in_order: tuple[dict[int, str | None], Path]
) -> None:
    """Exchanging two neighbouring edits of the file leaves another file."""
    order = list(range(len(calls())))
    order[first], order[second] = second, first
    performed(order, tmp_path / "shop")
    assert files(tmp_path / "shop") != files(in_order[1])


def test_example_every_other_order_of_edits_leaves_another_file(tmp_path: Path) -> None:
    """Of the 120 orders of the five edits, one leaves the file that call order leaves."""
    left: list[str] = []
    for number, order in enumerate(itertools.permutations(CART_EDITS)):
        performed(order, tmp_path / str(number))
        left.append((tmp_path / str(number) / "shop" / "cart.py").read_text())
    assert left.count(left[0]) == 1


def test_example_reads_see_what_precedes_them(in_order: tuple[dict[int, str | None], Path]) -> None:
    """The read in between sees edits 2 and 3 and not 6; the first sees none, the last all."""
    answers, root = in_order
    before, between, after = (answers[index] or "" for index in (0, 5, 13))
    assert before == (EXAMPLES / "shop" / "shop" / "cart.py").read_text()
    assert calls()[3].input["new"] in between
    assert calls()[6].input["new"] not in between
    assert after == (root / "shop" / "cart.py").read_text()


def test_example_links_stay_links(in_order: tuple[dict[int, str | None], Path]) -> None:
    """Writing and editing through a link changes what it leads to."""
    after = files(in_order[1])
    assert (after["data/prices.csv"], after["shop/basket.py"]) == ("-> prices-2026.csv", "-> cart.py")
    assert after["data/prices-2026.csv"] == calls()[7].input["content"]


def test_example_leaves_the_readme_of_the_shop_alone(in_order: tuple[dict[int, str | None], Path]) -> None:
    """Neither the edit that fails nor the invalid one changes the file."""
    assert files(in_order[1])["README.md"] == (EXAMPLES / "shop" / "README.md").read_text()


@pytest.mark.process
def test_example_shop_works_before(tmp_path: Path) -> None:
    """The program is real."""
    performed((), tmp_path / "shop")
    assert (total(tmp_path / "shop", "tea=2", "mug=1"), total(tmp_path / "shop", "teapot=2")) == (
        "24.70 EUR",
        "69.90 EUR",
    )


@pytest.mark.process
def test_example_shop_works_afterwards(in_order: tuple[dict[int, str | None], Path]) -> None:
    """The calls do what the model set out to do."""
    root = in_order[1]
    assert (total(root, "tea=2", "mug=1"), total(root, "teapot=2")) == ("24.70 EUR", "65.00 EUR")
