# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Strangers by the thousand, and a process that may have few files. Those that have not begun a connection of the
program's, or no longer have one, hold a quarter of what it may have at most: it opens files as it likes
meanwhile, and a client that is none is served. RFC 5042 6.4.1."""

import resource
import socket

import ground
import iwarp
import pytest
from attacker import SECONDS_MAX, Attacker
from test_floods import unread_octets

FILES_MAX = 256
STRANGERS = 2000
LOOK_EVERY = 50


pytestmark = [pytest.mark.usefixtures("many_files"),
              pytest.mark.skipif(ground.KERNEL, reason="sockets of the module are no files of the process")]


@pytest.fixture
def victim(own_victim):
    pid = own_victim.process.pid
    _, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (FILES_MAX, most))
    return own_victim


WORDS = {
    "nothing": b"",
    "half a Request": iwarp.start_frame(private=bytes(100))[:60],
    "a Request": iwarp.start_frame(),
}


@pytest.mark.parametrize("word", WORDS)
def test_strangers_leave_files(victim, word):
    """To count its files the victim opens one. A Request is held until the program takes it; those that it has no
    room for are rejected, and such a stranger does not close his end."""
    before, strangers = victim.open_fds(), []
    for number in range(STRANGERS):
        sock = socket.create_connection(victim.where, SECONDS_MAX)
        sock.sendall(WORDS[word])
        strangers.append(sock)
        if number % LOOK_EVERY == 0:
            assert victim.open_fds() - before <= FILES_MAX // 4
    if word == "a Request":
        victim.wait_until(lambda: unread_octets(victim) == 0, "the Requests to be read")
        victim.ask("refuse")
    peer = Attacker.accepted(victim)
    assert victim.open_fds() - before <= FILES_MAX // 4 + 1
    peer.drop()
    for sock in strangers:
        sock.close()
    victim.wait_until(lambda: victim.open_fds() <= before, "the sockets to be closed")
