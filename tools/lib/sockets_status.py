# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Reads the table of `anywarp sockets --status`. Used by the system and the sockets tests."""

import collections

Row = collections.namedtuple("Row", "pid program fd kind mode local peer octets_in octets_out send_credits "
                             "receive_credits rtt_us retransmits state why")


def rows(printed):
    """Of the fds below the head. Where no socket of the process is in iWARP mode, a sentence stands in the table's place; reasons() has
    what stands behind the table."""
    head, *lines = printed.partition("\n\n")[0].splitlines() or [""]
    return [Row(*line.split()) for line in lines] if head.split()[:1] == ["pid"] else []


def reasons(printed):
    """{word: how many connections are or were plain TCP for that reason}"""
    return {line.split()[1].rstrip(":"): int(line.split()[0]) for line in printed.partition("\n\n")[2].splitlines()[1:]}
