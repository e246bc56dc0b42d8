# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The kernel has no memory, for one allocation or for many: calls fail with an error, connections end, and nothing else.
10,000 allocations fail in all. What is injected is counted, and in the end everything works, and nothing is left."""

import collections
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
BURST = 250
BURST_SECONDS = 20
PAUSE_SECONDS = 0.2
CLIENTS = 4  # a server: each waits for TCP's timers where packets are lost
FAIL_NTH_MAX = 5000
STACK_DEPTH_MAX = 32  # the kernel's

pytestmark = pytest.mark.skipif(not DEBUG.joinpath("failslab").exists(), reason="a kernel without fault injection")


def set_knob(name, value):
    for kind in KINDS:
        if (path := DEBUG / kind / name).exists():
            path.write_text(f"{value}\n", encoding="ascii")


# Whose allocations fail: those of chosen tasks, or of whoever a function in that range of addresses called; with what chance.
Victims = collections.namedtuple("Victims", "chosen_tasks start end percent")
ANYWHERE = (0, (1 << 64) - 1)
TASKS = Victims("Y", *ANYWHERE, 5)


def function(name):
    """Its addresses: the first, and the one behind the last."""
    symbols = [line.split()[:3] for line in pathlib.Path("/proc/kallsyms").read_text(encoding="ascii").splitlines()]
    start = next(int(address, 16) for address, _, symbol in symbols if symbol == name)
    return start, min(at for address, *_ in symbols if (at := int(address, 16)) > start)


def softirqs(_link_type):
    """What TCP does with a packet: it makes sockets and acknowledgments, and calls the module. Only softirqs come there."""
    return Victims("N", *function("tcp_v4_rcv"), 10)


def callers_in_module(link_type):
    """What the module asks for itself and what it calls: of TCP, of iw_cm, of the verbs; in whatever context."""
    modules = (line.split() for line in pathlib.Path("/proc/modules").read_text(encoding="ascii").splitlines())
    size, start = next((int(fields[1]), int(fields[5], 16)) for fields in modules if fields[0] == link_type)
    return Victims("N", start, start + size, 20)


def spare_requests():
    """rdma_ucm's own deadlock, whatever the device: where a Request's event has no memory, ucma_connect_event_handler() destroys
    the id of which rdma_cm holds the lock, and waits for it for ever."""
    start, end = function("ucma_event_handler")
    set_knob("reject-start", start)
    set_knob("reject-end", end)


def choose_victims(victims):
    set_knob("task-filter", victims.chosen_tasks)
    set_knob("require-start", victims.start)
    set_knob("require-end", victims.end)
    set_knob("stacktrace-depth", STACK_DEPTH_MAX)


@pytest.fixture(autouse=True)
def knobs(kernel):
    kernel.tell_of_faults()
    for name, value in (("verbose", 0), ("ignore-gfp-wait", "N"), ("ignore-gfp-highmem", "N"), ("min-order", 0),
                        ("probability", 0), ("interval", 1), ("times", -1)):
        set_knob(name, value)
    choose_victims(TASKS)
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
    print("injected", inject_all(lambda: end.netlink.delete_device(end.device), end.set_up,
                                 lambda: end.device not in end.netlink.devices()))
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


def left_to_fail(kind):
    return int(DEBUG.joinpath(kind, "times").read_text(encoding="ascii"))


def fail_traffic(pair, chance, chooses_tasks):
    """Other connections follow those that end of it."""
    until = time.monotonic() + BURST_SECONDS
    while time.monotonic() < until and left_to_fail("failslab") > 0:
        pair.keep_busy(chance, CLIENTS)
        for end in pair.ends if chooses_tasks else ():
            let_fail(end.peers.running)
        time.sleep(PAUSE_SECONDS)


def burst(pair, chance, victims):
    """So many allocations at most fail while there is traffic; how many did."""
    pair.keep_busy(chance, CLIENTS)
    for end in pair.ends:
        ends.wait_until(end.peers.started, "processes that were asked for")
    let_fail(workers())
    choose_victims(victims)
    set_knob("times", BURST)
    set_knob("probability", victims.percent)
    fail_traffic(pair, chance, victims is TASKS)
    set_knob("probability", 0)
    return sum(BURST - left_to_fail(kind) for kind in KINDS)


@pytest.mark.parametrize("victims_of, share", [(lambda _: TASKS, 0.25), (callers_in_module, 0.25), (softirqs, 0.2)],
                         ids=["tasks_and_workers", "module", "softirqs"])
def test_traffic(kernel, link_type, pair, victims_of, share):
    """The tests before have injected the rest."""
    chance = random.Random(1)
    victims = victims_of(link_type)
    spare_requests()
    injected = 0
    while injected < FAULTS_WANTED * share:
        injected += burst(pair, chance, victims)
        print("injected", injected, flush=True)
        pair.quieten()
        assert storm.WRONG_BYTES not in pair.statuses()
        ends.wait_until(lambda: not storm.objects(), "end of all RDMA objects")
        assert not (found := kernel.complaints()), found
        pair.repair()
        pair.check_works()
