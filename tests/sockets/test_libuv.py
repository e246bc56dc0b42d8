# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""libuv's own tests of TCP, as they are (build-libuv makes them). Each shard has a network namespace of its
own, for their port is fixed."""

import subprocess

import conftest
import pytest

TESTS_OF_LIBUV = conftest.BUILD.parent / "libuv" / "build" / "uv_run_tests_a"
SHARDS = 4
SECONDS_MAX = 120 * conftest.program.SLOWNESS
# All that have to do with TCP, without those for Windows and, though it is there,
# watcher_cross_stop, which is of UDP. tcp_connect_timeout and tcp_close_while_connecting want a host
# outside that does not answer.
TESTS = """
active callback_stack close_fd close_order connect_unspecified connection_fail
connection_fail_doesnt_auto_close delayed_accept eintr_handling getsockname_tcp has_ref
iouring_pollhup ipc_heavy_traffic_deadlock_bug ipc_listen_after_write ipc_listen_before_write
ipc_send_recv_tcp ipc_send_recv_tcp_inprocess ipc_send_zero ipc_tcp_connection multiple_listen
not_readable_nor_writable_on_read_error not_writable_after_shutdown poll_bad_fdtype poll_close
poll_duplex poll_multiple_handles poll_nested_epoll poll_oob poll_unidirectional readable_on_eof
ref shutdown_close_tcp shutdown_eof shutdown_simultaneous shutdown_twice spawn_and_ping
spawn_tcp_server tcp6_local_connect_timeout tcp6_ping_pong tcp6_ping_pong_vec tcp_alloc_cb_fail
tcp_bind6_error_addrinuse tcp_bind6_error_addrnotavail tcp_bind6_error_fault tcp_bind6_error_inval
tcp_bind6_localhost_ok tcp_bind_error_addrinuse_connect tcp_bind_error_addrinuse_listen
tcp_bind_error_addrnotavail_1 tcp_bind_error_addrnotavail_2 tcp_bind_error_fault
tcp_bind_error_inval tcp_bind_invalid_flags tcp_bind_localhost_ok
tcp_bind_or_listen_error_after_close tcp_bind_writable_flags tcp_close tcp_close_accept
tcp_close_after_read_timeout tcp_close_reset_accepted tcp_close_reset_accepted_after_shutdown
tcp_close_reset_accepted_after_socket_shutdown tcp_close_reset_client
tcp_close_reset_client_after_shutdown tcp_connect6_error_fault
tcp_connect_error_after_write tcp_connect_error_fault tcp_create_early tcp_create_early_accept
tcp_create_early_bad_bind tcp_create_early_bad_domain tcp_flags tcp_listen_without_bind
tcp_local_connect_timeout tcp_oob tcp_open tcp_open_bound tcp_open_connected tcp_open_twice
tcp_ping_pong tcp_ping_pong_vec tcp_read_stop tcp_read_stop_start tcp_ref tcp_ref2 tcp_ref2b
tcp_ref3 tcp_ref4 tcp_reuseport tcp_rst tcp_shutdown_after_write tcp_try_write tcp_try_write_error
tcp_unexpected_read tcp_write_after_connect tcp_write_fail tcp_write_in_a_row
tcp_write_queue_order tcp_write_ready tcp_write_to_half_open_connection tcp_writealot
""".split()
# Each with its reason.
LEFT_OUT = {"plain": {}, "pass": {}, "iwarp": {
    "multiple_listen": "closes a listener with a client in it, and wants that one to connect first",
    "tcp_write_in_a_row": "wants room for one octet more wherever 10 MB have just gone out",
    "tcp_try_write_error": "wants the peer's close to be known before the buffers are full",
}}
SHARD = """
ip link set lo up
program=$1 log=$2
shift 2
mkdir "$log.d" && cd "$log.d"
passes() { timeout 30 "$program" "$1" >"$log" 2>&1; }
for test; do
    tries=1
    case " $chancy " in *" $test "*) tries=3 ;; esac
    until passes "$test"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { echo "failed: $test"; cat "$log"; break; }
    done
done
"""
# They depend on chance, so that one failure of them says nothing.
CHANCY = {
    "shutdown_eof": "wants a connection to come and go within 100 ms of its own timer, and the machine may be busy",
    "tcp_reuseport": "wants the kernel's hash not to give all of ten connections to one of two listeners: it does, once in 512",
}


def shards(tests):
    """Those with pipes have a fixed path, too: they are one shard."""
    others = [test for test in tests if not test.startswith("ipc_")]
    return [[test for test in tests if test.startswith("ipc_")],
            *(others[i::SHARDS] for i in range(SHARDS))]


@pytest.mark.skipif(bool(conftest.SANITIZER), reason="minutes under a sanitizer")
def test_libuv(mode):
    if not TESTS_OF_LIBUV.exists():
        pytest.skip("no build/libuv: tests/sockets/build-libuv makes it")
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode:
        pytest.skip("no network namespaces of our own")
    tests = [test for test in TESTS if test not in LEFT_OUT[mode.name]]
    runs = [mode.start(["unshare", "-rn", "sh", "-c", SHARD, "shard", TESTS_OF_LIBUV,
                        mode.logs / f"log{i}", *shard], UV_RUN_AS_ROOT="1", chancy=" ".join(CHANCY))
            for i, shard in enumerate(shards(tests))]
    for run in runs:
        assert run.wait_exit(SECONDS_MAX) == 0, run.report()
    failed = [line for run in runs for line in run.output().splitlines() if "failed: " in line]
    assert not failed, failed
