"""What an edit replaces, and what it never touches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrt.workspace import FileProblem
from toolrt.workspace.text._text import (
    Edit,
    check_edit,
    edited,
    edited_in_turn,
    line_count,
    lines_of,
    nearest,
    numbered,
)


def edit(text, old, new, every=False):
    return edited("a", text, old, new, every).text


def refusal(text, old, new="new", every=False):
    with pytest.raises(FileProblem) as caught:
        edited("a", text, old, new, every)
    return caught.value


def test_edit_with_all_replaces_every_place():
    """From the left, without overlaps."""
    assert edit("a a aaa", "aa", "b", True) == "a a ba"
    assert edited("a", "x\nx\nx", "x", "y", True).lines == (1, 2, 3)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", ["", "\n", "\r\n", "\n\n"])
def test_edit_keeps_the_mark_and_the_last_newline(mark, last):
    """Neither is added nor lost."""
    assert edit(f"{mark}one\ntwo{last}", "two", "2") == f"{mark}one\n2{last}"


@pytest.mark.parametrize(
    ("text", "old", "new", "edited"),
    [
        ("1\r\n2\n3\r4\r\n", "3", "x", "1\r\n2\nx\r4\r\n"),  # other lines keep their own ends
        # Models answer LF where they were shown CRLF; the file's ends are kept.
        ("1\r\n2\r\n3\r\n", "1\n2", "x\ny", "x\r\ny\r\n3\r\n"),
        ("1\n2\n3\n", "1\r\n2", "x\r\ny", "x\ny\n3\n"),
        # In a place with mixed ends each new line takes the end of the old one; further ones the last.
        ("1\r\n2\r3\n4", "1\n2\n3\n", "a\nb\nc\nd\n", "a\r\nb\rc\nd\n4"),
        # A file whose every line ends with CRLF stays one.
        ("1\r\n2\r\n", "2", "a\nb", "1\r\na\r\nb\r\n"),
        ("1\r\n2\r\n", "2", "a\r\nb", "1\r\na\r\nb\r\n"),
        ("1\r\n2\n", "2", "a\nb", "1\r\na\nb\n"),  # where both kinds stand the new text is taken as it is
        # A place never begins or ends between the halves of a line end.
        ("a\r\nb", "\nb", "\nc", "a\r\nc"),
        ("a\r\nb", "a\r", "c\r", "c\r\nb"),
        ("a\r\nb a\nb", "a\nb", "x", "a\r\nb x"),  # line ends are looked past only when nothing fits exactly
    ],
)
def test_edit_knows_line_ends(text, old, new, edited):
    """Those of the file stay, whichever the texts have; without carriage returns an edit is a plain replacement."""
    assert edit(text, old, new) == edited


@pytest.mark.parametrize(
    ("text", "old", "got"),
    [
        ("x\ny\nx\n", "x", "2 places (lines 1, 3)"),
        ("\r\nx\rx\n\nx", "x", "3 places (lines 2, 3, 5)"),
        ("aaa", "aa", "2 places (lines 1, 1)"),
        ("a\r\nb\r\na\r\nb", "a\nb", "2 places (lines 1, 3)"),
        ("x\n" * 11, "x", "11 places (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...)"),
        ("x\r\n" * 200, "x", "200 places (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...)"),
        ("x\n" * 10, "x", "10 places (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)"),
        ("a\r\nb", "a\n\nb", "0 places"),
    ],
)
def test_edit_of_several_places_says_how_many_and_where(text, old, got):
    """Line numbers of the first ten are named; places that overlap count."""
    assert refusal(text, old).got == got


def test_edit_of_no_place_names_the_nearest_lines():
    """The model sees what it may have meant."""
    problem = refusal("def alpha():\n    return 1\n\ndef beta():\n", "def alhpa():\n    return 2\n")
    assert problem.got == "0 places"
    assert "line 1: def alpha():" in problem.remedy


def test_edit_of_no_place_in_other_text_says_so():
    """Nothing near is not answered with something far."""
    assert "No line is near" in refusal("1\n2\n", "completely different").remedy
    assert "No line is near" in refusal("", "x").remedy
    assert "No line is near" in refusal("a", "\n \n").remedy


def test_edit_of_no_place_in_a_long_text_is_bounded():
    """Only the first lines are compared, and only their first characters shown."""
    assert "line 2000" in refusal("\n" * 1999 + "needle\n", "needel").remedy
    assert "No line is near" in refusal("\n" * 2000 + "needle\n", "needel").remedy
    line = " ".join(str(number) for number in range(1000))
    remedy = refusal(line, "x" + line).remedy
    assert remedy.startswith("Nearest to its first line: line 1: 0 1 2")
    assert len(remedy) < 250


@pytest.mark.parametrize("text", ["", "a", "\n", "a\n", "a\r\nb\rc\n\n", "\u2028\x0b\x1c"])
def test_lines_joined_are_the_text(text):
    """No character is lost between lines."""
    assert "".join(lines_of(text)) == text


def test_lines_end_with_line_ends_only():
    """What Unicode calls a separator is no line end in a file."""
    assert lines_of("a\u2028b\x0bc\x85d\re\r\nf\n") == ["a\u2028b\x0bc\x85d\r", "e\r\n", "f\n"]


def test_lines_are_counted_as_they_are_split():
    """The count needs no list."""
    for text in ("", "a", "\n", "a\n", "a\r\nb\rc\n\n", "\r\r\n"):
        assert line_count(text) == len(lines_of(text))


def test_numbered_lines_keep_their_ends():
    """The number and a tab stand before each."""
    assert numbered("a\r\nb", 9) == "9\ta\r\n10\tb"
    assert numbered("", 1) == ""


# No place, but one that is near


def test_nearest_says_where_the_lines_part():
    """The first line is there; the model sees which one is not as it thought."""
    assert nearest("x\ndef a():\n    return 1\n", "def a():\n    return 2\n") == (
        "Nearest to its first line: line 2: def a():; but line 3 is: return 1, where the text wanted has: return 2"
    )


def test_nearest_prefers_the_place_that_agrees_longest():
    """Of several first lines that fit, the one with the most lines after it that do."""
    assert "line 3: a; but line 5" in nearest("a\nx\na\nb\nc\n", "a\nb\nd")


def test_nearest_tells_a_difference_in_spaces_alone():
    """Tabs for spaces are the commonest mistake of all."""
    assert nearest("if x:\n\ty\n", "if x:\n    y\n") == (
        "Line 1 has it with other spaces or tabs around its lines: line 2 begins with 1 tab, "
        "the text wanted has 4 spaces there."
    )
    assert nearest("a\n  b\n\tc\n", "a\nb\n\tc\n").endswith(
        "line 2 begins with 2 spaces, the text wanted has none there."
    )
    assert nearest("a \nb\n", "a\nb\n").endswith("around its lines: read it again.")


@pytest.mark.parametrize("wanted", ["say(“x – y”)\nz", "say('x - y')\nz", 'say("x  -\u00a0y")\nz'])
def test_nearest_tells_a_difference_in_marks_alone(wanted):
    """Of quotation marks, of dashes, of spaces inside a line."""
    assert nearest('a\nsay("x - y")\nz\n', wanted) == (
        'Line 2 has it with other quotation marks, dashes or spaces: line 2 is: say("x - y")'
    )


def test_nearest_tells_that_the_text_ends():
    """What is wanted goes on where the file does not."""
    assert "line 2 is past the end, where the text wanted has: b" in nearest("a", "a\nb")


def test_nearest_finds_a_line_far_down_that_is_like_it():
    """Equal lines are found in the whole text, similar ones in its first lines."""
    assert "line 5001" in nearest("\n" * 5000 + "  needle\nx", "needle\ny")


# A line that tells one of several places


def test_line_tells_one_of_several_places():
    """The others stay, whatever the line ends are."""
    assert edited("a", "x\nx\nx\n", "x", "y", False, line=2).text == "x\ny\nx\n"
    assert edited("a", "x\r\nz\r\nx\r\nz\r\n", "x\nz", "y\nz", False, line=3).text == "x\r\nz\r\ny\r\nz\r\n"
    assert edited("a", "x" + "\nx" * 50, "x", "y", False, line=40).lines == (40,)


@pytest.mark.parametrize(("text", "line"), [("x\nx\n", 3), ("x\nx x\n", 2), ("x\nx\n", 0)])
def test_line_without_one_place_is_refused(text, line):
    """Nothing is guessed: the places are named."""
    with pytest.raises(FileProblem) as caught:
        edited("a", text, "x", "y", False, line=line)
    assert caught.value.expected == f"old at exactly one place of line {line}"


def test_line_does_not_matter_where_there_is_one_place():
    """The text says more than its number; and where another program changed the file, it alone is believed."""
    assert edited("a", "1\nx\n", "x", "y", False, line=1).text == "1\ny\n"
    with pytest.raises(FileProblem):
        edited("a", "x\nx\n", "x", "y", False, exactly=True, line=2)


def test_lines_of_several_edits_count_as_before_the_first():
    """Whatever the edits before added or removed above."""
    text = "a\nx\nb\nx\nc\nx\n"
    edits = [Edit("a\n", "a\nx\nx\n"), Edit("x", "y", line=4), Edit("b\n", ""), Edit("x", "z", line=6)]
    assert edited_in_turn("a", text, edits)[0] == "a\nx\nx\nx\ny\nc\nz\n"
    many = "o\n" * 11 + "x\nx\n"
    with pytest.raises(FileProblem):
        edited_in_turn("a", many, [Edit("o\n", "", True), Edit("x", "y", line=12)])


def test_all_and_a_line_are_refused():
    """Both cannot be meant."""
    with pytest.raises(FileProblem):
        check_edit("a", Edit("x", "y", True, 1))


# Several edits


def in_turn(text, *edits):
    return edited_in_turn("a", text, [Edit(*edit) for edit in edits])[0]


def test_edits_are_made_in_turn():
    """Each on what those before it left."""
    assert in_turn("one", ("one", "two"), ("two", "three")) == "three"


def test_edits_all_fail_with_one():
    """The refusal names the edit, and says that none was made."""
    with pytest.raises(FileProblem) as caught:
        in_turn("one", ("one", "two"), ("one", "three"))
    assert caught.value.expected == "old at exactly one place (edit 2 of 2)"
    assert caught.value.remedy.startswith("No edit was made. ")


@given(
    text=st.text("ab\r\n", max_size=30),
    edits=st.lists(st.tuples(st.text("ab\n", min_size=1, max_size=3), st.text("ab\n", max_size=3)), max_size=4),
)
def test_edits_in_turn_are_edits_one_by_one(text, edits):
    """The same text, or a refusal where one of them is refused."""
    expected = text
    try:
        for old, new in edits:
            expected = edited("a", expected, old, new, False).text
    except FileProblem:
        with pytest.raises(FileProblem):
            in_turn(text, *edits)
    else:
        assert in_turn(text, *edits) == expected
