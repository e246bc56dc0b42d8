# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Whole runs of the driver, with workers that measure nothing: order, failures, interrupts."""

import json
import os
import re
import signal
import subprocess
import time

import driver_path
import points
import pytest
from driver_path import bench

PART = ("--only", "bandwidth/loopback/65536")


@pytest.fixture
def workers(tmp_path):
    folder = tmp_path / "workers"
    folder.mkdir()
    return driver_path.fake_workers(folder)


def load(folder):
    return json.loads((folder / "results.json").read_text())


def series_of(results, name):
    return next(each for point in results["points"] for each in point["series"]
                if each["name"] == name)


def test_series_run_in_turn_round_after_round(workers, tmp_path):
    log = tmp_path / "log"
    done = bench(workers, tmp_path, *PART, "--rounds", "3", FAKE_LOG=str(log))
    assert done.returncode == 0, done.stderr
    ran = [(line.split()[0], re.search(r"op=(\S+)", line)[1], "mode=event" in line)
           for line in log.read_text().splitlines()]
    once = [("tcp", "send", False), ("verbs", "send", False), ("verbs", "write", False),
            ("verbs", "read", False), ("verbs", "send", True), ("verbs", "write", True), ("verbs", "read", True)]
    assert ran == once * 3


def test_results_hold_every_round_and_what_follows(workers, tmp_path):
    done = bench(workers, tmp_path, *PART, "--rounds", "3")
    results = load(tmp_path)
    write = series_of(results, "write")
    assert len(write["rounds"]) == 3
    assert write["summary"]["bandwidth"]["count"] == write["ratio"]["count"] == 3
    assert results["machine"]["cores"] >= 1 and results["settings"]["rounds"] == 3
    assert results["points"][0]["handover_ns"] == [55.0] * 3
    assert "from one CPU to another 55 ns (55 .. 55)" in done.stdout
    assert "64 Ki" in done.stdout and "bandwidth, Write, 64 Ki, loopback / TCP" in done.stdout


def test_the_roce_persona_is_measured_beside_iwarp_in_the_full_form_alone(workers, tmp_path):
    log = tmp_path / "log"
    assert not points.all_points("default", ["roce"]) + points.all_points("short", ["roce"])
    done = bench(workers, tmp_path, "--only", "roce-rate", "--rounds", "1", form="--full",
                 FAKE_LOG=str(log))
    assert done.returncode == 0, done.stderr
    ran = [("op=send" in line, "by=modify_qp" in line, line.split()[-1])
           for line in log.read_text().splitlines()]
    assert ran == [(send, roce, "persona=roce" if roce else "persona=iwarp")
                   for send in (True, False) for roce in (False, True)]
    assert series_of(load(tmp_path), "write-roce")["ratio"]["count"] == 1


@pytest.fixture
def path_of_no_others(tmp_path):
    """With neither libfabric's programs nor UCX's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("env", "python3"):
        (folder / name).symlink_to(f"/usr/bin/{name}")
    return str(folder)


def test_memory_is_measured_beside_tcp_but_in_the_short_form(workers, tmp_path, path_of_no_others):
    log = tmp_path / "log"
    assert not points.all_points("short", ["host-"])
    assert len(points.all_points("default", ["host-"])) == 7
    done = bench(workers, tmp_path, "--only", "host-rate", "--rounds", "1", form="--full", FAKE_LOG=str(log),
                 PATH=path_of_no_others)
    assert done.returncode == 0, done.stderr
    ran = [("op=send" in line, re.search("host=[a-z]+", line)[0]) for line in log.read_text().splitlines()]
    assert ran == [(True, "host=off"), (True, "host=auto"), (False, "host=auto"), (True, "host=off")]
    for name in ("ucx-shm-tag_bw", "ucx-shm-put_bw"):
        assert "ucx-utils" in series_of(load(tmp_path), name)["skipped"]


def test_engines_are_several_qps_and_batches_beside_as_many_connections(workers, tmp_path):
    log = tmp_path / "log"
    done = bench(workers, tmp_path, "--only", "engines", "--rounds", "1", form="--full", FAKE_LOG=str(log))
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines()
    assert len(lines) == 4 * 5 and all("streams=8" in line and "batch=16" in line for line in lines)
    ran = [("op=write" in line, "op=read" in line, "by=modify_qp" in line) for line in lines[:5]]
    assert ran == [(False, False, False), (True, False, False), (True, False, True),
                   (False, True, False), (False, True, True)]
    assert series_of(load(tmp_path), "read-roce")["ratio"]["count"] == 1


def test_connections_begun_together_are_measured_but_in_the_short_form(workers, tmp_path):
    log = tmp_path / "log"
    assert not points.all_points("short", ["connect-at-once"])
    done = bench(workers, tmp_path, "--only", "connect-at-once", "--rounds", "1", form="--full", FAKE_LOG=str(log))
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines()
    assert all("connect count=640 at_once=64" in line for line in lines)
    assert [line.split()[0] for line in lines] == ["tcp", "verbs", "verbs"]
    assert [re.search("host=[a-z]+", line)[0] for line in lines[1:]] == ["host=off", "host=auto"]
    target = next(each for each in load(tmp_path)["targets"] if each["point"] == "connect-at-once/loopback/64")
    assert target["median"] == pytest.approx((60 + 9) / (30 + 9)) and target["met"]


def test_a_machine_whose_handover_cannot_be_measured(workers, tmp_path):
    (workers / "bench-handover").unlink()
    done = bench(workers, tmp_path, *PART, "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert load(tmp_path)["machine"]["handover_ns"] is None
    assert "from one CPU" not in done.stdout


@pytest.mark.parametrize("how, words", [("exit", "client ended with status 1: fake: no memory"),
                                        ("garbage", "client printed no JSON"),
                                        ("silent", "client printed no JSON")])
def test_a_failing_run_is_told_and_the_rest_goes_on(workers, tmp_path, how, words):
    done = bench(workers, tmp_path, *PART, FAKE_WORKER=f"verbs:bandwidth:{how}")
    assert done.returncode == 1
    assert f"FAILED: bandwidth/loopback/65536 write: {words}" in done.stdout
    results = load(tmp_path)
    assert len(series_of(results, "tcp")["summary"]["bandwidth"]) == 4
    assert words in series_of(results, "write")["rounds"][0]["failure"]


def test_a_series_that_keeps_failing_is_given_up(workers, tmp_path):
    bench(workers, tmp_path, *PART, "--rounds", "5", FAKE_WORKER="verbs:bandwidth:exit")
    results = load(tmp_path)
    assert len(series_of(results, "write")["rounds"]) == 2
    assert len(series_of(results, "tcp")["rounds"]) == 5


def test_an_interrupt_writes_what_there_is(workers, tmp_path):
    log = tmp_path / "log"
    run = subprocess.Popen(driver_path.command(workers, tmp_path, *PART, "--rounds", "1000"),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env={**os.environ, "FAKE_LOG": str(log)})
    deadline = time.monotonic() + 30
    while not log.exists() or log.read_text().count("\n") < 8:
        assert time.monotonic() < deadline and run.poll() is None
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=30 * driver_path.program.SLOWNESS)
    assert run.returncode == 130
    assert "INTERRUPTED" in output
    results = load(tmp_path)
    assert results["settings"]["interrupted"]
    assert 1 <= len(series_of(results, "tcp")["rounds"]) < 1000


def test_missing_comparators_are_skipped_with_the_reason(workers, tmp_path, path_of_no_others):
    done = bench(workers, tmp_path, "--only", "others-bandwidth", "--rounds", "1",
                 PATH=path_of_no_others)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped: ucx: ucx_perftest is not installed (Debian package ucx-utils)" in done.stdout
    assert load(tmp_path)["skipped"][0]["what"] == "ucx"


def test_a_missing_worker_is_named_with_the_remedy(tmp_path):
    done = bench(tmp_path / "nowhere", tmp_path)
    assert done.returncode == 2
    assert "bench-tcp" in done.stderr and "./dev build" in done.stderr


@pytest.mark.parametrize("args, words", [(("--only", "zebra"), "no point is named zebra"),
                                         (("--rounds", "0"), "--rounds"),
                                         (("--table", "/nowhere/x"), "No such file")])
def test_wrong_usage_names_the_mistake(workers, tmp_path, args, words):
    done = bench(workers, tmp_path, *args)
    assert done.returncode == 2
    assert words in done.stderr


def test_an_earlier_run_is_shown_again(workers, tmp_path):
    first = bench(workers, tmp_path, *PART, "--rounds", "1")
    path = str(tmp_path / "results.json")
    again = bench("", tmp_path, "--table", path)
    assert again.returncode == 0
    assert again.stdout.strip() and again.stdout.strip() in first.stdout
    marked = bench("", tmp_path, "--markdown", path).stdout
    assert re.search(r"\| bandwidth, Write, 64 Ki, loopback / TCP \| >= 0.95 \| [\d.]+ \|", marked)


def test_the_page_is_one_file_that_needs_nothing(workers, tmp_path):
    pytest.importorskip("matplotlib")
    done = bench(workers, tmp_path, *PART, "--only", "latency/loopback/4", "--rounds", "2", page=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "index.html").read_text()
    assert page.count('<svg role="img" aria-label="') >= 2
    assert not re.search(r"<script|<link|<img|src=|@import|url\((?!#)", page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)) <= set(ids)
