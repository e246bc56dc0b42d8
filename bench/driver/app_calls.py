# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Remote procedure calls: ONC RPC by libtirpc (bench-rpc), gRPC by its Python package (grpc_peer.py). Each answer is compared."""

import os
import pathlib

import application

GRPC_PEER = str(pathlib.Path(__file__).resolve().with_name("grpc_peer.py"))


class Rpc(application.Application):
    """A call whose argument comes back; with 0 bytes an empty one."""

    def __init__(self, way, workers):
        super().__init__(way)
        self.path = os.path.join(workers, "bench-rpc")

    def missing(self):
        if not os.access(self.path, os.X_OK):
            return f"no program {self.path}: it is built where libtirpc-dev is installed"
        return super().missing()

    def measure(self, scene, keys, seconds):
        port = scene.port()
        where = [scene.bed.address, str(port)]
        scene.server([self.path, "server", *where], port)
        found = application.json_in(scene.load([self.path, "client", *where, str(seconds), str(keys["size"])]))
        return {**found, "operations": found["iterations"], "checked": f"{keys['size']} bytes of each answer"}


class Grpc(application.Application):
    """Unary calls, and a stream of messages from the server."""

    def __init__(self, way, python):
        super().__init__(way)
        self.python = python

    def missing(self):
        if not self.python:
            return "grpcio is not installed (Debian package python3-grpcio)"
        return super().missing()

    def measure(self, scene, keys, seconds):
        port = scene.port()
        where = [scene.bed.address, str(port)]
        scene.server([self.python, GRPC_PEER, "server", *where], port)
        return application.json_in(scene.load(
            [self.python, GRPC_PEER, "client", *where, keys["kind"], str(keys["size"]), str(seconds)]))
