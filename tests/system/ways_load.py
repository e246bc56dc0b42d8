# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""ways_load.py echo PORT | through PORT WAY: a program that does WAY with its connection while two of its
threads read and write it. What comes back is what was sent, to the octet. Or: witness PORT | die PORT HOW: one whose
connection was left in the state HOW when it was killed, and the peer, which tells how it ended. Or: both_serve
PORT | both_connect PORT: each writes much before it reads. Or: leaver PORT | stayer PORT HASTE: one closes, the other
one writes twice, "at once" or not."""

import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading

OCTETS = 4 << 20
BOTH = 900_000


def accept_one(port):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(1)
    print("listening", flush=True)
    return listener.accept()[0]


def echo(port):
    conn = accept_one(port)
    while octets := conn.recv(65536):
        conn.sendall(octets)


def by_fork(sock):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def by_epoll(sock):
    select.epoll().register(sock, select.EPOLLIN)


def by_poll(sock):
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    poll.poll(0)


def by_another(sock):
    """Other connections begin, poll and end."""
    listener = socket.create_server(("127.0.0.1", 0))
    for _ in range(5):
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
        reader = threading.Thread(target=other.recv, args=(1,))
        reader.start()
        one.sendall(b"x")
        reader.join()
        by_poll(one)


def by_system(sock):
    sock.set_inheritable(True)
    os.system("true")


WAYS = {
    "nothing": lambda sock: None,
    "poll": by_poll,
    "epoll": by_epoll,
    "another": by_another,
    "select": lambda sock: select.select([sock], [], [], 0),
    "fork": by_fork,
    "spawn": lambda sock: subprocess.run(["true"], check=True),
    "system": by_system,
    "dup2": lambda sock: os.dup2(sock.fileno(), 0),
}


def through(port, way):
    sock = socket.create_connection(("127.0.0.1", port))
    sent, came, half = random.randbytes(OCTETS), bytearray(), threading.Event()

    def read():
        while len(came) < OCTETS:
            octets = sock.recv(random.randint(1, 100_000))
            if not octets:
                break
            came.extend(octets)
            if len(came) > OCTETS // 4:
                half.set()
        half.set()

    def write():
        at = 0
        while at < OCTETS:
            step = random.randint(1, 150_000)
            sock.sendall(sent[at:at + step])
            at += step

    threads = [threading.Thread(target=read), threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    half.wait()
    WAYS[way](sock)
    for thread in threads:
        thread.join()
    assert came == sent
    assert sock.getpeername() == ("127.0.0.1", port)


def die_written(sock, octets):
    sock.sendall(bytes(int(octets)))
    sock.recv(6, socket.MSG_WAITALL)


def die_writing(sock, tally):
    """The file tally has as many octets as those whose write has returned."""
    def write():
        done = 0
        with open(tally, "wb") as file:
            while True:
                done += sock.send(bytes(random.randint(4096, 100_000)))
                os.ftruncate(file.fileno(), done)

    threading.Thread(target=write).start()
    sock.recv(6, socket.MSG_WAITALL)


def die_unread(sock):
    sock.sendall(b"w")
    sock.recv(1)


HOWS = {"written": die_written, "writing": die_writing, "unread": die_unread}


def die(port, how, *args):
    sock = socket.create_connection(("127.0.0.1", port))
    HOWS[how](sock, *args)
    print("ready", flush=True)
    signal.pause()


def both(sock):
    """Both write, and then both read."""
    sock.sendall(bytes(BOTH))
    came = 0
    while came < BOTH:
        came += len(sock.recv(65536))


def both_serve(port):
    both(accept_one(port))


def both_connect(port):
    both(socket.create_connection(("127.0.0.1", port)))


def witness(port):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    conn = accept_one(port)
    came = len(conn.recv(1))
    conn.sendall(b"answer")
    signal.sigwait([signal.SIGUSR1])
    try:
        while octets := conn.recv(65536):
            came += len(octets)
        print("end", came, flush=True)
    except ConnectionResetError:
        print("reset", came, flush=True)


TCP_CLOSE = 7  # tcpi_state behind a reset


def leaver(port):
    accept_one(port).recv(1)


def stayer(port, haste):
    """TCP hears only of what was written first that nobody wants it. POLLHUP tells of that, or the socket's state."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(b"x")
    assert sock.recv(1) == b""
    assert sock.send(b"two") == 3
    if haste != "at once":
        poll = select.poll()
        poll.register(sock, 0)
        assert poll.poll()[0][1] & select.POLLHUP
    else:
        while sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != TCP_CLOSE:
            os.sched_yield()
    try:
        sock.send(b"more")
    except BrokenPipeError:
        return
    raise AssertionError("it was taken")


ROLES = {"leaver": leaver, "stayer": stayer, "echo": echo, "through": through, "die": die, "witness": witness, "both_serve": both_serve,
         "both_connect": both_connect}

if __name__ == "__main__":
    ROLES[sys.argv[1]](int(sys.argv[2]), *sys.argv[3:])
