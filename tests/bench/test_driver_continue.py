# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A run that ended in the middle, by whatever: what was measured is in results.json, and --continue
measures the rest."""

import json
import os
import signal
import subprocess
import time

import driver_path
import pytest
from driver_path import bench

THREE = ("--only", "worst", "--only", "connect", "--only", "hotspot", "--rounds", "2")
THREE_KEYS = ["worst/loopback/4", "connect/loopback/300", "hotspot/loopback/512"]
SECONDS_MAX = 30 * driver_path.program.SLOWNESS


@pytest.fixture
def workers(tmp_path):
    folder = tmp_path / "workers"
    folder.mkdir()
    return driver_path.fake_workers(folder)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def load(folder):
    return json.loads((folder / "results.json").read_text())


def ran(log):
    """The runs so far, each as its line."""
    return log.read_text().splitlines() if log.exists() else []


def keys(results):
    return [point["key"] for point in results["points"]]


def end_in_the_second_point(workers, folder, log, signum):
    """Ends a run by the signal once its second point is under way; gives the exit status."""
    run = subprocess.Popen(driver_path.command(workers, folder, *THREE), stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, env={**os.environ, "FAKE_LOG": str(log),
                                                           "FAKE_WORKER": "verbs:connect:hang"})
    deadline = time.monotonic() + SECONDS_MAX
    while not any("verbs connect" in line for line in ran(log)):
        assert time.monotonic() < deadline and run.poll() is None
        time.sleep(0.02)
    run.send_signal(signum)
    return run.wait(SECONDS_MAX)


def proceed(workers, folder, log, *args):
    """Continues the run; gives it with the tests that it ran."""
    before = len(ran(log))
    done = bench(workers, folder, *(args or THREE), "--continue", FAKE_LOG=str(log))
    return done, [line.split()[1] for line in ran(log)[before:]]


@pytest.mark.parametrize("signum, status", [(signal.SIGKILL, -signal.SIGKILL),
                                            (signal.SIGTERM, 130), (signal.SIGINT, 130)])
def test_what_was_measured_stays_and_the_rest_follows(workers, tmp_path, log, signum, status):
    assert end_in_the_second_point(workers, tmp_path, log, signum) == status
    first = load(tmp_path)
    assert first["settings"]["interrupted"]
    assert keys(first)[:1] == THREE_KEYS[:1]
    done, tests = proceed(workers, tmp_path, log)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(dict.fromkeys(tests)) == ["connect", "hotspot"] and tests.count("connect") == 6
    both = load(tmp_path)
    assert keys(both) == THREE_KEYS
    assert both["points"][0] == first["points"][0]
    assert all(len(series["rounds"]) == 2 for point in both["points"] for series in point["series"])
    assert not both["settings"]["interrupted"]
    assert both["settings"]["started"] == first["settings"]["started"]
    assert both["settings"]["took_seconds"] >= first["settings"]["took_seconds"]


def test_a_run_that_is_over_is_shown_again(workers, tmp_path, log):
    assert bench(workers, tmp_path, *THREE, FAKE_LOG=str(log)).returncode == 0
    before = load(tmp_path)["points"]
    done, tests = proceed(workers, tmp_path, log)
    assert (done.returncode, tests) == (0, []), done.stderr
    assert load(tmp_path)["points"] == before


def test_a_point_that_failed_is_not_missing(workers, tmp_path, log):
    assert bench(workers, tmp_path, *THREE, FAKE_LOG=str(log),
                 FAKE_WORKER="verbs:connect:exit").returncode == 1
    done, tests = proceed(workers, tmp_path, log)
    assert (done.returncode, tests) == (1, [])


def refusal(workers, folder, log, *args):
    """What is said when a run is not continued; results.json is left alone."""
    before = (folder / "results.json").read_bytes()
    done, tests = proceed(workers, folder, log, *args)
    assert (done.returncode, tests) == (2, [])
    assert (folder / "results.json").read_bytes() == before
    return done.stderr


@pytest.fixture
def half_a_run(workers, tmp_path, log):
    end_in_the_second_point(workers, tmp_path, log, signal.SIGKILL)
    return tmp_path


@pytest.mark.parametrize("args, words", [
    (THREE[:-1] + ("3",), "rounds was 2 and is 3"), (THREE[2:], "only was"),
    (THREE + ("--full",), "form was short and is full")])
def test_other_settings_are_refused(workers, half_a_run, log, args, words):
    if "--full" in args:
        done = bench(workers, half_a_run, *THREE, "--continue", form="--full")
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    else:
        assert words in refusal(workers, half_a_run, log, *args)


def test_another_build_is_refused(workers, half_a_run, log):
    with open(workers / "bench-verbs", "a", encoding="ascii") as file:
        file.write("# another build\n")
    assert "build was" in refusal(workers, half_a_run, log)


def test_another_machine_is_refused(workers, half_a_run, log):
    found = load(half_a_run)
    found["machine"]["cores"] = 4711
    (half_a_run / "results.json").write_text(json.dumps(found))
    assert "cores was 4711 and is" in refusal(workers, half_a_run, log)


@pytest.mark.parametrize("text, words", [(None, "No such file"), ("{", "is no JSON")])
def test_where_there_is_nothing_to_continue_it_says_so(workers, tmp_path, text, words):
    if text:
        (tmp_path / "results.json").write_text(text)
    done = bench(workers, tmp_path, *THREE, "--continue")
    assert done.returncode == 2 and words in done.stderr, done.stderr


def test_a_new_run_leaves_the_earlier_one(workers, tmp_path):
    """Its page, too, under names of their own."""
    one = ("--only", "connect", "--rounds", "1")
    assert bench(workers, tmp_path, *one).returncode == 0
    (tmp_path / "index.html").write_text("a page")
    before = (tmp_path / "results.json").read_bytes()
    done = bench(workers, tmp_path, *one)
    kept, = tmp_path.glob("results-*.json")
    assert done.returncode == 0 and kept.read_bytes() == before and str(kept) in done.stderr
    page, = tmp_path.glob("index-*.html")
    assert page.read_text() == "a page" and page.stem[len("index"):] == kept.stem[len("results"):]
    assert not (tmp_path / "results.json").samefile(kept)
