# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What an ordinary sockets program can do, it can do with the preloaded library: over iWARP, and where
one end is plain. sockets_peer.py has the scenes; each passes over bare TCP, too."""

import atexit
import functools
import os
import pathlib
import sys
import tempfile

import certificates
import conftest
import pytest

import sockets_peer

PEER = pathlib.Path(__file__).with_name("sockets_peer.py")
LIBRARY = conftest.BUILD / "lib" / "libanywarp-sockets.so"
# Neither interpreter nor kernel know the option without the library.
SCENES = sorted(set(sockets_peer.CONNECT) - {"delayed", "called_off", "at_once"})
SIGKILLED = -9
# Each end's rules; None is an end without the library, "record" is `on`, and "on" is that
# without records: the proxy carries the connection. "tls" is `on` as well, and requires TLS.
PAIRS = {"tcp": (None, None), "on": ("on", "on"), "record": ("record", "record"), "auto": ("auto", "auto"),
         "on_and_record": ("on", "record"), "record_and_on": ("record", "on"), "plain_client": ("auto", None),
         "plain_server": (None, "auto"), "tls": ("tls", "tls")}
if conftest.SANITIZER:
    del PAIRS["tcp"]  # nothing of ours is in it: it proves the scenes


@functools.cache
def authority():
    """A certificate of both ends, which lasts as long as the tests."""
    folder = tempfile.TemporaryDirectory(prefix="anywarp-scenes-")
    atexit.register(folder.cleanup)
    return certificates.Authority(pathlib.Path(folder.name) / "ca").issue("scenes")


def environment(logs, rules):
    """Of a program under test with the library before libc, or without it."""
    env = conftest.environment(logs)
    if rules is None:
        return env
    env["LD_PRELOAD"] = " ".join(filter(None, [env.get("LD_PRELOAD"), str(LIBRARY)]))
    env["ANYWARP_SOCKETS_RULES"] = "on" if rules in ("record", "tls") else rules
    if rules == "tls":
        env.update(certificates.variables(authority(), "scenes"))
    if rules == "on":
        env["ANYWARP_SOCKETS_RECORD"] = "off"
    return env


class Ends:
    def __init__(self, port):
        self.port = port
        self.programs = []

    def start(self, role, scene, env):
        argv = [sys.executable, "-S", str(PEER), role, scene, str(self.port)]
        program = conftest.program.Program(argv, env=env)
        self.programs.append(program)
        return program

    def report(self):
        return "\n".join(program.report() for program in self.programs)


def play(scene, pair, port, logs):
    server_rules, client_rules = pair
    ends = Ends(port)
    try:
        if scene in sockets_peer.SERVE:
            server = ends.start("serve", scene, environment(logs, server_rules))
            server.wait_listening(port)
        client = ends.start("connect", scene, environment(logs, client_rules))
        assert client.wait_exit() == 0, ends.report()
        if scene in sockets_peer.SERVE:
            wanted = SIGKILLED if scene == "killed" else 0
            assert server.wait_exit() == wanted, ends.report()
    finally:
        for program in ends.programs:
            program.close()


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("scene", SCENES)
def test_scene(scene, pair, port, tmp_path):
    if scene == "untouched" and pair == "record_and_on":
        pytest.skip("the client's Request comes from its proxy, when the server has closed: the kernel answers by a reset")
    play(scene, PAIRS[pair], port, tmp_path)


@pytest.mark.parametrize("mode", ["on", "record"])
def test_called_off(mode, port, tmp_path):
    play("called_off", ("off", mode), port, tmp_path)


def test_client_comes_at_once(port, tmp_path):
    """A server that listens answers, however late on a loaded machine."""
    play("at_once", PAIRS["record"], port, tmp_path)


def test_delayed_start(port, tmp_path):
    """By setsockopt, whatever the rules say."""
    play("delayed", ("off", "off"), port, tmp_path)
