# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The ways in which sockets programs run, all of them unmodified: as they are, and under libanywarp-sockets.so with one rule
for all of their sockets."""

import os

import app_calls
import app_files
import app_servers
import application
import workers

LIBRARY = "libanywarp-sockets.so"
# The rule of each way, by the name of its series; both ends of a run have the same. None is a program as it is. On one host
# "auto" is a pair of the kernel's. "proxy" is "on", and the proxy process carries all connections.
WAYS = {"tcp": None, "pass-through": "off", "auto": "auto", "iwarp-proxy": "proxy", "iwarp": "on"}


def environment(libraries, rule):
    """What makes a program run under the library with this one rule."""
    env = dict(os.environ)
    if rule is None:
        return env
    env["LD_PRELOAD"] = " ".join(filter(None, (library(libraries), env.get("LD_PRELOAD"))))
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, (libraries, env.get("LD_LIBRARY_PATH"))))
    env["ANYWARP_SOCKETS_RULES"] = "on" if rule == "proxy" else rule
    env.pop("ANYWARP_SOCKETS_RECORD", None)
    if rule == "proxy":
        env["ANYWARP_SOCKETS_RECORD"] = "off"
    return env


def library(libraries):
    return os.path.join(libraries, LIBRARY)


def no_library(libraries, rule):
    if rule is None or os.access(library(libraries), os.R_OK):
        return None
    return f"no {library(libraries)}: build it ('./dev build') or install anywarp again"


class Tcp(workers.Worker):
    """bench-tcp under the library."""

    def __init__(self, folder, way):
        super().__init__("tcp", folder, "")
        self.why_not, self.env = way.why_not, way.env

    def missing(self):
        return super().missing() or self.why_not


def all_ways(libraries):
    return [application.Way(name, environment(libraries, rule), no_library(libraries, rule)) for name, rule in WAYS.items()]


def programs(folder, libraries):
    """By the name that a series has for them."""
    made = {}
    for way in all_ways(libraries):
        made.update({
            f"bench-tcp:{way.name}": Tcp(folder, way), f"rpc:{way.name}": app_calls.Rpc(way, folder),
            f"ftp:{way.name}": app_files.Ftp(way), f"redis:{way.name}": app_servers.Redis(way),
            f"nginx:{way.name}": app_servers.Nginx(way), f"memcached:{way.name}": app_servers.Memcached(way),
            f"pgbench:{way.name}": app_servers.Postgres(way)})
    return made
