# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Sockets programs, unmodified: as they are, with libanywarp-sockets.so loaded and no socket of theirs
in iWARP mode, and with all of them in it. The same programs and the same keys each time."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import applications
import pair
import program
import workers
from values import MI

LIBRARY = "libanywarp-sockets.so"
RPC = "bench-rpc"
SECONDS_MAX = 30
FILE_NAME = "file"
VSFTPD = """listen=YES
listen_address={address}
listen_port={port}
background=NO
run_as_launching_user=YES
anonymous_enable=YES
local_enable=NO
anon_root={folder}/root
seccomp_sandbox=NO
"""


def environment(libraries, rule):
    """What makes a program run under the library with this one rule; None: as it is. "proxy" is `on`, and the proxy
    process carries all connections."""
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

    def __init__(self, folder, libraries, rule):
        super().__init__("tcp", folder, "")
        self.why_not = no_library(libraries, rule)
        self.env = environment(libraries, rule)

    def missing(self):
        return super().missing() or self.why_not


class Rpc:
    """Empty calls by libtirpc."""

    def __init__(self, folder, libraries, rule):
        self.path = os.path.join(folder, RPC)
        self.why_not = no_library(libraries, rule)
        self.env = environment(libraries, rule)

    def missing(self):
        if not os.access(self.path, os.X_OK):
            return f"no program {self.path}: it is built where libtirpc-dev is installed"
        return self.why_not

    def run(self, bed, series, seconds):
        with program.borrowed_port() as port:
            where = [bed.address, str(port)]
            output = pair.run(pair.Pair(
                bed=bed, port=port, ready="ready", env=self.env,
                server=[self.path, "server", *where],
                client=[self.path, "client", *where, str(seconds)], seconds=SECONDS_MAX))
        try:
            return json.loads(output)
        except ValueError as error:
            raise pair.Failure(f"client printed no JSON: {output.strip()[:200]!r}") from error


class Ftp:
    """vsftpd and tnftp, as Debian has them; the file lies in memory and is thrown away by the client.
    The rate is the client's own: bytes of the file by the time of its transfer."""

    def __init__(self, libraries, rule):
        self.why_not = no_library(libraries, rule)
        self.env = environment(libraries, rule)

    def missing(self):
        for name in ("vsftpd", "tnftp"):
            if not shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin"):
                return f"{name} is not installed (Debian package {name})"
        return self.why_not

    def run(self, bed, series, seconds):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            root = os.path.join(folder, "root")
            os.mkdir(root)
            with open(os.path.join(root, FILE_NAME), "wb") as file:
                file.write(os.urandom(MI) * (series.keys["size"] // MI))
            # vsftpd wants a root that its guests cannot write to.
            os.chmod(root, 0o555)
            os.chmod(folder, 0o755)
            with program.borrowed_port() as port:
                return self.fetch(bed, folder, port, series.keys["size"])

    def fetch(self, bed, folder, port, octets):
        settings = os.path.join(folder, "vsftpd.conf")
        with open(settings, "w", encoding="ascii") as file:
            file.write(VSFTPD.format(address=bed.address, port=port, folder=folder))
        server = ["/usr/sbin/vsftpd", settings]
        with contextlib.closing(pair.End("vsftpd", [*bed.server_prefix, *server], self.env)) as end:
            end.wait_listening(port, time.monotonic() + SECONDS_MAX)
            client = [*bed.client_prefix, "tnftp", "-V", "-v", "-o", "/dev/null",
                      f"ftp://{bed.address}:{port}/{FILE_NAME}"]
            try:
                done = subprocess.run(client, env=self.env, capture_output=True, text=True,
                                      timeout=SECONDS_MAX, check=False)
            except subprocess.TimeoutExpired as error:
                raise pair.Failure("tnftp: time-out") from error
        return parse_tnftp(done.stdout + done.stderr, octets)


def parse_tnftp(output, octets):
    """Its line is '19922944 bytes received in 00:00 (1.21 GiB/s)'."""
    found = re.search(r"(\d+) bytes received in \S+ \(([\d.]+) ([KMG]?)i?B/s\)", output)
    if not found or int(found[1]) != octets:
        raise pair.Failure(f"tnftp received no file of {octets} bytes: {output[-200:]!r}")
    unit = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[found[3]]
    return {"test": "ftp", "octets": octets, "octets_per_second": float(found[2]) * unit}


def programs(folder, libraries):
    """By the name that a series has for them."""
    rules = {"tcp": None, "sockets-off": "off", "sockets-on": "on", "sockets-proxy": "proxy"}
    return {**{name: Tcp(folder, libraries, rule) for name, rule in rules.items() if rule},
            **{f"rpc-{name}": Rpc(folder, libraries, rule) for name, rule in rules.items()},
            **{f"ftp-{name}": Ftp(libraries, rule) for name, rule in rules.items()},
            **{f"{test}-{name}": served(no_library(libraries, rule), environment(libraries, rule))
               for name, rule in rules.items()
               for test, served in (("redis", applications.Redis), ("nginx", applications.Nginx))}}
