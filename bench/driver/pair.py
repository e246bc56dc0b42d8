# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two processes that measure between them: a server that says when it is ready, and a client. Our
own waiting takes no CPU from them: we sleep until a pipe has something."""

import collections
import os
import selectors
import signal
import subprocess
import time

import program

TEXT_SHOWN_MAX = 400
PIECE = 65536
# A server that has served has nothing to do but to end.
SERVER_END_SECONDS = 10

# bed has the prefixes of both ends; ready is what the server prints, or None where it prints
# nothing and its TCP port is watched.
Pair = collections.namedtuple("Pair", "bed server client port ready env seconds")


class Failure(Exception):
    """A run gave no result; the text says why, in one line."""


class End:
    """One of the two processes, with what it printed."""

    def __init__(self, name, argv, env):
        self.name, self.argv = name, argv
        try:
            self.process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            start_new_session=True,
                                            preexec_fn=program.end_with_starter)
        except OSError as error:
            raise Failure(f"{name} does not start: {error}") from error
        self.texts = {self.process.stdout: b"", self.process.stderr: b""}
        self.open = set(self.texts)

    def read(self, deadline, enough):
        """Reads until enough() is true or both pipes are closed; Failure when time runs out."""
        with selectors.DefaultSelector() as waiting:
            for pipe in self.open:
                waiting.register(pipe, selectors.EVENT_READ)
            while self.open and not enough():
                self.read_what_is_there(waiting, deadline)

    def read_what_is_there(self, waiting, deadline):
        found = waiting.select(max(0, deadline - time.monotonic()))
        if not found:
            raise Failure(f"{self.name}: time-out")
        for pipe in (key.fileobj for key, _ in found):
            piece = os.read(pipe.fileno(), PIECE)
            self.texts[pipe] += piece
            if not piece:
                waiting.unregister(pipe)
                self.open.discard(pipe)

    def output(self):
        return self.texts[self.process.stdout].decode("utf-8", "replace")

    def complaint(self):
        """The end of what it said on standard error, in one line."""
        text = self.texts[self.process.stderr].decode("utf-8", "replace").strip() or self.output()
        return " | ".join(text.strip().splitlines()[-3:])[-TEXT_SHOWN_MAX:]

    def wait_ready(self, pair, deadline):
        if pair.ready is None:
            self.wait_listening(pair.port, deadline)
            return
        word = pair.ready.encode()
        self.read(deadline, lambda: word in self.texts[self.process.stdout])
        if word not in self.texts[self.process.stdout]:
            self.finish(deadline)
            raise Failure(f"{self.name} ended before it was ready")

    def wait_listening(self, port, deadline):
        while not program.is_listening(self.process.pid, port):
            if self.process.poll() is not None:
                self.finish(deadline)
                raise Failure(f"{self.name} ended before it listened")
            if time.monotonic() > deadline:
                raise Failure(f"{self.name} does not listen: time-out")
            time.sleep(program.POLL_SECONDS)

    def finish(self, deadline):
        """Waits for its end; Failure unless its status is 0."""
        self.read(deadline, lambda: False)
        try:
            status = self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise Failure(f"{self.name}: time-out") from error
        if status < 0:
            raise Failure(f"{self.name} died of {signal.Signals(-status).name}: "
                          f"{self.complaint()}")
        if status:
            raise Failure(f"{self.name} ended with status {status}: {self.complaint()}")

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for pipe in self.texts:
            pipe.close()


def run(pair):
    """What the client printed."""
    deadline = time.monotonic() + pair.seconds
    ends = []
    try:
        server = End("server", [*pair.bed.server_prefix, *pair.server], pair.env)
        ends.append(server)
        server.wait_ready(pair, deadline)
        client = End("client", [*pair.bed.client_prefix, *pair.client], pair.env)
        ends.append(client)
        finish_both(server, client, deadline)
        return client.output()
    finally:
        for end in ends:
            end.close()


def finish_both(server, client, deadline):
    """When the client fails, the server often knows why: it is heard, too."""
    try:
        client.finish(deadline)
    except Failure as failure:
        try:
            server.finish(time.monotonic() + 0.5)
        except Failure as second:
            if "time-out" not in str(second):
                raise Failure(f"{failure}; {second}") from failure
        raise
    server.finish(min(deadline, time.monotonic() + SERVER_END_SECONDS))
