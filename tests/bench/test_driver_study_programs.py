# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The study's own programs and a run of it, with what is installed here. ANYWARP_BUILD names the build directory."""

import json
import os
import pathlib
import subprocess
import sys

import driver_path
import app_calls
import app_pipeline
import application
import beds
import pytest
import sockets
import study
import wan

if "ANYWARP_BUILD" not in os.environ:
    pytest.skip("ANYWARP_BUILD names no build directory", allow_module_level=True)
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
WORKERS, LIBRARIES = str(BUILD / "bench"), str(BUILD / "lib")
RUN = """
import json, sys
sys.path[:0] = sys.argv[1].split(":")
import beds, cputree, study, points
cputree.adopt_orphans()
program = study.programs(*sys.argv[2:4])[sys.argv[4]]
why = program.missing()
print(json.dumps({"missing": why} if why else program.run(beds.LOOPBACK, points.Series("", "", "", json.loads(sys.argv[5]), None), 0.2)))
"""


def run(name, **keys):
    """One run of an application on loopback, in a process of its own, since it ends all that is left of it."""
    folders = f"{driver_path.DRIVER}:{driver_path.ROOT / 'tools' / 'lib'}"
    done = subprocess.run([sys.executable, "-B", "-c", RUN, folders, WORKERS, LIBRARIES, name, json.dumps(keys)],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if "missing" in found:
        pytest.skip(found["missing"])
    assert found["checked"] and found["cpu"]["both_seconds"] >= 0
    return found


PIPELINES = ["pipeline:tcp", "pipeline:iwarp", "pipeline:one-sided", "pipeline:verbs"]


@pytest.mark.parametrize("name", PIPELINES)
def test_updates_come_whole_and_partial_ones_between(name):
    found = run(name, block=16384)
    assert found["updates_per_second"] > 0 and found["partials"] > 0
    assert 0 < found["usec_partial"]["median"] <= found["usec_partial"]["p90"]


@pytest.mark.parametrize("name", PIPELINES)
def test_the_best_block_within_a_bound(name):
    found = run(name, bound=10 ** 7)
    assert found["updates_per_second"] > 0 and found["block"] in (4096, 16384, 65536, 262144, 1048576)
    assert run(name, bound=0)["updates_per_second"] == 0


@pytest.mark.parametrize("name", PIPELINES)
def test_all_work_is_done_and_a_slow_worker_noticed(name):
    found = run(name, work=16384)
    assert found["work_seconds"] > 0 and found["usec_reaction"] > 0 and found["operations"] == 40e6 * 0.2 // 16384


@pytest.mark.parametrize("block", ["0", "3", "4097", "2097152"])
def test_a_block_that_is_none_is_refused(block):
    path = os.path.join(WORKERS, "bench-pipeline-tcp")
    done = subprocess.run([path, "client", "127.0.0.1", "1", "updates", "1", block], capture_output=True, text=True, timeout=20,
                          check=False)
    assert done.returncode == 1 and "a power of two" in done.stderr


@pytest.mark.parametrize("name", ["rpc:tcp", "rpc:iwarp"])
@pytest.mark.parametrize("size", [0, 1, 65536])
def test_rpc_answers(name, size):
    found = run(name, size=size)
    assert found["operations"] > 0 and found["usec"]["median"] > 0


@pytest.mark.parametrize("kind", ["unary", "stream"])
def test_grpc_answers(kind):
    found = run("grpc:tcp", kind=kind, size=1000)
    assert found["operations"] > 0
    assert kind == "unary" or found["octets"] == 1000 * found["operations"]


@pytest.mark.parametrize("name, kind, size", [
    *(("mpi:tcp", kind, size) for kind, size in (("latency", 8), ("bandwidth", 65536), ("allreduce", 4096))),
    *((name, kind, size) for name in ("mpi:iwarp", "mpi:ucx-roce") for kind, size in (("sort", 65536), ("tiles", 64)))])
def test_mpi_results_are_right(name, kind, size):
    assert run(name, kind=kind, size=size)["operations"] > 0


ECHO = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
conn, _ = listener.accept()
while octets := conn.recv(4096):
    conn.sendall(octets)
"""
ASK = """
import socket, statistics, sys, time
conn = socket.create_connection((sys.argv[1], int(sys.argv[2])))
took = []
for _ in range(20):
    began = time.monotonic()
    conn.sendall(b"x")
    assert conn.recv(1) == b"x"
    took.append(time.monotonic() - began)
print(statistics.median(took))
"""


def test_the_long_link_delays():
    try:
        with wan.WanBed(WORKERS) as bed:
            where = [bed.address, "9000"]
            server = subprocess.Popen([*bed.server_prefix, sys.executable, "-c", ECHO, *where])
            try:
                said = application.wait_until(lambda: asked(bed, where), "answer")
            finally:
                server.kill()
                server.wait()
    except beds.NotAllowed as error:
        pytest.skip(str(error))
    assert float(said) >= wan.ROUND_TRIP_MS / 1000


# Datagrams for which the socket had no room, because this process got no processor, have come, too: the kernel
# counts them (SO_MEMINFO, SK_MEMINFO_DROPS).
COUNT = """
import socket, struct, sys
at = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
at.bind((sys.argv[1], int(sys.argv[2])))
at.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
print("ready", flush=True)
got = 0
while at.recv(100) != b"end":
    got += 1
dropped = struct.unpack("9I", at.getsockopt(socket.SOL_SOCKET, 55, 36))[8]
print(got + dropped, flush=True)
"""
SEND = """
import socket, sys, time
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(4050):
    to.sendto(b"x" if number < 4000 else b"end", (sys.argv[1], int(sys.argv[2])))
    time.sleep(0.0002)
"""


def test_the_long_link_loses_about_one_of_a_hundred():
    try:
        with wan.WanBed(WORKERS) as bed:
            where = [bed.address, "9000"]
            counts = subprocess.Popen([*bed.server_prefix, sys.executable, "-c", COUNT, *where], stdout=subprocess.PIPE, text=True)
            try:
                assert counts.stdout.readline() == "ready\n"
                subprocess.run([*bed.client_prefix, sys.executable, "-c", SEND, *where], check=True, timeout=60)
                got = int(counts.stdout.readline())
            finally:
                counts.kill()
                counts.communicate()
    except beds.NotAllowed as error:
        pytest.skip(str(error))
    assert 3920 <= got <= 3990


def asked(bed, where):
    done = subprocess.run([*bed.client_prefix, sys.executable, "-c", ASK, *where], capture_output=True, text=True, timeout=60,
                          check=False)
    return done.stdout if done.returncode == 0 else None


def test_a_link_without_its_program_says_so(tmp_path):
    with pytest.raises(beds.NotAllowed, match="bench-link"), wan.WanBed(str(tmp_path)):
        pass


def test_no_program_of_ours_is_missing():
    way = application.Way("tcp", {}, None)
    assert app_pipeline.Pipeline(way, WORKERS, "tcp").missing() is None
    assert app_calls.Rpc(way, WORKERS).missing() is None
    assert sockets.no_library(LIBRARIES, "on") is None


def test_a_study(tmp_path):
    """A whole run, small: results, page, checks; what is not installed is told and nothing else fails."""
    done = subprocess.run([str(BUILD / "bin" / "anywarp"), "bench", "--apps", "--short", "--rounds", "1", "--out", str(tmp_path),
                           "--only", "app-rpc/loopback/0", "--only", "app-pipeline/loopback/16384"],
                          capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["settings"]["form"] == "apps-short" and not found["settings"]["interrupted"]
    runs = [each["rounds"][0]["result"] for point in found["points"] for each in point["series"] if "skipped" not in each]
    assert runs and all(each["checked"] and "both_seconds" in each["cpu"] for each in runs)
    assert {what for what, _ in study.NOT_IN_IT} <= {each["what"] for each in found["skipped"]}
    assert "Beside TCP in the same rounds" in done.stdout
    page = tmp_path / "index.html"
    assert not page.exists() or "Where it helps, and what it costs" in page.read_text()
