# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The application study: its points, what its programs' output means, and what follows for the page."""

import json
import os
import struct
import subprocess
import sys

import driver_path
import app_ceph
import app_mpi
import app_servers
import application
import beds
import metrics_peer
import overview
import pair
import points
import pytest
import results
import study
import values

ASK_PEER = driver_path.DRIVER / "ask_peer.py"


@pytest.fixture(scope="module")
def programs():
    return study.programs("/nowhere", "/nowhere")


@pytest.mark.parametrize("form", study.FORMS)
def test_every_point_has_a_group_and_programs(form, programs):
    made = study.all_points(form)
    keys = [points.key(point) for point in made]
    assert len(keys) == len(set(keys)) > 20
    for point in made:
        assert set(points.GROUPS[point.group].values) <= set(values.VALUES)
        assert {series.program for series in point.series} <= set(programs)
        assert [series.name for series in point.series if series.reference is None] == ["tcp"]
        assert all(series.keys == point.series[0].keys for series in point.series)
        assert ("auto" in [series.name for series in point.series]) == (point.bed == "loopback")


def test_both_forms_are_over_in_their_time():
    assert study.FORMS["apps"].limit <= 3600 and study.FORMS["apps-short"].limit <= 600


def test_the_short_form_has_every_application():
    def applications(form):
        return {series.program for point in study.all_points(form) for series in point.series}

    # A cluster of Ceph takes a quarter of a minute to begin, both ends of NIXL four seconds.
    assert applications("apps-short") == {each for each in applications("apps") if not each.startswith(("ceph:", "engine:"))}


def test_only_names_points():
    assert {point.group for point in study.all_points("apps", ["app-redis"])} == {"app-redis"}
    assert {point.bed for point in study.all_points("apps", ["wan"])} == {"wan"}


def test_what_is_not_there_says_so(programs, monkeypatch):
    assert "libtirpc-dev" in programs["rpc:tcp"].missing()
    assert "./dev build" in programs["pipeline:verbs"].missing()
    monkeypatch.setattr(application, "PATH", "/nowhere")
    assert programs["redis:tcp"].missing() == "redis-server is not installed (Debian package redis-server)"


def test_the_rate_that_wrk_prints():
    said = "  32760 requests in 1.00s, 39.9MB read\nRequests/sec:  32760.13\nTransfer/sec: 39.9MB\n"
    found = app_servers.Nginx.numbers(said, 1000)
    assert (found["requests_per_second"], found["operations"], found["octets"]) == (32760.13, 32760, 32760000)


MEMCASLAP = """cmd_get: 19151
cmd_set: 2137
get_misses: 0
verify_misses: 0
verify_failed: 0

Run time: 1.3s Ops: 21288 TPS: 15775 Net_rate: 17.6M/s
"""


def test_the_rate_that_memcaslap_prints():
    found = app_servers.Memcached.numbers(MEMCASLAP)
    assert (found["requests_per_second"], found["operations"]) == (15775, 21288)


@pytest.mark.parametrize("was", ["get_misses: 0", "verify_misses: 0", "verify_failed: 0"])
def test_a_value_that_memcaslap_misses_is_a_failure(was):
    for now in (was.replace("0", "3"), ""):
        with pytest.raises(pair.Failure, match="WRONG OUTPUT"):
            app_servers.Memcached.numbers(MEMCASLAP.replace(was, now))


PGBENCH = """number of transactions actually processed: 360
number of failed transactions: 0 (0.000%)
latency average = 2.506 ms
tps = 3192.281742 (without initial connection time)
"""


def test_the_rate_that_pgbench_prints():
    found = app_servers.Postgres.numbers(PGBENCH)
    assert (found["requests_per_second"], found["operations"], found["usec"]["mean"]) == (3192.281742, 360, 2506)


def test_failed_transactions_are_a_failure():
    with pytest.raises(pair.Failure):
        app_servers.Postgres.numbers(PGBENCH.replace("transactions: 0 ", "transactions: 1 "))
    with pytest.raises(pair.Failure):
        app_servers.Postgres.numbers("")


RADOS = "Total {0} made:      8589\nBandwidth (MB/sec):     100.5\nStddev Bandwidth:       4.9\n"


def test_the_rates_that_rados_bench_prints():
    found = app_ceph.Ceph.numbers(RADOS.format("writes"), RADOS.format("reads"), 1000)
    assert (found["octets_per_second"], found["operations"], found["octets"]) == (100.5 * 2**20, 17178, 17178000)
    for read in ("", RADOS.format("reads").replace("8589", "0")):
        with pytest.raises(pair.Failure):
            app_ceph.Ceph.numbers(RADOS.format("writes"), read, 1000)


class Sums:
    """psql that says so."""

    def __init__(self, said):
        self.said, self.bed = said, beds.LOOPBACK

    def client(self, *_, **how):
        return self.said


def test_the_sums_of_a_database_are_compared():
    app_servers.Postgres.check_sums(Sums("7 7 7\n"), 1)
    for said in ("7 7 8", "", "7 7"):
        with pytest.raises(pair.Failure, match="WRONG OUTPUT"):
            app_servers.Postgres.check_sums(Sums(said), 1)


def test_json_is_found_among_other_lines():
    assert application.json_in('a warning\n{"a": 1}\nanother\n') == {"a": 1}
    with pytest.raises(pair.Failure):
        application.json_in("{no JSON\n")


def test_a_client_that_fails_or_hangs_is_a_failure():
    with pytest.raises(pair.Failure, match="status 3: why"):
        application.finished(["sh", "-c", "echo why; exit 3"], os.environ, 10)
    with pytest.raises(pair.Failure, match="time-out"):
        application.finished(["sleep", "30"], os.environ, 0.1)
    with pytest.raises(pair.Failure, match="does not start"):
        application.finished(["/nowhere/program"], os.environ, 1)


def in_a_process(text):
    """What a fresh Python prints that has the driver's modules."""
    head = f"import sys; sys.path[:0] = [{str(driver_path.DRIVER)!r}]; import cputree, os, subprocess, time\n"
    return subprocess.run([sys.executable, "-B", "-c", head + text], capture_output=True, text=True, timeout=60, check=True).stdout


def test_the_time_of_a_daemon_counts_after_its_parent_is_gone():
    """The child is left by its parent, in a session of its own, as daemons are."""
    said = in_a_process("""
cputree.adopt_orphans()
subprocess.run([sys.executable, "-c", '''import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time\\\\nwhile time.process_time() < 0.3: pass\\\\ntime.sleep(60)"],
                 start_new_session=True)'''], check=True)
end = time.monotonic() + 30
while cputree.seconds() < 0.3 and time.monotonic() < end:
    time.sleep(0.05)
print(cputree.seconds() >= 0.3, len(cputree.descendants()))
cputree.end_all()
print(cputree.seconds() >= 0.3, len(cputree.descendants()))
""")
    assert said.split() == ["True", "1", "True", "0"]


def test_processes_of_before_are_left_alone():
    said = in_a_process("""
before = subprocess.Popen(["sleep", "60"])
there = set(cputree.descendants())
subprocess.Popen(["sleep", "60"], start_new_session=True)
cputree.end_all(there)
print(set(cputree.descendants()) == there, before.poll())
before.kill()
""")
    assert said.split() == ["True", "None"]


def of_a_study(ours, tcp, group="app-redis"):
    def series(name, reference, runs):
        return {"name": name, "program": f"redis:{name}", "test": "redis", "keys": {}, "reference": reference, "rounds": runs}

    made = {"schema": results.SCHEMA, "machine": {"cores": 2}, "versions": {}, "skipped": [],
            "settings": {"form": "apps"},
            "points": [{"key": f"{group}/loopback/50", "group": group, "bed": "loopback", "x": 50, "handover_ns": [],
                        "series": [series("tcp", None, tcp), series("iwarp", "tcp", ours)]}]}
    return results.finish(made)


def rates(*numbers):
    return [{"result": {"requests_per_second": each, "operations": 1000, "cpu": {"both_seconds": 1 / each}}} for each in numbers]


def latencies(*numbers):
    return [{"result": {"usec": {"median": each}}} for each in numbers]


@pytest.mark.parametrize("ours, tcp, verdict", [
    ((20, 22, 24), (10, 11, 12), "helps"), ((5, 5, 5), (10, 10, 10), "costs"), ((10, 10.4, 9.9), (10, 10, 10), "same"),
    ((20, 22, 8), (10, 11, 12), "helps, unsure"), ((5, 5, 20), (10, 10, 10), "costs, unsure"), ((20, 20), (10, 10), "helps, unsure")])
def test_where_it_helps_and_where_it_costs(ours, tcp, verdict):
    row, = overview.rows(of_a_study(rates(*ours), rates(*tcp)))
    assert row["verdict"] == verdict


def test_speed_is_more_and_cost_is_less():
    """A rate that is twice TCP's, and half its processor time."""
    row, = overview.rows(of_a_study(rates(20), rates(10)))
    assert (row["speed"]["median"], row["cpu"]["median"]) == (2, 0.5)
    row, = overview.rows(of_a_study(latencies(20), latencies(10), "app-rpc"))
    assert row["speed"]["median"] == 0.5 and row["verdict"].startswith("costs")


def test_a_row_without_numbers_says_why():
    failed = [{"failure": "redis-server does not start"}]
    row = overview.text_rows(of_a_study(failed, rates(10)))[1][0]
    assert row[-1] == "failed: redis-server does not start" and row[4] == "-"


def test_the_table_of_the_docs():
    header, (row,) = overview.pivot(of_a_study(rates(20, 30), rates(10, 10)))
    assert header[:5] == ["application", "TCP", "pass-through", "auto", "iwarp"]
    assert row == ["redis, loopback, 50", "10 1/s", "", "", "25: **2.50** (2.00 .. 3.00), CPU 0.42", ""]


def test_a_study_has_no_targets():
    assert of_a_study(rates(10), rates(10))["targets"] == []


def test_the_datagrams_of_a_metric():
    meta, value = metrics_peer.datagrams("metric1", "42")
    assert struct.unpack(">I", meta[:4]) == (128,) and struct.unpack(">I", value[:4]) == (133,)
    assert not len(meta) % 4 and not len(value) % 4
    assert value.endswith(b"\0\0\0\x0242\0\0")


def test_the_rules_of_mpi_ranks_name_the_ports_of_both():
    env = {"ANYWARP_SOCKETS_RULES": "on", "LD_PRELOAD": "x.so", "LD_LIBRARY_PATH": "/lib/x"}
    ranks = app_mpi.OverTcp(application.Way("iwarp", env, None), "/nowhere")
    assert ranks.library([7, 8])[-1] == "ANYWARP_SOCKETS_RULES=on port=7\non port=8\noff"
    assert app_mpi.OverTcp(application.Way("tcp", {}, None), "/nowhere").library([7, 8]) == []


SERVER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    conn, _ = listener.accept()
    conn.sendall(sys.argv[1].encode())
    conn.close()
"""


def asked(tmp_path, answer, wanted):
    metrics = tmp_path / "metrics.json"
    metrics.write_text(json.dumps(wanted))
    server = subprocess.Popen([sys.executable, "-c", SERVER, answer], stdout=subprocess.PIPE, text=True)
    try:
        port = server.stdout.readline().strip()
        return subprocess.run([sys.executable, ASK_PEER, "127.0.0.1", port, metrics, "2", "0.2"], capture_output=True,
                              text=True, timeout=60, check=False)
    finally:
        server.kill()
        server.communicate()


def test_a_monitor_answer_is_compared(tmp_path):
    right = '<GANGLIA_XML><METRIC NAME="metric1" VAL="1" TYPE="x"/></GANGLIA_XML>'
    done = asked(tmp_path, right, {"metric1": "1"})
    assert done.returncode == 0 and json.loads(done.stdout)["operations"] >= 2, done.stderr
    for wrong in (right.replace('VAL="1"', 'VAL="2"'), right[:20], ""):
        done = asked(tmp_path, wrong, {"metric1": "1"})
        assert done.returncode == 1 and "WRONG OUTPUT" in done.stderr
