# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What bash and zsh offer behind the words of a command line that begins with 'anywarp'."""

import contextlib
import os
import pathlib
import pty
import re
import shlex
import shutil
import signal
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
COMPLETIONS = pathlib.Path(__file__).resolve().parents[2] / "completions"
ENVIRONMENT = {**os.environ, "PATH": f"{BUILD}/bin:{os.environ['PATH']}"}

BASH = r"""
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
# As readline does: blanks end a word, and '=' is one.
read -ra COMP_WORDS <<<"${2//=/ = }"
[[ $2 != *[\ =] ]] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_anywarp anywarp
printf '%s\n' "${COMPREPLY[@]}"
"""

# Control-G writes what the line has become to the file named by OFFERED.
BASHRC = r"""
source "$COMPLETIONS/anywarp.bash"
bind -x '"\C-g": printf "%s\n" "$READLINE_LINE" >&9'
exec 9>"$OFFERED"
echo READY >&9
"""

# Each match goes to the file named by OFFERED, behind the last of them a line 'END'.
ZSHRC = r"""
fpath=("$COMPLETIONS" $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {
	local -a offered
	[[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]] || { builtin compadd "$@"; return }
	builtin compadd -A offered "$@"
	(( ! $#offered )) || print -rl -- $offered >&9
	builtin compadd "$@"
}
finish() { print END >&9 }
comppostfuncs=(finish)
complete-and-finish() { comppostfuncs=(finish); zle complete-word }
zle -N complete-and-finish
bindkey '^I' complete-and-finish
exec 9>"$OFFERED"
print READY >&9
"""


def in_bash(line, _folder):
    done = subprocess.run(["bash", "-c", BASH, "bash", COMPLETIONS / "anywarp.bash", line], env=ENVIRONMENT,
                          capture_output=True, text=True, check=True, timeout=60)
    assert not done.stderr
    return done.stdout.split()


@contextlib.contextmanager
def at_a_terminal(shell, folder, keys):
    """What a shell writes to the file named by OFFERED, once keys are typed."""
    offered = folder / "offered"
    os.mkfifo(offered)
    child, terminal = pty.fork()
    if not child:
        os.chdir(folder)
        os.execvpe(shell[0], shell, {**ENVIRONMENT, "ZDOTDIR": str(folder), "TERM": "dumb",
                                     "COMPLETIONS": str(COMPLETIONS), "OFFERED": str(offered)})
    try:
        with open(offered, encoding="utf-8") as lines:
            assert lines.readline() == "READY\n"
            os.write(terminal, keys.encode())
            yield lines
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


def in_zsh(line, folder):
    if not shutil.which("zsh"):
        pytest.skip("no zsh")
    folder.joinpath(".zshrc").write_text(ZSHRC, encoding="ascii")
    with at_a_terminal(["zsh", "-i", "-d"], folder, f"{line}\t") as lines:
        return [word.strip() for word in iter(lines.readline, "END\n")]


def completed_by_readline(line, folder):
    """What a line becomes when bash completes it."""
    folder.joinpath("bashrc").write_text(BASHRC, encoding="ascii")
    shell = ["bash", "--noprofile", "--rcfile", str(folder / "bashrc"), "-i"]
    with at_a_terminal(shell, folder, f"{line}\t\a") as lines:
        return lines.readline().rstrip("\n")


@pytest.fixture(params=[in_bash, in_zsh], ids=["bash", "zsh"])
def offers(request, tmp_path):
    """The words that the shell offers for a line, once each."""
    return lambda line: set(request.param(line, tmp_path))


def told(*args):
    done = subprocess.run([BUILD / "bin" / "anywarp", *args], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


def test_subcommands(offers):
    listed = set(re.findall(r"(?m)^  ([a-z]+) {2,}", told("help")))
    assert len(listed) >= 5
    assert offers("anywarp ") >= listed


def test_subcommands_behind_help(offers):
    assert "doctor" in offers("anywarp help d")


def test_environment_behind_help(offers):
    assert "environment" in offers("anywarp help e")


@pytest.mark.parametrize("name", ["run", "check", "sockets", "stat", "capture", "bench", "doctor"])
def test_options(offers, name):
    """All of those that the usage names."""
    usage = told("help", name).split("\n\n")[0]
    named = set(re.findall(r"--[a-z][a-z-]*", usage)) | {"--help"}
    assert {word.rstrip("=") for word in offers(f"anywarp {name} --")} == named


@pytest.mark.parametrize("line,values", [
    ("anywarp run --log ", {"error", "warn", "info", "debug"}),
    ("anywarp run --log=d", {"debug"}),
    ("anywarp sockets --log ", {"error", "warn", "info", "debug"}),
    ("anywarp run --log info --persona ", {"iwarp", "roce"}),
    ("anywarp run --host-path ", {"auto", "on", "off"}),
    ("anywarp run --tls ", {"off", "offer", "require"}),
    ("anywarp sockets --rule ", {"on", "auto", "off", "rsockets", "tls-plain"}),
    ("anywarp check --device ", {"anywarp", "system"}),
    ("anywarp check --halt --persona ", {"iwarp", "roce"}),
    ("anywarp check --rules sou", {"source-changed"}),
    ("anywarp check --exit-code ", set()),
])
def test_values(offers, line, values):
    assert offers(line) == values


@pytest.mark.parametrize("line", ["anywarp stat ", "anywarp stat --json ", "anywarp capture -w file ",
                                  "anywarp capture --write file "])
def test_processes(offers, line):
    """zsh offers those of its terminal alone."""
    found = offers(line)
    assert found and all(word.isdigit() for word in found)


@pytest.mark.parametrize("option", ["-w", "--write"])
def test_a_file_to_write(option, tmp_path):
    """zsh offers the last part of a path alone."""
    found = in_zsh(f"anywarp capture {option} /usr/include/stdi", tmp_path)
    assert {word.rpartition("/")[2] for word in found} >= {"stdio.h"}


@pytest.mark.parametrize("before", ["capture -w ", "capture --write=", "sockets --rules ", "bench --output "])
@pytest.mark.parametrize("name", ["my rules", "$(touch PWNED)", "`touch PWNED`"])
def test_a_file_is_one_word_of_bash(tmp_path, before, name):
    """Whatever is in its name."""
    folder = tmp_path / "files"
    folder.mkdir()
    folder.joinpath(name).touch()
    line = completed_by_readline(f"anywarp {before}{folder}/", tmp_path)
    assert shlex.split(line)[-1].endswith(f"{folder}/{name}"), line
    assert list(folder.iterdir()) == [folder / name] and not (tmp_path / "PWNED").exists()


def test_bash_runs_nothing_that_is_typed(tmp_path):
    """The settings before a comma are offered again, before each that may follow."""
    made = tmp_path / "made"
    in_bash(f"anywarp run --mpa $(touch${{IFS}}{made}),", tmp_path)
    assert not made.exists()


def test_no_process_for_seconds(offers):
    assert not offers("anywarp stat --watch ")


@pytest.mark.parametrize("name", ["run", "check", "sockets"])
def test_each_setting_of_mpa_is_one(offers, name):
    pairs = offers(f"anywarp {name} --mpa ")
    assert {"markers=on", "crc=off", "revision=1", "ird_ord=ulp", "large_fpdus=any"} <= pairs
    for pair in pairs:
        assert "no program to " in told(name, "--mpa", pair), pair


def test_a_setting_of_mpa_behind_another(offers):
    """bash puts both in place of what is typed, zsh only the second."""
    assert {word.rpartition(",")[2] for word in offers("anywarp run --mpa crc=off,p")} == {"p2p=on", "p2p=off"}


@pytest.mark.parametrize("line", ["anywarp run rp", "anywarp run --log=info --persona roce -- rp",
                                  "anywarp sockets --rule on -- rp", "anywarp check --halt rp",
                                  "anywarp check --rules leak --json file -- rp"])
def test_programs(offers, line):
    assert "rping" in offers(line)
