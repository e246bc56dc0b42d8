# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A key-value cache's transfer engine, NIXL with its UCX backend (engine_peer.py): UCX over TCP, as it is and under
libanywarp-sockets.so, and over verbs in the roce persona, since UCX connects its QPs itself."""

import os
import pathlib

import app_mpi
import application

PEER = str(pathlib.Path(__file__).resolve().with_name("engine_peer.py"))
OVER_TCP = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}
OVER_VERBS = {"UCX_TLS": "rc_verbs,ud_verbs", "UCX_NET_DEVICES": "anywarp0:1"}


class Engine(application.Application):
    prefix, settings = [], OVER_TCP

    def __init__(self, way, python):
        super().__init__(way)
        self.python = python

    def missing(self):
        if not self.python:
            return "NIXL is not installed ('./dev bench --apps' does that, from Python's package index; else activate a venv with it)"
        return super().missing()

    def measure(self, scene, keys, seconds):
        port, size = scene.port(), str(keys["size"])
        peer = [*self.prefix, "env", *[f"{name}={value}" for name, value in self.settings.items()], self.python, PEER]
        where = [scene.bed.address, str(port), size]
        scene.server([*peer, "server", *where], port)
        return application.json_in(scene.load([*peer, "client", *where, str(seconds)]))


class OverVerbs(Engine):
    """NIXL's wheel has a libibverbs under another name; LD_PRELOAD has anywarp's come before it."""
    settings = OVER_VERBS

    def __init__(self, libraries, python):
        verbs = {"LD_PRELOAD": os.path.join(libraries, "libibverbs.so.1")}
        super().__init__(application.Way("ucx-roce", {**os.environ, **verbs}, None), python)
        self.prefix = [app_mpi.command_of(libraries), "run", "--persona", "roce", "--"]
