# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What perftest's programs print, as captured from perftest 4.5."""

import driver_path  # noqa: F401
import others_perftest as perftest
import pair
import pytest

BANDWIDTH = """\
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 1048576    2500             1394.46            1076.63\t\t   0.001077
---------------------------------------------------------------------------------------
"""
LATENCY = """\
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 4       500          17.05          37105.19      19.65    \t       4714.47     \t7830.83\t\t31034.80 \t\t37105.19
---------------------------------------------------------------------------------------
"""


def test_bandwidth_is_payload_bytes_a_second():
    result = perftest.parse(BANDWIDTH, "ib_write_bw", 1 << 20)
    assert (result["octets_per_second"], result["iterations"]) == (1076.63 * (1 << 20), 2500)


def test_latency_is_half_a_round_trip_also_of_a_read():
    assert perftest.parse(LATENCY, "ib_send_lat", 4)["usec"] == {"median": 19.65, "mean": 4714.47, "p99": 31034.8}
    assert perftest.parse(LATENCY, "ib_read_lat", 4)["usec"]["median"] == 19.65 / 2


@pytest.mark.parametrize("output", ["", "Unable to init the socket connection\n", LATENCY, BANDWIDTH + BANDWIDTH])
def test_no_row_is_a_failure(output):
    with pytest.raises(pair.Failure, match="ib_write_bw printed no row for 1048576"):
        perftest.parse(output, "ib_write_bw", 1 << 20)


def test_iterations_fill_the_time():
    assert perftest.iterations("ib_send_bw", 1 << 20, 0.5) == int(0.5 * 3e9 / (1 << 20))
    assert perftest.iterations("ib_send_lat", 4, 0.5) == 5000
    assert perftest.iterations("ib_send_bw", 1 << 30, 0.5) == perftest.ITERATIONS_MIN


def test_a_missing_program_names_the_package(monkeypatch):
    monkeypatch.setenv("PATH", "")
    missing = perftest.Perftest("", {}).missing()
    assert "ib_write_bw" in missing and "package perftest" in missing


def test_the_settings_are_in_its_environment(monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/theirs")
    assert perftest.Perftest("/ours", {"ANYWARP_HOST_PATH": "auto"}).env == \
        {"ANYWARP_HOST_PATH": "auto", "LD_LIBRARY_PATH": "/ours:/theirs"}
