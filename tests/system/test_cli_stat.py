# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""'anywarp stat' as a user meets it: of rping, of processes that end, and of tables that no friend has written."""

import contextlib
import json
import fcntl
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
from open_build import open_build

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
ANYWARP = BUILD / "bin" / "anywarp"
ROOT = pathlib.Path(__file__).resolve().parents[2]
MAN = ROOT / "man"
LAYOUT = int(re.search(r"AW_STAT_LAYOUT (\d+)u", (ROOT / "src/net/stat/stat_layout.h").read_text(encoding="ascii"))[1])
STRANGER = 63000 + os.getpid() % 2000


def stat(*args, user=None):
    command = (open_build(BUILD) if user else BUILD) / "bin" / "anywarp"
    return subprocess.run([command, "stat", *map(str, args)], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, user=user, check=False)


def stat_json(*args):
    done = stat("--json", *args)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def wait_for(look, what):
    end = time.monotonic() + 20
    while not (found := look()):
        assert time.monotonic() < end, f"no {what}"
    return found


def qp_of(pid):
    """Its one QP, once it has sent something. It may have no device open yet, or not know of its stream."""
    done = stat("--json", pid)
    found = json.loads(done.stdout) if done.returncode == 0 else {"qps": []}
    return found["qps"][0] if found["qps"] and found["qps"][0]["messages_out"] else None


@pytest.fixture(name="pinging")
def fixture_pinging(start, port):
    """A server and a client that ping each other for long, over TCP: what is said of its socket then tells of the stream."""
    prefix = ("env", "ANYWARP_HOST_PATH=off")
    server = start.server("rping -s -a 127.0.0.1 -S 1000", port, prefix=prefix)
    client = start(f"rping -c -a 127.0.0.1 -p {port} -S 1000 -C 100000000", prefix=prefix)
    wait_for(lambda: qp_of(client.pid) and qp_of(server.pid), "stream")
    return server, client


def freeze(*programs):
    for program in programs:
        program.send_signal("STOP")


def test_both_ends_of_a_stream_while_they_are_stopped(pinging, port):
    server, client = pinging
    freeze(*pinging)
    asked, served = stat_json(client.pid), stat_json(server.pid)
    left, right = asked["qps"][0], served["qps"][0]
    for qp, pid in ((left, client.pid), (right, server.pid)):
        assert qp["pid"] == pid and re.fullmatch("0x[0-9a-f]+", qp["qp"])
        assert (qp["type"], qp["state"], qp["error"]) == ("rc", "rts", None)
        assert qp["rtt_us"] > 0 and qp["retransmits"] >= 0
        assert qp["bytes_out"] > 1000 and qp["fpdus_out"] >= qp["messages_out"] > 0
    assert left["local"] == right["peer"] and left["peer"] == right["local"] == f"127.0.0.1:{port}"
    assert 0 <= left["messages_out"] - right["messages_in"] <= 2
    assert 0 <= right["messages_out"] - left["messages_in"] <= 2


def test_the_rest_of_a_process(pinging, port):
    server, _ = pinging
    freeze(*pinging)
    served = stat_json(server.pid)
    process, = served["processes"]
    assert process["program"] == "rping" and process["persona"] == "iwarp" and process["devices"] >= 1
    assert process["mrs"] == 3 and process["mr_bytes"] > 1000 and process["pds"] >= 1
    assert (process["qps"], process["cqs"], process["listeners"]) == (1, 1, 1)
    assert process["crc_errors"] == process["terminates_sent"] == process["terminates_received"] == 0
    listener, = served["listeners"]
    assert listener["address"] == f"127.0.0.1:{port}" and (listener["requests"], listener["failed"]) == (1, 0)
    cq, = served["cqs"]
    assert cq["channel"] == "yes" and cq["overflowed"] == "no" and 0 < cq["capacity"] and cq["cqes"] > 0
    assert cq["cq"] == served["qps"][0]["send_cq"] == served["qps"][0]["recv_cq"]


def test_every_process_of_the_user(pinging):
    found = stat_json()
    assert {program.pid for program in pinging} <= {process["pid"] for process in found["processes"]}
    assert {program.pid for program in pinging} <= {qp["pid"] for qp in found["qps"]}


def test_the_table(pinging):
    server, _ = pinging
    done = stat(server.pid)
    assert done.returncode == 0, done.stderr
    parts = [part.splitlines() for part in done.stdout.split("\n\n")]
    assert [part[0] for part in parts] == ["processes", "queue pairs", "listeners", "completion queues"]
    assert all(len(part) == 3 for part in parts)
    assert parts[0][2].split()[:3] == [str(server.pid), "rping", "iwarp"]
    assert parts[1][1].split()[:6] == ["pid", "qp", "type", "state", "path", "peer"]
    assert parts[1][2].split()[2:5] == ["rc", "rts", "tcp"]


def on_terminal(width, *args):
    """The lines that the command prints on a terminal of that width."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    text = b""
    with subprocess.Popen([str(ANYWARP), "stat", *map(str, args)], stdin=subprocess.DEVNULL, stdout=its) as command:
        os.close(its)
        with contextlib.suppress(OSError):  # EIO is the end
            while some := os.read(ours, 65536):
                text += some
        os.close(ours)
    assert command.returncode == 0
    return text.decode().splitlines()


def joined(lines):
    """The tables of one part, which may be several: the titles, and each row's fields, of all of them."""
    rows = [re.split("  +", line.strip()) for line in lines]
    titles = [at for at, row in enumerate(rows) if row[0] == "pid"]
    height = titles[1] if len(titles) > 1 else len(rows)
    return [[field for at in titles for field in rows[at + line][2 if at else 0:]] for line in range(height)], len(titles)


def test_a_stream_through_memory(start, port):
    server = start.server("rping -s -a 127.0.0.1", port)
    client = start(f"rping -c -a 127.0.0.1 -p {port} -C 100000000")
    for end in (server, client):
        wait_for(lambda pid=end.pid: (qp := qp_of(pid)) and qp["path"] == "memory", "stream through memory")


@pytest.mark.parametrize("reaped", [True, False])
def test_watch_until_the_process_ends(pinging, reaped):
    """Before or after its parent has waited for it."""
    server, client = pinging
    with subprocess.Popen([str(ANYWARP), "stat", "--json", "--watch", "0.1", str(client.pid)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watcher:
        looks = [json.loads(watcher.stdout.readline()) for _ in range(3)]
        times, qps = [look["time"] for look in looks], [look["qps"][0] for look in looks]
        assert times == sorted(times) and abs(times[0] - time.time()) < 60
        for name in ("bytes_out", "bytes_in", "messages_out", "messages_in"):
            rates = [qp[f"{name}_per_s"] for qp in qps]
            assert rates[0] is None and min(rates[1:]) > 0
            for at in (1, 2):
                grown = qps[at][name] - qps[at - 1][name]
                assert grown > 0 and rates[at] == pytest.approx(grown / (times[at] - times[at - 1]), rel=0.1)
        freeze(server)
        if reaped:
            client.kill()
        else:
            os.kill(client.pid, signal.SIGKILL)
        assert watcher.communicate(timeout=60)[1] == ""
    assert watcher.returncode == 0


def test_watch_shows_the_time_and_rates(pinging):
    _, client = pinging
    with subprocess.Popen([str(ANYWARP), "stat", "--watch", "0.2", str(client.pid)], stdout=subprocess.PIPE,
                          text=True) as watcher:
        lines = [watcher.stdout.readline().rstrip() for _ in range(24)]
        watcher.kill()
    looks = [at for at, line in enumerate(lines) if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, every 0.2 s", line)]
    assert looks == [0, looks[1]] and lines[looks[1] - 1] == ""
    found = [dict(zip(*(re.split("  +", line.strip()) for line in lines[at + 7:at + 9]))) for at in looks]
    assert found[0]["bytes out/s"] == found[0]["messages in/s"] == "-"
    assert all(int(found[1][f"{name}/s"]) > 0 for name in ("bytes out", "bytes in", "messages out", "messages in"))
    assert "/s" not in stat(client.pid).stdout


def test_a_rate_is_not_known_of_a_qp_that_takes_the_number_of_another():
    with forged(head(), f"{HEAD}:{qp_row(16, 1000).hex()}") as process:
        fd, = (fd for fd in os.listdir(f"/proc/{process.pid}/fd") if "anywarp-stat" in os.readlink(f"/proc/{process.pid}/fd/{fd}"))
        with open(f"/proc/{process.pid}/fd/{fd}", "r+b", buffering=0) as table, \
                subprocess.Popen([str(ANYWARP), "stat", "--json", "--watch", "0.1", str(process.pid)],
                                 stdout=subprocess.PIPE, text=True) as watcher:
            def rate():
                return json.loads(watcher.stdout.readline())["qps"][0]["bytes_out_per_s"]

            assert [rate(), rate()] == [None, 0]
            os.pwrite(table.fileno(), qp_row(16, 10), HEAD)
            wait_for(lambda: rate() is None, "look without a rate")
            assert rate() == 0
            watcher.kill()


def test_processes_that_end_meanwhile():
    """No process that ends while all are listed is an error."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "lib")}
    if os.environ.get("ANYWARP_SAN"):
        env["LD_PRELOAD"] = os.environ["ANYWARP_PRELOAD"]
        env["ASAN_OPTIONS"] = "detect_leaks=0:verify_asan_link_order=0"
    for _ in range(10):
        running = [subprocess.Popen(["ibv_devinfo", "-l"], env=env, stdout=subprocess.DEVNULL) for _ in range(4)]
        done = stat("--json")
        for process in running:
            process.wait()
        assert done.returncode == 0, done.stderr
        json.loads(done.stdout)


# --- tables that no friend has written

FORGER = """
import ctypes, fcntl, os, sys
size, seals, name = int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
ctypes.CDLL(None).prctl(15, name)
fd = os.memfd_create("anywarp-stat", os.MFD_ALLOW_SEALING)
os.ftruncate(fd, size)
for words in sys.argv[4:]:
    at, _, data = words.partition(":")
    os.pwrite(fd, bytes.fromhex(data), int(at))
fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
print("ready", flush=True)
sys.stdin.read()
"""
HEAD, ROW, ROWS = 65536, 256, 1 << 18
SIZE = HEAD + ROW * ROWS + (64 << 10) + (16 << 20)  # the ring of a capture lies behind the rows
SEALS = 0x2 | 0x4  # shrink, grow


def head(magic=0x5441545357594E41, layout=LAYOUT, end=2):
    return "0:" + struct.pack("=QIIIIQQQ", magic, layout, end, 0, 0, 0, 0, 0).hex()


@contextlib.contextmanager
def forged(*data, size=SIZE, seals=SEALS, name=b"evil"):
    with subprocess.Popen([sys.executable, "-c", FORGER, str(size), str(seals), name.hex(), *data],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


@pytest.mark.parametrize("data, how", [
    ((head(),), {"seals": 0}),
    ((head(),), {"seals": 0x4}),
    ((head(),), {"size": SIZE - 1}),
    ((head(),), {"size": 48}),
    ((), {"size": 0}),
    ((head(magic=1),), {}),
    ((head(layout=2),), {}),
    ((head(end=ROWS + 1),), {}),
    ((head(end=0xFFFFFFFF),), {}),
])
def test_what_is_no_table_is_refused(data, how):
    with forged(*data, **how) as process:
        done = stat(process.pid)
        every = stat("--json")
    assert done.returncode == 1 and done.stdout == ""
    assert f"process {process.pid} has statistics of another version" in done.stderr
    # Others are listed all the same.
    assert every.returncode == 1 and str(process.pid) in every.stderr


@pytest.mark.parametrize("byte", [0xFF, 0x1B, 0x02, 0x00])
def test_rows_of_noise_are_printed_as_they_are_or_left_out(byte):
    rows = b"".join(struct.pack("=I", kind) + bytes([byte]) * (ROW - 4) for kind in range(8))
    with forged(head(end=ROWS), f"{HEAD}:{rows.hex()}") as process:
        found = stat_json(process.pid)
        table = stat(process.pid)
    assert table.returncode == 0
    assert len(found["cqs"]) == 1 and found["processes"][0]["cqs"] == 1
    assert len(found["qps"]) == len(found["listeners"]) == (1 if byte == 0 else 0)
    assert table.stdout.isprintable() or all(line.isprintable() for line in table.stdout.splitlines())


def test_a_name_that_a_terminal_would_obey():
    with forged(head(), name=b'\x1b[2J"\\\xff') as process:
        found = stat_json(process.pid)
        done = stat(process.pid)
    assert found["processes"][0]["program"] == '?[2J"\\?'
    assert "\x1b" not in done.stdout and '?[2J"\\?' in done.stdout


def test_the_fd_of_a_row_may_be_any():
    """What such an fd is, the kernel says: a file of the process is no socket of it."""
    row = struct.pack("=IIIIIiHHI", 2, 16, 1 << 8, 0, 0, 0, 0, 0, 1).ljust(ROW, b"\0")
    more = struct.pack("=IIIIIiHHI", 2, 17, 1 << 8, 0, 0, 0x7FFFFFFF, 2, 9, 1).ljust(ROW, b"\0")
    with forged(head(), f"{HEAD}:{(row + more).hex()}") as process:
        found = stat_json(process.pid)["qps"]
    assert [(qp["local"], qp["peer"], qp["rtt_us"]) for qp in found] == [(None, None, None), (None, "0.0.0.0:9", None)]


# --- on a terminal

def qp_row(number, count):
    """A row as the layout has it: of a stream without a socket, whose peer is 192.0.2.N."""
    return struct.pack("=IIIIIiHHI16sQQQQQQQIIIIIHH", 2, number, 1 << 8, 0, 0, -1, 2, 7174, 1,
                       bytes((192, 0, 2, number & 0xFF)), *[count] * 6, 0, 0, 0, 0, 0, 0, 0, 1).ljust(ROW, b"\0")


@pytest.mark.parametrize("width", [60, 80, 100, 400])
def test_the_table_on_a_terminal(width):
    """It is as wide as the terminal at the most, and has what a file has; each part of it begins with the same two columns."""
    rows = b"".join(qp_row(number, 1 << 50) for number in range(16, 20))
    with forged(head(end=4), f"{HEAD}:{rows.hex()}") as process:
        lines = on_terminal(width, process.pid)
        in_file = stat(process.pid).stdout.split("\n\n")[1].splitlines()
    assert max(map(len, lines)) <= width
    part = "\n".join(lines).split("\n\n")[1].splitlines()
    assert part[0] == "queue pairs"
    whole, _ = joined(in_file[1:])
    found, count = joined(part[1:])
    assert found == whole and len(whole) == 5 and whole[1][5:7] == ["192.0.2.16:7174", str(1 << 50)]
    assert (count == 1) is (width >= max(map(len, in_file)))


def test_a_terminal_narrower_than_a_column():
    """Each column stands alone beside those that name the row."""
    with forged(head(end=1), f"{HEAD}:{qp_row(16, 1).hex()}") as process:
        lines = on_terminal(10, process.pid)
        _, count = joined(lines[lines.index("queue pairs") + 1:])
    assert count == 16


# --- who may ask, and how

def test_a_process_without_a_device():
    done = stat(os.getpid())
    assert done.returncode == 1
    assert f"process {os.getpid()} has no device of anywarp open" in done.stderr


PEER = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(flush=True); sys.stdin.read()"


@contextlib.contextmanager
def loaded(library):
    with subprocess.Popen([sys.executable, "-c", PEER, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.stdin.close()


def test_a_process_on_another_library(tmp_path):
    """As behind a script that sets LD_LIBRARY_PATH anew."""
    other = tmp_path / "libibverbs.so.1.14.44"
    shutil.copy(next(pathlib.Path("/lib").glob("*-linux-gnu*/libz.so.1")), other)
    with loaded(str(other)) as process:
        done = stat(process.pid)
    assert done.returncode == 1
    assert f"process {process.pid} runs on {other}, not on anywarp's library: its LD_LIBRARY_PATH was set anew" in done.stderr


@pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="the sanitizer's library has to come first")
def test_a_process_on_our_library_without_a_device():
    with loaded(str(BUILD / "lib" / "libibverbs.so.1")) as process:
        done = stat(process.pid)
    assert done.returncode == 1 and f"process {process.pid} has no device of anywarp open" in done.stderr


@pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="sanitizers need /proc")
@pytest.mark.parametrize("args", ["stat", "stat --json", "stat 1", "stat --watch 1", "capture -w /dev/null 1",
                                  "sockets --status", "sockets --status 1"])
def test_without_processes_in_proc(args):
    done = subprocess.run(["unshare", "--mount", "--map-root-user", "sh", "-c",
                           f"mount -t tmpfs none /proc || exit 9; exec {ANYWARP} {args}"],
                          capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 9 or "unshare" in done.stderr:
        pytest.skip(f"no namespaces here: {done.stderr}")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == f"anywarp {args.split()[0]}: there are no processes in /proc: mount -t proc proc /proc\n"


def test_no_such_process():
    done = stat(4194304)
    assert done.returncode == 1 and "no process 4194304" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
def test_another_user_is_told_nothing(pinging):
    server, _ = pinging
    done = stat(server.pid, user=STRANGER)
    assert done.returncode == 1 and "ask as root" in done.stderr and done.stdout == ""
    every = stat("--json", user=STRANGER)
    assert every.returncode == 0 and json.loads(every.stdout)["processes"] == []


@pytest.mark.parametrize("args", [("--fast",), ("x",), ("0",), ("1x",), ("1", "2"), ("--watch",), ("--watch", "0"),
                                  ("--watch", "x"), ("--watch=nan",), ("--watch", "1e9"), ("-1",)])
def test_wrong_usage(args):
    done = stat(*args)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("anywarp stat: ")


def test_a_name_in_place_of_a_pid_is_told_what_finds_one():
    assert "'rping' is no process ID: 'pidof -s NAME' finds one" in stat("rping").stderr


def test_two_processes_are_one_too_many():
    """As pidof(1) names them where both ends run here."""
    assert "takes one PID, and '2' is another" in stat("1", "2").stderr


def test_output_that_cannot_be_written_ends_a_watch():
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([str(ANYWARP), "stat", "--watch", "0.1"], stdout=full, stderr=subprocess.PIPE,
                              timeout=60, check=False)
    assert done.returncode == 1


# --- the manual

def test_the_manual_has_every_option_and_column(pinging):
    page = (MAN / "anywarp-stat.1").read_text().replace("\\-", "-")
    helped = subprocess.run([str(ANYWARP), "help", "stat"], capture_output=True, text=True, check=True).stdout
    for option in set(re.findall(r"--[a-z]+", helped)):
        assert re.search(rf"^\.(B|BI) {option}\b", page, re.M), option
    found = stat_json(pinging[0].pid)
    assert found.pop("time") and re.search(r"\btime\b", page)
    for name, rows in found.items():
        assert re.search(rf"\b{name}\b", page), name
        for column in rows[0]:
            assert re.search(rf"\b{column}\b", page), column


def test_the_manual_is_set_without_a_warning():
    groff = shutil.which("groff")
    if not groff:
        pytest.skip("no groff")
    done = subprocess.run([groff, "-man", "-ww", "-Tutf8", str(MAN / "anywarp-stat.1")], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
