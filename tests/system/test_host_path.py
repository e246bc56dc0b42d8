# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Which path two programs on one host have, and that all arrives over either. opcodes (opcodes.c) verifies every octet
itself; the log says the path."""

import os
import pathlib
import re
import subprocess

import middlebox
import pytest

import conftest

OPCODES = conftest.BUILD / "tests" / "opcodes"
SIZES = "1,2,3,13,508,509,4000,65536,300001,3000001"
SECONDS_MAX = conftest.program.SECONDS_MAX
NOBODY = 65534
YAMA = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")


def settings(path, *more):
    return ["env", "ANYWARP_LOG=info", *([f"ANYWARP_HOST_PATH={path}"] if path else []), *more]


def paths(end):
    """Where its connections were in the end, as its log has it. Each begins over TCP."""
    found = re.findall(r"qp (0x\w+) path (\w+)", end.output())
    for qp in dict(found):
        assert [path for each, path in found if each == qp] in (["tcp"], ["tcp", "memory"])
    return set(dict(found).values())


@pytest.fixture
def run(start, port):
    """Runs both ends, of these settings; what each says of its paths."""
    def run_both(server, client, line, to=None, server_prefix=(), client_prefix=()):
        ends = (start.server(f"{OPCODES} {line}", port, prefix=[*server_prefix, *server]),
                start(f"{OPCODES} {line} -a 127.0.0.1 -p {to or port}", prefix=[*client_prefix, *client]))
        assert [end.wait_exit(SECONDS_MAX) for end in ends] == [0, 0]
        return tuple(paths(end) for end in ends)
    return run_both


@pytest.mark.parametrize("path, rounds", [("on", 1), ("", 20), ("auto", 20)])
@pytest.mark.parametrize("ending", ["client", "server", "client-reads", "server-reads"])
def test_memory_where_both_want_it(run, path, rounds, ending):
    line = f"-n 3 -C {rounds} -S {SIZES} -e {ending}"
    assert run(settings(path), settings(path), line) == ({"memory"}, {"memory"})


def test_a_short_connection_stays_on_tcp(run):
    """Unless it is asked for otherwise."""
    assert run(settings(""), settings(""), "-n 3 -S 4000") == ({"tcp"}, {"tcp"})


@pytest.mark.parametrize("server, client, path", [("on", "", "memory"), ("", "on", "tcp")])
def test_the_responder_decides_when(run, server, client, path):
    assert run(settings(server), settings(client), "-S 4000") == ({path}, {path})


@pytest.mark.parametrize("ending", ["client", "server", "client-reads", "server-reads"])
def test_an_end_during_the_move(run, ending):
    """Somewhere among these the responder offers memory with its last messages."""
    for rounds in range(12, 28):
        ends = run(settings(""), settings(""), f"-n 4 -C {rounds} -S 4 -o send -e {ending}")
        assert all(end <= {"tcp", "memory"} for end in ends)


@pytest.mark.parametrize("violator", ["client", "server"])
def test_a_terminate_arrives(run, violator):
    line = f"-n 3 -S 100 -e {violator}-violates"
    assert run(settings("on"), settings("on"), line) == ({"memory"}, {"memory"})


@pytest.mark.parametrize("server, client", [("on", "off"), ("off", "on"), ("", "off"), ("off", "")])
def test_tcp_where_one_does_not(run, server, client):
    assert run(settings(server), settings(client), f"-C 20 -S {SIZES}") == ({"tcp"}, {"tcp"})


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


OTHER_PIDS = ["--pid", "--fork", "--mount-proc"]
OTHER_USERS = ["--user", "--map-root-user"]
NO_PROC = ["--mount", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"]


@pytest.mark.parametrize("at", ["server", "client"])
@pytest.mark.parametrize("namespaces, of_server, of_client", [
    (OTHER_PIDS, "tcp", "tcp"),
    ([*OTHER_PIDS, "--ipc", "--uts"], "tcp", "tcp"),
    (["--ipc"], "memory", "memory"),
    (["--mount", "--ipc", "--uts"], "memory", "memory"),
    ([*OTHER_USERS, "--mount", "--ipc"], "memory", "tcp"),
    (NO_PROC, "memory", "tcp")],
    ids=["pid", "pid-and-ipc", "ipc", "mount-and-ipc", "user", "no-proc"])
def test_containers(run, at, namespaces, of_server, of_client):
    """One end is in a container that shares the network. Of another PID namespace the hello names another process, or
    none. A process of a user namespace may be looked into from outside, and may not look out; one without /proc
    looks nowhere. The memory has no name that a namespace of IPC or of mounts could hide."""
    if namespaces is NO_PROC and conftest.SANITIZER:
        pytest.skip("the sanitizers' own code needs /proc")
    unshare = ["unshare", *namespaces]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip(f"not allowed here: {' '.join(unshare)}")
    path = of_server if at == "server" else of_client
    assert run(settings("on"), settings("on"), "-S 4000", **{f"{at}_prefix": unshare}) == ({path}, {path})


def test_tcp_between_two_user_namespaces(run):
    unshare = ["unshare", *OTHER_USERS, "--mount", "--ipc"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("user namespaces are not allowed here")
    assert run(settings("on"), settings("on"), "-S 4000", server_prefix=unshare, client_prefix=unshare) == \
        ({"tcp"}, {"tcp"})


@pytest.fixture(params=[0, 1, 2])
def yama(request):
    """Scope 3 could not be taken back."""
    if not YAMA.exists():
        pytest.skip(f"this kernel has no Yama: no {YAMA}")
    before = YAMA.read_text(encoding="ascii")
    try:
        YAMA.write_text(str(request.param), encoding="ascii")
    except OSError as error:
        pytest.skip(f"{YAMA}: {error.strerror}")
    yield request.param
    YAMA.write_text(before, encoding="ascii")


def test_memory_under_yama(run, yama):
    """It forbids to attach, not to read."""
    assert run(settings("on"), settings("on"), "-S 4000") == ({"memory"}, {"memory"})


def test_a_wrong_word_connects_nothing(start):
    end = start(f"{OPCODES} -S 4 -a 127.0.0.1 -p 1", prefix=settings("maybe"))
    assert end.wait_exit(SECONDS_MAX) != 0
    assert "ANYWARP_HOST_PATH is 'maybe': it must be auto, on or off" in end.output()
