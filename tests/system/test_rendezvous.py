# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Extended sockets over a librdmacm without anywarp's own calls, as rdma-core's is ('bare'): either end, and both,
and peers that mean harm. interop/test_extended.py does it with rdma-core's."""

import contextlib
import errno
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys

import conftest
import iwarp
import pytest

ONESIDED = conftest.BUILD / "examples" / "onesided"
LIB, BARE = conftest.BUILD / "lib", conftest.BUILD / "tests" / "bare"
SOCKETS = LIB / "libanywarp-sockets.so"
THREADS = "thread" in conftest.SANITIZER
SECONDS_MAX = conftest.program.SECONDS_MAX
LOCALHOST = "127.0.0.1"
TEXT = "so be it"
QUESTION = b"aw RDMA CM asks?" + bytes([1, 0, 0, 0])
ANSWER = b"aw RDMA CM place"
ANSWER_OCTETS = 36
READY, NO_DEVICE, NONE, VERSION = range(4)
RESET = struct.pack("ii", 1, 0)


class Programs:
    def __init__(self, logs):
        self.logs, self.started = logs, []

    def run(self, argv, preload=None, **more):
        # As in test_onesided.py: the thread sanitizer does not know what a socket's octet orders.
        env = {**conftest.environment(self.logs), "ANYWARP_LOG": "debug", "TSAN_OPTIONS": "report_bugs=0", **more}
        if THREADS:  # its socket(2) stands between librdmacm's sockets and who is to leave them alone
            env["ANYWARP_SOCKETS_RULES"] = "off"
        if preload:
            env["LD_PRELOAD"] = " ".join(filter(None, [env.get("LD_PRELOAD"), str(preload)]))
        self.started.append(conftest.program.Program(argv, env=env))
        return self.started[-1]

    def start(self, kind, port, *more):
        library = f"{BARE}:{LIB}" if kind == "bare" else str(LIB)
        return self.run([str(ONESIDED), str(port), *more], LD_LIBRARY_PATH=library)

    def serve(self, kind, port):
        server = self.start(kind, port)
        server.wait_listening(port)
        return server

    def ask(self, kind, port):
        return self.start(kind, port, LOCALHOST, TEXT)

    def report(self):
        return "\n".join(each.report() for each in self.started)

    def close(self):
        for each in self.started:
            each.close()


@pytest.fixture
def programs(tmp_path):
    opened = Programs(tmp_path)
    yield opened
    opened.close()


def test_bare_is_bare():
    """It is what it says, or the rest would show nothing."""
    for folder, has in ((LIB, True), (BARE, False)):
        names = subprocess.run(["nm", "-D", "--defined-only", str(folder / "librdmacm.so.1")], check=True,
                               capture_output=True, text=True).stdout
        assert " rdma_connect@@" in names
        assert (" anywarp_cm_initiate@@" in names) == has


@pytest.mark.parametrize("server,client", [("bare", "bare"), ("bare", "ours"), ("ours", "bare"), ("ours", "ours")])
def test_ends_meet(programs, port, server, client):
    serving = programs.serve(server, port)
    asking = programs.ask(client, port)
    assert asking.wait_exit(SECONDS_MAX) == 0, programs.report()
    assert serving.wait_exit(SECONDS_MAX) == 0, programs.report()
    assert f"the client wrote: {TEXT}" in serving.output()
    agreed = re.search(rf"agreed peer {LOCALHOST}:(\d+) as initiator", asking.output())
    assert (int(agreed[1]) == port) == (server == client == "ours"), programs.report()


@pytest.mark.skipif(THREADS, reason="programs with the preloaded library are not run with it")
def test_proxy_has_its_own_library(programs, port):
    """Whatever LD_LIBRARY_PATH says: it needs what only ours has. The scene checks that it is iWARP."""
    peer = pathlib.Path(__file__).with_name("sockets_peer.py")
    more = {"LD_LIBRARY_PATH": f"{BARE}:{LIB}", "ANYWARP_SOCKETS_RULES": "off"}
    serving = programs.run([sys.executable, str(peer), "serve", "delayed", str(port)], SOCKETS, **more)
    serving.wait_listening(port)
    asking = programs.run([sys.executable, str(peer), "connect", "delayed", str(port)], SOCKETS, **more)
    assert asking.wait_exit(SECONDS_MAX) == 0, programs.report()
    assert serving.wait_exit(SECONDS_MAX) == 0, programs.report()


def expect_error(program, number):
    assert program.wait_exit(SECONDS_MAX) == 1, program.report()
    assert f"no connection: {os.strerror(number)}" in program.output(), program.report()


def answer(status=READY, port=1, version=1, key=ANSWER):
    return struct.pack(">16sBBH16s", key, version, status, port, bytes(16))


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    sock.close()


@pytest.mark.parametrize("said,error", [
    (answer(NO_DEVICE), errno.ENODEV), (answer(NONE), errno.ECONNREFUSED), (answer(200), errno.ECONNREFUSED),
    (answer(VERSION), errno.EPROTONOSUPPORT), (answer(version=2), errno.EPROTO), (answer(port=0), errno.EPROTO),
    (answer(key=b"x" * 16), errno.EPROTO), (answer()[:35], errno.ECONNRESET), (b"", errno.ECONNRESET),
    (answer(port=1), errno.ECONNREFUSED)], ids=lambda value: str(value)[-9:])
def test_passive_end_means_harm(programs, port, said, error):
    with socket.create_server((LOCALHOST, port)) as listener:
        asking = programs.ask("bare", port)
        with listener.accept()[0] as sock:
            sock.settimeout(SECONDS_MAX)
            assert sock.recv(len(QUESTION), socket.MSG_WAITALL) == QUESTION
            sock.sendall(said)
            sock.shutdown(socket.SHUT_WR)
            expect_error(asking, error)


@pytest.mark.parametrize("private", [
    answer(NO_DEVICE), answer(NONE), answer(version=3), answer()[:20], b"", b"x" * 512], ids=len)
def test_rejecting_end_means_harm(programs, port, private):
    """An MPA Reply that rejects, to an end that has sent an MPA Request."""
    with socket.create_server((LOCALHOST, port)) as listener:
        asking = programs.ask("ours", port)
        with listener.accept()[0] as sock:
            sock.settimeout(SECONDS_MAX)
            sock.recv(4096)
            sock.sendall(iwarp.start_frame(iwarp.KEY_REPLY, iwarp.CRC | iwarp.REJECT, 1, private))
            expect_error(asking, errno.ENODEV if private == answer(NO_DEVICE) else errno.ECONNREFUSED)


def over_long_request():
    return iwarp.KEY_REQUEST + bytes([iwarp.CRC, 1]) + struct.pack(">H", 513) + bytes(513)


@pytest.mark.parametrize("kind,said,error", [
    ("bare", b"GET / HTTP/1.1\r\n\r\n", errno.EPROTO), ("ours", b"GET / HTTP/1.1\r\n\r\n", errno.EPROTO),
    ("ours", b"", errno.ECONNRESET), ("bare", QUESTION[:15], errno.ECONNRESET),
    ("ours", QUESTION[:19], errno.ECONNRESET), ("bare", over_long_request(), errno.EPROTO),
    ("bare", over_long_request()[:18] + struct.pack(">H", 512) + bytes(511), errno.ECONNRESET)],
    ids=["http", "http", "nothing", "a key", "a question", "a long request", "a request"])
def test_active_end_means_harm(programs, port, kind, said, error):
    serving = programs.serve(kind, port)
    with socket.create_connection((LOCALHOST, port), SECONDS_MAX) as sock:
        sock.sendall(said)
        with contextlib.suppress(OSError):  # it may have been reset by now
            sock.shutdown(socket.SHUT_WR)
        expect_error(serving, error)


def test_question_of_another_version(programs, port):
    serving = programs.serve("ours", port)
    with socket.create_connection((LOCALHOST, port), SECONDS_MAX) as sock:
        sock.sendall(QUESTION[:16] + bytes([9, 0, 0, 0]))
        said = sock.recv(ANSWER_OCTETS, socket.MSG_WAITALL)
        assert said == answer(VERSION, port=0)
        expect_error(serving, errno.EPROTONOSUPPORT)


def place_of(said):
    key, version, status, port, ticket = struct.unpack(">16sBBH16s", said)
    assert (key, version, status) == (ANSWER, 1, READY) and port and ticket != bytes(16)
    return port, ticket


def is_rejected(port, private):
    """An MPA Request with this private data is answered by a Reply with R."""
    with socket.create_connection((LOCALHOST, port), SECONDS_MAX) as sock:
        sock.sendall(iwarp.start_frame(iwarp.KEY_REQUEST, iwarp.CRC, 1, private))
        reply = sock.recv(iwarp.START_OCTETS, socket.MSG_WAITALL)
        assert reply.startswith(iwarp.KEY_REPLY)
        return bool(reply[16] & iwarp.REJECT)


@pytest.mark.parametrize("kind", ["bare", "ours"])
def test_strangers_have_no_ticket(programs, port, kind):
    """They are turned away, many of them, and who asked is still awaited, until he leaves."""
    serving = programs.serve(kind, port)
    with socket.create_connection((LOCALHOST, port), SECONDS_MAX) as sock:
        sock.sendall(QUESTION)
        place, ticket = place_of(sock.recv(ANSWER_OCTETS, socket.MSG_WAITALL))
        wrong = ticket[:15] + bytes([ticket[15] ^ 1])
        for private in [b"", bytes(40), bytes(55), bytes(40) + wrong] * 5:
            assert is_rejected(place, private)
        assert serving.status() is None
        # Whose ticket it is is taken, and then told that 40 zeroes are no rsockets end.
        with contextlib.suppress(ConnectionError):
            assert is_rejected(place, bytes(40) + ticket)
        expect_error(serving, errno.EPROTO)


def test_asker_leaves(programs, port):
    serving = programs.serve("bare", port)
    with socket.create_connection((LOCALHOST, port), SECONDS_MAX) as sock:
        sock.sendall(QUESTION)
        place_of(sock.recv(ANSWER_OCTETS, socket.MSG_WAITALL))
        reset(sock)
        expect_error(serving, errno.ECONNRESET)


def test_request_is_answered_by_a_place(programs, port):
    """The MPA initiator's end of it, octet by octet."""
    serving = programs.serve("bare", port)
    with socket.create_connection((LOCALHOST, port), SECONDS_MAX) as sock:
        sock.sendall(iwarp.start_frame(iwarp.KEY_REQUEST, iwarp.CRC, 2, b"x" * 44))
        reply = sock.recv(iwarp.START_OCTETS + ANSWER_OCTETS, socket.MSG_WAITALL)
        assert reply[:20] == iwarp.KEY_REPLY + bytes([iwarp.REJECT, 1, 0, ANSWER_OCTETS])
        place, ticket = place_of(reply[20:])
        sock.close()
        assert is_rejected(place, bytes(40) + bytes(16))
        assert serving.status() is None
        assert is_rejected(place, bytes(40) + ticket)
        expect_error(serving, errno.EPROTO)
