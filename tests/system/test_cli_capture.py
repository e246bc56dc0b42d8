# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""'anywarp capture' as a user meets it: files that tshark and the decoder of our own read, ends that are killed, and
capturers and processes that are no friends of each other."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading

import iwarp
import pytest
import recording
import tcp_order
from open_build import open_build
from test_cli_stat import FORGER, HEAD, ROW, ROWS, SEALS, STRANGER, head, stat

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
ANYWARP = BUILD / "bin" / "anywarp"
MAN = pathlib.Path(__file__).resolve().parents[2] / "man"
# With it every FPDU has its CRC, and none is of the move into memory, which tshark does not know.
TCP_ONLY = ("env", "ANYWARP_HOST_PATH=off")
# Offsets in the memfd: the request in the head, the ring's head, its records.
REQUEST = 48
RING_HEAD = HEAD + ROW * ROWS
RING = RING_HEAD + (64 << 10)
RING_LEN = 16 << 20
FILE_LEN = RING + RING_LEN


class Capture:
    """A capture of a process, from the time at which it may write records."""

    def __init__(self, pid, path, **how):
        self.path = str(path)
        self.command = subprocess.Popen([str(ANYWARP), "capture", "-w", self.path, str(pid)],
                                        stderr=subprocess.PIPE, text=True, **how)
        self.first = self.command.stderr.readline()

    def __enter__(self):
        assert "capturing process" in self.first, self.first + self.command.stderr.read()
        return self

    def __exit__(self, *_):
        if self.command.poll() is None:
            self.command.kill()
        self.command.communicate()

    def end(self):
        """Waits until the command has ended; (FPDUs, streams, dropped records)."""
        said = self.command.communicate(timeout=60)[1]
        assert self.command.returncode == 0, said
        counted = re.findall(r"(\d+) (?:FPDU|stream|record)(s?)\b", said.splitlines()[-1])
        assert [bool(plural) for _, plural in counted] == [number != "1" for number, _ in counted] and len(counted) == 3
        return [int(number) for number in re.findall(r"\d+", said.splitlines()[-1])]

    def stop(self):
        self.command.send_signal(signal.SIGINT)
        return self.end()


def is_of_a_move(octets):
    """The ULPDU of the one FPDU in a packet begins with a zero. So does a marker, whose FPDU then has no length before it."""
    return octets[:2] != b"\0\0" and octets[2:3] == b"\0"


def recorded(path):
    """Without the messages of a move into memory, of which tshark knows nothing."""
    lines = recording.tshark(path, "-Y", "tcp", "-T", "fields", *recording.columns(tcp_order.FIELDS))
    packets = tcp_order.packets(lines.splitlines())
    return recording.Recording(path, [packet for packet in packets if not is_of_a_move(packet.payload)])


def fields(path, *names, where=""):
    """One list of the fields for each frame."""
    text = recording.tshark(path, "-T", "fields", "-E", "aggregator=;", "-Y", where, *recording.columns(names))
    return [line.split("\t") for line in text.splitlines()]


def dissected(path):
    """The opcodes that tshark sees; it finds every FPDU well-formed, and every CRC right."""
    frames = fields(path, "iwarp_rdma.opcode", "_ws.malformed", "iwarp_mpa.bad_length", where="tcp.len > 0")
    # Of a message without an opcode there are but the two frames of MPA for each stream.
    assert [frame for frame in frames if frame[1] or frame[2]] == []
    text = recording.tshark(path, "-O", "iwarp_mpa")
    assert "(Bad" not in text
    assert len(re.findall(r"CRC check: 0x\w+ \(Good", text)) == sum(bool(frame[0]) for frame in frames)
    return [int(frame[0], 0) for frame in frames if frame[0]]


def size_of(path):
    return os.stat(path).st_size if os.path.exists(path) else 0


def counters(path):
    """(received, dropped) of the statistics of the interface, which are the file's last block."""
    with open(path, "rb") as file:
        data = file.read()
    length, = struct.unpack("=I", data[-4:])
    kind, _, _, _, _, *options = struct.unpack("=IIIIIHHQHHQHHI", data[-length:])
    assert (kind, options[0], options[3]) == (5, 4, 5)
    return options[2], options[5]


def bytes_out(pid):
    done = stat("--json", pid)
    found = re.findall(r'"bytes_out": ?(\d+)', done.stdout)
    return max(map(int, found), default=0)


@pytest.fixture(name="writing")
def fixture_writing(start, port):
    """A server and a client that writes to it for long, and polls."""
    server = start.server("ib_write_bw -R -F -s 65536 -D 120", port, prefix=TCP_ONLY)
    client = start(f"ib_write_bw -R -F -s 65536 -D 120 -p {port} 127.0.0.1", prefix=TCP_ONLY)
    client.wait_until(lambda: bytes_out(client.pid) > 1 << 20, "stream")
    return server, client


@pytest.fixture(name="pinging")
def fixture_pinging(start, port):
    server = start.server("rping -s -a 127.0.0.1 -S 1000", port, prefix=TCP_ONLY)
    client = start(f"rping -c -a 127.0.0.1 -p {port} -S 1000 -C 100000000", prefix=TCP_ONLY)
    client.wait_until(lambda: bytes_out(client.pid) > 1000, "stream")
    return server, client


@pytest.fixture(name="path")
def fixture_path(tmp_path):
    return tmp_path / "capture.pcapng"


# --- whole streams, from the first byte

@pytest.mark.parametrize("address, settings, moves", [
    ("127.0.0.1", ("ANYWARP_HOST_PATH=off",), 0),
    ("::1", ("ANYWARP_HOST_PATH=off",), 0),
    ("127.0.0.1", ("ANYWARP_HOST_PATH=on",), 3),
    ("127.0.0.1", ("ANYWARP_HOST_PATH=off", "ANYWARP_MPA=markers=on"), 0),
], ids=["ipv4", "ipv6", "memory", "markers"])
def test_rping(start, port, path, address, settings, moves, size=60000):
    """A server that the client finds under capture: all of the stream is there, and both judges follow it."""
    server = start.server(f"rping -s -a {address} -C 5 -V -S {size}", port, prefix=("env", *settings))
    with Capture(server.pid, path) as capture:
        client = start(f"rping -c -a {address} -p {port} -C 5 -V -S {size}", prefix=("env", *settings))
        assert client.wait_exit() == 0 and server.wait_exit() == 0
        fpdus, streams, dropped = capture.end()
    seen = recorded(capture.path)
    assert seen.problems() == []
    conversation, = seen.conversations
    assert streams == 1 and dropped == 0
    assert fpdus == sum(len(each.fpdus) for each in conversation.directions) + moves
    comments = [frame[0] for frame in fields(capture.path, "frame.comment", where="frame.comment")]
    assert sum("moves the stream into memory" in comment for comment in comments) == moves
    opcodes = seen.opcodes()
    assert opcodes[iwarp.SEND] == 20 and opcodes[iwarp.READ_REQUEST] >= 5 and opcodes[iwarp.WRITE] >= 5
    # The server listens on its port, so that the client began.
    assert conversation.ports[1] == port
    family = "ipv6.addr" if ":" in address else "ip.addr"
    assert {frame[0] for frame in fields(capture.path, family)} == {f"{address};{address}"}


def test_many_streams(start, port, path):
    server = start.server("ucmatose -c 10 -C 5 -S 3000", port, prefix=TCP_ONLY)
    with Capture(server.pid, path) as capture:
        client = start(f"ucmatose -s 127.0.0.1 -p {port} -c 10 -C 5 -S 3000", prefix=TCP_ONLY)
        assert client.wait_exit() == 0 and server.wait_exit() == 0
        assert capture.end()[1:] == [10, 0]
    seen = recorded(capture.path)
    assert seen.problems() == [] and len(seen.conversations) == 10
    assert iwarp.SEND in seen.opcodes()


# --- the middle of a stream

def test_from_the_middle_of_a_stream(pinging, path):
    with Capture(pinging[1].pid, path) as capture:
        pinging[1].wait_until(lambda: size_of(path) > 20000, "records")
        fpdus, streams, dropped = capture.stop()
    opcodes = dissected(capture.path)
    assert set(opcodes) == {iwarp.WRITE, iwarp.READ_REQUEST, iwarp.READ_RESPONSE, iwarp.SEND}
    assert (len(opcodes), streams, dropped) == (fpdus, 1, 0)
    frames = fields(capture.path, "frame.time_epoch", "frame.packet_flags_direction", "frame.comment")
    times = [float(frame[0]) for frame in frames]
    assert times == sorted(times) and {frame[1] for frame in frames} == {"0x00000001", "0x00000002"}
    assert re.fullmatch(r"qp 0x[0-9a-f]+: .* made up by anywarp capture", frames[0][2])
    assert fields(capture.path, "tcp.seq", where="tcp.analysis.lost_segment") == []
    assert pinging[1].status() is None


def test_again_and_again(pinging, path):
    """Each file begins anew, and the memory is given back between the two."""
    for _ in range(3):
        with Capture(pinging[0].pid, path) as capture:
            pinging[0].wait_until(lambda: size_of(path) > 10000, "records")
            fpdus, streams, _ = capture.stop()
        assert streams == 1 and len(dissected(capture.path)) == fpdus
        assert table_memory(pinging[0].pid) < RING_LEN // 2


def test_the_standard_output_and_more_than_the_ring_holds(writing):
    """A program that polls; the ring is filled more than once."""
    with Capture(writing[1].pid, "-", stdout=subprocess.PIPE) as capture:
        data = capture.command.stdout.buffer
        kept = read_some(data, 3 * RING_LEN)
        capture.command.send_signal(signal.SIGINT)
        rest = threading.Thread(target=lambda: kept.append(data.read()))
        rest.start()
        capture.command.wait(timeout=60)
        rest.join()
    assert capture.command.returncode == 0
    assert writing[1].status() is None and sum(map(len, kept)) > 3 * RING_LEN


def read_some(data, size):
    kept = []
    while sum(map(len, kept)) < size:
        kept.append(data.read(1 << 16))
        assert kept[-1], "the capture ended"
    return kept


def test_dropped_records_leave_a_gap_that_is_told(writing, path):
    """A capturer that reads nothing for a time: the process goes on, and the dissector finds the stream again."""
    with Capture(writing[1].pid, path) as capture:
        client = writing[1]
        client.wait_until(lambda: size_of(path) > 100000, "records")
        capture.command.send_signal(signal.SIGSTOP)
        before = bytes_out(client.pid)
        client.wait_until(lambda: bytes_out(writing[1].pid) > before + 4 * RING_LEN, "progress without a capturer")
        capture.command.send_signal(signal.SIGCONT)
        until = size_of(path) + 2 * RING_LEN
        client.wait_until(lambda: size_of(path) > until, "records behind the gap")
        fpdus, streams, dropped = capture.stop()
    assert dropped > 0 and streams == 1
    assert len(dissected(capture.path)) == fpdus
    assert len(fields(capture.path, "tcp.seq", where="tcp.analysis.lost_segment")) >= 1
    assert counters(capture.path) == (fpdus, dropped)


# --- ends that are killed

def test_a_process_that_is_killed(pinging, path):
    """What it had written is in the file, and the capture ends in order."""
    with Capture(pinging[1].pid, path) as capture:
        pinging[1].wait_until(lambda: size_of(path) > 10000, "records")
        pinging[1].kill()
        fpdus, _, dropped = capture.end()
    assert dropped == 0 and len(dissected(capture.path)) == fpdus > 0


def table_of(pid):
    """The fd of the table of a process, open here."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{name}") == "/memfd:anywarp-stat (deleted)":
                return os.open(f"/proc/{pid}/fd/{name}", os.O_RDWR)
    raise AssertionError("no table")


@contextlib.contextmanager
def table(pid):
    fd = table_of(pid)
    try:
        yield fd
    finally:
        os.close(fd)


def table_memory(pid):
    with table(pid) as fd:
        return os.fstat(fd).st_blocks * 512


def run_of(pid):
    with table(pid) as fd:
        return struct.unpack("=I", os.pread(fd, 4, REQUEST))[0]


def test_a_capturer_that_is_killed(pinging, path):
    """The process goes on, ends the capture after a while, and gives the memory back."""
    with Capture(pinging[1].pid, path) as capture:
        pinging[1].wait_until(lambda: size_of(path) > 10000, "records")
        assert run_of(pinging[1].pid) != 0 and table_memory(pinging[1].pid) > RING_LEN // 2
        capture.command.kill()
        capture.command.wait()
        before = bytes_out(pinging[1].pid)
        pinging[1].wait_until(lambda: run_of(pinging[1].pid) == 0, "end of the run")
    assert bytes_out(pinging[1].pid) > before
    pinging[1].wait_until(lambda: table_memory(pinging[1].pid) < RING_LEN // 2, "the ring's memory to be given back")


def test_the_next_capture_need_not_wait_for_the_end_of_a_dead_one(pinging, path):
    with Capture(pinging[1].pid, path) as capture:
        capture.command.kill()
        capture.command.wait()
    with Capture(pinging[1].pid, path) as capture:
        pinging[1].wait_until(lambda: size_of(path) > 10000, "records")
        fpdus = capture.stop()[0]
    assert len(dissected(capture.path)) == fpdus


def test_a_process_that_is_stopped(pinging, path):
    for program in pinging:
        program.send_signal("STOP")
    with Capture(pinging[1].pid, path) as capture:
        assert capture.stop() == [0, 0, 0]
    assert fields(capture.path, "frame.number") == []


# --- no friends

def test_noise_in_the_shared_memory_harms_no_process(writing):
    """Positions and requests of a capturer that lies: the process writes on, within its ring."""
    with table(writing[1].pid) as fd:
        before = bytes_out(writing[1].pid)
        for run in range(1, 400):
            os.pwrite(fd, struct.pack("=II", run % 7, run), REQUEST)
            for tail in (0, 8, 1 << 63, 2**64 - 1, RING_LEN + 1):
                os.pwrite(fd, struct.pack("=Q", tail), RING_HEAD + 64)
            os.pwrite(fd, os.urandom(72), RING_HEAD)
            os.pwrite(fd, os.urandom(4096), RING + run * 4096)
        writing[1].wait_until(lambda: bytes_out(writing[1].pid) > before + RING_LEN, "progress")
        os.pwrite(fd, struct.pack("=II", 0, 0), REQUEST)
    assert writing[0].status() is None and writing[1].status() is None


def record(length=96, kind=1, size=8, family=2):
    return struct.pack("=IHHIIQIIII32sHHI", length, kind, 2, 16, 1, 0, 0, 0, 0, size, b"\x7f\0\0\1" * 8, 1, 2, family)


# A process that answers the request with these records, and says so.
ANSWER = FORGER.replace("sys.stdin.read()", """
import mmap, struct
memory = mmap.mmap(fd, size)
while True:
    run = memory[48:52]
    if run != bytes(4):
        memory[%d:%d] = run
""") % (RING_HEAD + 16, RING_HEAD + 20)


@pytest.mark.parametrize("ring_head, records", [
    (96, record(length=0)),
    (96, record(length=90)),
    (96, record(length=1 << 31)),
    (96, record(size=17)),
    (96, record(size=2**32 - 1)),
    (96, record(kind=2)),
    (96, record(family=1)),
    (95, record()),
    (RING_LEN + 96, record()),
    (2**64 - 1, record()),
])
def test_nonsense_of_a_process_is_refused(path, ring_head, records):
    words = [head(), f"{RING_HEAD}:{struct.pack('=Q', ring_head).hex()}", f"{RING}:{records.hex()}"]
    with subprocess.Popen([sys.executable, "-c", ANSWER, str(FILE_LEN), str(SEALS), b"evil".hex(), *words],
                          stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        done = subprocess.run([str(ANYWARP), "capture", "-w", str(path), str(process.pid)], capture_output=True,
                              text=True, timeout=60, check=False)
        process.kill()
    assert done.returncode == 1 and "has written an invalid record" in done.stderr


def test_one_capture_at_a_time(pinging, path, tmp_path):
    """The second leaves no trace, also in the file of the first."""
    with Capture(pinging[1].pid, path) as capture:
        pinging[1].wait_until(lambda: size_of(path) > 10000, "records")
        for written in (tmp_path / "other", path):
            done = capture_fails("-w", written, pinging[1].pid)
            assert f"another capture of process {pinging[1].pid} runs" in done
        fpdus, _, _ = capture.stop()
    assert not (tmp_path / "other").exists()
    assert len(dissected(path)) == fpdus


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
def test_another_user_is_refused(pinging):
    done = subprocess.run([open_build(BUILD) / "bin" / "anywarp", "capture", "-w", "-", str(pinging[0].pid)],
                          capture_output=True, text=True, user=STRANGER, timeout=60, check=False)
    assert done.returncode == 1 and "ask as root" in done.stderr and done.stdout == ""


# --- errors and usage

def capture_fails(*args, status=1):
    done = subprocess.run([str(ANYWARP), "capture", *map(str, args)], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == status and done.stdout == "", done.stderr
    assert done.stderr.startswith("anywarp capture: ")
    return done.stderr


def test_a_full_disk(pinging):
    said = capture_fails("--write", "/dev/full", pinging[1].pid)
    assert "cannot write '/dev/full': No space left on device" in said
    assert run_of(pinging[1].pid) == 0 and pinging[1].status() is None


def test_a_file_that_cannot_be_made(pinging, tmp_path):
    assert "No such file or directory" in capture_fails("-w", tmp_path / "none" / "file", pinging[1].pid)
    assert "Is a directory" in capture_fails("-w", tmp_path, pinging[1].pid)
    assert run_of(pinging[1].pid) == 0


def test_processes_that_cannot_be_captured(path):
    assert "has no device of anywarp open" in capture_fails("-w", path, os.getpid())
    assert "no process 4194304" in capture_fails("-w", path, 4194304)
    assert not path.exists()


@pytest.mark.parametrize("args", [(), ("1",), ("-w", "x"), ("-w",), ("--write",), ("--write=", "1"), ("-w", "x", "0"),
                                  ("-w", "x", "1", "2"), ("-w", "x", "1x"), ("--fast", "1")])
def test_wrong_usage(args):
    capture_fails(*args, status=2)


def test_the_manual_has_every_option():
    page = (MAN / "anywarp-capture.1").read_text().replace("\\-", "-")
    helped = subprocess.run([str(ANYWARP), "help", "capture"], capture_output=True, text=True, check=True).stdout
    options = set(re.findall(r"(?<!\w)--?[a-z]+\b", helped.split("anywarp capture -w")[0]))
    assert options >= {"--write", "-w"}
    for option in options:
        assert re.search(rf"^\.(B|BI|BR) .*{option}\b", page, re.M), option


def test_the_manual_is_set_without_a_warning():
    groff = shutil.which("groff")
    if not groff:
        pytest.skip("no groff")
    done = subprocess.run([groff, "-man", "-ww", "-Tutf8", str(MAN / "anywarp-capture.1")], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
