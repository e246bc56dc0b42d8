# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""engine_peer.py server ADDRESS PORT SIZE; engine_peer.py client ADDRESS PORT SIZE SECONDS: a key-value cache that moves between
two processes by NIXL with its UCX backend. The client writes BLOCKS blocks of SIZE bytes in a batch into the server's memory,
again and again for SECONDS; then it reads blocks from there as long. Afterwards each end compares every byte that it was given.
The ends have a connection of their own for what NIXL leaves to its users."""

import base64
import ctypes
import json
import os
import random
import socket
import sys
import time

from nixl._api import nixl_agent, nixl_agent_config

BLOCKS = 16
WRITTEN, READ = 1, 2  # seeds; the memory's two halves, in this order
WARM_UP_PARTS = 5
BATCH_SECONDS_MAX = 30


def content(seed, size):
    return random.Random(seed).randbytes(BLOCKS * size)


class Memory:
    """The client has what it writes from the start, the server what is read from it."""

    def __init__(self, size, seed):
        self.size, half = size, BLOCKS * size
        self.buffer = ctypes.create_string_buffer(2 * half)
        self.base = ctypes.addressof(self.buffer)
        at = 0 if seed == WRITTEN else half
        self.buffer[at:at + half] = content(seed, size)

    def check(self):
        half = BLOCKS * self.size
        for at, seed in ((0, WRITTEN), (half, READ)):
            if self.buffer[at:at + half] != content(seed, self.size):
                sys.exit("engine_peer: WRONG OUTPUT: the blocks are not what was sent")


class Agent:
    def __init__(self, name, memory):
        self.memory = memory
        self.agent = nixl_agent(name, nixl_agent_config(backends=["UCX"]))
        self.registered = self.agent.register_memory(
            self.agent.get_reg_descs([(memory.base, len(memory.buffer), 0, "")], "DRAM"))

    def name(self):
        return {"agent": base64.b64encode(self.agent.get_agent_metadata()).decode(), "base": self.memory.base}

    def meet(self, told):
        self.peer, self.far = self.agent.add_remote_agent(base64.b64decode(told["agent"])), told["base"]

    def rate(self, operation, half, seconds):
        """Batches of one half of the memory, one after another; returns bytes and seconds."""
        size, start = self.memory.size, half * BLOCKS * self.memory.size

        def blocks(base):
            return self.agent.get_xfer_descs([(base + start + size * i, size, 0) for i in range(BLOCKS)], "DRAM")

        handle = self.agent.initialize_xfer(operation, blocks(self.memory.base), blocks(self.far), self.peer)
        batches, began = 0, time.monotonic()
        while (took := time.monotonic() - began) < seconds or not batches:
            self.batch(operation, handle)
            batches += 1
        self.agent.release_xfer_handle(handle)
        return batches * BLOCKS * size, took

    def batch(self, operation, handle):
        state, end = self.agent.transfer(handle), time.monotonic() + BATCH_SECONDS_MAX
        while state == "PROC" and time.monotonic() < end:
            state = self.agent.check_xfer_state(handle)
        if state != "DONE":
            sys.exit(f"engine_peer: {operation}: {state}")

    def close(self):
        self.agent.deregister_memory(self.registered)


def serve(address, port, size):
    memory = Memory(size, READ)
    agent = Agent("server", memory)
    with socket.create_server((address, port)) as listener:
        connection = listener.accept()[0].makefile("rw")
    print(json.dumps(agent.name()), file=connection, flush=True)
    connection.readline()
    memory.check()
    print("equal", file=connection, flush=True)
    connection.readline()
    agent.close()


def ask(address, port, size, seconds):
    memory = Memory(size, WRITTEN)
    agent = Agent("client", memory)
    connection = socket.create_connection((address, port)).makefile("rw")
    agent.meet(json.loads(connection.readline()))
    for operation, half in (("WRITE", 0), ("READ", 1)):
        agent.rate(operation, half, seconds / WARM_UP_PARTS)
    written, write_seconds = agent.rate("WRITE", 0, seconds)
    read, read_seconds = agent.rate("READ", 1, seconds)
    memory.check()
    print("done", file=connection, flush=True)
    if connection.readline().strip() != "equal":
        sys.exit("engine_peer: WRONG OUTPUT: the server's blocks are not what was written")
    agent.agent.remove_remote_agent(agent.peer)
    agent.close()
    print("over", file=connection, flush=True)
    print(json.dumps({"octets": written + read, "octets_per_second": written / write_seconds,
                      "read_octets_per_second": read / read_seconds, "operations": (written + read) // size,
                      "checked": f"{2 * BLOCKS} blocks of {size} bytes"}))


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        ask(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
    # Over TCP the wheel of NIXL 1.5.1 crashes in libnl's destructor, when everything is done and closed.
    sys.stdout.flush()
    os._exit(0)
