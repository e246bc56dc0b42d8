# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""uml.py itself: what it makes of a command that fails, a kernel that hangs and one that complains."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import complaints  # noqa: E402

KERNEL = HERE.parents[1] / "build" / "kernel" / os.environ.get("ANYWARP_KERNEL", "base") / "build" / "linux"


def uml(seconds, script):
    return subprocess.run([sys.executable, HERE / "uml.py", KERNEL, str(seconds), "sh", "-c", script],
                          capture_output=True, text=True, timeout=seconds + 30, check=False)


@pytest.mark.parametrize("status", [0, 1, 42])
def test_status_and_output_are_the_command_s(status):
    done = uml(60, f"echo out; echo err >&2; exit {status}")
    assert (done.returncode, done.stdout) == (status, "out\nerr\n")


def test_the_machine_s_files_are_read_and_not_written(tmp_path):
    tmp_path.joinpath("here").write_text("the machine's\n", encoding="ascii")
    done = uml(60, f"cat {tmp_path}/here; touch {tmp_path}/there")
    assert "the machine's" in done.stdout and done.returncode != 0
    assert not tmp_path.joinpath("there").exists()


def test_a_kernel_that_hangs_is_ended():
    done = uml(10, "echo begun; sleep 1000")
    assert done.returncode == 1
    assert "not ended within 10" in done.stdout and "begun" in done.stdout


def test_a_panic_fails_what_went_well():
    done = uml(60, "echo c >/proc/sysrq-trigger")
    assert done.returncode == 1
    assert "the kernel complained" in done.stdout and "panic" in done.stdout


def test_a_complaint_fails_what_went_well():
    done = uml(60, "echo 'WARNING: CPU: 0 PID: 1 at net/core/dev.c:1' >/dev/kmsg")
    assert done.returncode == 1
    assert "the kernel complained: WARNING: CPU: 0" in done.stdout


@pytest.mark.parametrize("line", [
    "BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "BUG: KASAN: slab-use-after-free in anywarp_rx+0x10/0x20",
    "WARNING: possible circular locking dependency detected",
    "INFO: task rping:55 blocked for more than 60 seconds.",
    "unreferenced object 0xffff888 (size 64):",
    "watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
    "rcu: INFO: rcu_sched self-detected stall on CPU",
    "refcount_t: underflow; use-after-free.",
    "restrack: BUG: RESTRACK detected leak of resources on anywarp0",
])
def test_complaints_are_found(line):
    assert complaints.in_text(f"random: crng init done\n{line}\n") == [line]


def test_what_a_kernel_says_of_itself_is_no_complaint():
    assert not complaints.in_text("kasan: KernelAddressSanitizer initialized\nanywarp: loaded\n")


RCU = """WARNING: suspicious RCU usage
6.1.192 #1 Not tainted
-----------------------------
{place} suspicious rcu_dereference_check() usage!
Call Trace:
 [<6>] ? {function}+0x10/0xa0
"""


def test_user_mode_linux_s_own_fault_is_none_of_ours():
    own = RCU.format(place="lib/maple_tree.c:816", function="fork_handler")
    ours = RCU.format(place="include/net/sock.h:635", function="anywarp_event")
    assert not complaints.in_text(own)
    assert len(complaints.in_text(ours)) == len(complaints.in_text(own + ours + own)) == 2
