# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Sockets programs under the library: how they are started, and what their output means."""

import os

import driver_path  # noqa: F401
import applications
import pair
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
    found = sockets.parse_tnftp(f"226 Transfer complete.\n{line}\n221 Goodbye.\n", 19 * MI)
    assert found["octets_per_second"] == rate


@pytest.mark.parametrize("output", ["", "tnftp: Can't connect", "5 bytes received in 00:00 (1 KiB/s)"])
def test_a_file_that_did_not_come_whole_is_a_failure(output):
    with pytest.raises(pair.Failure):
        sockets.parse_tnftp(output, 19 * MI)


REDIS = """"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"SET","39123.60","0.7","0.2","0.703","1.1","1.3","2.0"
"GET","40123.60","0.7","0.2","0.695","1.1","1.3","2.0"
"""


def test_the_rate_that_redis_benchmark_prints():
    found = applications.Redis.result(REDIS)
    assert (found["requests_per_second"], found["usec"]["median"]) == (40123.6, 695)


@pytest.mark.parametrize("output", ["", REDIS.splitlines()[0], "\n".join(REDIS.splitlines()[:2])])
def test_a_benchmark_of_redis_that_broke_off_is_a_failure(output):
    with pytest.raises(pair.Failure):
        applications.Redis.result(output)


def test_the_rate_that_wrk_prints():
    found = applications.Nginx.result("Running 1s test\nRequests/sec:  32760.13\nTransfer/sec: 39.9MB\n")
    assert found["requests_per_second"] == 32760.13


@pytest.mark.parametrize("output", [
    "", "Requests/sec: 5.00\nNon-2xx or 3xx responses: 5\n", "Socket errors: connect 0, read 9\nRequests/sec: 5.00\n"])
def test_errors_of_wrk_are_a_failure(output):
    with pytest.raises(pair.Failure):
        applications.Nginx.result(output)
