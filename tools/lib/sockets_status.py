# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Reads the table of `anywarp sockets --status`. Used by the system and the sockets tests."""

import collections

Row = collections.namedtuple("Row", "fd mode peer octets_in octets_out send_credits receive_credits state")


def rows(printed):
    """Of the fds below the head. There is none when no socket of the process was in iWARP mode."""
    return [Row(*line.split()) for line in printed.splitlines()[1:]]
