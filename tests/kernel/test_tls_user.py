# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""RDMA programs of user space under TLS whose records the kernel makes and opens: at both ends, and at one while the other's
are the library's. The module has no part in it. A kernel that cannot change keys (before Linux 6.14) has those of
ChaCha20-Poly1305 alone."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading

import conftest
import ends
import kernel as kernels
import pytest
import tlshd

sys.path.insert(0, str(conftest.ROOT / "tests" / "system"))
import certificates  # noqa: E402

NAME = "cluster"
RELEASE = tuple(int(part) for part in os.uname().release.split(".")[:2])
CHANGES_KEYS = RELEASE >= (6, 14)
SUITES = ("TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384")
CHACHA = SUITES[0]
# Of the server and the client.
WAYS = [("kernel", "kernel"), ("kernel", "user"), ("user", "kernel")]
DATA_RECORD = b"\x17\x03\x03"
PING = b"rdma-ping-"
CARRIER_CASES = ("writes__arrive_of_any_length", "writes__arrive_under_keys_that_change", "gone__from_its_first_octet",
                 "gone__within_a_record", "gone__behind_the_end_of_a_file", "gone__where_signals_are_blocked")
BY_KERNEL = " records kernel"


@pytest.fixture(scope="session", name="kernel")
def kernel_without_the_module():
    return kernels.Kernel()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return certificates.Authority(tmp_path_factory.mktemp("certificates") / "right").issue(NAME)


@pytest.fixture(name="link", scope="module")
def user_link():
    bed = ends.Bed((ends.USER, ends.USER), "none", conftest.BUILD)
    yield ends.Link(*bed.at_mtu(ends.MTU_MAX), [])
    bed.close()


@pytest.fixture(name="prefix")
def of_a_command(files, tmp_path):
    """What a program runs behind."""
    def make(records, suite=CHACHA):
        path = tmp_path / f"{suite}.cnf"
        path.write_text(f"openssl_conf=a\n[a]\nssl_conf=b\n[b]\nsystem_default=c\n[c]\nCiphersuites={suite}\n", encoding="ascii")
        words = certificates.words(files, NAME)
        return " ".join([*words, f"ANYWARP_TLS_RECORDS={records}", f"OPENSSL_CONF={path}", "ANYWARP_LOG=info"])

    return make


@pytest.fixture(autouse=True)
def programs_end(link):
    yield
    for started in link.started:
        started.close()
    link.started.clear()


def pair(link, port, line, prefixes, server_line=None):
    """What the two print, server first; both end well."""
    return link.pair(port, f"{prefixes[0]} {server_line or line}", f"{prefixes[1]} {line} {{address}}")


def rping(link, port, prefixes, options, count):
    line = f"-V -v -C {count} {options}"
    said = link.pair(port, f"{prefixes[0]} rping -s {line}", f"{prefixes[1]} rping -c -a {{address}} {line}")
    assert all(each.count("ping data: ") == count and "lost" not in each for each in said), link.report()
    return said


def assert_made_by(said, ways):
    for each, way in zip(said, ways):
        assert (BY_KERNEL in each) == (way == "kernel"), each


@pytest.mark.parametrize("ways", WAYS, ids="-".join)
@pytest.mark.parametrize("suite", SUITES)
def test_pings(link, port, prefix, ways, suite):
    said = rping(link, port, [prefix(way, suite) for way in ways], "-S 60000", 10)
    if suite == CHACHA or CHANGES_KEYS:
        assert_made_by(said, ways)
    else:
        assert_made_by(said, ("user", "user"))
        assert all(("cannot change keys" in each) == (way == "kernel") for each, way in zip(said, ways)), said


def test_nothing_of_it_is_on_the_wire(link, port, prefix):
    tap = tlshd.Tap(link.server)
    try:
        rping(link, port, [prefix("kernel")] * 2, "-S 100", 4)
        seen = tap.octets()
    finally:
        tap.close()
    assert DATA_RECORD in seen and PING not in seen


@pytest.mark.parametrize("ways", WAYS, ids="-".join)
@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_large_messages(link, port, prefix, ways, program):
    said = pair(link, port, f"{program} -R -F -s 1000000 -n 5", [prefix(way) for way in ways], f"{program} -R -F -s 1000000 -n 5")
    assert_made_by(said, ways)


@pytest.mark.parametrize("ways", WAYS, ids="-".join)
def test_records_that_tcp_has_no_room_for(link, port, prefix, ways):
    """What waits in the kernel's TLS leaves before the stream's end does."""
    def limit(octets):
        for end in link.server, link.client:
            ends.run([*end.into, "sysctl", "-q", "-w", f"net.ipv4.tcp_wmem=4096 {octets}"])

    limit("4096 4096")
    try:
        rping(link, port, [prefix(way) for way in ways], "-S 60000", 5)
    finally:
        limit("16384 4194304")


def counted():
    """By the kernel's TLS, of this process's network namespace."""
    with open("/proc/net/tls_stat", encoding="ascii") as file:
        return {name: int(count) for name, count in map(str.split, file)}


@pytest.mark.parametrize("suite", SUITES if CHANGES_KEYS else SUITES[:1])
def test_queue_pairs_whose_keys_change(prefix, suite, tmp_path):
    """unit.carrier_tls: what arrives, also under keys that change with every second record, and memory that is gone when it is to
    be sealed. It writes to /tmp, which here is read-only. Where a record ends is the kernel's matter: its tests of that fail."""
    before = counted()
    program = shutil.copy(conftest.BUILD / "tests" / "unit_carrier_tls", tmp_path)
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /tmp && exec "$@"', "sh", *prefix("kernel", suite).split(),
                           "env", "-u", "ANYWARP_TLS_NAME", program], capture_output=True, text=True, timeout=ends.SECONDS_MAX, check=False)
    said = done.stdout + done.stderr
    assert all(f"[       OK ] {case}" in said for case in CARRIER_CASES), said
    after = counted()
    assert after["TlsTxSw"] > before["TlsTxSw"] and after["TlsRxSw"] > before["TlsRxSw"]
    if suite != CHACHA:
        assert after["TlsTxRekeyOk"] > before["TlsTxRekeyOk"] and after["TlsRxRekeyOk"] > before["TlsRxRekeyOk"]


def stat_of(link, end, running):
    """The one QP of a program, once it has sent something."""
    def look():
        told = subprocess.run([*end.into, conftest.BUILD / "bin" / "anywarp", "stat", "--json", str(running.pid)],
                              capture_output=True, text=True, timeout=ends.SECONDS_MAX, check=False)
        found = json.loads(told.stdout)["qps"] if told.returncode == 0 else []
        return found[0] if found and found[0]["messages_in"] > 3 else None

    return ends.wait_until(look, f"stream\n{link.report()}")


@pytest.mark.parametrize("ways", WAYS, ids="-".join)
def test_stat_says_who_makes_the_records(link, port, prefix, ways):
    line = "-v -C 1000000 -S 100"
    server = link.start_server(f"{prefix(ways[0])} rping -s {line}", port)
    client = link.start_client(f"{prefix(ways[1])} rping -c -a {{address}} {line}", port)
    rows = [stat_of(link, end, running) for end, running in ((link.server, server), (link.client, client))]
    assert [row["tls_records"] for row in rows] == list(ways) and [row["path"] for row in rows] == ["tls", "tls"]


def test_doctor_says_what_the_kernel_has(prefix):
    told = subprocess.run(["env", *prefix("kernel").split(), conftest.BUILD / "bin" / "anywarp", "doctor"], capture_output=True,
                          text=True, timeout=ends.SECONDS_MAX, check=False).stdout
    found = next(line for line in told.splitlines() if "TLS records" in line)
    if CHANGES_KEYS:
        assert found.startswith("ok") and "made by the kernel" in found
    else:
        assert found.startswith("warn") and "cannot change keys" in found and "Ciphersuites" in found


class Relay:
    """Between a client and its server, in the client's namespace. Of what the client sends, the octet after so many is changed, or
    both streams end there."""

    def __init__(self, link, port, after, cuts):
        self.link, self.port, self.after, self.cuts = link, port, after, cuts
        self.listener = tlshd.listen(link.client, port + 1000)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        near, _ = self.listener.accept()
        far = tlshd.connect(self.link.client, self.link.server.address, self.port)
        back = threading.Thread(target=pump, args=(far, near))
        back.start()
        pump(near, far, self.change)
        back.join()

    def change(self, octets):
        before, self.after = self.after, self.after - len(octets)
        if before <= 0 or self.after > 0:
            return octets
        if self.cuts:
            return None
        octets = bytearray(octets)
        octets[before - 1] ^= 1
        return bytes(octets)

    def close(self):
        self.thread.join()
        self.listener.close()


def pump(source, sink, change=lambda octets: octets):
    try:
        while octets := change(source.recv(65536)):
            sink.sendall(octets)
        sink.shutdown(socket.SHUT_WR)
    except OSError:  # an end is gone
        pass


@pytest.mark.parametrize("ways", WAYS, ids="-".join)
@pytest.mark.parametrize("cuts, first, second", [(False, "bad record mac", "bad record mac"), (True, "cut", "")],
                         ids=["changed", "cut"])
def test_a_stream_that_somebody_changes(link, port, prefix, ways, cuts, first, second):
    """Amid the answers to Reads, the client's records end badly: the server says why, and its alert tells the client."""
    server = link.start_server(f"{prefix(ways[0])} rping -s -v -C 10 -S 60000", port)
    relay = Relay(link, port, 30000, cuts)
    client = link.run(link.client, f"{prefix(ways[1])} rping -c -a {link.client.address} -v -C 10 -S 60000 -p {port + 1000}")
    for each, words in ((server, first), (client, second)):
        ends.wait_until(lambda each=each, words=words: "stream lost cause" in each.output() and words in each.output() or
                        not words and each.status() is not None, f"end\n{link.report()}")
    for each in server, client:
        each.kill()
    relay.close()
    assert "ping data" not in server.output(), link.report()
