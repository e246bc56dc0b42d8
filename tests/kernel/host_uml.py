# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""uml.py itself: what it makes of a command that fails, a kernel that hangs and one that complains."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import complaints  # noqa: E402
import kernel  # noqa: E402

KERNEL = HERE.parents[1] / "build" / "kernel" / os.environ.get("ANYWARP_KERNEL", "base") / "build" / "linux"


def command(seconds, script):
    return [sys.executable, HERE / "uml.py", KERNEL, str(seconds), "sh", "-c", script]


def uml(seconds, script):
    return subprocess.run(command(seconds, script), capture_output=True, text=True, timeout=seconds + 30, check=False)


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
    done = uml(30, "echo begun; sleep 1000")
    assert done.returncode == 1
    assert "not ended within 30" in done.stdout and "begun" in done.stdout


def session_of(pid):
    """Its processes, without those that have ended and wait for their parent."""
    rows = [read_stat(path).rpartition(")")[2].split() for path in pathlib.Path("/proc").glob("[0-9]*/stat")]
    return [row for row in rows if row and row[3] == str(pid) and row[0] != "Z"]


def read_stat(path):
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_output(folder, words):
    deadline = time.monotonic() + 60
    while not any(words in path.read_text(encoding="ascii") for path in folder.glob("*/exchange/output")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_kernel(tmp_path, signum):
    """With all that runs in it, and nothing stays in the file system."""
    process = subprocess.Popen(command(100, "echo begun; sleep 1000"), env={**os.environ, "TMPDIR": str(tmp_path)})
    wait_output(tmp_path, "begun")
    kernel = int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii"))
    try:
        assert len(session_of(kernel)) > 1
        process.send_signal(signum)
        assert process.wait(30) == 128 + signum
        assert not session_of(kernel) and not list(tmp_path.iterdir())
    finally:
        process.kill()
        if session_of(kernel):
            os.killpg(kernel, signal.SIGKILL)


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


def test_a_shortage_of_memory_is_no_complaint():
    shortage = "rping: vmalloc error: size 4096, page order 0\nCall Trace:\n [<6>] ? vmalloc+0x1/0x2\nMem-Info:\n"
    assert not complaints.in_text(shortage)
    assert complaints.in_text(shortage + "Call Trace:\n") == ["Call Trace:"]


NVMET = """WARNING: possible circular locking dependency detected
6.1.192 #1 Tainted: G           O
------------------------------------------------------
pytest-3/43 is trying to acquire lock:
00000000601bbc10 ({lock}){{+.+.}}-{{3:3}}, at: {wanted}+0x19/0x30

but task is already holding lock:
00000000615e8e00 ({held}){{++++}}-{{3:3}}, at: {holder}+0x46/0x1c0

which lock already depends on the new lock.

stack backtrace:
CPU: 0 PID: 43 Comm: pytest-3 Tainted: G           O       6.1.192 #1
Call Trace:
 [<6>] ? rdma_destroy_id+0x19/0x30
"""


@pytest.mark.parametrize("lock, wanted, held, holder", [
    ("&id_priv->handler_mutex", "rdma_destroy_id", "nvmet_config_sem", "nvmet_port_subsys_drop_link"),
    ("nvmet_config_sem", "nvmet_find_get_subsys", "&id_priv->handler_mutex", "cma_iw_handler")])
def test_the_order_of_nvmet_s_own_locks_is_no_complaint(lock, wanted, held, holder):
    assert not complaints.in_text(NVMET.format(lock=lock, wanted=wanted, held=held, holder=holder))
    for places in ({"wanted": "awk_listen_destroy", "holder": holder}, {"wanted": wanted, "holder": "awk_listen_destroy"}):
        assert complaints.in_text(NVMET.format(lock=lock, held=held, **places)) == [NVMET.splitlines()[0], "Call Trace:"]


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


LEAK = """unreferenced object 0x6b604dc8 (size 192):
  comm "pytest-3", pid 43, jiffies 4294941738
  backtrace:
    [<00000000608fe28e>] {allocates}+0xce/0x220
    [<0000000060900775>] radix_tree_insert+0x155/0x350
    [<00000000605b70ac>] {inserts}+0x5c/0x130
    [<0000000060527752>] ib_register_device+0x652/0x7e0
"""


def check_leaks(form, own, *others):
    """A report has a function that allocates and one that inserts: that of own is the kernel's, those of others are ours."""
    own, *others = (form.format(allocates=allocates, inserts=inserts) for allocates, inserts in (own, *others))
    assert kernel.leaks_in(own) == ""
    for ours in others:
        assert kernel.leaks_in(ours) == kernel.leaks_in(own + ours + own) == ours


def test_the_nodes_that_ib_uverbs_loses_are_no_leak_of_ours():
    check_leaks(LEAK, ("radix_tree_node_alloc.constprop.0", "uapi_add_get_elm"),
                ("radix_tree_node_alloc.constprop.0", "awk_table_insert"), ("kmalloc_trace", "uapi_add_get_elm"))


PORTS = """WARNING: CPU: 0 PID: 53 at drivers/infiniband/core/cma.c:5396 {function}+0x255/0x2f0
Modules linked in: anywarp(O) [last unloaded: anywarp(O)]
Call Trace:
"""


def test_the_ports_that_rdma_cm_could_not_store_are_no_complaint():
    own, ours = PORTS.format(function="cma_exit_net"), PORTS.format(function="awk_listen_destroy")
    made = complaints.FAULTS_MADE + "\n"
    assert not complaints.in_text(made + own)
    assert len(complaints.in_text(own)) == len(complaints.in_text(made + ours)) == len(complaints.in_text(made + own + ours)) == 2
    assert len(complaints.in_text(made + own.replace("Call Trace:\n", "") + ours)) == 3


PORT_LEAK = """unreferenced object 0x861ba508 (size 192):
  backtrace:
    [<0000000060914eac>] {allocates}+0x1ac/0x1e0
    [<0000000060916991>] xas_create+0x3e1/0x890
    [<000000006091914f>] xas_store+0x6f/0xc70
    [<000000006091ae6e>] __xa_insert+0x15e/0x240
    [<00000000605878b1>] {inserts}+0x281/0x420
"""


def test_the_nodes_that_rdma_cm_loses_are_no_leak_of_ours():
    check_leaks(PORT_LEAK, ("xas_alloc", "cma_alloc_port"), ("xas_alloc", "awk_table_insert"), ("kmalloc_trace", "cma_alloc_port"))


def test_a_scan_whose_leaks_are_all_of_ib_uverbs_is_no_complaint():
    scan = "kmemleak: 112 new suspected memory leaks (see /sys/kernel/debug/kmemleak)\n"
    assert complaints.in_text(scan) == complaints.in_text(complaints.LEAKS_JUDGED + "\n" + scan) == [scan.strip()]
    assert not complaints.in_text(scan + scan + "another line\n" + complaints.LEAKS_JUDGED + "\n")
