# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The kernel has no memory, for one allocation or for many: calls fail with an error, connections end, and nothing else.
10,000 allocations fail in all. What is injected is counted, and in the end everything works, and nothing is left."""

import errno
import os
import pathlib
import random
import subprocess
import time

import conftest
import ends
import netlink
import pytest
import storm

DEBUG = pathlib.Path("/sys/kernel/debug")
KINDS = ("failslab", "fail_page_alloc")
PROGRAMS = conftest.BUILD / "tests"
FAULTS_WANTED = int(os.environ.get("ANYWARP_FAULTS", "10000"))
SYSTEMATIC_SECONDS_MAX = 1800
PERCENT = 5
BURST = 250
BURST_SECONDS = 20
FAIL_NTH_MAX = 5000

pytestmark = pytest.mark.skipif(not DEBUG.joinpath("failslab").exists(), reason="a kernel without fault injection")


def set_knob(name, value):
    for kind in KINDS:
        if (path := DEBUG / kind / name).exists():
            path.write_text(f"{value}\n", encoding="ascii")


@pytest.fixture(autouse=True)
def knobs():
    for name, value in (("verbose", 0), ("ignore-gfp-wait", "N"), ("ignore-gfp-highmem", "N"), ("min-order", 0),
                        ("probability", 0), ("interval", 1), ("task-filter", "Y"), ("times", -1)):
        set_knob(name, value)
    yield
    set_knob("probability", 0)


@pytest.fixture(name="pair")
def one_pair(kernel, link_type):  # pylint: disable=unused-argument
    pair = storm.Pair(0, link_type, PROGRAMS / "kernel_peer")
    yield pair
    pair.end()


class Nth:
    """Of this thread's allocations in the kernel."""

    def __init__(self):
        self.file = os.open("/proc/thread-self/fail-nth", os.O_RDWR)

    def inject(self, nth, act, *arguments):
        """Whether the fault came, and the error that came of it."""
        error = None
        os.pwrite(self.file, b"%d" % nth, 0)
        try:
            act(*arguments)
        except OSError as raised:
            error = raised
        except MemoryError:
            error = OSError(errno.ENOMEM, "this program's own")
        came = int(os.pread(self.file, 16, 0)) == 0
        os.pwrite(self.file, b"0", 0)
        return came, error

    def close(self):
        os.close(self.file)


def inject_all(act, undo, is_done=lambda: False):
    """Each allocation of act in turn, until it needs no more; how many there were. is_done: of an act that failed, for what
    it wanted memory may have been the answer's."""
    nth = Nth()
    try:
        for number in range(1, FAIL_NTH_MAX):
            came, error = nth.inject(number, act)
            if not came:
                assert not error, error
            if not error or is_done():
                undo()
            if not came:
                return number - 1
        raise AssertionError("no end of allocations")
    finally:
        nth.close()


def test_a_device_comes(pair):
    end = pair.ends[0]
    end.netlink.delete_device(end.device)
    print("injected", inject_all(lambda: end.netlink.add_device(end.device, end.link_type, storm.INTERFACE),
                                 lambda: end.netlink.delete_device(end.device),
                                 lambda: end.device in end.netlink.devices()))
    pair.repair()
    pair.check_works()


def test_a_device_goes(pair):
    """A call that fails has left it, or has deleted it."""
    end = pair.ends[0]
    print("injected", inject_all(lambda: end.netlink.delete_device(end.device), end.set_up))
    pair.repair()
    pair.check_works()


def test_the_module_comes(kernel, link_type):
    path = kernel.path_of(link_type)
    kernel.unload(link_type)
    print("injected", inject_all(lambda: netlink.load_module(path), lambda: netlink.unload_module(link_type)))
    kernel.load(link_type)


def test_each_call(kernel, link_type, pair):
    """Of a program's, each allocation in turn."""
    end = pair.ends[0]
    done = subprocess.run([*end.namespace.into, PROGRAMS / "kernel_faults", end.address, "6000"], capture_output=True,
                          text=True, timeout=SYSTEMATIC_SECONDS_MAX, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    pair.check_works()


def workers():
    """The kernel's threads that run work items, the module's among them."""
    return [pid for path in pathlib.Path("/proc").glob("[0-9]*/comm")
            if read_name(path).startswith("kworker/u") and (pid := path.parent.name)]


def read_name(path):
    try:
        return path.read_text(encoding="utf-8")
    except OSError:  # it has ended
        return ""


def let_fail(pids):
    for pid in pids:
        try:
            pathlib.Path(f"/proc/{pid}/make-it-fail").write_text("1", encoding="ascii")
        except OSError:  # it has ended
            pass


def counts():
    return sum(BURST - int(DEBUG.joinpath(kind, "times").read_text(encoding="ascii")) for kind in KINDS)


def wait_for_faults(seconds):
    """This thread's own allocations may fail as well."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            time.sleep(0.2)
            if counts() == len(KINDS) * BURST:
                break
        except (OSError, MemoryError):
            pass


def burst(pair, chance, everybody):
    """So many allocations at most fail while there is traffic; how many did. everybody: softirqs, too, and whoever runs."""
    pair.keep_busy(chance)
    for end in pair.ends:
        ends.wait_until(end.peers.started, "processes that were asked for")
        let_fail(end.peers.running)
    let_fail(workers())
    set_knob("task-filter", "N" if everybody else "Y")
    set_knob("times", BURST)
    set_knob("probability", 1 if everybody else PERCENT)
    wait_for_faults(BURST_SECONDS)
    for kind in KINDS:
        stop_faults(kind)
    return counts()


def stop_faults(kind):
    for _ in range(100):
        try:
            DEBUG.joinpath(kind, "probability").write_text("0", encoding="ascii")
            return
        except (OSError, MemoryError):
            pass
    raise AssertionError("faults do not stop")


@pytest.mark.parametrize("everybody", [False, True], ids=["tasks_and_workers", "softirqs"])
def test_traffic(kernel, pair, everybody):
    chance = random.Random(1)
    injected = 0
    while injected < FAULTS_WANTED // 2:
        injected += burst(pair, chance, everybody)
        pair.quieten()
        assert storm.WRONG_BYTES not in pair.statuses()
        ends.wait_until(lambda: not storm.objects(), "end of all RDMA objects")
        assert not (found := kernel.complaints()), found
        pair.repair()
        pair.check_works()
    print("injected", injected)
