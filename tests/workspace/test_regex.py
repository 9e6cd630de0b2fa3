r"""Regular expressions whose time is bounded."""

from __future__ import annotations

import itertools
import re
import string
import sys
import warnings

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from toolrt.workspace.finding import _regex
from toolrt.workspace.finding._regex import Expression, RegexRefused, expressions
from toolrt.workspace.finding._search import matching_lines, wanted_in
from toolrt.workspace.rules._patterns import POSIX


def found_by_python(pattern, line, flags=0):
    r"""What `re` finds, but for ``\\B`` in an empty line, which it did not find before Python 3.14."""
    assume(line or "\\B" not in pattern)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of sets in sets, which it may know some day
        return re.search(pattern, line, flags) is not None


def expression(pattern, ignore_case=False) -> Expression:
    """The expression for the one line that the pattern is about."""
    [found] = expressions(pattern, ignore_case)
    return found


def matches(pattern, line, ignore_case=False):
    return expression(pattern, ignore_case).matches(line)


ATOMS = st.sampled_from(
    ["a", "b", "é", "_", "1", ".", "[ab]", "[^a]", "[a-c1]", "\\d", "\\w", "\\s", "\\W", "\\b", "\\B", "^", "$",
     "\\.", "\\x61", "[\\w-]", "[]a]", "()", "-"]
)  # fmt: skip
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map("|".join).map("({})".format),
        st.tuples(
            inner.map("(?:{})".format), st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "{,2}", "*?", "{1,2}?"])
        ).map("".join),
    ),
    max_leaves=8,
)


@given(pattern=PATTERNS, line=st.text("abcé_1 .-A", max_size=10))
@example(pattern="(?:(?:a*)*)*b", line="aaac")
@example(pattern="a\\b", line="a")
@example(pattern="\\Ba", line="ba")
def test_lines_match_as_for_python(pattern, line):
    """Whatever is known here means what it means to `re`."""
    expected = found_by_python(pattern, line)
    assert matches(pattern, line) is expected
    compiled = expression(pattern)
    assert [compiled.matches(some) for some in (line, line[::-1], line)] == [
        expected, re.search(pattern, line[::-1]) is not None, expected
    ]  # fmt: skip


@given(pattern=PATTERNS, line=st.text("abcABC_1 ", max_size=10))
def test_lines_match_as_for_python_in_any_case(pattern, line):
    """Upper and lower case are one, also in sets."""
    assert matches(pattern, line, True) is found_by_python(pattern, line, re.IGNORECASE)


@given(pattern=st.text("ab()[]{}*+?|\\^$.,1-dwx:", max_size=12), line=st.text("ab1(", max_size=6))
def test_any_text_is_a_pattern_or_refused(pattern, line):
    """What both take means the same to both; what is refused here may be known to `re`, never the other way."""
    try:
        found = matches(pattern, line)
    except RegexRefused:
        return
    assert found is found_by_python(pattern, line)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "closed"),
        (")", "none opened"),
        ("[a", "closed"),
        ("a**", "cannot be repeated"),
        ("*", "repeat of nothing at character 0"),
        ("a|{,2}b", "repeat of nothing at character 2"),
        ("^*", "cannot be repeated"),
        ("a*+", "gives nothing back"),
        ("a{3,2}", "wrong way round"),
        ("a{99999}", "9999"),
        ("[b-a]", "wrong way round"),
        ("\\", "nothing behind"),
        ("\\1", "not known here"),
        ("(?=a)", "not known here"),
        ("(?<=a)b", "not known here"),
        ("(?P<a>b)(?P=a)", "not known here"),
        ("(?P<a>b)(?<a>b)", "two groups with the name a"),
        ("(?x)a", "not known here"),
        ("(?s)a.b", "passes a line's end"),
        ("(?s:a.b)", "passes a line's end"),
        ("\\p{Greek}", "not known here"),
        ("\\p", "not known here"),
        ("(?i)\\p{Lu}", "ignores case"),
        ("\\<a\\>", "edge of a word"),
        ("\\x1", "hexadecimal"),
        ("\\Uffffffff", "does not exist"),
        ("a" * 1001, "1000 are the most"),
        ("(" * 60 + ")" * 60, "groups in each other"),
        ("(a{100}){100}", "too large"),
        ("(((){9999}){9999}){9999}", "too large"),
    ],
)
def test_what_is_not_known_is_refused(pattern, why):
    """The refusal says what it is."""
    with pytest.raises(RegexRefused, match=why):
        expression(pattern)


def test_nested_repeats_take_linear_time():
    """Python's own engine would not end in the age of the universe."""
    assert not matches("(a+)+$", "a" * 10_000 + "b")
    assert not matches("(a|a)*b", "a" * 10_000)
    assert not matches("a*" * 50 + "b", "a" * 10_000)


def test_too_much_work_is_refused(monkeypatch):
    """A pattern whose every step is a new state ends with a refusal, at the same step every time."""
    monkeypatch.setattr(_regex, "WORK_MOST", 10_000)
    line = "".join("ab"[int(digit, 16) % 2] for number in range(100) for digit in f"{number * 0x9E3779B97F4A7C15:x}")
    done = []
    for _ in range(2):
        one = expression("(a|b)*a(a|b){60}c")
        with pytest.raises(RegexRefused, match="too much work"):
            one.matches(line)
        done.append(one.work)
    assert done[0] == done[1]


def test_steps_are_forgotten_and_made_again(monkeypatch):
    """The table is bounded, and its bound changes no answer."""
    monkeypatch.setattr(_regex, "_STEPS_REMEMBERED", 3)
    for pattern, line in (("a.*b.*c", "xaxxbyyyzc"), ("^(ab|ba)*$", "abbaabba"), ("\\bx\\b", "ax x bx")):
        assert matches(pattern, line) is (re.search(pattern, line) is not None)


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("\\bfoo\\d+barbaz?", "barba"),
        ("foo|bar", ""),
        ("(foo|barbaz)tail", "tail"),
        ("x{3}", "xxx"),
        ("(ab){2}c", "ababc"),
        ("a.*", "a"),
    ],
)
def test_factor_is_the_rarest_text_that_every_match_has(pattern, literal):
    """What a search may look for first."""
    factor = expression(pattern).factor
    assert factor is not None
    assert factor.literals == (literal,) if literal else len(factor.literals) != 1


def test_texts_of_which_one_is_in_every_match_are_told():
    """None where one of them is no text."""
    factor = expression("xylophone|zither|viola").factor
    assert factor is not None
    assert factor.literals == ("xylophone", "zither", "viola")
    other = expression("xylo|viola", ignore_case=True).factor
    assert other is not None
    assert other.literals == ()


@pytest.mark.parametrize("pattern", ["^$", "a*", "a|", "\\b", "(?:x?|y)z*"])
def test_what_may_match_nothing_has_no_factor(pattern):
    """Then every line has to be looked at."""
    assert expression(pattern).factor is None


@given(pattern=PATTERNS, line=st.text("abcé_1 .-", max_size=10), ignore_case=st.booleans())
@example(pattern="\\w[^a]", line="éé", ignore_case=False)
@example(pattern="ab|(c_){2}", line="c_c_", ignore_case=True)
@example(pattern="(?:a1)+b", line="a1b", ignore_case=False)
def test_factor_is_in_every_line_that_matches(pattern, line, ignore_case):
    """It leaves out no line."""
    one = expression(pattern, ignore_case)
    if one.factor is not None and one.matches(line):
        assert one.factor.compiled().search(line) is not None
        assert not line.isascii() or one.factor.lower_literal in line.lower()
        if not any(one.beyond for sequence in one.factor.sequences for one in sequence):
            assert one.factor.lower_literal.encode() in line.encode().lower()


@pytest.mark.seldom
def test_letters_of_ascii_are_told_exactly_in_any_case():
    """But for k, which the sign of Kelvin is in lower case."""
    beyond = "".join(map(chr, range(128, sys.maxunicode + 1)))
    assert [one for one in beyond if one.lower().isascii()] == ["\u212a"]
    for letter in string.ascii_letters + string.digits + "_":
        one = expression(letter, ignore_case=True)
        assert (one.factor.compiled().search(beyond) is not None) == one.matches("\u212a")
        assert one.matches("\u212a") == (letter in "kK")


@pytest.mark.parametrize("letters", ["σςΣ", "ßẞ", "µμΜ", "kK\u212a"])
def test_letters_with_several_lower_cases_are_one_in_any_case(letters):
    """As Python folds them; also where a text is wanted, not an expression."""
    for one, other in itertools.product(letters, letters):
        assert matches(one, other, ignore_case=True)
        assert wanted_in(one, True, True).matches(other)


def test_dotless_i_has_one_case():
    """It is not the i whose capital it shares."""
    assert not matches("\u0131", "I", ignore_case=True)
    assert not matches("I", "\u0131", ignore_case=True)


_PARTS = st.lists(st.sampled_from(["a", "b", r"\w", "[ab]", "a*", "(?:a|b)", r"[^\n]*", ".", "x?"]), max_size=2)


@given(parts=st.lists(_PARTS, min_size=2, max_size=3), text=st.text("ab\n ", max_size=14))
@example(parts=[[], []], text="a\na")
@example(parts=[["a"], []], text="a\na\na")
def test_an_expression_over_lines_has_the_lines_that_python_finds(parts, text):
    """All lines that are in some match; the last part wants a character, so each line of a match has some of it."""
    pattern = r"\n".join("".join(part) for part in parts) + "a"
    found = matching_lines(text, wanted_in(pattern, False, False), 100)
    expected = set()
    for at in range(len(text) + 1):
        if match := re.compile(pattern).match(text, at):
            lines = [text.count("\n", 0, end) + 1 for end in match.span()]
            expected |= set(range(lines[0], lines[1] + 1))
    assert [one.number for one in found] == sorted(expected)


@pytest.mark.parametrize("name", POSIX)
def test_posix_classes_are_those_of_ascii(name):
    """A class that POSIX names has the characters that it has in ASCII, and its negation all others."""
    inside = re.compile(f"[{POSIX[name]}]")
    for character in [*map(chr, range(128)), "é", "日"]:
        expected = inside.fullmatch(character) is not None
        assert matches(f"^[[:{name}:]]$", character) is expected
        assert matches(f"^[^[:{name}:]]$", character) is not expected
        assert matches(f"^[[:^{name}:]]$", character) is not expected
    assert matches(f"^[_[:{name}:]-]+$", "-_")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("[:digit:]+", "[[:digit:]]"), ("[[:word1:]]", "known are"), ("[[.a.]]", "collating"), ("[[=a=]]", "collating"),
     ("a(?i)b", "ignore_case"), ("(?xi)a", "ignore_case"), ("(?u:a)", "ignore_case")],
)  # fmt: skip
def test_refusal_of_a_class_or_a_flag_says_what_to_write(pattern, said):
    """A pattern of another dialect is never searched as something else."""
    with pytest.raises(RegexRefused, match=re.escape(said)):
        expression(pattern)


def test_flag_at_the_beginning_ignores_case():
    """What ripgrep and Python take there is taken here."""
    assert matches("(?i)ab[c]", "xABC")
    assert not matches("ab", "AB")


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        ("(?mi)^ab", "ABx", True),
        ("(?i:a)b", "Ab", True),
        ("(?i:a)b", "AB", False),
        ("(?i)a(?-i:b)c", "AbC", True),
        ("(?i)a(?-i:b)c", "ABC", False),
        ("(?P<year>\\d{4})-(?<month>\\d\\d)", "on 2026-11", True),
        ("(?P<year>\\d{4})-(?<month>\\d\\d)", "on 26-11", False),
    ],
)
def test_flags_of_a_group_and_names_of_groups_are_known(pattern, line, expected):
    """A flag of a group ends with it, and a name changes nothing."""
    assert matches(pattern, line) is expected


@pytest.mark.parametrize(("pattern", "members", "others"), [
    ("\\p{L}", "aZéß日", "1_ -"), ("\\pL", "aZé", "1_"), ("\\P{L}", "1_ ", "aé"), ("\\p{^L}", "1_", "aé"),
    ("\\p{Lu}", "AÉ", "aé1"), ("\\p{Nd}", "1٣", "aⅣ"), ("\\p{P}", ".—", "a+"), ("[\\p{Lu}_]", "A_", "a1"),
    ("[^\\p{L}]", "1", "aé"), ("[\\P{L}a]", "1a", "bé"),
])  # fmt: skip
def test_properties_are_general_categories(pattern, members, others):
    """As Unicode gives them, in sets and outside."""
    assert all(matches(f"^{pattern}$", one) for one in members)
    assert not any(matches(f"^{pattern}$", one) for one in others)
