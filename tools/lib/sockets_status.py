# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Reads the table of `anywarp sockets --status`. Used by the system and the sockets tests."""

import collections

Row = collections.namedtuple("Row", "pid program fd kind mode local peer octets_in octets_out send_credits "
                             "receive_credits rtt_us retransmits state")


def rows(printed):
    """Of the fds below the head. Where no socket of the process is in iWARP mode, a sentence stands in the table's place."""
    head, *lines = printed.splitlines() or [""]
    return [Row(*line.split()) for line in lines] if head.split()[:1] == ["pid"] else []
