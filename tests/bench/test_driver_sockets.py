# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Sockets programs under the library: how they are started, and what their output means."""

import os

import driver_path  # noqa: F401
import app_files
import app_servers
import application
import beds
import pair
import points
import pytest
import sockets
from values import MI


def test_the_environment_of_each_rule(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "other.so")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert sockets.environment("/lib/x", None) == dict(os.environ)
    env = sockets.environment("/lib/x", "on")
    assert env["LD_PRELOAD"] == "/lib/x/libanywarp-sockets.so other.so"
    assert (env["LD_LIBRARY_PATH"], env["ANYWARP_SOCKETS_RULES"]) == ("/lib/x", "on")
    assert "ANYWARP_SOCKETS_RECORD" not in env
    env = sockets.environment("/lib/x", "proxy")
    assert [env[f"ANYWARP_SOCKETS_{name}"] for name in ("RULES", "RECORD")] == ["on", "off"]


def test_without_the_library_only_what_needs_it_is_skipped(tmp_path):
    assert sockets.no_library(str(tmp_path), None) is None
    assert str(tmp_path) in sockets.no_library(str(tmp_path), "off")
    (tmp_path / sockets.LIBRARY).touch()
    assert sockets.no_library(str(tmp_path), "off") is None


@pytest.mark.parametrize("line, rate", [
    ("19922944 bytes received in 00:00 (1.25 GiB/s)", 1.25 * 2**30),
    ("19922944 bytes received in 00:00 (512.5 MiB/s)", 512.5 * MI),
    ("19922944 bytes received in 00:01 (900 KiB/s)", 900 * 1024)])
def test_the_rate_that_tnftp_prints(line, rate):
    found = app_files.parse_tnftp(f"226 Transfer complete.\n{line}\n221 Goodbye.\n", 19 * MI)
    assert found["octets_per_second"] == rate


@pytest.mark.parametrize("output", ["", "tnftp: Can't connect", "5 bytes received in 00:00 (1 KiB/s)"])
def test_a_file_that_did_not_come_whole_is_a_failure(output):
    with pytest.raises(pair.Failure):
        app_files.parse_tnftp(output, 19 * MI)


REDIS = """"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"SET","39123.60","0.7","0.2","0.703","1.1","1.3","2.0"
"GET","40123.60","0.7","0.2","0.695","1.1","1.3","2.0"
"""


def test_the_rate_that_redis_benchmark_prints():
    found = app_servers.Redis.numbers(REDIS)
    assert (found["requests_per_second"], found["usec"]["median"]) == (40123.6, 695)


@pytest.mark.parametrize("output", ["", REDIS.splitlines()[0], "\n".join(REDIS.splitlines()[:2])])
def test_a_benchmark_of_redis_that_broke_off_is_a_failure(output):
    with pytest.raises(pair.Failure):
        app_servers.Redis.numbers(output)


@pytest.mark.parametrize("output", [
    "", "9 requests in 1s\nRequests/sec: 5.00\nNon-2xx or 3xx responses: 5\n", "Requests/sec: 5.00\n",
    "Socket errors: connect 0, read 9\n9 requests in 1s\nRequests/sec: 5.00\n"])
def test_errors_of_wrk_are_a_failure(output):
    with pytest.raises(pair.Failure):
        app_servers.Nginx.numbers(output, 1024)


def of_form(form):
    """(way, program, keys, reference) of each series of a sockets program, by the point."""
    made = {points.key(point): point.series for point in points.all_points(form)}
    return {key: series for key, series in made.items() if [each.name for each in series[:1]] == ["tcp"] and ":" in series[0].program}


def test_every_sockets_point_has_every_way_with_the_same_keys():
    made = of_form("default")
    assert {key.partition("/")[0] for key in made} >= {
        "sockets-latency", "sockets-bandwidth", "sockets-connect", "redis", "nginx", "memcached", "pgbench", "rpc", "ftp"}
    known = sockets.programs("/nowhere", "/nowhere")
    for key, series in made.items():
        own = [each for each in series if not each.name.endswith("-combined")]
        assert [each.name for each in own] == list(sockets.WAYS), key
        assert all(each.keys == own[0].keys for each in own)
        assert {each.program for each in series} <= set(known)
        assert {each.program.partition(":")[2] for each in own} == set(sockets.WAYS)


def test_the_ways_differ_in_their_rule_alone():
    for way in sockets.all_ways("/lib/x"):
        assert way.env.get("ANYWARP_SOCKETS_RULES") == {"tcp": os.environ.get("ANYWARP_SOCKETS_RULES"), "pass-through": "off",
                                                        "auto": "auto", "iwarp": "on", "iwarp-proxy": "on"}[way.name]


class Noted(application.Scene):
    """Starts nothing, and notes the command lines and as whom they would run."""

    def __init__(self, folder):
        super().__init__(beds.LOOPBACK, application.Way("auto", {}, None), str(folder))
        self.lines = []

    def server(self, argv, port, user=None, ready=None):
        self.lines.append((argv, user))

    def client(self, argv, seconds=60, user=None, **how):
        self.lines.append((argv, user))
        raise pair.Failure("nothing runs")


def test_a_server_is_of_its_clients_user(tmp_path, monkeypatch):
    """The kernel's pair is for two ends of one user: nginx and memcached change theirs when root starts them."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for server, keys in ((app_servers.Memcached, {"clients": 1}), (app_servers.Nginx, {"clients": 1, "size": 1024})):
        scene = Noted(tmp_path)
        with pytest.raises(pair.Failure, match="nothing runs"):
            server(scene.way).measure(scene, keys, 1)
        (argv, server_user), (_, client_user) = scene.lines
        assert server_user is client_user is None
        assert server is app_servers.Nginx or argv[argv.index("-u") + 1] == "root"
        scene.close()
    assert "\nuser root;\n" in (tmp_path / "nginx.conf").read_text()
    scene = Noted(tmp_path)
    with pytest.raises(pair.Failure, match="nothing runs"):
        app_servers.Postgres.check_sums(scene, 1)
    scene.close()
    assert [user for _, user in scene.lines] == [app_servers.POSTGRES]
