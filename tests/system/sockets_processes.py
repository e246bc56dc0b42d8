# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Scenes in which fds and processes multiply, are handed on, and die."""

import errno
import hashlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

from sockets_ends import (LOCALHOST, accept, connect, dial, expect_errno, listen, pattern,
                          read_all, read_exactly, serve)


@connect
def connect_dup(port):
    sock = dial(port)
    other = sock.dup()
    third = os.dup2(other.fileno(), 200)
    sock.close()
    os.write(third, b"dup")
    assert other.recv(10) == b"dup"
    assert other.getpeername() == (LOCALHOST, port)
    other.close()
    assert socket.socket(fileno=third).getpeername() == (LOCALHOST, port)


@serve
def serve_dup2_over(port):
    """A file over an iWARP fd: the connection is over."""
    conn = accept(port)
    assert conn.recv(5) == b"hello"
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, conn.fileno())
    assert os.read(conn.fileno(), 5) == b""
    expect_errno(errno.ENOTSOCK, conn.getpeername)


@connect
def connect_dup2_over(port):
    sock = dial(port)
    sock.sendall(b"hello")
    assert sock.recv(1) == b""


@serve
def serve_fork(port):
    """A child for each connection, which is accepted before the fork; the parent closes its copy."""
    listener = listen(port)
    for _ in range(3):
        conn, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            while octets := conn.recv(1000):
                conn.sendall(octets.upper())
            os._exit(0)
        conn.close()
    for _ in range(3):
        assert os.wait()[1] == 0


@connect
def connect_fork(port):
    for _ in range(3):
        sock = dial(port)
        sock.sendall(b"child")
        assert read_exactly(sock, 5) == b"CHILD"
        sock.close()


@serve
def serve_share(port):
    """Parent and child write to one connection; the parent ends by _exit, the child goes on."""
    conn = accept(port)
    conn.sendall(b"parent1 ")
    ready, told = os.pipe()
    if os.fork() == 0:
        os.close(told)
        os.read(ready, 1)  # the parent is gone
        conn.sendall(b"child ")
        assert conn.recv(10) == b"thanks"
        conn.sendall(b"bye")
        os._exit(0)
    conn.sendall(b"parent2 ")
    os._exit(0)


@connect
def connect_share(port):
    sock = dial(port)
    assert read_exactly(sock, 22) == b"parent1 parent2 child "
    sock.sendall(b"thanks")
    assert read_all(sock) == b"bye"


@serve
def serve_exec(port):
    """The connection becomes the fds 0 and 1 of another program, before any octet: as under inetd."""
    listener = listen(port)
    conn, _ = listener.accept()
    os.dup2(conn.fileno(), 0)
    os.dup2(conn.fileno(), 1)
    os.execvp("tr", ["tr", "a-z", "A-Z"])


@connect
def connect_exec(port):
    sock = dial(port)
    sock.sendall(b"through tr")
    sock.shutdown(socket.SHUT_WR)
    assert read_all(sock) == b"THROUGH TR"


@serve
def serve_exec_later(port):
    """exec in the middle of a connection, with what the new program asks its socket for."""
    conn = accept(port)
    assert conn.recv(5) == b"first"
    os.set_inheritable(conn.fileno(), True)
    os.execv(sys.executable, [sys.executable, sys.argv[0], "serve", "exec_second", str(port),
                              str(conn.fileno())])


@serve
def serve_exec_second(port):
    conn = socket.socket(fileno=int(sys.argv[4]))
    assert conn.getsockname() == (LOCALHOST, port) and conn.getpeername()[0] == LOCALHOST
    assert conn.family == socket.AF_INET
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert conn.recv(6) == b"second"
    conn.sendall(b"done")


@connect
def connect_exec_later(port):
    sock = dial(port)
    sock.sendall(b"first")
    sock.sendall(b"second")
    assert read_all(sock) == b"done"


@connect
def connect_spawn(port):
    """A child that knows nothing of the socket but its fd, begun by posix_spawn or vfork."""
    sock = dial(port)
    sock.sendall(b"for the child\n")
    out = subprocess.run(["head", "-n1"], stdin=sock, capture_output=True, check=True)
    assert out.stdout == b"for the child\n", out
    sock.sendall(b"again")
    assert read_exactly(sock, 5) == b"again"
    assert sock.getpeername() == (LOCALHOST, port)


@serve
def serve_reset(port):
    """SO_LINGER with no time: the peer hears of a reset."""
    conn = accept(port)
    assert conn.recv(5) == b"reset"
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


@connect
def connect_reset(port):
    sock = dial(port)
    sock.sendall(b"reset")
    expect_errno(errno.ECONNRESET, sock.recv, 1)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    expect_errno(errno.EPIPE, lambda: [sock.send(b"x") for _ in range(1000)])


@serve
def serve_killed(port):
    conn = accept(port)
    conn.sendall(pattern(100_000))
    conn.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)


@connect
def connect_killed(port):
    """What was written before a crash still comes, then the stream is over."""
    sock = dial(port)
    sock.sendall(b"n")
    assert hashlib.sha1(read_all(sock)).digest() == hashlib.sha1(pattern(100_000)).digest()


def has_ended_or_sleeps(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "SZX"
    except FileNotFoundError:
        return True


@serve
def serve_leave(port):
    """Writes a lot and is gone: all of it arrives."""
    conn = accept(port)
    conn.sendall(struct.pack("!I", os.getpid()) + pattern(2_000_000))
    os._exit(0)


@connect
def connect_leave(port):
    """Reads nothing more before the server is gone, or waits for room."""
    sock = dial(port)
    server = struct.unpack("!I", read_exactly(sock, 4))[0]
    while not has_ended_or_sleeps(server):
        os.sched_yield()
    assert read_all(sock) == pattern(2_000_000)


@serve
def serve_pipe(port):
    conn = accept(port)
    conn.recv(1)
    conn.close()
    listen(port).accept()


@connect
def connect_pipe(port):
    """SIGPIPE by default, EPIPE where it is not wanted."""
    sock = dial(port)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sock.send(b"1")
    assert sock.recv(1) == b""
    child = os.fork()
    if child == 0:
        while True:
            os.write(sock.fileno(), b"x" * 1000)
    status = os.waitpid(child, 0)[1]
    assert os.WTERMSIG(status) == signal.SIGPIPE, status
    try:
        while True:
            sock.send(b"x", socket.MSG_NOSIGNAL)
    except OSError as error:
        assert error.errno in (errno.EPIPE, errno.ECONNRESET)
    while True:
        try:
            dial(port)
            return
        except ConnectionRefusedError:
            pass


@serve
def serve_many(port):
    listener = listen(port)
    conns = [listener.accept()[0] for _ in range(200)]
    for conn in conns:
        conn.sendall(read_exactly(conn, 3))


@connect
def connect_many(port):
    socks = [dial(port) for _ in range(200)]
    for number, sock in enumerate(socks):
        sock.sendall(b"%03d" % number)
    for number, sock in enumerate(socks):
        assert read_exactly(sock, 3) == b"%03d" % number


@serve
def serve_early(port):
    """The client is done before the server accepts: TCP_INFO tells how many wait."""
    listener = listen(port)
    while listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)[24] < 2:
        pass
    conn, _ = listener.accept()
    assert read_all(conn) == b"early"


@connect
def connect_early(port):
    sock = dial(port)
    sock.sendall(b"early")
    sock.close()
    dial(port)


@connect
def connect_threads(port):
    """One thread reads, one writes, and a third one closes."""
    sock = dial(port)
    reader = threading.Thread(target=lambda: read_exactly(sock, 1_000_000))
    reader.start()
    sock.sendall(pattern(1_000_000))
    reader.join()
    waiting = threading.Thread(target=sock.recv, args=(1,))
    waiting.start()
    sock.shutdown(socket.SHUT_RDWR)
    waiting.join()


@serve
def serve_passing(port):
    """The fd goes to another process by SCM_RIGHTS, before any octet."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
        conn = socket.socket(fileno=fds[0])
        conn.sendall(read_exactly(conn, 4)[::-1])
        os._exit(0)
    conn = accept(port)
    socket.send_fds(ours, [b"x"], [conn.fileno()])
    conn.close()
    assert os.wait()[1] == 0


@connect
def connect_passing(port):
    sock = dial(port)
    sock.sendall(b"1234")
    assert read_exactly(sock, 4) == b"4321"


@serve
def serve_untouched(port):
    """Accepted and closed: the end, and no reset, though the client's start-up lies unread."""
    accept(port).close()


@connect
def connect_untouched(port):
    assert dial(port).recv(1) == b""
