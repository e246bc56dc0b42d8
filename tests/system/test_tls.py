# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Debian's RDMA programs under mutual TLS, as docs/tls.md has them run: what works, what is refused in place of going on
without, and what a wire between the two ends shows."""

import contextlib
import json
import os
import re
import socket
import ssl
import subprocess
import threading

import pytest
from perftest import table

import conftest
from certificates import ADDRESSES, NAME, Authority, openssl, variables, words

ANYWARP = conftest.BUILD / "bin" / "anywarp"
SECONDS_MAX = conftest.program.SECONDS_MAX
COUNT = 20 if conftest.SANITIZER else 200


def pair(start, port, line, prefix, client_prefix=None, there=None):
    """Runs server and client over loopback; returns the two when they have ended well."""
    server = start.server(line, port, prefix=prefix)
    client = start(f"{line} -p {there or port} 127.0.0.1", prefix=client_prefix or prefix)
    assert client.wait_exit(SECONDS_MAX) == 0
    assert server.wait_exit(SECONDS_MAX) == 0
    return server, client


def rping(start, port, server_prefix, client_prefix, address="127.0.0.1", there=None):
    server = start.server(f"rping -s -a {address} -C 3 -v", port, prefix=server_prefix)
    return server, start(f"rping -c -a {address} -p {there or port} -C 3 -v", prefix=client_prefix)


def assert_pinged(server, client):
    assert client.wait_exit() == 0 and server.wait_exit() == 0
    assert client.output().count("ping data: ") == 3 and server.output().count("ping data: ") == 3


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_rping_by_the_addresses_in_the_certificates(start, port, files, address):
    prefix = [*words(files), "ANYWARP_LOG=info"]
    server, client = rping(start, port, prefix, prefix, address)
    assert_pinged(server, client)
    for output, role in ((server.output(), "responder"), (client.output(), "initiator")):
        assert re.search(rf"connection secured by tls peer \S+ as {role} certificate /CN={NAME}\n", output)
        assert re.search(r"qp 0x\w+ path tls\n", output) and "memory" not in output


@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_read_lat", "ib_send_lat -e", "ib_write_bw -q 4",
                                     "ib_send_bw -b"])
def test_perftest_by_rdma_cm(start, port, files, program):
    _, client = pair(start, port, f"{program} -R -F -s 65536 -n {COUNT}", words(files, NAME))
    assert table(client.output())[65536][0] in (COUNT, 2 * COUNT, 4 * COUNT)


@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw", "ib_send_lat -e", "ib_write_bw -q 4", "ib_send_bw -c UC"])
def test_perftest_in_the_roce_persona(start, port, files, program):
    _, client = pair(start, port, f"{program} -F -x 0 -s 4096 -n {COUNT}", [*words(files, NAME), "ANYWARP_PERSONA=roce"])
    assert 4096 in table(client.output())


@pytest.mark.parametrize("options", ["", "crc=on", "markers=on", "crc=on,markers=on"])
def test_every_size_under_every_policy(start, port, files, options):
    """Without CRCs payload stays in the program's memory until it is sealed."""
    prefix = [*words(files, NAME), f"ANYWARP_MPA={options}"]
    _, client = pair(start, port, "ib_send_bw -R -F -a -n 10", prefix)
    assert sorted(table(client.output())) == [2**power for power in range(1, 24)]


def test_a_device_that_varies(start, port, files):
    assert_pinged(*rping(start, port, [*words(files), "ANYWARP_VARY=7"], [*words(files), "ANYWARP_VARY=8"]))


# --- no connection without

def test_a_plain_client_is_told(start, port, files):
    server, client = rping(start, port, words(files), [])
    client.wait_exit()
    assert "ping data" not in client.output()
    assert "the peer speaks tls, and this end does not: run this program with --tls require" in client.output()
    server.wait_output("the peer speaks mpa without tls: run its program with --tls require")


def test_a_plain_server_is_told_of(start, port, files):
    server, client = rping(start, port, [], words(files))
    client.wait_exit()
    assert "ping data" not in client.output() + server.output()
    assert "the peer closed without a tls record: does its program run with --tls require?" in client.output()


def test_a_certificate_without_the_address(start, port, authority):
    """Nothing names another name."""
    other = authority.issue("elsewhere", "DNS:elsewhere,IP:192.0.2.7")
    server, client = rping(start, port, words(other), words(other))
    client.wait_exit()
    assert "ping data" not in client.output()
    assert "IP address mismatch: make one with that address as subjectAltName there, or give its name by --tls-name here" in client.output()
    server.wait_output("the peer's tls alert: bad certificate")


def test_what_tls_cannot_protect_is_refused(start, port, files):
    start.server("ib_send_bw -F -c UD -x 0", port, prefix=[*words(files), "ANYWARP_PERSONA=roce"])
    ud = start(f"ib_send_bw -F -c UD -x 0 -p {port} 127.0.0.1", prefix=[*words(files), "ANYWARP_PERSONA=roce"])
    assert ud.wait_exit() != 0
    assert "a ud qp refused: TLS cannot protect it" in ud.output()
    datagrams = start("udaddy", prefix=[*words(files), "ANYWARP_PERSONA=roce"])
    assert datagrams.wait_exit() != 0
    assert "RDMA_PS_UDP refused: TLS cannot protect it" in datagrams.output()


@pytest.mark.parametrize("changes, told", [
    ({"ANYWARP_TLS_KEY": ""}, "ANYWARP_TLS is require, and ANYWARP_TLS_KEY is not set"),
    ({"ANYWARP_TLS_CERT": "/nowhere"}, "ANYWARP_TLS_CERT is '/nowhere': No such file or directory: it must be a readable PEM file"),
    ({"ANYWARP_TLS_CA": "/dev/null"}, "ANYWARP_TLS_CA is '/dev/null': "),
    ({"ANYWARP_TLS": ""}, "ANYWARP_TLS_CERT is set, and ANYWARP_TLS is not require"),
    ({"ANYWARP_TLS": "offers"}, "ANYWARP_TLS is 'offers': it must be off, require or offer; nothing connects"),
], ids=lambda value: None if isinstance(value, str) else "-".join(value))
def test_with_a_wrong_setting_nothing_connects(start, port, files, changes, told):
    prefix = ["env", *(f"{key}={value}" for key, value in {**variables(files), **changes}.items())]
    for end in ("-s", "-c"):
        program = start(f"rping {end} -a 127.0.0.1 -p {port} -C 1", prefix=prefix)
        assert program.wait_exit() != 0 or "error" in program.output()
        assert told in program.output()


def test_a_key_with_a_passphrase_is_refused_without_a_question(start, port, files, tmp_path):
    locked = tmp_path / "locked.key"
    openssl("pkey", "-in", files.key, "-aes256", "-passout", "pass:secret", "-out", locked)
    program = start(f"rping -s -a 127.0.0.1 -p {port} -C 1", prefix=words(files._replace(key=locked)))
    program.wait_exit()
    assert "without a passphrase" in program.output()


def test_a_key_of_another_certificate_is_refused(start, port, files, authority):
    other = authority.issue("another")
    program = start(f"rping -s -a 127.0.0.1 -p {port} -C 1", prefix=words(files._replace(key=other.key)))
    program.wait_exit()
    assert "ANYWARP_TLS_KEY" in program.output() and "mismatch" in program.output()


def run_anywarp(*args, **env):
    return subprocess.run([str(ANYWARP), *map(str, args)], capture_output=True, text=True, timeout=60, env={**os.environ, **env},
                          stdin=subprocess.DEVNULL, check=False)


def test_run_sets_what_the_program_needs(files, tmp_path):
    """By paths that hold in any directory."""
    done = subprocess.run([str(ANYWARP), "run", "--tls", "require", "--tls-cert", files.cert.name, f"--tls-key={files.key.name}",
                           "--tls-ca", str(files.ca), "--tls-name", NAME, "--", "env"], cwd=files.cert.parent, capture_output=True,
                          text=True, check=True)
    assert {f"{key}={value}" for key, value in variables(files, NAME).items()} <= set(done.stdout.splitlines())
    for args, told in ((("--tls", "require"), "--tls require needs --tls-cert FILE, too (ANYWARP_TLS_CERT)"),
                       (("--tls", "offer"), "--tls offer needs --tls-cert FILE, too (ANYWARP_TLS_CERT)"),
                       (("--tls", "offers"), "--tls needs one of: off require offer"),
                       (("--tls-ca", files.ca), "--tls-ca (ANYWARP_TLS_CA) has no effect without --tls require, --tls offer or --tls-rules"),
                       (("--tls-ca", tmp_path / "none"), "cannot read"), (("--tls-name",), "--tls-name needs a name")):
        done = run_anywarp("run", *args, *(["--", "true"] if args != ("--tls-name",) else []))
        assert done.returncode == 125 and told in done.stderr


# --- between the ends

class Wire(threading.Thread):
    """Passes one connection on to a port, and keeps what both ends sent."""

    def __init__(self, there):
        super().__init__(daemon=True)
        self.there = there
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.octets = bytearray()
        self.start()

    def run(self):
        near, far = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.there))
        backward = threading.Thread(target=self.carry, args=(far, near), daemon=True)
        backward.start()
        self.carry(near, far)
        backward.join()

    def carry(self, source, sink):
        with contextlib.suppress(OSError):
            for octets in iter(lambda: source.recv(1 << 16), b""):
                self.octets += octets
                sink.sendall(octets)
            sink.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("secured", [False, True])
def test_the_wire_shows_nothing(start, port, files, secured):
    """Without TLS it does: the test can tell."""
    prefix = words(files) if secured else []
    server = start.server("rping -s -a 127.0.0.1 -C 3 -v", port, prefix=prefix)
    wire = Wire(port)
    client = start(f"rping -c -a 127.0.0.1 -p {wire.port} -C 3 -v", prefix=prefix)
    assert_pinged(server, client)
    wire.join(SECONDS_MAX)
    shown = [octets in wire.octets for octets in (b"rdma-ping-1", b"MPA ID Req", b"MPA ID Rep")]
    assert shown == [not secured] * 3


CRC = 0x40  # RFC 5044 7.1: the second flag of a frame


def client_context(files):
    """Of a peer of our own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(files.cert, files.key)
    context.load_verify_locations(files.ca)
    context.set_alpn_protocols(["anywarp-mpa"])
    return context


def connected(context, port, session=None):
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), SECONDS_MAX), server_hostname=NAME, session=session)


def ask(peer, flags=0):
    """The Reply to a Request of revision 1 with these flags."""
    peer.sendall(b"MPA ID Req Frame" + bytes([flags, 1, 0, 0]))
    reply = peer.recv(20)
    assert reply[:16] == b"MPA ID Rep Frame"
    return reply


@pytest.mark.parametrize("policy, asked, agreed", [("", 0, 0), ("", CRC, CRC), ("crc=on", 0, CRC), ("crc=off", 0, 0), ("crc=off", CRC, CRC),
                                                   ("markers=off", 0, 0)])
def test_a_crc_only_where_one_end_asks_for_it(start, port, files, policy, asked, agreed):
    start.server("rping -s -P -a 127.0.0.1 -C 3", port, prefix=[*words(files), f"ANYWARP_MPA={policy}"])
    with connected(client_context(files), port) as peer:
        assert ask(peer, asked)[16] & CRC == agreed


# --- while it runs

def test_stat_shows_the_path(start, port, files):
    server = start.server("ib_send_bw -R -F -D 20", port, prefix=words(files, NAME))
    start(f"ib_send_bw -R -F -D 20 -p {port} 127.0.0.1", prefix=words(files, NAME))

    def found():
        done = run_anywarp("stat", "--json", server.pid)
        text = json.dumps(json.loads(done.stdout)) if done.returncode == 0 else ""
        return re.findall(r'"path": ?"(\w+)"', text), re.findall(r'"peer_identity": ?"([^"]+)"', text)
    server.wait_until(lambda: "tls" in found()[0], "path tls")
    # perftest agrees on its settings over a first connection, which ends while the test's own begins.
    paths, names = found()
    assert set(paths) == {"tls"} and set(names) == {NAME}
    table = run_anywarp("stat", server.pid).stdout
    assert re.search(r"\bidentity\b", table) and NAME in table, table


def test_renewed_files_are_read_without_a_restart(start, port, authority, tmp_path):
    """Also a certificate that has expired meanwhile, which shows that the files are read anew; one that is half written
    changes nothing."""
    first = authority.issue("first", ADDRESSES)
    expired = authority.issue("expired", ADDRESSES, days=-1)
    own = first._replace(cert=tmp_path / "own.pem", key=tmp_path / "own.key")

    def renew(files):
        own.cert.write_bytes(files.cert.read_bytes())
        own.key.write_bytes(files.key.read_bytes())

    def ping():
        client = start(f"rping -c -a 127.0.0.1 -p {port} -C 3 -v", prefix=words(first))
        client.wait_exit()
        return client.output()
    renew(first)
    start.server("rping -s -P -a 127.0.0.1 -C 3", port, prefix=words(own))
    assert ping().count("ping data: ") == 3
    renew(expired)
    assert "certificate has expired: renew it there" in ping()
    renew(authority.issue("renewed", ADDRESSES))
    assert ping().count("ping data: ") == 3
    own.key.write_text("half of a k")
    assert ping().count("ping data: ") == 3


def test_a_process_that_connects_again_resumes_its_session(start, port, files):
    worker = conftest.BUILD / "bench" / "bench-verbs"
    prefix = [*words(files), "ANYWARP_LOG=info"]
    server = start(f"{worker} server 127.0.0.1 {port}", prefix=prefix)
    server.wait_output("ready")
    client = start(f"{worker} client 127.0.0.1 {port} connect count=20", prefix=prefix)
    assert client.wait_exit() == 0 and server.wait_exit() == 0
    for end in (client, server):
        secured = [line.endswith(" resumed") for line in end.output().splitlines() if "connection secured" in line]
        assert secured == [False] + [True] * 20


def test_a_ticket_does_not_outlive_the_files_it_was_made_under(port, start, authority, tmp_path):
    """By a peer of our own. The CA that has issued the client's certificate is the CA no more: no ticket lets it in."""
    files, other = authority.issue("ticket", f"DNS:{NAME},{ADDRESSES}"), Authority(tmp_path / "other")
    own = files._replace(ca=tmp_path / "own-ca.pem")
    own.ca.write_bytes(files.ca.read_bytes())
    start.server("rping -s -P -a 127.0.0.1 -C 3", port, prefix=words(own))
    context = client_context(files)
    with connected(context, port) as peer:
        assert ask(peer) and not peer.session_reused
        session = peer.session
    with connected(context, port, session) as peer:
        assert ask(peer) and peer.session_reused
        session = peer.session
    own.ca.write_bytes(other.cert.read_bytes())
    with connected(context, port, session) as peer, pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
        assert not peer.session_reused
        ask(peer)


def libraries_of(pid):
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        return maps.read()


def test_openssl_is_loaded_only_where_it_is_asked_for(start, files):
    for prefix, loaded in (([], False), (words(files), True)):
        port = conftest.program.free_port()
        server = start.server("rping -s -a 127.0.0.1 -C 1", port, prefix=prefix)
        assert ("libssl.so.3" in libraries_of(server.pid)) is loaded
