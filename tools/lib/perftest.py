# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Reads the output of perftest's programs. Used by the system and the ecosystem tests."""

import math
import re


def table(printed):
    """{size in octets: the row's figures} of a perftest report. Where it cannot find its processor's clock
    rate, as on a loaded machine, times are infinite and bandwidths 0: those figures say nothing."""
    rows = re.findall(r"(?m)^ *(\d+)((?:[ \t]+(?:[\d.]+|inf|-?nan))+)[ \t]*$", printed)
    unknown = "Correlation coefficient" in printed
    return {int(size): [math.inf if unknown else float(figure) for figure in figures.split()]
            for size, figures in rows}
