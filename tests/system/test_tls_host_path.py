# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Memory between two programs of one host that TLS has proven to each other: which connections move into it, that all arrives,
and how they end. opcodes (opcodes.c) verifies every octet itself; the log says the path."""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

import conftest
from certificates import ADDRESSES, NAME, Authority, variables, words

ANYWARP = conftest.BUILD / "bin" / "anywarp"
WITH_NET = pathlib.Path(__file__).resolve().parent.parent / "lib" / "with-net"
OPCODES = conftest.BUILD / "tests" / "opcodes"
SIZES = "1,2,3,13,508,509,4000,16372,16373,65536,300001,3000001"
SECONDS_MAX = conftest.program.SECONDS_MAX
MEMORY, STAYS = ["tls", "tls+memory"], ["tls"]


def settings(files, path="on", *more):
    return [*words(files), "ANYWARP_LOG=info", *([f"ANYWARP_HOST_PATH={path}"] if path else []), *more]


def paths(output):
    """The paths of its connections, one after the other, which all had the same."""
    found = re.findall(r"qp (0x\w+) path (\S+)\n", output)
    each = {tuple(path for qp, path in found if qp == one) for one, _ in found}
    assert len(each) == 1, found
    return list(each.pop())


@pytest.fixture
def run(start, port):
    def run_both(server, client, line):
        ends = (start.server(f"{OPCODES} {line}", port, prefix=server),
                start(f"{OPCODES} {line} -a 127.0.0.1 -p {port}", prefix=client))
        assert [end.wait_exit(SECONDS_MAX) for end in ends] == [0, 0]
        return [end.output() for end in ends]
    return run_both


@pytest.mark.parametrize("path, rounds", [("on", 1), ("", 20)])
@pytest.mark.parametrize("ending", ["client", "server", "client-reads", "server-reads"])
def test_memory_between_ends_that_are_proven(run, files, path, rounds, ending):
    for output in run(*[settings(files, path)] * 2, f"-n 3 -C {rounds} -S {SIZES} -e {ending}"):
        assert output.index("connection secured by tls") < output.index(" path tls\n") < output.index(" path tls+memory\n")
        assert paths(output) == MEMORY


def test_a_short_connection_stays_on_tcp(run, files):
    for output in run(*[settings(files, "")] * 2, "-n 3 -S 4000"):
        assert paths(output) == STAYS


def test_an_end_during_the_move(run, files):
    """Somewhere among these the responder offers memory with its last messages."""
    for rounds in range(10, 30, 2):
        for output in run(*[settings(files, "")] * 2, f"-n 4 -C {rounds} -S 4 -o send"):
            assert set(re.findall(r"qp 0x\w+ path (\S+)\n", output)) <= set(MEMORY)


@pytest.mark.parametrize("violator", ["client", "server"])
def test_a_terminate_arrives(run, files, violator):
    for output in run(*[settings(files)] * 2, f"-n 3 -S 100 -e {violator}-violates"):
        assert paths(output) == MEMORY


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_send_lat -e", "ib_send_bw -c UC"])
def test_memory_in_the_roce_persona(start, port, files, program):
    line = f"{program} -F -x 0 -s 4096 -n 200"
    prefix = [*settings(files), "ANYWARP_PERSONA=roce", f"ANYWARP_TLS_NAME={NAME}"]
    server = start.server(line, port, prefix=prefix)
    client = start(f"{line} -p {port} 127.0.0.1", prefix=prefix)
    for end in client, server:
        assert end.wait_exit(SECONDS_MAX) == 0 and " path tls+memory\n" in end.output()


def test_memory_behind_an_offer_of_tls(run, files):
    """What was offered in the clear counts for nothing: it is agreed on within."""
    for output in run(*[settings(files, "on", "ANYWARP_TLS=offer")] * 2, f"-n 2 -S {SIZES}"):
        assert paths(output) == MEMORY


def test_a_device_that_varies(run, files):
    for output in run(*[settings(files, "on", "ANYWARP_VARY=7")] * 2, f"-n 2 -S {SIZES}"):
        assert paths(output) == MEMORY


@pytest.mark.skipif(conftest.SANITIZER == "thread", reason="the child starts threads, which the thread sanitizer does not allow behind a fork")
def test_the_child_of_a_fork_leaves_it_to_its_parent(files):
    """tests/cm/test_fork.c, with both ends in one process: a child neither disturbs a connection of its parent's nor keeps its memory."""
    env = {**os.environ, **variables(files), "ANYWARP_HOST_PATH": "on", "ANYWARP_LOG": "info"}
    done = subprocess.run([str(WITH_NET), str(conftest.BUILD / "tests" / "cm_fork")], env=env, capture_output=True, text=True,
                          timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0 and " path tls+memory\n" in done.stderr, done.stdout + done.stderr


# --- where they stay

OFF, BY_KERNEL = "ANYWARP_TLS_HOST_PATH=off", "ANYWARP_TLS_RECORDS=kernel"


@pytest.mark.parametrize("server, client", [([OFF], []), ([], [OFF]), ([OFF], [OFF]), ([BY_KERNEL], []), ([], [BY_KERNEL]),
                                            (["ANYWARP_HOST_PATH=off"], []), (["ANYWARP_TLS_HOST_PATH=maybe"], []),
                                            ([OFF, "ANYWARP_TLS=offer"], ["ANYWARP_TLS=offer"])], ids=" ".join)
def test_tls_over_tcp_where_one_end_does_not_want_memory(run, files, server, client):
    outputs = run(settings(files, "on", *server), settings(files, "on", *client), f"-C 3 -S {SIZES}")
    for output, more in zip(outputs, (server, client)):
        assert paths(output) == STAYS
        assert ("memory is not for records that the kernel makes, as ANYWARP_TLS_RECORDS asks: set that to user" in output) == \
            (BY_KERNEL in more)
    if "ANYWARP_TLS_HOST_PATH=maybe" in server:
        assert "ANYWARP_TLS_HOST_PATH is 'maybe': it must be on or off; connections with tls stay on tcp" in outputs[0]


def test_who_has_proven_nothing_gets_no_memory(start, port, files, tmp_path):
    """Nor a connection: neither end offers memory before it knows the other."""
    stranger = Authority(tmp_path / "wrong").issue(NAME, f"DNS:{NAME},{ADDRESSES}")
    server = start.server(f"{OPCODES} -S 4000", port, prefix=settings(files))
    client = start(f"{OPCODES} -S 4000 -a 127.0.0.1 -p {port}", prefix=settings(stranger._replace(ca=files.ca)))
    assert client.wait_exit(SECONDS_MAX) != 0
    server.wait_output("name the ca that issued it by --tls-ca")
    assert " path " not in client.output() + server.output()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_another_user_gets_no_memory(run, files):
    """However proven."""
    for path in files:
        path.chmod(0o644)
    for folder in [files.cert.parent, *list(files.cert.parents)[1:4]]:
        folder.chmod(0o755)
    other = ["setpriv", "--reuid=65534", "--clear-groups"]
    for output in run([*other, *settings(files)], settings(files), "-S 4000"):
        assert paths(output) == STAYS


# --- the end

def pinging(start, port, prefix):
    line = "rping -{} -a 127.0.0.1 -p " + str(port)
    server = start.server("rping -s -a 127.0.0.1", port, prefix=prefix)
    return server, start(line.format("c") + " -C 100000000", prefix=prefix)


def qps(pid):
    said = subprocess.run([str(ANYWARP), "stat", "--json", str(pid)], capture_output=True, text=True, check=False).stdout
    return json.loads(said)["qps"] if said else []


@pytest.mark.parametrize("at", [0, 1], ids=["server", "client"])
def test_an_end_that_is_killed_is_no_end_in_order(start, port, files, at):
    """Its kernel sends TCP's FIN, as anybody can: as over TCP the other end takes it for a reset. Meanwhile stat has the path."""
    ends = pinging(start, port, settings(files))
    for end in ends:
        end.wait_until(lambda pid=end.pid: (found := qps(pid)) and found[0]["path"] == "tls+memory", "a stream through memory", SECONDS_MAX)
        found = qps(end.pid)[0]
        assert found["peer_identity"] == f"/CN={NAME}" and found["tls_records"] == "user"
    os.kill(ends[at].pid, signal.SIGKILL)
    other = ends[1 - at]
    other.wait_output("stream lost cause")
    assert "the stream ended without tls's close_notify" in other.output() or "Connection reset by peer" in other.output()


def test_a_client_that_ends_in_order_is_none_that_was_killed(start, port, files):
    server = start.server("rping -s -a 127.0.0.1 -C 300 -v -V -S 5000", port, prefix=settings(files))
    client = start(f"rping -c -a 127.0.0.1 -p {port} -C 300 -v -V -S 5000", prefix=settings(files))
    for end in client, server:
        assert end.wait_exit(SECONDS_MAX) == 0
        assert end.output().count("ping data: ") == 300 and "stream lost" not in end.output()


# --- the option

def command(name, *options):
    return subprocess.run([str(ANYWARP), name, *map(str, options), "--", "env"], env=dict(os.environ), capture_output=True,
                          text=True, check=False)


def test_the_option_of_the_command(files):
    asked = ["--tls", "require", "--tls-cert", files.cert, "--tls-key", files.key, "--tls-ca", files.ca]
    for word in "on", "off":
        assert f"ANYWARP_TLS_HOST_PATH={word}" in command("run", *asked, "--tls-host-path", word).stdout.splitlines()
    done = command("run", *asked, "--tls-host-path", "maybe")
    assert done.returncode == 125 and "--tls-host-path needs one of: on off" in done.stderr
    done = command("run", "--tls-host-path", "off")
    assert done.returncode == 125 and "--tls-host-path (ANYWARP_TLS_HOST_PATH) has no effect without --tls require" in done.stderr
    done = command("sockets", *asked, "--tls-host-path", "off")
    assert done.returncode == 2 and "--tls-host-path (ANYWARP_TLS_HOST_PATH) is for RDMA programs alone" in done.stderr
