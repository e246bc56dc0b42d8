# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs under valgrind, as docs/programs.md runs them: it finds no fault, no leak, and no second use of a system
call that it does not know. Under the tools that judge the order of threads latches are mutexes, which those know."""

import re
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT

if not shutil.which("valgrind"):
    pytest.skip("valgrind is not installed", allow_module_level=True)

SUPPRESSIONS = ROOT / "src" / "cli" / "valgrind.supp"
LEAKS = ("rping", "socat")  # memory of their own
SECONDS_MAX = 120


def under_valgrind(how, line):
    leaks = "no" if line.startswith(LEAKS) else "full"
    return (f"{BUILD}/bin/anywarp {how} -- valgrind --error-exitcode=9 --leak-check={leaks} "
            f"--suppressions={SUPPRESSIONS} {line}")


def assert_clean(end):
    assert end.wait_exit(SECONDS_MAX) == 0
    assert "ERROR SUMMARY: 0 errors" in end.output()
    unknown = re.findall(r"unhandled \S+ syscall: (\d+)", end.output())
    assert len(unknown) == len(set(unknown))


@pytest.mark.parametrize("how, server, client", [
    ("run", "rping -s -a 127.0.0.1 -C 3 -p {port}", "rping -c -a 127.0.0.1 -C 3 -p {port}"),
    ("run", "ucmatose -p {port}", "ucmatose -s 127.0.0.1 -p {port}"),
    ("run --persona roce", "ucmatose -p {port}", "ucmatose -s 127.0.0.1 -p {port}"),
    ("run --persona roce", "ibv_rc_pingpong -g 0 -n 10 -p {port}", "ibv_rc_pingpong -g 0 -n 10 -p {port} 127.0.0.1"),
    ("run", "rstream -S 1000 -C 10 -I 2 -p {port}", "rstream -S 1000 -C 10 -I 2 -s 127.0.0.1 -p {port}"),
    ("sockets --rule on", "socat -u TCP4-LISTEN:{port} OPEN:/dev/null", "socat -u FILE:/etc/passwd TCP4:127.0.0.1:{port}"),
], ids=["rping", "ucmatose", "ucmatose_roce", "ibv_rc_pingpong_roce", "rstream", "socat"])
def test_finds_no_fault(start, port, how, server, client):
    passive = start(under_valgrind(how, server.format(port=port)))
    passive.wait_listening(port, SECONDS_MAX)
    active = start(under_valgrind(how, client.format(port=port)))
    assert_clean(active)
    assert_clean(passive)


def count_under(tool, *args):
    """Two threads count under a latch (latched.c)."""
    return subprocess.run(["valgrind", f"--tool={tool}", "--error-exitcode=9", str(BUILD / "tests" / "latched"), *args],
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


@pytest.mark.parametrize("tool, race", [("helgrind", "Possible data race"), ("drd", "Conflicting store")])
def test_a_judge_of_threads_knows_the_latches(tool, race):
    """Of a latch that is a word it would tell races that are none."""
    end = count_under(tool)
    assert end.returncode == 0 and "the latch is a mutex" in end.stdout, end.stderr
    end = count_under(tool, "word")
    assert end.returncode == 9 and "the latch is a word" in end.stdout and race in end.stderr


def test_other_tools_leave_the_latches_words():
    end = count_under("memcheck")
    assert end.returncode == 0 and "the latch is a word" in end.stdout, end.stderr
