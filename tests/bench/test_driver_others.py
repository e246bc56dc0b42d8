# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What libfabric's and UCX's programs print, as captured from libfabric 1.17.0 and UCX 1.13.1."""

import driver_path  # noqa: F401
import beds
import others
import pair
import pytest

PINGPONG_SMALL = """\
bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
4       5k      =5k      39k         0.07s      0.58       6.95       0.14
"""
PINGPONG_64K = """\
bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
64k     5k      =5k      625m        0.66s    994.23      65.92       0.02
"""
PERFTEST_BANDWIDTH = """\
iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
3000,5.888,34.413,34.413,1816.19,1816.19,29059,29059
"""
PERFTEST_LATENCY = """\
iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
 113,783.602,2064.854,2064.854,484.30,484.30,484,484
"""


def test_pingpong_gives_the_mean_of_half_a_round_trip():
    assert others.parse_pingpong(PINGPONG_SMALL, 4)["usec"] == {"mean": 6.95}
    assert others.parse_pingpong(PINGPONG_64K, 65536)["usec"] == {"mean": 65.92}


@pytest.mark.parametrize("output", ["", "error: no provider\n", PINGPONG_64K,
                                    PINGPONG_SMALL + "4 5k\n"])
def test_pingpong_without_the_row_is_a_failure(output):
    with pytest.raises(pair.Failure, match="no row for 4 bytes"):
        others.parse_pingpong(output, 4)


def test_perftest_bandwidth_is_payload_bytes_a_second():
    result = others.parse_perftest(PERFTEST_BANDWIDTH, "tag_bw", 65536)
    assert result["octets_per_second"] == 29059 * 65536
    # Its MB are 2^20 bytes: the two columns say the same.
    assert result["octets_per_second"] == pytest.approx(1816.19 * 2**20, rel=1e-4)


def test_perftest_latency_is_half_a_round_trip_whatever_stands_before_it():
    result = others.parse_perftest(PERFTEST_LATENCY, "tag_lat", 1 << 20)
    assert result["usec"] == {"median": 783.602, "mean": 2064.854}


@pytest.mark.parametrize("output", ["", PERFTEST_BANDWIDTH.splitlines()[0], "12,3\n"])
def test_perftest_without_a_result_is_a_failure(output):
    with pytest.raises(pair.Failure, match="printed no result"):
        others.parse_perftest(output, "tag_bw", 64)


def test_iterations_follow_the_size_within_bounds():
    small, large = others.iterations(4, 0.25, 2), others.iterations(1 << 20, 0.25, 1)
    assert others.ITERATIONS_MIN <= large < small <= others.BY_TCP.iterations_max
    assert others.iterations(1 << 30, 0.25, 1) == others.ITERATIONS_MIN
    assert others.iterations(4, 0.25, 1, others.BY_MEMORY) > others.iterations(4, 0.25, 1)


@pytest.mark.parametrize("name, package", [("ucx", "ucx-utils"), ("ucx-shm", "ucx-utils"), ("libfabric", "libfabric-bin"),
                                           ("libfabric-shm", "libfabric-bin")])
def test_a_missing_program_names_its_package(monkeypatch, name, package):
    monkeypatch.setenv("PATH", "")
    assert package in others.programs()[name].missing()


def fake_fi_info(folder, text):
    """And a fi_pingpong, which is not run."""
    for name in ("fi_info", "fi_pingpong"):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)


def test_a_library_without_the_provider_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    fake_fi_info(tmp_path, '[ "$2" != shm ] || { echo "fi_getinfo: -61 (No data available)" >&2; exit 61; }')
    found = others.programs()
    assert found["libfabric-shm"].missing() == \
        "libfabric offers no provider shm here: fi_getinfo: -61 (No data available)"
    assert found["libfabric"].missing() is None


def test_ucx_has_the_transports_of_its_row_and_no_other():
    bed = beds.LOOPBACK
    found = {name: each.settings(bed)["UCX_TLS"] for name, each in others.programs().items() if name.startswith("ucx")}
    assert found == {"ucx": "tcp", "ucx-shm": "posix,cma,self"}
