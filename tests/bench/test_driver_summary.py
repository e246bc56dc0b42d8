# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The page's first sentences, and what the names of the series mean."""

import driver_path  # noqa: F401
import points
import summary

# They say by themselves what they are.
PERFTEST = {f"{op}_{kind}{suffix}" for op in ("write", "send", "read") for kind in ("bw", "lat") for suffix in ("", "-host")}


def results_of(**by_point):
    """GROUP=({series: {value: number}}): a point of 4 bytes of the loopback."""
    return {"points": [{"key": f"{group}/loopback/4", "series": [
        {"name": name, "summary": {value: {"median": number} for value, number in found.items()}}
        for name, found in series.items()]} for group, series in by_point.items()]}


def test_each_name_has_a_meaning_and_no_part_of_it_is_left_out():
    names = {series.name for point in points.all_points("full") for series in point.series} - PERFTEST
    for name in names:
        said = summary.meaning(name)
        assert said, name
        first = next(each for each in sorted(summary.FIRST, key=len, reverse=True) if name == each or name.startswith(f"{each}-"))
        rest = name[len(first) + 1:]
        for part in sorted(summary.FURTHER, key=len, reverse=True):
            rest = rest.replace(part, "")
        assert not rest.strip("-") or first in ("ucx", "ucx-shm", "libfabric"), name


def test_a_sentence_has_its_figures_or_is_left_out():
    whole = {"send-spin": {"latency": 4.03}, "send-event": {"latency": 17}, "tcp-spin": {"latency": 3.9}, "tcp-block": {"latency": 15}}
    said = summary.sentences(results_of(latency=whole))
    assert said == ["A message of 4 bytes takes 4.03 µs one way between two ends that poll, and 17.00 µs between two that sleep; "
                    "over raw TCP it takes 3.90 µs and 15.00 µs."]
    del whole["tcp-block"]
    assert summary.sentences(results_of(latency=whole)) == []
    assert summary.sentences({"points": []}) == []


def test_every_figure_is_one_that_the_full_form_has():
    full = {points.key(point): point for point in points.all_points("full")}
    for _, wanted in summary.SENTENCES:
        for key, name, value in wanted.values():
            assert name in {series.name for series in full[key].series}
            assert value in points.GROUPS[full[key].group].values
