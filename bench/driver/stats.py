# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Medians with their spread, and ratios of two series that ran in turn."""

import statistics


def summary(values):
    """{median, min, max, count}, or None when there is nothing to sum up."""
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values),
            "count": len(values)}


def paired_ratios(ours, theirs):
    """ours / theirs round by round: what else the machine did weighs on the two runs of a round
    alike, so their ratio is steadier than either. A round that lacks one of them (None) is left
    out."""
    return [our / their for our, their in zip(ours, theirs)
            if our is not None and their]
