# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Which connections have TLS, by --tls and by the rules of --tls-rules, and whom they let in."""

import os
import subprocess

import pytest
from perftest import table

import conftest
from certificates import ADDRESSES, Authority, words
from test_tls import Wire, assert_pinged, rping

ANYWARP = conftest.BUILD / "bin" / "anywarp"
SECONDS_MAX = conftest.program.SECONDS_MAX
SECURED = "connection secured by tls"
NAMES = "DNS:one.cluster.example,DNS:node"


@pytest.fixture(scope="module")
def files(authority):
    return authority.issue("one", f"{NAMES},{ADDRESSES}")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """A certificate of another CA, which trusts this one's."""
    return Authority(tmp_path_factory.mktemp("authorities") / "wrong").issue("one", f"{NAMES},{ADDRESSES}")


def end(files, mode=None, rules=None, **variables):
    """The words by which a program runs so; mode off needs no files."""
    variables = {"ANYWARP_LOG": "info", **variables}
    if mode:
        variables["ANYWARP_TLS"] = mode
    if rules:
        variables["ANYWARP_TLS_RULES"] = rules
    shown = words(files)
    return ["env", *(word for word in shown[1:] if not word.startswith("ANYWARP_TLS=")),
            *(f"{key}={value}" for key, value in variables.items())] if mode != "off" or rules else \
        ["env", *(f"{key}={value}" for key, value in variables.items())]


# What comes of each two ends: over TLS, in the clear, or nothing.
MODES = {
    ("off", "off"): "clear", ("off", "offer"): "clear", ("off", "require"): "nothing",
    ("offer", "off"): "clear", ("offer", "offer"): "tls", ("offer", "require"): "tls",
    ("require", "off"): "nothing", ("require", "offer"): "tls", ("require", "require"): "tls",
}


@pytest.mark.parametrize("persona", ["iwarp", "roce"])
@pytest.mark.parametrize("modes, comes", MODES.items(), ids=["-to-".join(reversed(modes)) for modes in MODES])
def test_every_two_ends(start, port, files, modes, comes, persona):
    there, here = (end(files, mode, ANYWARP_PERSONA=persona) for mode in modes)
    server, client = rping(start, port, there, here)
    if comes == "nothing":
        client.wait_exit()
        assert "ping data" not in client.output() + server.output()
        return
    assert_pinged(server, client)
    for output in (server.output(), client.output()):
        assert (SECURED in output) is (comes == "tls")
        assert ("path tls" in output) is (comes == "tls")


@pytest.mark.parametrize("modes", [("offer", "offer"), ("offer", "require"), ("require", "offer")], ids="-".join)
def test_qps_that_programs_connect_themselves(start, port, files, modes):
    there, here = (end(files, mode, ANYWARP_PERSONA="roce", ANYWARP_TLS_NAME="node") for mode in modes)
    server = start.server("ib_write_bw -F -x 0 -s 4096 -n 50", port, prefix=there)
    client = start(f"ib_write_bw -F -x 0 -s 4096 -n 50 -p {port} 127.0.0.1", prefix=here)
    assert client.wait_exit(SECONDS_MAX) == 0 and server.wait_exit(SECONDS_MAX) == 0
    assert 4096 in table(client.output())
    assert SECURED in client.output() and SECURED in server.output()


@pytest.mark.parametrize("mode, clear", [("off", True), ("offer", False)])
def test_the_wire_shows_the_request_alone(start, port, files, mode, clear):
    """No FPDU of two ends that offer TLS is in the clear, nor is the Reply; and without TLS the test can tell."""
    prefix = end(files, mode)
    server = start.server("rping -s -a 127.0.0.1 -C 3 -v", port, prefix=prefix)
    wire = Wire(port)
    client = start(f"rping -c -a 127.0.0.1 -p {wire.port} -C 3 -v", prefix=prefix)
    assert_pinged(server, client)
    wire.join(SECONDS_MAX)
    assert b"MPA ID Req" in wire.octets
    assert (b"rdma-ping-1" in wire.octets) is clear
    reply = wire.octets.index(b"MPA ID Rep Frame")
    assert (wire.octets[reply + 16:reply + 20] == b"\x07\x02\0\0") is not clear
    assert wire.octets.count(b"MPA ID Rep") == 1


def test_an_end_that_has_seen_tls_does_not_go_on_without(start, port, files, stranger):
    """Both offer it, and the handshake fails: nothing falls back."""
    server, client = rping(start, port, end(files, "offer"), end(stranger, "offer"))
    client.wait_exit()
    assert "ping data" not in client.output() + server.output()
    assert "the peer's certificate is refused" in client.output()


def test_nothing_is_offered_without_extensions(start, port, files):
    prefix = end(files, "offer", ANYWARP_MPA="extensions=off")
    server, client = rping(start, port, prefix, prefix)
    assert_pinged(server, client)
    assert SECURED not in client.output() + server.output()


# --- rules

def write(tmp_path, *lines):
    file = tmp_path / "rules"
    new = tmp_path / "rules.new"
    new.write_text("\n".join(lines) + "\n")
    new.rename(file)
    return file


@pytest.mark.parametrize("lines, mode, comes", [
    (["require remote=127.0.0.1"], None, "tls"),
    (["require remote=127.0.0.0/8 port={port}", "off"], None, "tls"),
    (["off port={other}", "require"], None, "tls"),
    (["off port={port}", "require"], None, "clear"),
    (["off remote=127.0.0.1", "require remote=127.0.0.1"], None, "clear"),
    (["require remote=192.0.2.0/24"], None, "clear"),
    (["require remote=192.0.2.0/24"], "require", "tls"),
    (["off remote=192.0.2.0/24"], "offer", "tls"),
    (["require listen", "offer connect"], None, "tls"),
    (["require name=one.cluster.example"], None, "tls"),
    (["require name=another,node"], None, "tls"),
    (["require name=*.cluster.example"], None, "tls"),
    (["require name=*.example"], None, "nothing"),
    (["require name=cluster.example,two.cluster.example"], None, "nothing"),
    (["offer name=another"], None, "nothing"),
    (["# nothing"], "require", "tls"),
])
def test_rules(start, port, files, tmp_path, lines, mode, comes):
    rules = write(tmp_path, *(line.format(port=port, other=port + 1) for line in lines))
    prefix = end(files, mode, rules)
    server, client = rping(start, port, prefix, prefix)
    if comes == "nothing":
        client.wait_exit()
        assert "ping data" not in client.output() + server.output()
        assert "it has no name of line 1 of ANYWARP_TLS_RULES" in client.output()
        return
    assert_pinged(server, client)
    assert (SECURED in client.output()) is (comes == "tls")
    named = [name for name in ("one.cluster.example", "node") if "name=" in lines[0] and name in lines[0]]
    assert not named or f"certificate {named[0]}\n" in client.output()


def test_the_address_of_version_6(start, port, files, tmp_path):
    rules = write(tmp_path, "require remote=::1/128 name=node", "off")
    server, client = rping(start, port, end(files, rules=rules), end(files, rules=rules), "::1")
    assert_pinged(server, client)
    assert SECURED in client.output()


def test_a_rule_refuses_a_peer_without_tls(start, port, files, tmp_path):
    rules = write(tmp_path, "require remote=127.0.0.1")
    server, client = rping(start, port, end(files, rules=rules), [])
    client.wait_exit()
    assert "ping data" not in client.output() + server.output()
    server.wait_output("the peer speaks mpa without tls: run its program with --tls require")


def test_changed_rules_hold_from_the_next_connection_on(start, port, files, tmp_path):
    """While they are wrong nothing connects, and the log names file and line."""
    rules = write(tmp_path, "require")
    server = start.server("rping -s -P -a 127.0.0.1 -C 3", port, prefix=end(files, rules=rules))

    def ping(mode):
        client = start(f"rping -c -a 127.0.0.1 -p {port} -C 3 -v", prefix=end(files, mode))
        client.wait_exit()
        return client.output().count("ping data: ") == 3
    assert ping("require")
    write(tmp_path, "off")
    assert ping("off")
    assert not ping("require")
    write(tmp_path, "off", "required remote=::1")
    assert not ping("off")
    server.wait_output(f"ANYWARP_TLS_RULES is {rules}: line 2: 'required': a rule begins with off, offer or require")
    assert "nothing connects until it is mended" in server.output()
    write(tmp_path, "require name=elsewhere", "off")
    assert not ping("require")
    write(tmp_path, "require name=node", "off")
    assert ping("require")
    rules.unlink()
    assert not ping("require")


def test_with_wrong_rules_a_program_connects_nowhere(start, port, files, tmp_path):
    rules = write(tmp_path, "off", "off remote=127.0.0.1/8")
    start.server("rping -s -P -a 127.0.0.1 -C 3", port, prefix=end(files, "off"))
    client = start(f"rping -c -a 127.0.0.1 -p {port} -C 3 -v", prefix=end(files, rules=rules))
    client.wait_exit()
    assert "ping data" not in client.output()
    assert f"{rules}: line 2: '127.0.0.1/8': remote has bits set beyond its prefix length: that would be 127.0.0.0/8" in client.output()


def test_what_tls_cannot_protect_is_refused_where_a_rule_requires_it(start, files, tmp_path):
    for lines, refused in ((["off", "require remote=192.0.2.1"], True), (["off", "offer"], False)):
        prefix = end(files, rules=write(tmp_path, *lines), ANYWARP_PERSONA="roce")
        at = conftest.program.free_port()
        server = start.server("ib_send_bw -F -c UD -x 0 -n 20", at, prefix=prefix)
        client = start(f"ib_send_bw -F -c UD -x 0 -n 20 -p {at} 127.0.0.1", prefix=prefix)
        assert (client.wait_exit() != 0) is refused
        told = "a ud qp refused: TLS cannot protect it, and a rule of ANYWARP_TLS_RULES requires it"
        assert (told in client.output()) is refused
        if not refused:
            server.wait_exit()


def run_anywarp(*args, **env):
    return subprocess.run([str(ANYWARP), *map(str, args)], capture_output=True, text=True, timeout=60, env={**os.environ, **env},
                          stdin=subprocess.DEVNULL, check=False)


def test_run_reads_the_rules_before_the_program_does(files, tmp_path):
    rules = write(tmp_path, "require")
    given = ["--tls-cert", files.cert, "--tls-key", files.key, "--tls-ca", files.ca, "--tls-rules", rules]
    done = run_anywarp("run", *given, "--", "env")
    assert done.returncode == 0 and f"ANYWARP_TLS_RULES={rules}" in done.stdout.splitlines()
    done = run_anywarp("run", "--tls-rules", rules, "--", "true")
    assert done.returncode == 125 and "--tls-rules needs --tls-cert FILE, too (ANYWARP_TLS_CERT)" in done.stderr
    write(tmp_path, "require", "", "on")
    done = run_anywarp("run", *given, "--", "env")
    assert done.returncode == 125 and done.stdout == ""
    assert f"--tls-rules: {rules}: line 3: 'on': a rule begins with off, offer or require" in done.stderr
