# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Ends that are killed, connections that are reset, servers that run out of fds or memory: whoever
survives goes on with verified data, serves the next one, and in the end holds what it held before.
The programs (mortal.c) check every octet themselves; the seed is printed."""

import os
import random
import re
import select
import signal
import socket
import struct
import threading

import conftest
import pytest

MORTAL = conftest.BUILD / "tests" / "mortal"
SEED = int(os.environ.get("ANYWARP_SEED", random.SystemRandom().randrange(1 << 30)))
# Of clients, and of servers.
KILLS_EACH = int(os.environ.get("ANYWARP_KILLS", 20 if conftest.SANITIZER else 250))
# Of a connection of few messages.
PATHS = ["tcp", "memory"] if os.environ.get("ANYWARP_HOST_PATH") == "on" else ["tcp"]
RESETS = 20 if conftest.SANITIZER else 100
AT_ONCE = 4
LIFE_US_MAX = 80000
FDS_MAX = 24
SECONDS_MAX = conftest.program.SECONDS_MAX
LINGER_RESET = struct.pack("ii", 1, 0)


@pytest.fixture
def rng(request):
    print(f"seed {SEED}")
    return random.Random(f"{SEED} {request.node.name}")


class Server:
    def __init__(self, start, options="", port=0):
        self.program = start(f"{MORTAL} serve 127.0.0.1 {port} {options}")
        found = self.program.wait_until(
            lambda: re.search(r"^port (\d+)$", self.program.output(), re.M), "port", SECONDS_MAX)
        self.port = int(found[1])

    def held(self):
        """What it holds now."""
        before = self.program.output().count("held ")
        os.kill(self.pid(), signal.SIGUSR1)
        self.program.wait_until(lambda: self.program.output().count("held ") > before, "held")
        line = re.findall(r"^held (.*)$", self.program.output(), re.M)[-1].split()
        return dict(zip(line[::2], map(int, line[1::2])))

    def pid(self):
        """env and stdbuf exec, so that the program has the pid that was started."""
        return self.program.pid

    def wait_idle(self, wanted):
        """Until it holds no more than that; a socket may linger for its peer's FIN."""
        try:
            self.program.wait_until(lambda: fits(self.held(), wanted), "what was held before")
        except conftest.program.Trouble:
            assert self.held() == wanted


def fits(held, wanted):
    return all(held[name] <= wanted[name] for name in ("fds", "threads", "connections"))


def loader(start, port, options, rng, prefix=()):
    return start(f"{MORTAL} load 127.0.0.1 {port} --seed {rng.randrange(1 << 20)} {options}", prefix=prefix)


def forget(start, program):
    """Its output is not needed any more."""
    start.programs.remove(program)
    program.close()


def rounds(program):
    found = re.findall(r"^rounds (\d+)$", program.output(), re.M)
    return int(found[-1]) if found else 0


def assert_goes_on(program):
    before = rounds(program)
    program.wait_until(lambda: rounds(program) > before, "more rounds", SECONDS_MAX)


def serve_one(start, server, rng):
    client = loader(start, server.port, "--rounds 5", rng, ["env", "ANYWARP_LOG=info"])
    assert client.wait_exit(SECONDS_MAX) == 0, client.report()
    assert re.findall(r"qp 0x\w+ path (\w+)", client.output()) == PATHS


def idle_server(start, rng):
    """One that has had a crowd at once, and what it holds then: some fds come with the first."""
    server = Server(start)
    crowd = [loader(start, server.port, "", rng) for _ in range(2 * AT_ONCE)]
    for client in crowd:
        client.wait_output("rounds", SECONDS_MAX)
    assert server.held()["connections"] == len(crowd)
    for client in crowd:
        client.kill()
    server.program.wait_until(lambda: server.held()["connections"] == 0, "no connection")
    return server, server.held()


def test_clients_are_killed(start, rng):
    """The survivors are the server and a client beside those that die."""
    server, idle = idle_server(start, rng)
    bystander = loader(start, server.port, "", rng)
    killed = 0
    while killed < KILLS_EACH:
        batch = [loader(start, server.port, f"--die-after-us {1 + rng.randrange(LIFE_US_MAX)}", rng)
                 for _ in range(AT_ONCE)]
        for client in batch:
            assert client.wait_exit(SECONDS_MAX) == -signal.SIGKILL, client.report()
            forget(start, client)
            killed += 1
    assert_goes_on(bystander)
    assert bystander.output().count("up ") == 1
    bystander.kill()
    server.wait_idle(idle)
    serve_one(start, server, rng)
    print(f"{killed} clients killed, {server.held()}")


def test_servers_are_killed(start, rng):
    """The survivors are two clients, which find the next server on the same port: between two servers the kernel gives it
    to nobody."""
    first = Server(start, port=conftest.program.free_port())
    port = first.port
    clients = [loader(start, port, "", rng) for _ in range(2)]
    for client in clients:
        client.wait_output("rounds", SECONDS_MAX)
    first.program.kill()
    for _ in range(KILLS_EACH):
        server = Server(start, f"--die-after-us {1 + rng.randrange(LIFE_US_MAX)}", port)
        assert server.program.wait_exit(SECONDS_MAX) == -signal.SIGKILL, server.program.report()
        forget(start, server.program)
    last = Server(start, port=port)
    for client in clients:
        assert_goes_on(client)
        downs = re.findall(r"^down \d+ fds (\d+) threads (\d+)$", client.output(), re.M)
        assert downs and downs[-1] == downs[0], f"first {downs[0]}, last {downs[-1]}"
    assert last.held()["connections"] == 2


class Resetter:
    """Forwards octets between a client and a port, and after some of them resets both sides."""

    def __init__(self, port, rng):
        self.port_behind = port
        self.rng = rng
        self.resets = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                near = self.listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.port_behind))
            except OSError:
                return
            budget = self.rng.choice([self.rng.randrange(200), self.rng.randrange(500000)])
            self.forward(near, far, budget)
            for end in (near, far):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
                end.close()
            self.resets += 1

    @staticmethod
    def forward(near, far, budget):
        """In one thread: a socket in which another waits is not reset by closing it."""
        other = {near: far, far: near}
        try:
            while budget > 0:
                for source in select.select([near, far], [], [])[0]:
                    data = source.recv(min(65536, max(budget, 1)))
                    if not data:
                        return
                    budget -= len(data)
                    other[source].sendall(data)
        except OSError:
            pass

    def close(self):
        self.listener.close()


def test_connections_are_reset(start, rng):
    """At any octet, of the start-up too; both ends survive."""
    server, idle = idle_server(start, rng)
    resetter = Resetter(server.port, rng)
    bystander = loader(start, server.port, "", rng)
    client = loader(start, resetter.port, "", rng)
    client.wait_until(lambda: resetter.resets >= RESETS, "resets", 4 * SECONDS_MAX)
    assert_goes_on(bystander)
    assert bystander.output().count("up ") == 1
    resetter.close()
    for program in (client, bystander):
        program.kill()
    server.wait_idle(idle)
    serve_one(start, server, rng)


def are_up(crowd):
    return [client for client in crowd if rounds(client) > 0]


def assert_others_get_their_turn(start, crowd):
    """Until all have been served: those that were make room by being killed."""
    while crowd:
        crowd[0].wait_until(lambda: are_up(crowd), "anybody served", 2 * SECONDS_MAX)
        for client in are_up(crowd):
            crowd.remove(client)
            client.kill()
            forget(start, client)


def test_server_runs_out_of_fds(start, rng):
    """Who is served goes on, who is not gets the next free place."""
    server = Server(start, f"--fds {FDS_MAX}")
    bystander = loader(start, server.port, "", rng)
    bystander.wait_output("rounds", SECONDS_MAX)
    crowd = [loader(start, server.port, "", rng) for _ in range(FDS_MAX)]
    assert_others_get_their_turn(start, crowd)
    assert_goes_on(bystander)
    assert bystander.output().count("up ") == 1


@pytest.mark.skipif("address" in conftest.SANITIZER or "thread" in conftest.SANITIZER,
                    reason="a sanitizer needs an address space without bounds")
def test_server_runs_out_of_memory(start, rng):
    server = Server(start, "--as-headroom-kib 3072")
    bystander = loader(start, server.port, "", rng)
    bystander.wait_output("rounds", SECONDS_MAX)
    crowd = [loader(start, server.port, "", rng) for _ in range(FDS_MAX)]
    # By the program, or by the library, which has no memory for the connection's own structures.
    server.program.wait_until(lambda: any("refused" in client.output() for client in crowd), "client refused",
                              SECONDS_MAX)
    assert_others_get_their_turn(start, crowd)
    assert_goes_on(bystander)
    assert bystander.output().count("up ") == 1
