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


@pytest.fixture
def rows(root: Path) -> list[list[str]]:
    """The table's rows: word, meaning, Japanese, names."""
    text = (root / "docs/glossary.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| word")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def test_every_word_of_the_design_has_one_row(rows: list[list[str]]) -> None:
    """None is missing, and none means two things."""
    words = [row[0] for row in rows]
    assert sorted(words) == sorted(set(words))
    assert {" ".join(word.split()) for word in WORDS.split(",")} - set(words) == set()
    assert all(len(row) == 4 and row[1] for row in rows)


def test_terms_of_the_seeds_stand_beside_the_english_ones(rows: list[list[str]]) -> None:
    """Each term, in the column of its language, and no such text in the meanings."""
    japanese = " ".join(row[2] for row in rows)
    assert [term for term in TERMS.split() if term not in japanese] == []
    assert not re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", " ".join(row[0] + row[1] for row in rows))
