# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plans of faults on programs that know nothing of them: each kind is seen to occur, by 'anywarp run' and by 'anywarp check'. A sweep
says what became of each run. The names that the grammar takes are those for which the hooks ask."""

import os
import pathlib
import re
import socket
import subprocess
import time

import conftest
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
ANYWARP = str(BUILD / "bin" / "anywarp")
EVENTS = str(BUILD / "tests" / "fault_events")
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("ANYWARP_", "LD_"))}


def run(*command, limit=60, **env):
    return subprocess.run([str(word) for word in command], env={**ENVIRONMENT, **env}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=limit, check=False)


@pytest.fixture(name="ping")
def fixture_ping(start, port):
    """A client of rping with a plan, and a server without one."""
    def ping(plan, command=("run",), count=3, limit=15, size=64):
        server = start.server(f"rping -s -a 127.0.0.1 -C {count} -S {size}", port)
        begin = time.monotonic()
        done = run(ANYWARP, *command, "--faults", plan, "--", "timeout", str(limit), "rping", "-c", "-a", "127.0.0.1",
                   "-p", str(port), "-C", str(count), "-S", str(size), "-v")
        done.seconds = time.monotonic() - begin
        server.kill()  # one that was never called would keep the port
        return done
    return ping


# The plan, the end of the client (None: any but success), and what it prints.
@pytest.mark.parametrize("plan, status, words", [
    ("ibv_reg_mr:nth=3", 12, "rdma_buf reg_mr failed"),
    ("ibv_post_recv:nth=1:wr=1:error=EINVAL", 22, "ibv_post_recv failed: 22"),
    ("rdma_resolve_addr", None, "rdma_resolve_addr"),
    ("rdma_get_cm_event:nth=1", None, "rdma_get_cm_event: Input/output error"),
    ("ibv_poll_cq:nth=2", None, "poll error -1"),
    ("completion:op=send:nth=2:status=RETRY_EXC_ERR", None, "cq completion failed status 12"),
    ("completion:op=recv:status=LOC_LEN_ERR", None, "cq completion failed status 1"),
    ("qp:error", 0, "client DISCONNECT EVENT"),
    ("cm:REJECTED", None, "RDMA_CM_EVENT_REJECTED"),
    ("cm:ADDR_ERROR:error=ENETUNREACH", None, "RDMA_CM_EVENT_ADDR_ERROR, error -101"),
    ("cm:DEVICE_REMOVAL", None, "detected device removal"),
    ("self:kill:at=ibv_post_send:nth=2", -9, ""),
])
def test_a_fault_occurs(ping, plan, status, words):
    done = ping(plan)
    assert f"error: fault {plan} occurs: " in done.stderr or plan.startswith("self:")
    assert done.returncode == status if status is not None else done.returncode != 0
    assert words in done.stderr + done.stdout


@pytest.mark.parametrize("plan", ["wire:reset:byte=300", "wire:fin:byte=300", "wire:flip:recv:byte=300"])
def test_a_fault_of_the_wire_occurs(ping, plan):
    done = ping(plan, count=1000)
    assert "note: the plan has faults of the wire, so ANYWARP_HOST_PATH is off" in done.stderr
    assert f"error: fault {plan} occurs: byte " in done.stderr
    assert done.stdout.count("ping data: ") < 1000


# MPA's Reply of revision 1 with the reject bit, without private data (RFC 5044 7.1.1).
REJECTION = b"MPA ID Rep Frame" + bytes([0x20, 1, 0, 0])


def meet(start, plan, wanted):
    """A client with the plan, towards a socket that has rejected it once so many bytes have come; and all bytes that came."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = start(f"{ANYWARP} run --faults {plan} -- rping -c -a 127.0.0.1 -p {server.getsockname()[1]} -C 1")
        server.settimeout(conftest.program.SECONDS_MAX)
        with server.accept()[0] as peer:
            peer.settimeout(conftest.program.SECONDS_MAX)
            came = peer.recv(wanted, socket.MSG_WAITALL)
            peer.sendall(REJECTION)
            while more := peer.recv(4096):
                came += more
    assert client.wait_exit() != 0
    return client.output(), came


def test_silence_on_sending(start):
    """The Request ends at its 16th byte. The answer arrives."""
    said, came = meet(start, "wire:silence:send:byte=16", 16)
    assert "fault wire:silence:send:byte=16 occurs: byte 16" in said
    assert came == b"MPA ID Req Frame"
    assert "RDMA_CM_EVENT_REJECTED" in said


def test_silence_on_receipt(start):
    """The whole Request arrives. The answer does not, and the client waits as long as it waits for any."""
    said, came = meet(start, "wire:silence:recv", 20)
    assert came.startswith(b"MPA ID Req Frame") and len(came) >= 20
    assert "RDMA_CM_EVENT_UNREACHABLE, error -110" in said


def test_a_slow_wire_takes_its_time(ping):
    """TCP does not pace its first ten segments, which on loopback have up to 64 KiB, and nobody waits for the last one's time."""
    size, count, rate = 65000, 64, 2_000_000
    done = ping(f"wire:slow:rate={rate // 1_000_000}MB/s", count=count, size=size, limit=60)
    assert done.returncode == 0 and done.stdout.count("ping data: ") == count, done.stderr
    assert done.seconds > (size * count - 11 * 65536) / rate


def test_a_process_that_stops_goes_on(start, port):
    start.server("rping -s -a 127.0.0.1 -C 3", port)
    client = start(f"{ANYWARP} run --faults self:stop:at=ibv_post_send:nth=2 -- rping -c -a 127.0.0.1 -p {port} -C 3 -v")
    client.wait_until(lambda: conftest.program.read_stat(f"/proc/{client.pid}/stat")[:1] == ["T"], "state T")
    assert client.status() is None
    client.send_signal("CONT")
    assert client.wait_exit() == 0
    assert client.output().count("ping data: ") == 3


@pytest.mark.parametrize("plan", ["cm:ESTABLISHED:delay=700ms", "rdma_connect:delay=700ms"])
def test_a_late_event_and_a_slow_call(ping, plan):
    done = ping(plan)
    assert done.returncode == 0 and done.stdout.count("ping data: ") == 3 and done.seconds > 0.7


def test_a_cq_that_overruns_gives_nothing_more(ping):
    done = ping("cq:overrun", limit=3)
    assert "fault cq:overrun occurs: completion 1" in done.stderr
    assert done.returncode == 124 and "ping data: " not in done.stdout


@pytest.mark.parametrize("way", ["poll", "wait"])
def test_asynchronous_events_wake(way):
    done = run(ANYWARP, "run", "--faults", "async:PORT_ERR:after=200ms,async:PORT_ACTIVE:after=300ms", "--", EVENTS, way)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "port error\nport active\n"


@pytest.mark.parametrize("plan", ["ibv_reg_mr:nth=3", "completion:op=send:nth=2"])
def test_check_says_that_it_is_the_plan(ping, plan):
    assert "fails by the plan of --faults" in ping(plan, ("check", "--rules", "none")).stderr
    assert "anywarp check: " not in ping(plan).stderr


def test_a_seed_decides():
    def lines(seed):
        done = run(ANYWARP, "run", "--faults", "ibv_query_*:prob=50%", "--seed", seed, "--", "ibv_devinfo", "-v")
        return re.findall(r"fault (.*)", done.stderr)
    assert lines("3") == lines("3")
    assert any(lines(str(seed)) != lines("3") for seed in range(4, 12))


def asked():
    """The names for which the hooks ask."""
    text = "\n".join(path.read_text() for path in (ROOT / "src/check/hook").glob("*.c"))
    return set(re.findall(r'(?:aw_hook_may|aw_hook_post|aw_destroy_begin|recvs_cut|fails)\(\s*"(\w+)"', text))


def test_the_hooks_ask_for_each_name_and_no_other():
    names = re.findall(r'\{ "(\w+)", E\w+ \}', (ROOT / "src/check/faults/names.c").read_text())
    assert names == sorted(names) and len(names) > 90
    assert set(names) == asked()


@pytest.mark.parametrize("table, column", [("you want", 1)])
def test_the_plans_of_the_documentation_are_right(table, column):
    page = (ROOT / "docs/faults.md").read_text()
    rows = [row.split("|") for row in page.split(f"| {table} |")[1].split("\n\n")[0].splitlines()[2:]]
    plans = [plan for row in rows for plan in re.findall(r"`([a-z][^`]*:[^`]*)`", row[column + 1])]
    assert len(plans) >= 15
    for plan in plans:
        done = run(ANYWARP, "run", "--faults", plan, "--", "true")
        assert done.returncode == 0 and "--faults" not in done.stderr, done.stderr


SWEEP = """
LD_PRELOAD= timeout 30 rping -s -a 127.0.0.1 -C 2 >/dev/null 2>&1 &
until ss -ltn | grep -q :7174; do :; done
exec timeout 5 rping -c -a 127.0.0.1 -C 2
"""


def test_a_sweep_of_rping():
    done = run(ANYWARP, "check", "--sweep", "--each", "1", "--jobs", "4", "--timeout", "20", "--", "sh", "-c", SWEEP, limit=120)
    assert done.returncode == 0, done.stderr
    assert re.search(r"(?m)^ibv_reg_mr:nth=1 +ended with status 12", done.stdout), done.stdout
    assert re.search(r"(?m)^rdma_create_id:nth=1 +ended with status 255", done.stdout)
    assert re.search(r"(?m)^rdma_disconnect:nth=1 +ended with status 124", done.stdout)
    assert re.search(r"(?m)^\d+ more calls did not fail in any run", done.stdout)


def test_a_sweep_tells_where_a_program_crashes():
    source = pathlib.Path(__file__).with_name("fault_events.c").read_text().splitlines()
    line = 1 + next(number for number, text in enumerate(source) if "the place of the crash" in text)
    done = run(ANYWARP, "check", "--sweep", "--", EVENTS, "crash")
    assert done.returncode == 1
    assert re.search(rf"(?m)^ibv_alloc_pd:nth=1 +crashed with SIGSEGV at main \S*fault_events.c:{line}$", done.stdout), done.stdout
    assert "anywarp check --faults ibv_alloc_pd:nth=1 -- " in done.stdout


def test_a_sweep_of_a_program_without_calls():
    done = run(ANYWARP, "check", "--sweep", "--", "true")
    assert done.returncode == 1 and "makes no call of verbs or rdma_cm" in done.stderr
