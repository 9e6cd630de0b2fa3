"""Search: parts of words, definitions and usages apart, rank, vectors; and every place of a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio
import trio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrt import MemoryDisk, Outcome, Registry, Runtime, State, ToolCall, Workspace, plugins
from toolrt.plugins.code._pieces import split_words, words_of
from toolrt.plugins.code._search import Sought

pytest.importorskip("tree_sitter", reason="the code extra is not installed")

TREE = {
    "user.js": "export function getUserName(user) {\n  return user.name;\n}\n",
    "view.js": (
        'import { getUserName } from "./user";\n\nexport function show(user) {\n  print(getUserName(user));\n}\n'
    ),
    "names.py": (
        "def get_user_name(user):\n    return user.name\n\n\nclass UserStore:\n    def load(self):\n        pass\n"
    ),
    "note.md": "# Names\n\nThe user's name is shown by the view.\n",
    "d/deep.py": (
        "from names import get_user_name\n\n# get_user_name is called here\nprint(get_user_name(1), 'get_user_name')\n"
    ),
}


def asker(files: dict[str, Any], **more: Any) -> Callable[..., str]:
    workspace = Workspace(MemoryDisk(files))
    code = plugins.code.CodeIndex(workspace, **more)
    runtime = Runtime(Registry([*workspace.tools(), *code.tools()]))

    def ask(tool: str, /, **input: Any) -> str:
        [result] = trio.run(runtime.run, [ToolCall("id", tool, input)], State()).results
        assert result.outcome is Outcome.OK, result
        return str(result.content)

    return ask


@pytest.mark.parametrize("query", ["getUserName", "get_user_name", "get user name", "user NAME get"])
def test_words_are_found_however_they_are_joined(query):
    """Definitions first, the whole of a name before others."""
    lines = asker(TREE)("search_code", query=query).split("\n")
    assert lines[0] == "definitions:"
    assert {line.partition(":")[0] for line in lines[1:3]} == {"user.js", "names.py"}
    assert lines[3] == "usages:"
    assert "view.js:4 in show: print(getUserName(user));" in lines[4:]


def test_a_whole_name_comes_before_longer_ones():
    """Whatever else the files have."""
    longer = "def load_user_settings():\n    load_user()\n    load_user()\n"
    ask = asker({"a.py": longer, "b.py": "def load_user():\n    return settings_of_a_user_that_is_not_loaded_yet\n"})
    assert ask("search_code", query="load_user").split("\n")[1].startswith("b.py:1: function load_user |")


def test_a_name_in_capitals_is_found_as_it_stands():
    assert asker(TREE)("search_code", query="GETUSERNAME").split("\n")[1].startswith("user.js:1: function getUserName")


def test_parts_are_told():
    assert split_words("getUserName HTTPServer x plain snake_case") == "get user name http server"
    assert words_of("HTTPServer_getURL2x") == ["http", "server", "get", "url2x"]


def test_text_without_symbols_is_found_too():
    assert (
        asker(TREE)("search_code", query="shown by the view")
        == "usages:\nnote.md:3: The user's name is shown by the view."
    )


def test_some_words_are_enough_where_no_piece_has_all():
    assert "names.py:5: class UserStore" in asker(TREE)("search_code", query="UserStore zebra")


def test_a_search_is_narrowed_by_path():
    """To a directory or a file, and to no other that begins with the same letters."""
    ask = asker({**TREE, "dd.py": "def get_user_name(): ...\n"})
    assert ask("search_code", query="get_user_name", path="d").split("\n")[1].startswith("d/deep.py:")
    assert "dd.py" not in ask("search_code", query="get_user_name", path="d")
    assert ask("search_code", query="get_user_name", path="names.py").split("\n") == [
        "definitions:", "names.py:1: function get_user_name | def get_user_name(user)",
    ]  # fmt: skip
    assert ask("search_code", query="nowhere") == "nothing is found"


@pytest.mark.seldom
@settings(max_examples=60)
@given(st.text(max_size=30))
def test_any_query_is_one(query):
    """No character of it is FTS5's."""
    if any(letter.isalnum() for letter in query):
        assert ASK("search_code", query=query)


ASK = asker(TREE)


def test_references_are_told_apart():
    """Definitions, imports, calls and other uses, each by path and line; whole words alone."""
    assert asker({**TREE, "x.py": "get_user_names = 1\nmy_get_user_name = 2\n"})(
        "find_references", name="get_user_name"
    ).split("\n") == [
        "definitions:",
        "names.py:1: def get_user_name(user):",
        "imports:",
        "d/deep.py:1: from names import get_user_name",
        "calls:",
        "d/deep.py:4: print(get_user_name(1), 'get_user_name')",
        "uses:",
        "d/deep.py:3: # get_user_name is called here",
    ]
    assert asker(TREE)("find_references", name="get_user_name", limit=1).endswith(
        "(only the first 1 places are shown; narrow it by path)"
    )
    assert asker(TREE)("find_references", name="zebra") == "zebra stands nowhere"


def by_letters(texts: list[str]) -> list[list[float]]:
    """A model of a kind: how often each vowel stands there."""
    return [[1.0 + text.count(letter) for letter in "aeiouz"] for text in texts]


def test_vectors_join_the_search():
    """What has no word of the query is found by meaning; each piece is embedded once."""
    seen: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return by_letters(texts)

    ask = asker({"a.md": "zzzz zzz zz zzzzz\n", "b.md": "plain text\n"}, embed=embed)
    assert ask("search_code", query="zzzzzzzz").split("\n")[:2] == ["usages:", "a.md:1: zzzz zzz zz zzzzz"]
    ask("search_code", query="zzzzzzzz")
    assert seen == ["a.md\nzzzz zzz zz zzzzz", "b.md\nplain text", "zzzzzzzz", "zzzzzzzz"]


def test_an_async_model_is_waited_for():
    async def embed(texts: list[str]) -> Sequence[Sequence[float]]:
        await trio.lowlevel.checkpoint()
        return by_letters(texts)

    assert "a.md:1" in asker({"a.md": "zzzz\n"}, embed=embed)("search_code", query="zzz")


@pytest.mark.parametrize("given_", [[], [[1.0]] * 5, [[float("nan")]], [["x"]], None, [[]]])
def test_what_is_no_vector_is_no_failure(given_):
    """Words alone find, and the answer says so."""
    told = asker({"a.md": "zebra\n"}, embed=lambda texts: given_)("search_code", query="zebra")
    assert (
        told == "usages:\na.md:1: zebra\n(search by meaning failed (DefinitionRefused); these are found by words alone)"
    )


def test_a_query_has_at_most_so_many_words():
    assert len(Sought.of(" ".join(f"w{number}" for number in range(100))).words) == 32
