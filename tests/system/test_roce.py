# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The roce persona under Debian's programs that connect by ibv_modify_qp: rdma-core's pingpongs and
perftest without rdma_cm, on one host, between two, through a firewall, and by two users at once."""

import os
import re
import shutil
import tempfile

import conftest
import pytest
from test_perftest import assert_figures, table

SECONDS_MAX = 60
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


@pytest.mark.parametrize("gid", ["::ffff:127.0.0.1", "::1"])
def test_pingpong_by_gid(start, port, gid):
    output = pair(start, port, f"ibv_rc_pingpong -c -g {gid_index(start, gid)} -n {COUNT}")
    assert f"GID {gid}" in output


def test_pingpong_by_lid(start, port):
    pair(start, port, f"ibv_rc_pingpong -n {COUNT}")


@pytest.mark.parametrize("line, sizes", [
    ("ib_write_bw -s 65536", [65536]), ("ib_send_lat -s 64", [64]), ("ib_read_bw -s 65536", [65536]),
    ("ib_atomic_bw", [8]), ("ib_send_bw -b -q 4 -s 4096", [4096]), ("ib_read_lat -e -s 64", [64])])
def test_perftest(start, port, line, sizes):
    assert_figures(table(pair(start, port, f"{line} -F -n 200")), sizes)


def test_a_thousand_qps(start, port):
    output = pair(start, port, "ib_write_bw -F -q 1024 -t 4 -s 64 -n 5")
    assert_figures(table(output), [64])


@pytest.mark.parametrize("line", ["ibv_rc_pingpong -g 0", "ib_write_bw -F -s 65536"])
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


def test_the_peer_has_another_persona(start, port):
    """One end cannot connect, and says what it is."""
    server = start.server("ibv_rc_pingpong -g 0 -n 10", port, prefix=ROCE)
    client = start(f"ibv_rc_pingpong -g 0 -n 10 -p {port} 127.0.0.1")
    assert client.wait_exit(SECONDS_MAX) != 0
    assert "an iwarp qp is connected by rdma_cm alone" in client.output()
    assert "--persona roce" in client.output()
    server.kill()
