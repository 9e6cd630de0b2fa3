"""Directories that take several spellings for one name: only the twin can be told to, the real disk is asked."""

from __future__ import annotations

import unicodedata

import pytest
import trio
import trio.testing

from toolrt import Registry, Runtime, State, ToolCall
from toolrt.workspace import (
    Directory,
    Folding,
    MemoryDisk,
    RealDisk,
    Workspace,
)


@pytest.fixture
def folding():
    """A twin that takes names as macOS does."""
    return TwinOf({"Src/Größe.txt": "text"}, fold=Folding(case=True, unicode=True))


class TwinOf:
    def __init__(self, content, **options):
        self.disk = MemoryDisk(content, **options)
        self.workspace = Workspace(self.disk)

    def key(self, path):
        return self.workspace.identify(path).key


@pytest.mark.parametrize("path", ["src/größe.txt", "SRC/GRÖSSE.TXT", unicodedata.normalize("NFD", "Src/Größe.txt")])
def test_folded_names_are_one_file(folding, path):
    """Every spelling that the directory takes for the same has the same key."""
    assert folding.key(path) == folding.key("Src/Größe.txt")
    assert folding.workspace.identify(path).found is not None


def test_folded_names_are_one_file_before_it_exists(folding):
    """Also of a file, and of a directory, that is not there yet."""
    assert folding.key("New/A.txt") == folding.key("NEW/a.TXT") == ("new", "a.txt")


async def test_folded_key_stays_when_created(folding):
    """Creation under one spelling changes no key."""
    before = folding.key("src/New.TXT")
    await folding.disk.revise(("Src", "new.txt"), 1000, lambda _: b"")
    assert folding.key("src/New.TXT") == before


async def test_folding_disk_keeps_the_name_as_it_was_made(folding):
    """Replacing under another spelling keeps the first one."""
    await folding.disk.revise(("SRC", "GRÖSSE.txt"), 1000, lambda _: b"new")
    assert folding.workspace.snapshot() == {"Src/Größe.txt": b"new"}


def test_folding_is_asked_per_directory():
    """A directory may fold where the one above does not."""
    twin = TwinOf({"plain/A": "", "folding": Directory(fold=Folding(case=True)), "folding/A": ""})
    assert twin.key("plain/a") != twin.key("plain/A")
    assert twin.key("folding/a") == twin.key("folding/A")
    assert twin.key("Folding/A") != twin.key("folding/A")


def test_absolute_name_of_a_folding_root_may_be_spelled_otherwise():
    """The root is recognised under every spelling of its own name."""
    twin = TwinOf({"a.txt": ""}, root="/Users/Me/Repo", fold=Folding(case=True))
    assert twin.key("/users/ME/repo/A.txt") == ("a.txt",)


def test_exact_root_is_not_taken_for_another():
    """Where case counts, another spelling is another directory."""
    twin = TwinOf({"a.txt": ""}, root="/Users/Me/Repo")
    assert twin.key("/users/me/repo/a.txt") is None


def test_folding_again_changes_nothing():
    """A folded name is its own key."""
    folding = Folding(case=True, unicode=True)
    for letter in map(chr, range(1, 0x3000)):
        once = folding.fold(letter)
        assert folding.fold(once) == once


def test_real_folding_is_found_by_another_spelling(tmp_path, monkeypatch):
    """A real directory that finds a name under another case folds."""
    import os

    (tmp_path / "Name").write_text("")
    really = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path, **more: really(str(path).replace("nAME", "Name"), **more))
    assert RealDisk(tmp_path).folds(str(tmp_path.resolve())) == Folding(case=True, unicode=True)


def test_real_folding_is_not_taken_from_hard_links(tmp_path):
    """Two names of one file that differ in case are two names."""
    (tmp_path / "Name").write_text("")
    (tmp_path / "nAME").hardlink_to(tmp_path / "Name")
    assert RealDisk(tmp_path).folds(str(tmp_path.resolve())) == Folding()


async def test_answer_that_names_the_file_is_kept_by_that_name(autojump_clock):
    """A long file is shown in part, and says how to read the rest by the name it was asked for, whoever was first."""
    twin = TwinOf({"BIG.txt": "a line of text\n" * 3000}, fold=Folding(case=True))
    runtime = Runtime(Registry(twin.workspace.tools()))
    await trio.sleep(1)  # what is younger than the disk's time step is not kept
    answers = []
    for path in ("big.txt", "BIG.txt", "big.txt"):
        outcome = await runtime.run([ToolCall("1", "read_file", {"path": path})], State(context_budget=20_000))
        answers.append(outcome.results[0].content[:13])
    assert answers == ["[big.txt has ", "[BIG.txt has ", "[big.txt has "]
    assert twin.workspace.files.statistics()["cached"]["entries"] == 2
