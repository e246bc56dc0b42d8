# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What is measured under TLS: the points, the certificates that are made for it, and who gets them."""

import json
import os
import stat
import subprocess

import pytest

import driver_path
import pair
import points
import tls
import values
from driver_path import bench

FILES = {"ANYWARP_TLS_CERT", "ANYWARP_TLS_KEY", "ANYWARP_TLS_CA"}


@pytest.fixture
def workers(tmp_path):
    folder = tmp_path / "workers"
    folder.mkdir()
    return driver_path.fake_workers(folder)


def test_every_point_stands_beside_plain_tls_and_raw_tcp():
    made = points.all_points("default", ["tls"])
    assert made and made == points.all_points("full", ["tls"]) and not points.all_points("short", ["tls"])
    known = tls.programs("/nowhere", "/nowhere")
    for point in made:
        by_name = {series.name: series for series in point.series}
        assert {"tcp", "tls"} <= {series.program for series in point.series}
        for series in point.series:
            assert series.program in known or series.program == "tcp"
            assert series.program != "verbs-tls" or by_name[series.reference].program == "tls"


def test_the_certificate_is_right_for_either_end_and_gone_afterwards():
    made = tls.Certificates()
    files = made.variables()
    assert set(files) == FILES and files == made.variables()
    for purpose in ("sslserver", "sslclient"):
        subprocess.run(["openssl", "verify", "-CAfile", files["ANYWARP_TLS_CA"], "-purpose", purpose, "-verify_hostname", tls.NAME,
                        files["ANYWARP_TLS_CERT"]], check=True, capture_output=True)
    folder = os.path.dirname(files["ANYWARP_TLS_KEY"])
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    del made
    assert not os.path.exists(folder)


def test_without_a_certificate_the_run_fails_with_openssls_words(monkeypatch):
    monkeypatch.setattr(tls, "KEY", ("-newkey", "nonsense"))
    with pytest.raises(pair.Failure, match="openssl req made no certificate: "):
        tls.Certificates().variables()


def test_series_run_in_turn_under_tls_where_they_are_to(workers, tmp_path):
    log = tmp_path / "log"
    done = bench(workers, tmp_path, "--only", f"tls-bandwidth/loopback/{values.MI}", "--rounds", "2", form="--full", FAKE_LOG=str(log))
    assert done.returncode == 0, done.stderr
    ran = [(words[0], "tls=require" in words) for words in map(str.split, log.read_text().splitlines())]
    assert ran == [("tcp", False), ("tls", False), ("tls", False), ("verbs", True), ("verbs", True), ("verbs", True)] * 2
    results = json.loads((tmp_path / "results.json").read_text())
    rows = [row for row in results["targets"] if row["point"].startswith("tls-bandwidth") and row["median"] is not None]
    assert len(rows) == 6 and all("plain TLS" in row["what"] for row in rows)


def test_without_openssls_headers_the_rest_is_measured(workers, tmp_path):
    (workers / "bench-tls").unlink()
    done = bench(workers, tmp_path, "--only", "tls-connect", "--rounds", "1", form="--full")
    assert done.returncode == 0, done.stderr
    assert "skipped: tls: no program" in done.stdout and "libssl-dev" in done.stdout
    series = {each["name"]: each for each in json.loads((tmp_path / "results.json").read_text())["points"][0]["series"]}
    assert "skipped" in series["tls-block"] and series["verbs"]["summary"]


def test_processor_time_of_a_connection():
    run = {"cpu": {"client_seconds": 0.1, "server_seconds": 0.2}, "parameters": {"count": 100}}
    assert values.take("cpu_per_connection", run) == pytest.approx(0.003)
    assert values.text("cpu_per_connection", 0.003) == "3000"
