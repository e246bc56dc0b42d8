# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Scenes of one process: octets, options, and how to wait for them."""

import array
import errno
import fcntl
import os
import random
import select
import signal
import socket
import struct
import termios
import threading

from sockets_ends import (LOCALHOST, accept, connect, dial, dial_nonblocking, expect_errno,
                          listen, pattern, read_all, read_exactly, serve)


@connect
def connect_echo(port):
    """Random sizes both ways at once, then the end of one direction."""
    sock = dial(port)
    sent = pattern(3_000_000)

    def write():
        sizes = random.Random(2)
        at = 0
        while at < len(sent):
            at += sock.send(sent[at:at + sizes.choice((1, 7, 100, 5000, 100000))])
        sock.shutdown(socket.SHUT_WR)

    writer = threading.Thread(target=write)
    writer.start()
    got = read_all(sock)
    writer.join()
    assert got == sent
    expect_errno(errno.EPIPE, sock.send, b"x")


@serve
def serve_half(port):
    """Octets go on after the peer has ended its direction."""
    conn = accept(port)
    question = read_all(conn)
    conn.sendall(question * 3)


@connect
def connect_half(port):
    sock = dial(port)
    sock.sendall(b"question")
    sock.shutdown(socket.SHUT_WR)
    assert read_all(sock) == b"question" * 3


@serve
def serve_told_once(port):
    """An event that is told once is not told again when it is found out what the client speaks."""
    conn = accept(port)
    epoll = select.epoll()
    epoll.register(conn, select.EPOLLIN | select.EPOLLONESHOT)
    assert epoll.poll(30) == [(conn.fileno(), select.EPOLLIN)]
    assert epoll.poll(0.1) == []
    assert read_exactly(conn, 8) == b"question"
    conn.sendall(b"answer")
    assert epoll.poll(0.1) == []


@connect
def connect_told_once(port):
    sock = dial(port)
    sock.sendall(b"question")
    assert read_exactly(sock, 6) == b"answer"
    assert read_all(sock) == b""


@serve
def serve_speaks(port):
    """The server's octets come first."""
    conn = accept(port)
    conn.sendall(b"220 hello\r\n")
    assert read_exactly(conn, 4) == b"QUIT"


@connect
def connect_speaks(port):
    sock = dial(port)
    assert read_exactly(sock, 11) == b"220 hello\r\n"
    sock.sendall(b"QUIT")


def converse(sock):
    """Over a non-blocking socket that is connected: EAGAIN, then an answer."""
    expect_errno(errno.EAGAIN, sock.recv, 1)
    sock.send(b"ping")
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    assert poll.poll(5000), "no answer"
    assert sock.recv(10) == b"ping"


@connect
def connect_connect_poll(port):
    sock = dial_nonblocking(port)
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    assert poll.poll(5000) == [(sock.fileno(), select.POLLOUT)]
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    converse(sock)


@connect
def connect_connect_select(port):
    sock = dial_nonblocking(port)
    assert select.select([], [sock], [], 5) == ([], [sock], [])
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    assert select.select([sock], [], [], 0) == ([], [], [])
    converse(sock)


@connect
def connect_connect_epoll(port):
    sock = dial_nonblocking(port)
    epoll = select.epoll()
    epoll.register(sock, select.EPOLLOUT)
    assert epoll.poll(30) == [(sock.fileno(), select.EPOLLOUT)]
    epoll.modify(sock, select.EPOLLIN)
    sock.send(b"one")
    assert epoll.poll(30) == [(sock.fileno(), select.EPOLLIN)]
    assert sock.recv(10) == b"one"
    epoll.unregister(sock)
    converse(sock)


@connect
def connect_epoll_early(port):
    """Registered before the connection begins, and then only asked for input."""
    sock = socket.socket()
    sock.setblocking(False)
    epoll = select.epoll()
    epoll.register(sock, select.EPOLLIN | select.EPOLLET)
    assert sock.connect_ex((LOCALHOST, port)) == errno.EINPROGRESS
    while any(events & (select.EPOLLHUP | select.EPOLLERR) for _, events in epoll.poll(0.05)):
        pass
    sock.send(b"early")
    assert epoll.poll(30) == [(sock.fileno(), select.EPOLLIN)]
    assert sock.recv(10) == b"early"


@connect
def connect_epoll_edge(port):
    sock = dial_nonblocking(port)
    epoll = select.epoll()
    epoll.register(sock, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    assert epoll.poll(30)[0][1] & select.EPOLLOUT
    sock.send(b"edge")
    while not any(events & select.EPOLLIN for _, events in epoll.poll(30)):
        pass
    assert epoll.poll(0) == []
    assert sock.recv(10) == b"edge"


@connect
def connect_epoll_oneshot(port):
    sock = dial_nonblocking(port)
    epoll = select.epoll()
    epoll.register(sock, select.EPOLLOUT | select.EPOLLONESHOT)
    assert epoll.poll(30) == [(sock.fileno(), select.EPOLLOUT)]
    assert epoll.poll(0) == []
    epoll.modify(sock, select.EPOLLIN | select.EPOLLONESHOT)
    sock.send(b"once")
    assert epoll.poll(30) == [(sock.fileno(), select.EPOLLIN)]
    assert epoll.poll(0) == []
    assert sock.recv(10) == b"once"


@connect
def connect_connect_twice(port):
    """The second connect tells, as TCP's."""
    sock = dial_nonblocking(port)
    select.select([], [sock], [], 5)
    assert sock.connect_ex((LOCALHOST, port)) in (0, errno.EISCONN)
    assert sock.connect_ex((LOCALHOST, port)) == errno.EISCONN
    converse(sock)


@connect
def connect_refused(port):
    sock = dial_nonblocking(port)
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    assert poll.poll(5000)[0][1] & select.POLLERR
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
    expect_errno(errno.ECONNREFUSED, dial, port)


@connect
def connect_names(port):
    sock = dial(port)
    local, peer = sock.getsockname(), sock.getpeername()
    assert peer == (LOCALHOST, port) and local[0] == LOCALHOST and local[1] != 0
    sock.sendall(b"x")
    assert sock.recvfrom(5) == (b"x", None)
    assert (sock.getsockname(), sock.getpeername()) == (local, peer)


@connect
def connect_options(port):
    sock = dial(port)
    get, put = sock.getsockopt, sock.setsockopt
    assert get(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
    assert get(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_INET
    assert get(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_TCP
    assert get(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    for level, name in ((socket.IPPROTO_TCP, socket.TCP_NODELAY),
                        (socket.SOL_SOCKET, socket.SO_KEEPALIVE)):
        for on in (1, 0):
            put(level, name, on)
            assert bool(get(level, name)) == bool(on), (level, name)
    put(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 77)
    assert get(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 77
    put(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50000))
    expect_errno(errno.EAGAIN, sock.recv, 1)
    assert get(socket.SOL_SOCKET, socket.SO_SNDBUF) > 0
    assert len(get(socket.IPPROTO_TCP, socket.TCP_INFO, 104)) == 104
    expect_errno(errno.EISCONN, sock.connect, (LOCALHOST, port))
    expect_errno(errno.EINVAL, sock.listen)


@serve
def serve_flags(port):
    conn = accept(port)
    conn.sendall(b"abcdef")
    assert conn.recv(1) == b"1"
    conn.sendall(b"0123")
    assert conn.recv(1) == b"2"
    conn.sendall(b"456789")


@connect
def connect_flags(port):
    sock = dial(port)
    assert sock.recv(6, socket.MSG_PEEK | socket.MSG_WAITALL) == b"abcdef"
    room = array.array("i", [0])
    fcntl.ioctl(sock, termios.FIONREAD, room)
    assert room[0] == 6
    assert sock.recv(3) == b"abc" and sock.recv(10) == b"def"
    expect_errno(errno.EAGAIN, sock.recv, 1, socket.MSG_DONTWAIT)
    sock.sendall(b"1")
    threading.Timer(0.1, sock.sendall, (b"2",)).start()
    assert sock.recv(10, socket.MSG_WAITALL) == b"0123456789"
    expect_errno(errno.EAGAIN, sock.recv, 1, socket.MSG_DONTWAIT | socket.MSG_ERRQUEUE)


@serve
def serve_urgent(port):
    conn = accept(port)
    assert read_exactly(conn, 2) == b"go"
    conn.sendall(b"before")
    conn.send(b"!", socket.MSG_OOB)
    conn.sendall(b"after")
    read_all(conn)


@connect
def connect_urgent(port):
    """SIGURG, POLLPRI, the mark, and the octet out of band."""
    heard = []
    signal.signal(signal.SIGURG, lambda *_: heard.append(1))
    sock = dial(port)
    fcntl.fcntl(sock, fcntl.F_SETOWN, os.getpid())
    sock.sendall(b"go")
    assert select.select([], [], [sock], 5) == ([], [], [sock])
    assert sock.recv(1, socket.MSG_OOB) == b"!"
    assert sock.recv(100) == b"before"
    assert read_exactly(sock, 5) == b"after"
    assert heard


@connect
def connect_stdio(port):
    sock = dial(port)
    with sock.makefile("rw", encoding="ascii", newline="\n") as file:
        for number in range(1000):
            file.write(f"line {number}\n")
        file.flush()
        for number in range(1000):
            assert file.readline() == f"line {number}\n"


@serve
def serve_sendfile(port):
    conn = accept(port)
    with open(__file__, "rb") as file:
        conn.sendfile(file)
    with open(__file__, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        ends = os.pipe()
        while size:
            taken = os.splice(file.fileno(), ends[1], min(size, 4096))
            size -= taken
            while taken:
                taken -= os.splice(ends[0], conn.fileno(), taken)
    conn.sendmsg([b"a" * 5, b"b" * 6, b"c" * 7])


@connect
def connect_sendfile(port):
    with open(__file__, "rb") as file:
        text = file.read()
    assert read_all(dial(port)) == text + text + b"a" * 5 + b"b" * 6 + b"c" * 7


@serve
def serve_full(port):
    """A reader that does not read holds the writer."""
    listener = listen(port)
    conn, _ = listener.accept()
    assert read_exactly(listener.accept()[0], 1) == b"1"
    assert read_all(conn)[-3:] == b"end"


@connect
def connect_full(port):
    sock = dial(port)
    sock.setblocking(False)
    sent = 0
    while sent < 100_000_000:
        try:
            sent += sock.send(b"x" * 65536)
        except BlockingIOError:
            if not select.select([], [sock], [], 0.3)[1]:
                break
    assert sent < 100_000_000
    sock.setblocking(True)
    dial(port).sendall(b"1")
    sock.sendall(b"end")


SOL_IWARP, IWARP_MODE, IWARP_OFF, IWARP_ON = 0x6957, 1, 0, 1


@serve
def serve_called_off(port):
    conn = accept(port)
    assert conn.recv(5) == b"plain"
    assert conn.getsockopt(SOL_IWARP, IWARP_MODE) == IWARP_OFF
    conn.sendall(b"yes")


@connect
def connect_called_off(port):
    """While the connection is on its way."""
    sock = dial_nonblocking(port)
    sock.setsockopt(SOL_IWARP, IWARP_MODE, IWARP_OFF)
    sock.setblocking(True)
    select.select([], [sock], [])
    assert sock.getsockopt(SOL_IWARP, IWARP_MODE) == IWARP_OFF
    sock.sendall(b"plain")
    assert read_all(sock) == b"yes"


@serve
def serve_delayed(port):
    """Both become iWARP by setsockopt when the connection has carried octets as plain TCP."""
    conn = accept(port)
    assert read_exactly(conn, 5) == b"plain"
    conn.sendall(b"ready")
    conn.setsockopt(SOL_IWARP, IWARP_MODE, IWARP_ON)
    assert read_exactly(conn, 5) == b"iwarp"
    conn.sendall(b"yes")


@connect
def connect_delayed(port):
    sock = dial(port)
    assert sock.getsockopt(SOL_IWARP, IWARP_MODE) == 0
    sock.sendall(b"plain")
    assert read_exactly(sock, 5) == b"ready"
    sock.setsockopt(SOL_IWARP, IWARP_MODE, IWARP_ON)
    assert sock.getsockopt(SOL_IWARP, IWARP_MODE) == 1
    sock.sendall(b"iwarp")
    assert read_all(sock) == b"yes"


@connect
def connect_at_once(port):
    """A client that connects as soon as it can finds an iWARP server. Both are this process."""
    listener = socket.socket()
    listener.bind((LOCALHOST, port))
    modes = []

    def ask():
        while not modes:
            with socket.socket() as sock:
                if sock.connect_ex((LOCALHOST, port)) == 0:
                    sock.sendall(b"question")
                    assert read_exactly(sock, 6) == b"answer"
                    modes.append(sock.getsockopt(SOL_IWARP, IWARP_MODE))

    client = threading.Thread(target=ask)
    client.start()
    listener.listen()
    conn, _ = listener.accept()
    assert read_exactly(conn, 8) == b"question"
    conn.sendall(b"answer")
    client.join()
    assert modes == [IWARP_ON]
