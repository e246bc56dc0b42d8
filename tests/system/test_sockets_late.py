# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A program that comes late to a connection finds it as TCP would have kept it, though the start-up's limit is
over: the log of the end that waits tells when. late_peer.py is both ends."""

import os
import pathlib
import re
import shutil
import sys
import time

import conftest
import pytest

PEER = pathlib.Path(__file__).with_name("late_peer.py")
LIB = conftest.BUILD / "lib"
HURRY = conftest.BUILD / "tests" / "libhurry.so"
STARTUP_MS = 200
SECONDS_MAX = 30 * conftest.program.SLOWNESS
NO_REPLY = "no mpa reply yet"


def make_library(where):
    """Ours, whose proxy gives start-ups little time."""
    for library in LIB.glob("*.so*"):
        (where / library.name).symlink_to(library)
    (where / "libanywarp-sockets.so").unlink()
    shutil.copy(LIB / "libanywarp-sockets.so", where)
    proxy = where / "anywarp-proxy"
    proxy.write_text(f"#!/bin/sh\nLD_PRELOAD={HURRY} exec {LIB}/anywarp-proxy\n")
    proxy.chmod(0o755)
    return where / "libanywarp-sockets.so"


class Ends:
    def __init__(self, port, where):
        self.port, self.where = port, where
        self.library = make_library(where)
        self.fifo = where / "go"
        os.mkfifo(self.fifo)
        self.programs = []

    def start(self, role, scene, rules):
        env = {**conftest.environment(self.where), "AW_GO": str(self.fifo), "ANYWARP_LOG": "info",
               "ANYWARP_TEST_STARTUP_MS": str(STARTUP_MS), "LD_LIBRARY_PATH": str(self.where)}
        if rules:
            env["LD_PRELOAD"] = " ".join(str(library) for library in (env.get("LD_PRELOAD"), self.library) if library)
            env["ANYWARP_SOCKETS_RULES"] = rules
            env["ANYWARP_SOCKETS_RECORD"] = "off"  # a record's start-up has no limit, and no log
        started = conftest.program.Program([sys.executable, str(PEER), role, scene, str(self.port)], env=env)
        self.programs.append(started)
        return started

    def go(self):
        self.fifo.write_text("")

    def report(self):
        return "\n".join(each.report() for each in self.programs)

    def close(self):
        for each in self.programs:
            each.close()


@pytest.fixture
def ends(port, tmp_path):
    opened = Ends(port, tmp_path)
    yield opened
    opened.close()


def await_words(program, words):
    """Of the program, or of its proxy when it has ended."""
    deadline = time.monotonic() + SECONDS_MAX
    while not re.search(words, program.output()):
        assert time.monotonic() < deadline, program.report()
        time.sleep(0.01)


def finish(ends):
    for each in reversed(ends.programs):
        assert each.wait_exit(SECONDS_MAX) == 0, ends.report()


@pytest.mark.parametrize("client", ["speaks", "polls", "closes", "forks"])
def test_server_accepts_late(ends, client):
    server = ends.start("serve", "accepts", "on")
    await_words(server, "listens")
    await_words(ends.start("connect", client, "on"), NO_REPLY)
    ends.go()
    finish(ends)


def test_server_touches_late(ends):
    server = ends.start("serve", "touches", "on")
    await_words(server, "listens")
    await_words(ends.start("connect", "speaks", "on"), NO_REPLY)
    ends.go()
    finish(ends)


@pytest.mark.parametrize("server", ["waits", "forks"])
def test_client_speaks_late(ends, server):
    waiting = ends.start("serve", server, "on")
    await_words(waiting, "listens")
    await_words(ends.start("connect", "waits", "on"), "connected")
    ends.go()
    finish(ends)


@pytest.mark.parametrize("rules", [("auto", None), (None, "auto")], ids=["plain client", "plain server"])
@pytest.mark.parametrize("late", ["server", "client"])
def test_plain_peer_notices_nothing(ends, rules, late):
    server = ends.start("serve", "accepts" if late == "server" else "waits", rules[0])
    await_words(server, "listens")
    client = ends.start("connect", "speaks" if late == "server" else "waits", rules[1])
    if late == "client":
        await_words(client, "connected")
    ends.go()
    finish(ends)
