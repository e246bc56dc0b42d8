# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What move_*.py have in common. Each is both ends of one transfer engine: PROGRAM server|client ADDRESS PORT OWN. The two
have PORT of the server's ADDRESS for what engines leave to their users, and each is at OWN; the client writes half of the server's
memory and reads the other half, and both compare the octets."""

import ctypes
import json
import random
import socket
import sys

BLOCK, BLOCKS = 1 << 20, 16
HALF = BLOCK * BLOCKS
FROM_CLIENT, FROM_SERVER = 1, 2  # seeds


def octets(seed):
    return random.Random(seed).randbytes(HALF)


class Memory:
    """Two halves: what the client writes, what the client reads. A client has the first half and the server the
    second one from the start."""

    def __init__(self, role):
        self.role, self.buffer = role, ctypes.create_string_buffer(2 * HALF)
        self.base = ctypes.addressof(self.buffer)
        if role == "client":
            self.buffer[0:HALF] = octets(FROM_CLIENT)
        else:
            self.buffer[HALF:] = octets(FROM_SERVER)

    def check(self):
        assert self.buffer[0:HALF] == octets(FROM_CLIENT), f"{self.role}: what was written differs"
        assert self.buffer[HALF:] == octets(FROM_SERVER), f"{self.role}: what was read differs"


class Link:
    """A line of JSON each way at a time."""

    def __init__(self, role, address, port):
        if role == "server":
            with socket.create_server((address, int(port))) as listener:
                self.socket, _ = listener.accept()
        else:
            self.socket = socket.create_connection((address, int(port)))
        self.file = self.socket.makefile("rw")

    def say(self, **words):
        print(json.dumps(words), file=self.file, flush=True)

    def hear(self):
        return json.loads(self.file.readline())


def run(server, client):
    """Calls one of them, with the link, the memory and its own address."""
    role, address, port, own = sys.argv[1:]
    memory = Memory(role)
    (server if role == "server" else client)(lambda: Link(role, address, port), memory, own)
    memory.check()
    print("the octets are equal", flush=True)
