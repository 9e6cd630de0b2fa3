"""Which bytes a text is."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrt.workspace import FileProblem
from toolrt.workspace.text._encoding import decoded, encoded, encoding_of, named

MARKS = {
    "utf-8": b"",
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"))


@given(text=TEXTS, encoding=st.sampled_from(sorted(MARKS)))
def test_text_gives_its_bytes_back(text, encoding):
    """With its mark, whatever the encoding."""
    content = MARKS[encoding] + text.encode(encoding)
    assert encoded("a", decoded("a", content), "it", encoding_of(content)) == content


@given(content=st.binary(max_size=20), encoding=st.sampled_from([None, "latin-1", "cp1252", "shift_jis", "gb18030"]))
def test_what_is_decoded_gives_its_bytes_back(content, encoding):
    """Whatever the bytes are: they are refused, or nothing of them is lost."""
    try:
        text = decoded("a", content, encoding)
    except FileProblem as refused:
        problem = refused
    else:
        assert encoded("a", text, "it", encoding or encoding_of(content)) == content
        return
    assert f"{len(content)} byte" in problem.got


def test_the_longer_mark_is_tried_first():
    """The mark of UTF-32 LE begins with that of UTF-16 LE."""
    assert encoding_of(codecs.BOM_UTF32_LE + b"a\0\0\0") == "utf-32-le"
    assert encoding_of(codecs.BOM_UTF16_LE + b"a\0") == "utf-16-le"
    assert encoding_of(codecs.BOM_UTF8 + b"a") is None
    assert decoded("a", codecs.BOM_UTF8 + b"a") == "\ufeffa"


def test_bytes_without_a_mark_are_utf8():
    """Nothing is guessed: UTF-16 without a mark is refused, and the refusal says how to name an encoding."""
    with pytest.raises(FileProblem, match=r"4 bytes of binary data.*name its encoding"):
        decoded("a", "ab".encode("utf-16-le"))
    assert decoded("a", "ab".encode("utf-16-le"), "utf-16-le") == "ab"


def test_encoding_that_loses_something_is_refused():
    """Shift JIS has two spellings of some letters: what it cannot give back is not edited."""
    with pytest.raises(FileProblem, match="2 bytes that CP932 cannot give back exactly"):
        decoded("a", b"\xfa\x4a", "cp932")


@pytest.mark.parametrize(
    ("given_name", "found"),
    [("UTF-8", "utf-8"), ("utf_16", "utf-16-le"), ("Latin-1", "latin-1"), ("windows-1252", "cp1252"), (None, None)],
)
def test_encodings_are_named_as_python_names_them(given_name, found):
    """UTF-16 without an order is the order of most files."""
    assert named("a", given_name) == found


@pytest.mark.parametrize(
    "name",
    ["", "idna", "base64", "rot13", "utf-7", "iso2022_jp", "undefined", "日本", "a\0", "u" * 9999, "."],
)
def test_names_of_no_encoding_are_refused(name):
    """Neither what is no encoding of files nor what keeps a state."""
    with pytest.raises(FileProblem, match="the name of a text encoding") as caught:
        named("a", name)
    assert len(str(caught.value)) < 300


def test_character_that_an_encoding_lacks_is_refused():
    """The refusal says which."""
    with pytest.raises(FileProblem, match="'€' at character 1, which that encoding does not have"):
        encoded("a", "a€", "new", "latin-1")
