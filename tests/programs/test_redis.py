# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""redis: one thread, level-triggered epoll, many connections, pipelines; a replica is a client, and
a server that forks while its connections are open."""

import re

import pytest
import scene as scenes
import sockets_status

SETTINGS = "--save '' --appendonly no --protected-mode no --repl-diskless-sync-delay 0"
KINDS = ("PING_INLINE", "PING_MBULK", "SET", "GET", "MSET (10 keys)")


def serve(scene, more="", rule="mode"):
    port = scene.port()
    server = scene.server(f"redis-server --port {port} --bind {scenes.ADDRESS} "
                          f"--dir {scene.folder} {SETTINGS} {more}", port, rule=rule)
    return server, port


def cli(scene, port, line, **env):
    return scene.client(["sh", "-c", f"redis-cli -h {scenes.ADDRESS} -p {port} {line}"], **env)


@pytest.mark.parametrize("more", ["-c 50", "-c 8 -P 16", "-c 4 -d 50000 -n 200", "-c 8 -n 1000 --threads 2"],
                         ids=["many", "pipelined", "large", "threads"])
def test_benchmark(scene, more):
    _, port = serve(scene)
    said = scene.client(f"redis-benchmark -h {scenes.ADDRESS} -p {port} -n 3000 --csv "
                        f"-t ping,set,get,mset {more}")
    rates = dict(re.findall(r'(?m)^"([^"]+)","([\d.]+)"', said))
    assert all(float(rates[kind]) > 0 for kind in KINDS), said
    assert "rror" not in said


def test_values_arrive_as_they_were_set(scene):
    _, port = serve(scene)
    for octets in scenes.SIZES:
        path = scene.file(f"value{octets}", octets)
        assert cli(scene, port, f"-x set key <{path}").strip() == "OK"
        cli(scene, port, f"--raw get key >{path}.got")
        assert path.with_suffix(".got").read_bytes() == path.read_bytes() + b"\n"


def test_a_replica_and_a_fork_in_between(scene):
    """BGSAVE forks the server, so does the replica's first copy."""
    server, port = serve(scene)
    path = scene.file("value", 1_000_003)
    cli(scene, port, f"-x set key <{path}")
    replica, second = serve(scene, f"--dbfilename second --replicaof {scenes.ADDRESS} {port}",
                            rule=scene.mode.client)
    replica.wait_output("Finished with success")
    server.wait_output("RDB transfer terminated with success")
    assert "saving started" in cli(scene, port, "bgsave")
    cli(scene, second, f"--raw get key >{path}.got")
    assert path.with_suffix(".got").read_bytes() == path.read_bytes() + b"\n"
    orders = scene.write("orders", "set other 17\nwait 1 0\n")  # wait is for one's own writes
    assert cli(scene, port, f"<{orders}").split() == ["OK", "1"]
    assert cli(scene, second, "get other").strip() == "17"
    scene.judge(second, iwarp=scene.mode.client in ("on", "tls-plain"))


def test_the_status_tells_of_the_connection(scene):
    """`anywarp sockets --status PID` for a server, and for a client that sleeps."""
    server, port = serve(scene)
    client = scene.start(f"redis-cli -h {scenes.ADDRESS} -p {port} subscribe news", scene.mode.client)
    client.wait_output("subscribe")
    link = f" {scenes.ADDRESS}:{port} "
    for started, peer in ((client, link), (server, f" {scenes.ADDRESS}:")):
        if scene.mode.iwarp:  # the proxy may still be at its start
            started.wait_until(lambda asked=started: "established" in scene.status(asked), "a row")
        said = scene.status(started)
        if scene.mode.iwarp or scene.mode.pair:
            assert peer in said and "established" in said and f" {scene.mode.server} " in said, said
        else:
            assert {row.kind for row in sockets_status.rows(said)} <= {"tcp"}, said
