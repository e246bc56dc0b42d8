# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Medians, ratios, and the numbers that are taken of a run's JSON."""

import driver_path  # noqa: F401
import stats
import values


def test_summary_of_an_even_count_is_between_the_middle_two():
    assert stats.summary([4, 1, 3, 2]) == {"median": 2.5, "min": 1, "max": 4, "count": 4}


def test_summary_of_nothing_is_none():
    assert stats.summary([]) is None


def test_paired_ratios_are_of_the_same_round():
    assert stats.paired_ratios([2, 8, 9], [1, 2, 3]) == [2, 4, 3]


def test_paired_ratios_leave_out_a_round_that_lacks_one():
    assert stats.paired_ratios([2, None, 9, 5], [1, 2, None]) == [2]


def test_paired_ratios_do_not_divide_by_zero():
    assert stats.paired_ratios([2, 3], [0, 1]) == [3]


def test_cpu_is_of_both_ends_and_for_each_gb():
    run = {"octets": 2e9, "messages": 4e6, "cpu": {"client_seconds": 1, "server_seconds": 3}}
    assert values.take("cpu_per_gb", run) == 2
    assert values.take("cpu_per_million", run) == 1


def test_a_number_that_a_run_lacks_is_none():
    assert values.take("cpu_per_gb", {"octets": 1, "cpu": {"client_seconds": 1}}) is None
    assert values.take("latency", {}) is None
    assert values.take("memory", {"octets_per_connection": None}) is None


def test_memory_is_that_of_the_larger_end():
    assert values.take("memory", {"octets_per_connection": {"client": 7, "server": 9}}) == 9


def test_octets_are_named_in_ki_and_mi():
    assert [values.octets(count) for count in (1, 64, 1024, 65536, 1 << 20, 1500)] == [
        "1", "64", "1 Ki", "64 Ki", "1 Mi", "1500"]
