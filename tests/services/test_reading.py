"""Which commands are recognised as read-only: none that is not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests._profile import FULL
from toolrt.services import only_reads
from toolrt.services._words import Unclear, leading_cd, simple_commands

NO_SHELL = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to compare with")

READS = """\
ls
ls -la src
cat a.txt | head -n 5
cat a.txt src/app.py 2>/dev/null
grep -rn "foo\\|bar" src | sort -u | wc -l
grep -c '$HOME' a.txt
ls *.py
ls src/*.py && echo done
wc -l a.txt; pwd
find . -name '*.py' -type f -not -path './.git/*'
find src '(' -name a -o -name b ')' -print
sed -n '10,20p' a.txt
sed -n '/def /p' a.txt
sed 's/a/b/g' a.txt
sort -k2 -t : -nr a.txt
uniq -c a.txt
git log --oneline -n 5
git log --oneline -20 -- src
git log --since='2 weeks' HEAD~3..HEAD
git show HEAD:src/app.py
git branch --show-current
git branch --list 'x*'
git ls-files
git grep -n foo
git rev-parse HEAD
git config --get user.name
git --no-pager log --oneline
rg -n foo src
rg --type py -g '*.py' foo
tree -L 2
date +%Y
diff -u a.txt src/app.py
ls -l >/dev/null 2>&1
command -v git
printf '%s\\n' a b
echo "a b" 'c d'
true || false
ls
 pwd
cut -d= -f2 a.txt
""".splitlines()

#: Each may change a file, run a program, or do what its words do not say.
HOSTILE = {
    "": "nothing",
    "rm a.txt": "a program that writes",
    "RM a.txt": "unknown",
    "./ls": "a program of the workspace",
    "src/ls": "the same",
    "/bin/ls": "only plain names are known",
    "ls > out": "a redirection",
    "ls >> out": "appends",
    "ls >| out": "overwrites",
    "ls &> out": "both outputs",
    "ls &>/dev/null": "in sh: in the background",
    "ls 2> out": "the other output",
    "ls 2>&1 > out": "both",
    "ls >&out": "both, in bash",
    "ls >&1out": "a name that begins with a number",
    "cat <> out": "opens for both",
    "cat < a.txt": "not needed",
    "cat << E\nE": "a document",
    "cat <<< $(rm a.txt)": "a text",
    "cat <(rm a.txt)": "a process's output",
    "ls > >(tee out)": "a process's input",
    "ls 12>out": "another file number",
    "echo 12>/dev/null": "a number that is no word",
    "echo $(rm a.txt)": "substitution",
    "echo `rm a.txt`": "substitution",
    'echo "$(rm a.txt)"': "within quotes",
    'echo "`rm a.txt`"': "within quotes",
    "echo $((a[$(rm a.txt)]))": "arithmetic",
    "echo ${x:=$(rm a.txt)}": "a variable",
    "echo $HOME": "a variable",
    "$x": "a variable as a program",
    "ls & rm a.txt": "in the background",
    "ls &": "in the background",
    "ls; rm a.txt": "one after the other",
    "ls\nrm a.txt": "on the next line",
    "ls && rm a.txt": "and",
    "ls || rm a.txt": "or",
    "ls | xargs rm": "a pipeline",
    "ls | tee out": "a pipeline",
    "ls | sh": "a pipeline",
    "ls |& sh": "both outputs",
    "ls |": "unfinished",
    "&& ls": "unfinished",
    "ls &&": "unfinished",
    "ls ;; ls": "no command",
    "(rm a.txt)": "a subshell",
    "{ rm a.txt; }": "a group",
    "! ls": "a word of the shell",
    "if true; then rm a.txt; fi": "words of the shell",
    "time ls": "a word of the shell",
    "ls() { rm a.txt; }; ls": "a function",
    "alias ls=rm": "an alias",
    "X=1 ls": "an assignment",
    "PATH=. ls": "an assignment",
    "X=1": "an assignment",
    "LD_PRELOAD=./x.so cat a.txt": "an assignment",
    "GIT_PAGER=x git log": "an assignment",
    "env X=1 ls": "env starts programs",
    "sudo ls": "starts programs",
    "exec ls": "of the shell",
    "eval ls": "of the shell",
    "source a.txt": "of the shell",
    ". a.txt": "of the shell",
    "cd src": "changes the state",
    "cd src && ls": "changes the state",
    "pushd src": "changes the state",
    "export X=1": "of the shell",
    "trap 'rm a.txt' EXIT": "of the shell",
    "test -v 'a[$(rm a.txt)]'": "a subscript",
    "[ -v 'a[$(rm a.txt)]' ]": "a subscript",
    "printf -v PATH . ; ls": "sets a variable",
    "printf '%n' PATH": "sets a variable",
    "echo {a,b}": "braces",
    "cat {-n,a.txt}": "braces",
    "cat ~/x": "a home directory",
    "ls # x": "a comment",
    "ls \\\nrm": "a line that goes on",
    "l\\s": "a backslash",
    "ls 'a": "an open quote",
    'ls "a': "an open quote",
    "ls\rrm a.txt": "a carriage return",
    "ls\0rm": "NUL",
    "ls\u00a0-l": "a blank that is none",
    "ls\u2028rm a.txt": "a line's end that is none",
    "=ls": "in zsh: a program",
    "sort -o a.txt a.txt": "writes",
    "sort -oa.txt a.txt": "writes",
    "sort -no a.txt a.txt": "writes",
    "sort --output=a.txt a.txt": "writes",
    "sort --outp=a.txt a.txt": "shortened",
    "sort a.txt -o a.txt": "behind an operand",
    "sort --compress-program=./x a.txt": "runs",
    "sort -S1 --compress-prog ./x a.txt": "runs",
    "sort -T src a.txt": "writes there",
    "sort *": "a file may be called -oa.txt",
    "sort [-]o*": "a pattern for an option",
    "uniq a.txt out": "the second is written",
    "uniq a*": "may be two",
    "uniq -- a.txt out": "the second is written",
    "find . -delete": "deletes",
    "find . -exec rm {} ';'": "runs",
    "find . -exec rm '{}' +": "runs",
    "find . -execdir rm '{}' ';'": "runs",
    "find . -ok rm '{}' ';'": "runs",
    "find . -okdir rm '{}' ';'": "runs",
    "find . -fprint out": "writes",
    "find . -fprint0 out": "writes",
    "find . -fprintf out x": "writes",
    "find . -fls out": "writes",
    "find -files0-from a.txt": "not known",
    "find *": "a file may be called -delete",
    "find . -name *": "a file may be called -delete",
    "find . -name x* -o -name y": "may become several words",
    "sed -i s/a/b/ a.txt": "writes",
    "sed -i.bak s/a/b/ a.txt": "writes",
    "sed -ni p a.txt": "writes",
    "sed --in-place s/a/b/ a.txt": "writes",
    "sed -n 'w out' a.txt": "writes",
    "sed 's/a/b/w out' a.txt": "writes",
    "sed '1e rm a.txt' a.txt": "runs",
    "sed 's/a/rm a.txt/e' a.txt": "runs",
    "sed -n '1p;w out' a.txt": "writes",
    "sed -n '/a/w out' a.txt": "writes",
    "sed -n -e p -e 'w out' a.txt": "writes",
    "sed -f a.txt src/app.py": "a script nobody read",
    "sed -n p *": "a file may be called -i",
    "sed -n 's|a|b|w out' a.txt": "writes",
    "awk '{print > \"out\"}' a.txt": "writes",
    "awk 'BEGIN{system(\"rm a.txt\")}'": "runs",
    "perl -e 'unlink 1'": "runs",
    "python -c 'x'": "runs",
    "rg --pre ./x foo": "runs",
    "rg --pre=./x foo": "runs",
    "rg --hostname-bin ./x foo": "runs",
    "rg -z foo": "runs",
    "rg foo *": "a file may be called --pre=x",
    "tree -o out": "writes",
    "tree -R -L 1": "writes",
    "file -C": "writes",
    "file -m a.txt x": "not known",
    "date -s 2020-01-01": "sets the clock",
    "date --set=2020-01-01": "sets the clock",
    "date 01010000": "sets the clock",
    "hostname evil": "sets the name",
    "diff -l a b": "runs pr",
    "less a.txt": "runs",
    "man ls": "runs",
    "xxd a.txt out": "writes",
    "git status": "may run a filter",
    "git diff": "may run a filter",
    "git log -p": "may run a converter",
    "git log --stat": "not known",
    "git log --ext-diff -p": "runs",
    "git log --output=out": "writes",
    "git log -Sx": "reads what changed",
    "git log --format=%G?": "asks gpg",
    "git log --show-signature": "asks gpg",
    "git log *": "a file may be called --output=x",
    "git show HEAD": "shows a change",
    "git show :/text": "finds a commit",
    "git show 'HEAD^{/x:y}'": "finds a commit",
    "git show --output=out HEAD:a": "writes",
    "git -c core.pager=x log": "a configuration",
    "git -c alias.log='!rm a.txt' log": "a configuration",
    "git --exec-path=. log": "another program",
    "git --git-dir=x log": "another repository",
    "git -C src log": "another repository",
    "git -p log": "a pager",
    "git grep -Ovi foo": "opens a program",
    "git grep --open-files-in-pager=x foo": "runs",
    "git grep --textconv foo": "runs",
    "git ls-files -m": "may run a filter",
    "git cat-file --textconv HEAD:a": "runs",
    "git cat-file --filters HEAD:a": "runs",
    "git blame a.txt": "may run a converter",
    "git branch x": "writes",
    "git branch -d x": "writes",
    "git branch -a x": "may write",
    "git branch -m x": "writes",
    "git tag x": "writes",
    "git tag -d x": "writes",
    "git remote add x y": "writes",
    "git remote show origin": "asks the network",
    "git remote -v update": "asks the network",
    "git config user.name x": "writes",
    "git config --get x --unset y": "writes",
    "git config --local user.name": "not clear",
    "git config --local user.name x": "writes",
    "git config -e": "runs",
    "git describe --dirty": "may run a filter",
    "git stash": "writes",
    "git fetch": "writes",
    "git checkout a.txt": "writes",
    "git x": "an alias",
    "git": "nothing",
    "git --no-pager": "nothing",
    "git l*": "a pattern",
    "l? a": "a pattern",
    "cat /dev/watchdog": "a device",
    "cat //dev/watchdog": "a device",
    "head -c1 ../../dev/input": "a device",
    "cat /???/watchdog": "a device by a pattern",
    "command ls": "starts a program",
    "command -p ls": "starts a program",
    "nohup ls": "starts a program",
    "timeout 1 ls": "starts a program",
    "xargs ls": "starts a program",
    "coproc ls": "a word of the shell",
}


@pytest.mark.parametrize("text", READS)
def test_command_that_only_reads_is_recognised(text: str) -> None:
    """What models look with may share a lane."""
    assert only_reads(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_command_is_not_recognised(text: str) -> None:
    """What may change something, or is not clear, runs alone."""
    assert not only_reads(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cd src", ("src", "")),
        (" cd  src ", ("src", "")),
        ("cd src && make", ("src", "make")),
        ("cd 'a b' && make; x", ("a b", "make; x")),
        ("cd -- src && make &", ("src", "make &")),
        ("cd ..", ("..", "")),
        ("cd /tmp && rm -r x", ("/tmp", "rm -r x")),
        ("cd src;", ("src", "")),
        ("cd", None),
        ("cd -", None),
        ("cd -P src", None),
        ("cd $X && ls", None),
        ("cd ~ && ls", None),
        ("cd s* && ls", None),
        ("cd a b && ls", None),
        ("cd src || ls", None),
        ("cd src | ls", None),
        ("cd src & ls", None),
        ("cd src; ls", None),
        ("cd src\nls", None),
        ("cd src &&", None),
        ("cd '' && ls", None),
        ("cdx src", None),
        ("(cd src && ls)", None),
        ("ls && cd src", None),
    ],
)
def test_leading_cd_is_taken_off_where_it_is_clear(text: str, expected: tuple[str, str] | None) -> None:
    """A directory that only a shell could find out is left to the shell."""
    assert leading_cd(text) == expected


_SPACED = "ls cat sort uniq sed git find echo a.txt src -n -o -i -l -delete -exec log out -- * {} + p"
_PIECES = st.one_of(
    st.sampled_from(_SPACED.split()),
    st.sampled_from(list(" \t\n|&;<>()$`\\\"'*?[]#~=%!{}^12")),
    st.sampled_from(["&&", "||", "2>&1", ">/dev/null", "$(rm a.txt)", "'", '"', " > out", "'1p'", "\\;"]),
    st.text(max_size=3),
)
_TEXTS = st.lists(_PIECES, min_size=1, max_size=10).flatmap(
    lambda pieces: st.sampled_from(
        ["".join(pieces), " ".join(pieces), "ls " + " ".join(pieces), "cat " + "".join(pieces)]
    )
)
_SETTINGS = settings(
    max_examples=3_000 if FULL else 300,
    derandomize=not FULL,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@pytest.mark.seldom
@pytest.mark.process
@NO_SHELL
@_SETTINGS
@given(_TEXTS)
def test_recognised_text_changes_nothing_in_a_real_shell(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Whatever is put together: if it is recognised, bash leaves the directory as it was."""
    if not only_reads(text) or "tail" in text or "sleep" in text:
        return
    root = tmp_path_factory.mktemp("shell")
    (root / "a.txt").write_text("b\na\n")
    (root / "-oa.txt").write_text("")
    (root / "-delete").write_text("")
    before = _listing(root)
    subprocess.run(
        ["bash", "--norc", "-c", text], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    assert _listing(root) == before


def _listing(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


_QUOTED = st.lists(
    st.one_of(
        st.text(alphabet="ab1=-+:,.@%/~#] ", min_size=1, max_size=4).filter(lambda text: text[0] not in "~#="),
        st.text(alphabet='ab$`\\*!{}()<>|&;"\n', max_size=4).map(lambda text: f"'{text}'"),
        st.text(alphabet="ab'*{}()<>|&;#~\\n", max_size=4).map(lambda text: f'"{text}"'),
    ),
    min_size=1,
    max_size=5,
).map("".join)


@pytest.mark.seldom
@pytest.mark.process
@NO_SHELL
@_SETTINGS
@given(_QUOTED)
def test_words_are_those_of_a_real_shell(text: str) -> None:
    """What is taken for a command's words, bash takes for the same."""
    try:
        commands = simple_commands(f"x {text}")
    except Unclear:
        return
    if len(commands) != 1 or any(word.glob for word in commands[0]):
        return
    done = subprocess.run(
        ["bash", "--norc", "-c", f"x() {{ printf '%s\\0' \"$@\"; }}\nx {text}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    words = [word.text for word in commands[0][1:]]
    assert done.stdout.decode() == ("".join(f"{word}\0" for word in words) or "\0")


@given(st.text(max_size=200))
@_SETTINGS
def test_any_text_is_judged_without_an_error(text: str) -> None:
    """It says yes or no; a claim that raises would claim everything all the same."""
    assert only_reads(text) in (True, False)
    leading_cd(text)
