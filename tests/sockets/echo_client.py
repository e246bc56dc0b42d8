# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""echo_client.py PORT CONNECTIONS OCTETS: sends so many octets on each connection, all at once, and reads them back.
With OCTETS 0 it does so until it is killed."""

import random
import selectors
import socket
import sys

CHUNK = 16384


class Connection:
    def __init__(self, port, octets, seed):
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setblocking(False)
        self.octets = octets or sys.maxsize
        self.tx, self.rx = random.Random(seed), random.Random(seed)
        self.unsent, self.expected = b"", b""
        self.made = self.got = 0

    def send(self):
        while self.made < self.octets or self.unsent:
            if not self.unsent:
                self.unsent = self.tx.randbytes(min(1 + self.tx.randrange(CHUNK), self.octets - self.made))
                self.made += len(self.unsent)
            try:
                self.unsent = self.unsent[self.sock.send(self.unsent):]
            except BlockingIOError:
                return

    def receive(self):
        """Whether all is back."""
        try:
            while self.got < self.octets:
                data = self.sock.recv(1 + self.got % 50000)
                assert data, "an early end"
                self.check(data)
        except BlockingIOError:
            return False
        return True

    def check(self, data):
        while len(self.expected) < len(data):
            size = min(1 + self.rx.randrange(CHUNK), self.octets - self.got - len(self.expected))
            self.expected += self.rx.randbytes(size)
        assert self.expected[:len(data)] == data, f"octet {self.got} and on: not what was sent"
        self.expected = self.expected[len(data):]
        self.got += len(data)


def run(port, count, octets):
    poll = selectors.EpollSelector()
    left = count
    for seed in range(count):
        conn = Connection(port, octets, seed)
        poll.register(conn.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, conn)
    print("connected", flush=True)
    while left:
        for key, _ in poll.select():
            conn = key.data
            conn.send()
            if conn.receive():
                poll.unregister(conn.sock)
                conn.sock.close()
                left -= 1
            elif conn.made == conn.octets and not conn.unsent:
                poll.modify(conn.sock, selectors.EVENT_READ, conn)


if __name__ == "__main__":
    run(*map(int, sys.argv[1:]))
