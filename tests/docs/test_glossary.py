"""The glossary has every word of the design, once, and the terms of the Japanese texts that the project grew from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

#: The words of the design.
WORDS = """call, batch, lane, claim, ticket, state, modifier, update, outcome, tracked call, step, tick, choice,
schedule, trace, policy, strategy, oracle, invariant, virtual seconds, law, mutant, workspace, registry, runtime,
progress, result, safe, exclusive, partition, merge, sub-batch, approval, probe, service, read budget, skeleton,
litmus program, mix"""
#: The terms of the texts, as they have them.
TERMS = """ツール実行ランタイム 並列 直列 進捗 結果順序 完了順 元の順序 安定順 統合 マージ 共有 更新 上流
登録 調度 追跡 回写 待機中 実行中 完了 読み取り専用 教材 最小実装 同じ 直列化 同一ファイル 実行順序
昇順 競合 排他 部分適用 後続 永久待ち 解放 要件 非目標 受け入れ条件 相対 絶対 意図した順序 失敗時
対象 非決定的 実ファイル"""


def _rows(table: str) -> list[list[str]]:
    lines = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| word")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


@pytest.fixture
def tables(root: Path) -> tuple[list[list[str]], list[list[str]]]:
    """The rows of the words, and those of the words of the seeds."""
    text = (root / "docs/glossary.md").read_text(encoding="utf-8").split("## Public classes")[0]
    words, _, seeds = text.partition("## The words of the seeds")
    return _rows(words), _rows(seeds)


@pytest.fixture
def rows(tables: tuple[list[list[str]], list[list[str]]]) -> list[list[str]]:
    """The rows of the words."""
    return tables[0]


def test_every_word_of_the_design_has_one_row(rows: list[list[str]]) -> None:
    """None is missing, and none means two things."""
    words = [row[0] for row in rows]
    assert sorted(words) == sorted(set(words))
    assert {" ".join(word.split()) for word in WORDS.split(",")} - set(words) == set()
    assert all(len(row) == 2 and row[1] for row in rows)


def test_terms_of_the_seeds_stand_beside_the_english_ones(tables: tuple[list[list[str]], list[list[str]]]) -> None:
    """Each term, beside a word of the glossary, and no such text in the meanings."""
    rows, seeds = tables
    assert {row[0] for row in seeds} <= {row[0] for row in rows}
    japanese = " ".join(row[1] for row in seeds)
    assert [term for term in TERMS.split() if term not in japanese] == []
    assert not re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", " ".join(row[0] + row[1] for row in rows))


@pytest.fixture
def covered(root: Path) -> dict[str, list[str]]:
    """The public classes that stand beside each word, in the last table."""
    text = (root / "docs/glossary.md").read_text(encoding="utf-8").split("## Public classes")[1]
    rows = re.findall(r"^\| ([^|`]+) \| (`.*) \|$", text, re.MULTILINE)
    return {word: re.findall(r"`([\w.*]+)`", classes) for word, classes in rows}


@pytest.fixture
def public(root: Path) -> dict[str, set[str]]:
    """The classes of each room, as the text of public names has them (test_public_names.py holds it)."""
    found: dict[str, set[str]] = {}
    for line in (root / "tests/docs/public_names.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("toolrt"):
            room = found.setdefault(line, set())
        elif line.startswith("    class "):
            room.add(re.split(r"\W", line.strip())[1])
    return found


def test_public_classes_stand_beside_a_word(covered: dict[str, list[str]], public: dict[str, set[str]]) -> None:
    """Each has a word that says what kind of thing it is; a module that has one word for all stands as `module.*`."""
    named = {name for names in covered.values() for name in names}
    whole = {name.removesuffix(".*") for name in named if name.endswith(".*")}
    missing = {room: classes - named for room, classes in public.items() if room not in whole}
    assert {room: classes for room, classes in missing.items() if classes} == {}


def test_classes_of_the_glossary_exist(covered: dict[str, list[str]], public: dict[str, set[str]]) -> None:
    """Each once, and each word has its own row above."""
    named = [name for names in covered.values() for name in names]
    assert sorted(named) == sorted(set(named))
    exist = {*(f"{room}.*" for room in public), *set().union(*public.values())}
    assert set(named) - exist == set()


def test_words_beside_classes_have_a_meaning(rows: list[list[str]], covered: dict[str, list[str]]) -> None:
    """What a class belongs to is defined on the same page."""
    assert covered.keys() - {row[0] for row in rows} == set()
