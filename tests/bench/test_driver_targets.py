# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The targets: which two series each compares, and on which side of its bound it has to be."""

import driver_path  # noqa: F401
import points
import pytest
import targets


def rounds(*runs):
    return [{"result": run} for run in runs]


def results_of(key, cores=8, **series):
    return {"machine": {"cores": cores}, "skipped": [], "points": [
        {"key": key, "series": [{"name": name.replace("_", "-"), "rounds": runs}
                                for name, runs in series.items()]}]}


def row(results, text):
    return next(each for each in targets.all_rows(results) if each["what"].startswith(text))


def bandwidth(*numbers):
    return rounds(*({"octets_per_second": number} for number in numbers))


def latency(*numbers):
    return rounds(*({"usec": {"median": number, "max": number}} for number in numbers))


def test_every_target_names_a_point_and_series_that_the_full_form_has():
    full = {points.key(point): {series.name for series in point.series}
            for point in points.all_points("full")}
    for target in targets.all_targets():
        assert target.point in full
        asked = set()
        spy = {"series": SpyList(asked)}
        target.measure(spy)
        assert asked and asked <= full[target.point], target.what


class SpyList(list):
    """Notes which series a target looks for."""

    def __init__(self, asked):
        super().__init__()
        self.asked = asked

    def __iter__(self):
        asked = self.asked

        class Any:
            def __eq__(self, name):
                asked.add(name)
                return False

        return iter([{"name": Any()}])


@pytest.mark.parametrize("ours, met", [((94, 96, 97), True), ((94, 94, 97), False)])
def test_bandwidth_is_met_from_its_bound_upwards(ours, met):
    found = row(results_of("bandwidth/loopback/65536", write=bandwidth(*ours),
                           tcp=bandwidth(100, 100, 100)), "bandwidth, Write, 64 Ki, loopback")
    assert found["met"] is met
    assert (found["min"], found["max"]) == (ours[0] / 100, ours[2] / 100)


@pytest.mark.parametrize("ours, met", [((9, 12.5, 20), True), ((9, 12.6, 20), False)])
def test_latency_is_met_up_to_its_bound(ours, met):
    found = row(results_of("latency/loopback/4", send_spin=latency(*ours),
                           tcp_spin=latency(10, 10, 10)), "latency, 4 bytes, Send, CQ polled")
    assert found["met"] is met


@pytest.mark.parametrize("slowest, met", [((100, 4999, 200), True), ((100, 5001, 200), False)])
def test_the_slowest_write_of_any_round_counts(slowest, met):
    found = row(results_of("worst/loopback/4", write=latency(*slowest)), "slowest of 20,000")
    assert found["met"] is met
    assert found["decides"] == max(slowest) / 1000


def test_idle_memory_is_what_is_beyond_raw_tcp():
    def idle(octets):
        return rounds({"octets_per_connection": {"client": 0, "server": octets}})

    found = row(results_of("idle/loopback/10000", verbs=idle(9000), tcp=idle(500)), "10,000 idle: bytes")
    assert found["median"] == 8500 and found["met"] is False


@pytest.mark.parametrize("cores, shown", [(2, False), (3, False), (4, True)])
def test_threads_have_a_row_only_where_they_can_be_seen(cores, shown):
    def rate(number):
        return rounds({"messages_per_second": number})

    found = targets.all_rows(results_of("threads/loopback/2", cores, send_1=rate(1), send_2=rate(1.9)))
    assert [each["met"] for each in found if each["what"].startswith("message rate, 2 threads")] == [True] * shown


def test_what_was_not_measured_says_why():
    failed = results_of("bandwidth/loopback/65536", write=[{"failure": "time-out"}],
                        tcp=bandwidth(1))
    assert row(failed, "bandwidth, Write, 64 Ki, loopback")["note"] == "a run failed"
    assert row(failed, "bandwidth, Write, 1 Mi, loopback")["note"] == "not in this run"
    failed["skipped"] = [{"what": "veth-1500", "why": "no namespaces"}]
    assert row(failed, "bandwidth, Write, 64 Ki, veth")["note"] == "no namespaces"
