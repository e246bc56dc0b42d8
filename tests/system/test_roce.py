# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The roce persona under Debian's programs that connect by ibv_modify_qp: rdma-core's pingpongs and
perftest without rdma_cm, on one host, between two, through a firewall, and by two users at once."""

import os
import re
import shutil
import signal
import socket
import tempfile
import threading

import conftest
import pytest
from perftest import table
from test_perftest import assert_figures

SECONDS_MAX = conftest.program.SECONDS_MAX
ROCE = ("env", "ANYWARP_PERSONA=roce")
COUNT = 100


def pair(start, port, line, bed=None, env=None, user=()):
    """Runs server and client; returns what the client printed."""
    prefixes = (bed.server_prefix, bed.client_prefix) if bed else ((), ())
    server = start.server(line, port, prefix=(*prefixes[0], *user, *ROCE), env=env)
    client = start(f"{line} -p {port} {bed.address if bed else '127.0.0.1'}",
                   prefix=(*prefixes[1], *user, *ROCE), env=env)
    assert client.wait_exit(SECONDS_MAX) == 0
    assert server.wait_exit(SECONDS_MAX) == 0
    return client.output()


def gid_index(start, gid):
    """Of the table that ibv_devinfo shows."""
    show = start("ibv_devinfo -v", prefix=ROCE)
    assert show.wait_exit() == 0
    return int(re.search(rf"GID\[ *(\d+)\]:\s+{re.escape(gid)}, RoCE v2", show.output())[1])


@pytest.mark.parametrize("line", ["ibv_rc_pingpong", "ibv_rc_pingpong -e", "ibv_srq_pingpong",
                                  "ibv_srq_pingpong -e -q 8"])
def test_pingpong(start, port, line):
    output = pair(start, port, f"{line} -g 0 -n {COUNT}")
    assert f"{COUNT} iters in " in output


def test_pingpong_with_time_stamps(start, port):
    """The client, which the output is of, receives every message: the shortest time between two is no longer than the mean."""
    output = pair(start, port, f"ibv_rc_pingpong -t -g 0 -n {COUNT}")
    longest, shortest, mean = (float(re.search(rf"{each} receive completion clock cycles = ([\d.]+)", output)[1])
                               for each in ("Max", "Min", "Average"))
    assert 0 < shortest <= mean <= longest < 60e9  # nanoseconds


@pytest.mark.parametrize("options", ["", "-e", "-s 100000 -n 50"])
def test_uc_pingpong(start, port, options):
    """It sends as soon as the peer has told its number: not a message may be lost."""
    output = pair(start, port, f"ibv_uc_pingpong -g 0 -n {COUNT} {options}")
    assert re.search(r"\d+ iters in ", output)


@pytest.mark.parametrize("gid", ["::ffff:127.0.0.1", "::1"])
def test_pingpong_by_gid(start, port, gid):
    output = pair(start, port, f"ibv_rc_pingpong -c -g {gid_index(start, gid)} -n {COUNT}")
    assert f"GID {gid}" in output


def test_pingpong_by_lid(start, port):
    assert "anywarp[" not in pair(start, port, f"ibv_rc_pingpong -n {COUNT}")


def test_a_lid_leads_to_no_other_host(start, port, veth1500):
    """ibv_modify_qp to RTR says so at the end that comes first, and fails; then the other end has no peer."""
    line = f"ibv_rc_pingpong -n {COUNT}"
    server = start.server(line, port, prefix=(*veth1500.server_prefix, *ROCE))
    client = start(f"{line} -p {port} {veth1500.address}", prefix=(*veth1500.client_prefix, *ROCE))
    assert server.wait_exit() != 0 and client.wait_exit() != 0
    assert "a path without GRH leads to this host alone" in server.output()
    assert "Failed to modify QP to RTR" in server.output()


@pytest.mark.parametrize("line, sizes", [
    ("ib_write_bw -s 65536", [65536]), ("ib_send_lat -s 64", [64]), ("ib_read_bw -s 65536", [65536]),
    ("ib_send_lat -c UC -s 64", [64]), ("ib_send_bw -c UC -s 64", [64]),
    ("ib_write_lat -c UC -s 64", [64]), ("ib_write_bw -c UC -q 4 -s 65536", [65536]),
    ("ib_atomic_bw", [8]), ("ib_send_bw -b -q 4 -s 4096", [4096]), ("ib_read_lat -e -s 64", [64])])
def test_perftest(start, port, line, sizes):
    assert_figures(table(pair(start, port, f"{line} -F -n 200")), sizes)


def test_a_thousand_qps(start, port):
    """perftest counts -t for each completion: where -n is no multiple of it, and QPs go on unevenly, it comes to
    its total too early, and posts and polls no more."""
    output = pair(start, port, "ib_write_bw -F -q 1024 -t 4 -s 64 -n 8")
    assert_figures(table(output), [64])


@pytest.mark.parametrize("line", ["ibv_rc_pingpong -g 0", "ib_write_bw -F -s 65536",
                                  "ibv_uc_pingpong -g 0", "ib_send_bw -c UC -F -s 65536"])
def test_between_hosts(start, port, veth1500, line):
    pair(start, port, f"{line} -n 200", veth1500)


@pytest.mark.parametrize("closed", ["server", "client"])
def test_a_firewall_closes_one_way(start, port, veth1500, closed):
    """That end can be called by nobody but on the port where the programs exchange their numbers. The
    two have one GID order in either test, so that each of the ends has to do what is left to it. A SYN
    that opens a connection goes to a veth whose other end is down."""
    prefix = getattr(veth1500, f"{closed}_prefix")
    add = "tc filter add dev veth0 parent ffff: protocol ip"
    for line in ("ip link add drop0 type veth peer name drop1", "ip link set drop0 up",
                 "tc qdisc add dev veth0 ingress",
                 f"{add} prio 1 u32 match ip dport {port} 0xffff flowid :1",
                 f"{add} prio 2 u32 match ip protocol 6 0xff match u8 0x02 0x12 at 33 "
                 "action mirred egress redirect dev drop0"):
        done = start(line, prefix=prefix)
        if done.wait_exit() != 0:
            pytest.skip(f"{line}: {done.output()}")
    output = pair(start, port, "ibv_rc_pingpong -g 0 -n 10", veth1500)
    assert "10 iters in " in output


def read_some(listener):
    """Takes a call, and its Request; what comes of it depends on who holds the connection."""
    connection, _ = listener.accept()
    connection.recv(1024)
    return connection


def answer_garbage(listener, held):
    while True:
        connection = read_some(listener)
        connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
        held.append(connection)


def close_at_once(listener, held):
    while held is not None:
        read_some(listener).close()


def stay_silent(listener, held):
    while True:
        held.append(read_some(listener))


def act(how, listener, held):
    try:
        how(listener, held)
    except OSError:
        pass  # the test is over


def give_numbers(exchange, qp_port):
    """The server's half of ibv_rc_pingpong's exchange: a QP number of that port, at 127.0.0.1."""
    with exchange.accept()[0] as connection:
        asked = connection.recv(128)
        gid = "0" * 20 + "ffff7f000001"
        connection.sendall(b"0000:%06x:000000:%s\0" % (qp_port << 8, gid.encode()))
        assert len(asked) == len("0000:000000:000000:") + 32 + 1
        connection.recv(128)


def test_peers_that_never_answer(start):
    """Nobody there, or who stays silent, closes, or speaks another protocol: each client's post fails by its
    time-out, all of them within the few seconds that a connection may take."""
    index, clients, held = gid_index(start, "::ffff:127.0.0.1"), [], []
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    ports = [listener.getsockname()[1] for listener in listeners] + [conftest.program.free_port()]
    for how, listener in zip((answer_garbage, close_at_once, stay_silent), listeners):
        threading.Thread(target=act, args=(how, listener, held), daemon=True).start()
    for qp_port in ports:
        with socket.create_server(("127.0.0.1", 0)) as exchange:
            line = f"ibv_rc_pingpong -g {index} -p {exchange.getsockname()[1]} 127.0.0.1"
            clients.append(start(line, prefix=ROCE))
            give_numbers(exchange, qp_port)
    for client in clients:
        assert client.wait_exit(SECONDS_MAX) != 0
        assert "transport retry counter exceeded" in client.output()
        assert "did not answer in time" in client.output()
    for each in listeners + held:
        each.close()


def test_the_peer_is_killed(start, port):
    """While it is written to: the client hears of it by a completion, and ends."""
    server = start.server("ib_write_bw -F -D 60 -s 4096", port, prefix=ROCE)
    client = start(f"ib_write_bw -F -D 60 -s 4096 -p {port} 127.0.0.1", prefix=ROCE)
    client.wait_output("remote address")
    server.kill(signal.SIGKILL)
    assert client.wait_exit(20) != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_two_users_at_once(start, port):
    """See test_unprivileged_user of test_rping.py for the copy."""
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
              "--bounding-set=-all")
    with tempfile.TemporaryDirectory(prefix="anywarp-nobody-") as folder:
        os.chmod(folder, 0o755)
        libraries = os.path.join(folder, "lib")
        shutil.copytree(conftest.BUILD / "lib", libraries, symlinks=True,
                        ignore=shutil.ignore_patterns("static"))
        env = {**conftest.environment(start.logs), "LD_LIBRARY_PATH": libraries}
        mine = start.server("ibv_rc_pingpong -g 0 -n 20", port, prefix=ROCE)
        pair(start, conftest.program.free_port(), "ibv_rc_pingpong -g 0 -n 20", env=env, user=nobody)
        client = start(f"ibv_rc_pingpong -g 0 -n 20 -p {port} 127.0.0.1", prefix=ROCE)
        assert client.wait_exit(SECONDS_MAX) == 0
        assert mine.wait_exit(SECONDS_MAX) == 0


def test_one_end_is_uc(start, port):
    """Each end says so; the two programs exchange the same numbers."""
    server = start.server("ibv_uc_pingpong -g 0", port, prefix=ROCE)
    client = start(f"ibv_rc_pingpong -g 0 -p {port} 127.0.0.1", prefix=ROCE)
    client.wait_output("is rc, and its peer qp")
    server.wait_output("is uc, and its peer qp")
    assert client.wait_exit(SECONDS_MAX) != 0
    server.kill()


def test_one_end_without_a_gid(start, port):
    server = start.server("ibv_rc_pingpong -g 0", port, prefix=ROCE)
    client = start(f"ibv_rc_pingpong -p {port} 127.0.0.1", prefix=ROCE)
    assert client.wait_exit(SECONDS_MAX) != 0
    assert "-g at both ends" in client.output()
    server.kill()


@pytest.mark.parametrize("line, words", [
    ("ibv_ud_pingpong", "ud qp refused"), ("ibv_uc_pingpong", "uc qp refused"),
    ("udaddy -b 127.0.0.1", "port space 0x111 refused"),
    ("mckey -m 239.1.2.3 -b 127.0.0.1", "port space 0x111 refused")])
def test_what_an_iwarp_device_has_not(start, line, words):
    refused = start(line)
    assert refused.wait_exit(SECONDS_MAX) != 0
    assert words in refused.output()
    assert "anywarp run --persona roce" in refused.output()


def test_the_peer_has_another_persona(start, port):
    """One end cannot connect, and says what it is."""
    server = start.server("ibv_rc_pingpong -g 0 -n 10", port, prefix=ROCE)
    client = start(f"ibv_rc_pingpong -g 0 -n 10 -p {port} 127.0.0.1")
    assert client.wait_exit(SECONDS_MAX) != 0
    assert "an iwarp qp is connected by rdma_cm alone" in client.output()
    assert "--persona roce" in client.output()
    server.kill()
