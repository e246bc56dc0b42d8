# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A middlebox that is no good: it passes one connection on and flips a bit of one octet."""

import contextlib
import socket
import threading

import program

CHUNK_OCTETS = 65536


class Spoiler:
    """Spoils the octet at that position of what the client sends."""

    def __init__(self, there, spoiled_at):
        self.there, self.spoiled_at = there, spoiled_at
        self.port = program.free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(("127.0.0.1", self.there))
        threading.Thread(target=self.relay, args=(server, client, None), daemon=True).start()
        self.relay(client, server, self.spoiled_at)

    @staticmethod
    def relay(source, sink, spoiled_at):
        passed = 0
        while True:
            try:
                octets = bytearray(source.recv(CHUNK_OCTETS))
                if spoiled_at is not None and 0 <= spoiled_at - passed < len(octets):
                    octets[spoiled_at - passed] ^= 1
                passed += len(octets)
                sink.sendall(octets)
                if not octets:
                    sink.shutdown(socket.SHUT_WR)
            except OSError:
                # One end was reset: the other one hears of an end as well.
                octets = b""
                with contextlib.suppress(OSError):
                    sink.shutdown(socket.SHUT_RDWR)
            if not octets:
                return
