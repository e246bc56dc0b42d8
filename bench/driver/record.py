# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Reading one point of results.json (results.py says what it holds)."""

import values


def find_series(point, name):
    return next((each for each in point["series"] if each["name"] == name), None)


def numbers(series, value):
    """One number for each round; None where it failed or has no such number."""
    if not series:
        return []
    return [values.take(value, each["result"]) if "result" in each else None
            for each in series["rounds"]]


def has_failed(series):
    return any("failure" in each for each in series["rounds"])


def failures(results):
    """(point's key, series' name, text) of every run that failed."""
    return [(point["key"], series["name"], each["failure"]) for point in results["points"]
            for series in point["series"] for each in series["rounds"] if "failure" in each]
