# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""bench-tcp, bench-tls and bench-verbs: every test of each runs for a moment, and what it prints makes sense.
Nothing here says how fast anything has to be."""

import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

for folder in ("tools/lib", "bench/driver"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / folder))
sys.dont_write_bytecode = True

import program  # noqa: E402
import tls  # noqa: E402

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
SECONDS_MAX = 60 * program.SLOWNESS
MOMENT = "seconds=0.05"
ENVIRONMENT = {
    **os.environ,
    "LD_LIBRARY_PATH": str(BUILD / "lib"),
    "ASAN_OPTIONS": "detect_leaks=0:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": f"{os.environ.get('TSAN_OPTIONS', '')}:exitcode=98",
}

LATENCY = {
    "tcp": [f"op={op} mode={mode} size={size}" for op in ("send", "read")
            for mode in ("block", "spin", "epoll") for size in (1, 70000)],
    "verbs": [f"op={op} mode={mode} size={size}" for op in ("send", "write", "write-cq", "read")
              for mode in ("spin", "event") for size in (1, 70000)
              if (op, mode) != ("write", "event")],
}
# Sizes that no other message of the program has, and those that its own small ones have.
BANDWIDTH = [
    "op=send size=1 window=1",
    "op=send size=2 window=7 batch=3",
    "op=send size=64 window=128 batch=128",
    "op=send size=65536 window=9 batch=9",
    "op=send size=1000 direction=bi window=5",
    "op=send size=65536 direction=bi streams=3",
    "op=send size=3000 streams=5 threads=2",
    "op=send size=64 fan=in peers=3",
    "op=send size=65536 fan=out peers=3",
    "op=write size=1 window=4",
    "op=write size=100000 batch=4",
    "op=write size=65536 direction=bi streams=2 threads=2",
    "op=write size=1048576 window=128",
    "op=send size=16777216 window=4",
    "op=write size=4096 fan=in peers=2",
    "op=write size=4096 fan=out peers=2",
    "op=read size=1 window=3",
    "op=read size=65536 batch=5 streams=3",
    "op=read size=5000 threads=2",
]
TLS = [("latency", "size=1"), ("latency", "mode=epoll size=70000"), ("latency", "iterations=1"), ("bandwidth", "size=1"),
       ("bandwidth", "mode=epoll size=3000"), ("bandwidth", "size=1048576"), ("bandwidth", "mode=epoll size=16777216"),
       ("connect", "count=12")]
CERTIFICATES = tls.Certificates()
HAS_TLS = os.access(BUILD / "bench" / "bench-tls", os.X_OK)
HOTSPOT = {"tcp": ("epoll", "spin"), "verbs": ("event", "spin", "epoll")}


# By ibv_modify_qp, in the roce persona.
MODIFY = [("latency", "op=send size=64"), ("latency", "op=send-done size=64"),
          ("latency", "op=write size=1"),
          ("latency", "op=write-cq mode=event size=70000"), ("latency", "op=read size=64"),
          ("bandwidth", "op=send size=64 window=128"), ("bandwidth", "op=read size=5000 threads=2"),
          ("bandwidth", "op=write size=65536 direction=bi streams=3")]


def runs():
    for test, keys in MODIFY:
        yield "verbs", test, f"by=modify_qp {keys} {MOMENT}"
    for transport in ("tcp", "verbs"):
        for keys in LATENCY[transport]:
            yield transport, "latency", f"{keys} {MOMENT}"
        yield transport, "latency", "iterations=1"
        for keys in BANDWIDTH:
            yield transport, "bandwidth", f"{keys} {MOMENT}"
        for mode in HOTSPOT[transport]:
            yield transport, "hotspot", f"clients=20 size=32 mode={mode} {MOMENT}"
        # One after the other; in batches, of which the last is smaller; fewer than would go together.
        for keys in ("count=12", "count=12 at_once=5", "count=150 at_once=64", "count=3 at_once=64"):
            yield transport, "connect", keys
        yield transport, "idle", "connections=30"
    for test, keys in TLS if HAS_TLS else ():
        yield "tls", test, keys if "count=" in keys or "iterations" in keys else f"{keys} {MOMENT}"
    yield "verbs", "bandwidth", f"op=send mode=event size=64 {MOMENT}"
    yield "verbs", "bandwidth", f"op=write mode=event direction=bi streams=3 {MOMENT}"
    yield "verbs", "bandwidth", f"op=read mode=event {MOMENT}"


def path_of(transport):
    return str(BUILD / "bench" / f"bench-{transport}")


def environment(transport, persona):
    files = CERTIFICATES.variables() if transport == "tls" else {}
    return {**ENVIRONMENT, **files, "ANYWARP_PERSONA": persona}


class Server:
    """A server that has said that it is ready."""

    def __init__(self, transport, address, persona="iwarp"):
        self.port = str(program.free_port())
        self.process = subprocess.Popen(
            [path_of(transport), "server", address, self.port], text=True,
            env=environment(transport, persona), stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def end(self):
        """Its exit status and what it said of errors."""
        _, errors = self.process.communicate(timeout=SECONDS_MAX)
        return self.process.returncode, errors


def client(transport, address, port, *args, persona="iwarp"):
    return subprocess.run([path_of(transport), "client", address, port, *args],
                          env=environment(transport, persona),
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def ordered(durations):
    values = [durations[name] for name in ("min", "median", "p99", "max")]
    assert 0 < values[0] and values == sorted(values), durations
    assert durations["min"] <= durations["mean"] <= durations["max"], durations


def check_cpu(cpu):
    for end in ("client", "server"):
        parts = cpu[f"{end}_user"] + cpu[f"{end}_system"]
        assert cpu[f"{end}_seconds"] == pytest.approx(parts, abs=1e-6), cpu
        assert 0 <= parts < SECONDS_MAX * 64, cpu


def check_latency(found):
    ordered(found["usec"])
    asked = found["parameters"]["iterations"]
    assert found["iterations"] == asked if asked else found["iterations"] > 0, found


def check_bandwidth(found):
    assert found["messages"] > 0 and found["seconds"] > 0.05, found
    assert found["octets"] == found["messages"] * found["parameters"]["size"], found
    for name in ("octets", "messages"):
        assert found[f"{name}_per_second"] == pytest.approx(found[name] / found["seconds"],
                                                            rel=1e-6), found


def check_hotspot(found):
    ordered(found["usec"])
    assert found["messages"] >= found["parameters"]["clients"], found
    assert found["messages_per_second"] == pytest.approx(found["messages"] / found["seconds"],
                                                         rel=1e-6), found


def check_connect(found):
    ordered(found["usec_connect"])
    ordered(found["usec_first_octet"])
    assert found["per_second"] > 0, found
    assert found["usec_first_octet"]["min"] > found["usec_connect"]["min"], found
    if found["transport"] == "verbs":
        ordered(found["usec_connect_only"])
        assert found["usec_connect_only"]["min"] < found["usec_connect"]["min"], found


def check_idle(found):
    assert {"client", "server"} <= set(found["octets_per_connection"]), found
    assert found["poll_ns"] > 0 and found["poll_ns_busy10"] > 0, found
    assert all(0 <= percent < 200 for percent in found["idle_cpu_percent"].values()), found


CHECKS = {"latency": check_latency, "bandwidth": check_bandwidth, "hotspot": check_hotspot,
          "connect": check_connect, "idle": check_idle}


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("transport, test, keys", runs())
def test_makes_sense(address, transport, test, keys):
    persona = "roce" if "by=modify_qp" in keys else "iwarp"
    with Server(transport, address, persona) as server:
        ended = client(transport, address, server.port, test, *keys.split(), persona=persona)
        assert ended.returncode == 0, ended.stderr
        assert server.end() == (0, "")
    assert ended.stderr == ""
    assert ended.stdout.count("\n") == 1
    found = json.loads(ended.stdout)
    assert (found["transport"], found["test"]) == (transport, test)
    for key, value in (pair.split("=") for pair in keys.split()):
        assert str(found["parameters"][key]) == value, found
    check_cpu(found["cpu"])
    CHECKS[test](found)


TIME_WAIT = "06"


def waiting_at(address):
    """How many connections of this address have a socket in TIME_WAIT. One that both ends close at once has two."""
    shown = "%08X" % struct.unpack("=I", socket.inet_aton(address))
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table][1:]
    return len({frozenset(row[1:3]) for row in rows if row[3] == TIME_WAIT
                and shown in (row[1].split(":")[0], row[2].split(":")[0])})


@pytest.mark.parametrize("transport", ["tcp", "verbs"])
def test_idle_connections_leave_the_ports_to_others(transport):
    """A run of ten thousand connections would take the local ports from those that follow."""
    address = f"127.{os.getpid() >> 8 & 0xff}.{os.getpid() & 0xff}.{'tv'.index(transport[0]) + 2}"
    with Server(transport, address) as server:
        ended = client(transport, address, server.port, "idle", "connections=30")
        assert ended.returncode == 0, ended.stderr
        assert server.end() == (0, "")
    # The control connection ends in order.
    assert waiting_at(address) <= 1


@pytest.mark.parametrize("transport", ["tcp", "verbs"])
@pytest.mark.parametrize("args, cause", [
    ([], "too few arguments"),
    (["serve", "127.0.0.1", "1"], "server or client"),
    (["client", "localhost", "1", "latency"], "numeric"),
    (["client", "127.0.0.1", "port", "latency"], "numeric"),
    (["client", "127.0.0.1", "1"], "no test ''"),
    (["client", "127.0.0.1", "1", "latency", "size=0"], "from 1 to 16777216"),
    (["client", "127.0.0.1", "1", "latency", "mode=often"], "block, spin, epoll, event"),
    (["server", "127.0.0.1", "1", "latency"], "takes no more arguments"),
])
def test_wrong_arguments(transport, args, cause):
    ended = subprocess.run([path_of(transport), *args], env=ENVIRONMENT, capture_output=True,
                           text=True, timeout=SECONDS_MAX, check=False)
    assert ended.returncode == 2
    assert cause in ended.stderr and "usage:" in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize("transport, args", [
    ("tcp", ["latency", "mode=event"]),
    ("verbs", ["latency", "mode=block"]),
    ("verbs", ["bandwidth", "window=4", "batch=5"]),
    ("tcp", ["latency", "by=modify_qp"]),
    ("verbs", ["bandwidth", "by=modify_qp", "fan=in"]),
])
def test_not_for_this_transport(transport, args):
    assert client(transport, "127.0.0.1", "1", *args).returncode == 2


def test_a_device_of_iwarp_is_connected_by_rdma_cm_alone():
    with Server("verbs", "127.0.0.1") as server:
        ended = client("verbs", "127.0.0.1", server.port, "latency", "by=modify_qp")
        assert ended.returncode == 1 and "ANYWARP_PERSONA=roce" in ended.stderr
        assert server.end()[0] == 1


@pytest.mark.parametrize("transport", ["tcp", "verbs"])
def test_no_server(transport):
    ended = client(transport, "127.0.0.1", str(program.free_port()), "latency")
    assert ended.returncode == 1
    assert "start the same program as server" in ended.stderr


@pytest.mark.parametrize("transport", ["tcp", "verbs"])
def test_stranger(transport):
    """Whoever speaks otherwise is told so; the server ends with an error."""
    with Server(transport, "127.0.0.1") as server:
        with socket.create_connection(("127.0.0.1", int(server.port))) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\n")
            assert stranger.recv(100).startswith(b"error ")
        status, errors = server.end()
    assert status == 1 and "GET /" in errors


@pytest.mark.parametrize("transport, keys", [
    ("tcp", "latency mode=block"), ("tcp", "latency mode=spin"), ("tcp", "bandwidth"),
    ("tcp", "bandwidth streams=2 direction=bi"), ("tcp", "hotspot"),
    ("verbs", "latency op=send mode=spin"), ("verbs", "latency op=send mode=event"),
    ("verbs", "latency op=write"), ("verbs", "latency op=read"), ("verbs", "bandwidth op=send"),
    ("verbs", "bandwidth op=write"), ("verbs", "hotspot mode=event"),
])
def test_client_vanishes(transport, keys):
    with Server(transport, "127.0.0.1") as server:
        killed = subprocess.Popen(
            [path_of(transport), "client", "127.0.0.1", server.port, *keys.split(), "seconds=60"],
            env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_connected(killed.pid, 2)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        status, errors = server.end()
    assert status == 1 and errors


@pytest.mark.skipif(not HAS_TLS, reason="built without OpenSSL's headers")
def test_tls_without_certificates(monkeypatch):
    monkeypatch.setattr(tls.Certificates, "variables", lambda _: {})
    with Server("tls", "127.0.0.1") as server:
        ended = client("tls", "127.0.0.1", server.port, "latency")
        assert ended.returncode == 1 and "ANYWARP_TLS_CERT is not set" in ended.stderr
        assert server.end()[0] == 1


@pytest.mark.skipif(not HAS_TLS, reason="built without OpenSSL's headers")
def test_tls_between_strangers(monkeypatch):
    """Whom the CA does not know gets no connection: what is measured has proven itself."""
    with Server("tls", "127.0.0.1") as server:
        monkeypatch.setattr(sys.modules[__name__], "CERTIFICATES", tls.Certificates())
        ended = client("tls", "127.0.0.1", server.port, "latency")
        assert ended.returncode == 1 and "certificate verify failed" in ended.stderr
        assert server.end()[0] == 1


def wait_connected(pid, count):
    """Until the process has so many connections that are established, the control among them."""
    deadline = time.monotonic() + SECONDS_MAX
    while established(pid) < count:
        assert time.monotonic() < deadline, "the client does not connect"
        time.sleep(0.01)


def established(pid):
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as file:
        inodes = {row.split()[9] for row in file.readlines()[1:] if row.split()[3] == "01"}
    links = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        except FileNotFoundError:
            pass
    return sum(f"socket:[{inode}]" in links for inode in inodes)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU has no other to hand to")
def test_handover():
    done = subprocess.run([BUILD / "bench" / "bench-handover"], env=ENVIRONMENT, capture_output=True,
                          text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stderr
    assert 1 < json.loads(done.stdout)["handover_ns"] < 1e6


def test_handover_with_one_cpu():
    one = min(os.sched_getaffinity(0))
    done = subprocess.run(["taskset", "-c", str(one), BUILD / "bench" / "bench-handover"],
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS_MAX,
                          check=False)
    assert done.returncode == 1
    assert "one CPU alone" in done.stderr
