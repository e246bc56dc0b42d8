# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""How a TCP socket behaves, row by row (contract_*.c): the same in all modes."""

import os
import subprocess

import conftest
import pytest

CONTRACT = conftest.BUILD / "tests" / "contract"
ROWS = subprocess.run([CONTRACT, "--list"], capture_output=True, text=True, check=True,
                      env={"ASAN_OPTIONS": "detect_leaks=0"}).stdout.split()

SEVERED = "a child that is forked beside a connect of its parent's threads has a socket that is not connected"
# What a mode does otherwise, each with its reason.
OTHERWISE = {"plain": {}, "pass": {}, "iwarp": {
    **dict.fromkeys(["unseen_close_then_file", "unseen_close_then_socket"],
                    "the server's Reply, which nobody has read, makes a reset of a close that no wrapper sees"),
    "shutdown_in_a_child_beside_connect": SEVERED,
}, "proxy": {
    "shutdown_in_a_child_beside_connect": SEVERED,
    "low_water": "the program's end is a unix socket, whose poll takes no notice of SO_RCVLOWAT",
    "low_water_before": "a unix socket that stands in for the program's begins with a mark of one byte",
    "reset_within_a_write": "the program's end is a unix socket, where the next write gets EPIPE",
    "send_timeout_of_a_whole_write": "of a unix socket SO_SNDTIMEO holds for each wait of a write",
    **dict.fromkeys(["peek_waits_for_all", "peek_waits_for_much", "peek_counts_all"], "a look at a unix socket waits for one byte"),
    **dict.fromkeys(["reset_is_an_error", "reset_is_left_to_poll", "reset_outlives_a_count",
                     "reset_among_messages"],
                    "the program's end is a unix socket, of which poll tells no error"),
}, "auto": {}, "pair": {
    "ioctl_unsent": "the peer's kernel has what was written",
    "low_water": "the poll of a unix socket takes no notice of SO_RCVLOWAT",
    "exec_behind_many_fds": "a program that has half of its fd numbers in use gets no pair",
    "send_timeout_of_a_whole_write": "of a unix socket SO_SNDTIMEO holds for each wait of a write",
    **dict.fromkeys(["peek_waits_for_all", "peek_waits_for_much", "peek_counts_all"], "a look at a unix socket waits for one byte"),
    **dict.fromkeys(["reset_within_a_write", "reset_within_a_read", "reset_within_a_call_told_as_option"],
                    "a unix socket loses an error behind bytes of the same call"),
    **dict.fromkeys(["reset_is_an_error", "reset_is_left_to_poll", "reset_outlives_a_count", "reset_among_messages"],
                    "poll of a unix socket tells no error"),
}}
OTHERWISE["tls"] = {
    **OTHERWISE["proxy"],
    "linger_aborts": "a reset within the handshake is a failed handshake: EPROTO",
}
OTHERWISE["tls_plain"] = {
    **OTHERWISE["tls"],
    **dict.fromkeys([row for row in ROWS if row.startswith("urgent_")], "TLS has no urgent bytes"),
}
OTHERWISE["tls_record"] = {
    **OTHERWISE["iwarp"],
    **dict.fromkeys(["connect_before_accept", "close_before_accept", "connect_nonblocking", "epoll_before_connect",
                     "epoll_in_an_old_sandbox", "exit_delivers", "exit_after_close"],
                    "a client has room, and its writes go on, when the server's program has accepted: the handshake is the programs' own"),
    "exec_closes": "an exec that closes a connection's last fd sends no close_notify: the peer takes TCP's end for a reset",
    "reset_is_an_error": "a reset that a write or a look has told is told to a read as well, for want of close_notify",
}
# Of records, stdio and processes without the library know nothing: the proxy carries what they have, and what a process has at its
# exec before the client's Request has come.
BRIDGED = {"stdio_streams", "peek_offset_before", "untouched", "inetd_style", "parent_closes_later", "pass_out_of_bounds", "pass_within", "pass_to_process",
           "pass_to_process_without", "first_printf", "exec_in_place"}
# A handshake does not move: connections that have not begun at a fork are the proxy's.
BRIDGED_UNDER_TLS = {"dup_untouched", "first_beside_file",
                     *(row for row in ROWS if any(word in row for word in ("fork", "child", "exec")))}
# A process that may write no file has no arena, and writes no log.
SILENT = {"no_files"}
NO_RECORD = "is no record"
# Another thread's call, which connect lets wait for as long as it waits for the server, is what makes the server accept.
BESIDE_CONNECT = {"poll_beside_connect", "select_beside_connect", "shutdown_beside_connect", "fork_beside_connect", "connect_restarts",
                  "shutdown_in_a_child_beside_connect"}
MODES = conftest.MODES if conftest.SANITIZER and "ANYWARP_MODES" not in os.environ else conftest.ALL_MODES


@pytest.mark.parametrize("mode", MODES, indirect=True)
@pytest.mark.parametrize("row", ROWS)
def test_row(mode, row):
    if row in OTHERWISE[mode.name]:
        pytest.skip(OTHERWISE[mode.name][row])
    env = {"ANYWARP_LOG": "info"} if mode.name in ("iwarp", "tls_record") and row not in SILENT else {}
    if row in BESIDE_CONNECT:
        env["ANYWARP_SOCKETS_PAIR_MS"] = "10"
    run = mode.start([CONTRACT, row], **env)
    assert run.wait_exit() == 0, run.report()
    bridged = BRIDGED | BRIDGED_UNDER_TLS if mode.name == "tls_record" else BRIDGED
    assert row in bridged or NO_RECORD not in run.output(), run.report()
