# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Which path two programs on one host have, and that all arrives over either. opcodes (opcodes.c) verifies every octet
itself; the log says the path."""

import os
import re
import subprocess

import middlebox
import pytest

import conftest

OPCODES = conftest.BUILD / "tests" / "opcodes"
SIZES = "1,2,3,13,508,509,4000,65536,300001,3000001"
SECONDS_MAX = 60
NOBODY = 65534


def settings(path, *more):
    return ["env", "ANYWARP_LOG=info", *([f"ANYWARP_HOST_PATH={path}"] if path else []), *more]


def paths(end):
    """Of its connections, as its log has them."""
    return set(re.findall(r"qp 0x\w+ path (\w+)", end.output()))


@pytest.fixture
def run(start, port):
    """Runs both ends, of these settings; what each says of its paths."""
    def run_both(server, client, line, to=None, server_prefix=(), client_prefix=()):
        ends = (start.server(f"{OPCODES} {line}", port, prefix=[*server_prefix, *server]),
                start(f"{OPCODES} {line} -a 127.0.0.1 -p {to or port}", prefix=[*client_prefix, *client]))
        assert [end.wait_exit(SECONDS_MAX) for end in ends] == [0, 0]
        return tuple(paths(end) for end in ends)
    return run_both


@pytest.mark.parametrize("ending", ["client", "server", "client-reads", "server-reads"])
def test_memory_where_both_want_it(run, ending):
    line = f"-n 3 -S {SIZES} -e {ending}"
    assert run(settings("on"), settings("on"), line) == ({"memory"}, {"memory"})


@pytest.mark.parametrize("violator", ["client", "server"])
def test_a_terminate_arrives(run, violator):
    line = f"-n 3 -S 100 -e {violator}-violates"
    assert run(settings("on"), settings("on"), line) == ({"memory"}, {"memory"})


@pytest.mark.parametrize("server, client", [("on", "off"), ("off", "on"), ("", ""), ("", "on")])
def test_tcp_where_one_does_not(run, server, client):
    assert run(settings(server), settings(client), f"-S {SIZES}") == ({"tcp"}, {"tcp"})


@pytest.mark.parametrize("policy", ["extensions=off", "markers=on", "revision=1", "p2p=off"])
@pytest.mark.parametrize("at", ["server", "client"])
def test_policies(run, policy, at):
    mine, other = settings("on", f"ANYWARP_MPA={policy}"), settings("on")
    line = "-S 4000 -o send" if policy in ("extensions=off", "revision=1") else "-S 4000"
    ends = (mine, other) if at == "server" else (other, mine)
    wanted = {"memory"} if policy == "p2p=off" else {"tcp"}
    assert run(*ends, line) == (wanted, wanted)


def test_tcp_over_a_relay(start, tmp_path, port, run):
    """It may be there for a reason: it has the stream."""
    box = middlebox.Middlebox(middlebox.socat7, start, tmp_path, port)
    assert run(settings("on"), settings("on"), "-n 2 -S 508,4000", to=box.port) == ({"tcp"}, {"tcp"})


def test_tcp_where_no_such_file_may_be(run):
    """By RLIMIT_FSIZE: to make it would be SIGXFSZ."""
    small = ["prlimit", "--fsize=4096"]
    assert run(settings("on"), settings("on"), "-S 4000", server_prefix=small) == ({"tcp"}, {"tcp"})


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("at", ["server", "client"])
def test_tcp_between_two_users(run, at):
    """Root may look into every process, and yet takes no other user's memory."""
    other = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"]
    assert run(settings("on"), settings("on"), "-S 4000", **{f"{at}_prefix": other}) == ({"tcp"}, {"tcp"})


@pytest.mark.parametrize("at", ["server", "client"])
def test_tcp_between_pid_namespaces(run, at):
    """As between two containers with one network: what the hello names is another process, or none."""
    other = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*other, "true"], capture_output=True).returncode:
        pytest.skip("PID namespaces are not allowed here")
    assert run(settings("on"), settings("on"), "-S 4000", **{f"{at}_prefix": other}) == ({"tcp"}, {"tcp"})


def test_a_wrong_word_connects_nothing(start):
    end = start(f"{OPCODES} -S 4 -a 127.0.0.1 -p 1", prefix=settings("maybe"))
    assert end.wait_exit(SECONDS_MAX) != 0
    assert "ANYWARP_HOST_PATH is 'maybe': it must be on or off" in end.output()
