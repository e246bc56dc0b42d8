# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where a test of unmodified programs happens: a directory, servers on free ports, clients, and the
mode that all of them run in. What went over the wire is judged from outside (tap.py), so a program
that quietly fell back to TCP fails its test."""

import collections
import filecmp
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

import certificates
import program
import tap

ADDRESS = "127.0.0.1"
PYTHON = "/usr/bin/python3"  # Debian's
SECONDS_MAX = program.SECONDS_MAX
ATTENDS_SECONDS = 5
REPORTED_MAX = 8  # programs
# Small enough for loopback in a moment, and sizes around the edges of buffers.
SIZES = (0, 1, 4096, 65535, 65537, 3_000_017)

# Where nginx puts what it does not serve, in its own directory.
NGINX_PATHS = " ".join(f"{use}_temp_path temp;" for use in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))



def nginx_user(mode):
    """nginx's workers give up root; a pair's ends are of one user."""
    if os.geteuid() != 0:
        return ""
    return "user root;" if mode.pair else "user www-data;"


# Whether connections over iWARP are to be records: not with ANYWARP_SOCKETS_RECORD=off, which the programs inherit.
RECORDS = os.environ.get("ANYWARP_SOCKETS_RECORD") != "off"

# How long two ends in `auto` wait for each other: a busy machine is no plain peer.
PATIENCE = {"ANYWARP_SOCKETS_PAIR_MS": 5000}

# server and client are rules of `anywarp sockets`, or None: without our library. iwarp tells
# whether every connection has to be one over iWARP, pair whether none may carry an octet over TCP, tls whether each has to begin
# with TLS and show nothing of MPA.
Mode = collections.namedtuple("Mode", "name server client iwarp pair tls", defaults=(False, False))
MODES = (
    Mode("plain", None, None, False),
    Mode("off", "off", "off", False),
    Mode("on", "on", "on", True),
    Mode("auto", "auto", "auto", False, True),
    Mode("plain_client", "auto", None, False),
    Mode("plain_server", None, "auto", False),
)
# For who asks for it: it is the proxy process that carries every connection, as it does in `on` without records.
TLS = Mode("tls", "on", "on", True, False, True)
# The same without MPA within.
TLS_PLAIN = Mode("tls_plain", "tls-plain", "tls-plain", True, False, True)
TLS_NAME = "programs"


class Install:
    """What the programs load, in a directory that every user may read."""

    def __init__(self, build, folder):
        self.folder = folder
        for part, pattern in (("bin", "anywarp"), ("lib", "lib*.so*"), ("lib", "anywarp-*")):
            target = folder / part
            target.mkdir(exist_ok=True)
            for path in sorted((build / part).glob(pattern)):
                shutil.copy2(path, target / path.name, follow_symlinks=False)
        open_to_all(folder)
        self.files = None  # a certificate, its key and its CA, once a program needs them

    def tls(self):
        """The options by which both ends show the same certificate. Servers change their user: all may read its key."""
        if not self.files:
            self.files = certificates.Authority(self.folder / "ca").issue("host", f"DNS:{TLS_NAME}")
            open_to_all(self.folder / "ca")
        return ["--tls", "require", "--tls-cert", str(self.files.cert), "--tls-key", str(self.files.key),
                "--tls-ca", str(self.files.ca), "--tls-name", TLS_NAME]

    def prefix(self, rule, tls=False):
        """What goes before a command line for it to run by the rule."""
        if rule is None:
            return []
        rules = [argument for each in rule.splitlines() for argument in ("--rule", each)]
        return [str(self.folder / "bin" / "anywarp"), "sockets", *rules, *(self.tls() if tls else []), "--"]

    def processes(self):
        """Those that run a program of ours, as the library may start one."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                program_file = pathlib.Path("/proc", name, "exe").readlink()
            except OSError:  # it has ended, or is not ours to look at
                continue
            if self.folder in program_file.parents:
                found.append(int(name))
        return found

    def wait_gone(self, seconds=SECONDS_MAX):
        """Everything of ours ends by itself once the programs are gone."""
        deadline = time.monotonic() + seconds
        while left := self.processes():
            assert time.monotonic() < deadline, f"processes stay behind: {left}"
            time.sleep(program.POLL_SECONDS)


def open_to_all(folder):
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def new_folder():
    """A temporary directory that other users may enter, as servers change to theirs."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="anywarp-test-"))
    folder.chmod(0o755)
    return folder


def as_user(name):
    """What goes before a command line for root to run it as another user."""
    if name is None or os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid", name, "--regid", group_of(name), "--clear-groups", "--"]


def group_of(name):
    return subprocess.run(["id", "-gn", name], check=True, capture_output=True,
                          text=True).stdout.strip()


def random_file(path, octets):
    """Octets that no two files share; their seed is their name and size, so a failure repeats."""
    path.write_bytes(random.Random(f"{path.name} {octets}").randbytes(octets))
    path.chmod(0o644)
    return path


class Scene:
    """One test's: everything it starts ends with it."""

    def __init__(self, mode, install):
        self.mode, self.install = mode, install
        self.folder = new_folder()
        self.home = self.folder / "home"
        self.home.mkdir(mode=0o755)
        self.tap = tap.Tap()
        self.programs, self.ports, self.judged, self.pairs = [], [], set(), set()
        self.pair = mode.pair  # a test that says False says why

    def port(self, more=0):
        """A free port for a server, with so many free ones behind it; every connection to it is judged at the end."""
        self.ports.append(program.free_ports(1 + more))
        return self.ports[-1]

    def file(self, name, octets):
        return random_file(self.folder / name, octets)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def directory(self, name, user=None):
        path = self.folder / name
        path.mkdir(mode=0o755)
        if user and os.geteuid() == 0:
            shutil.chown(path, user, group_of(user))
        return path

    def start(self, line, rule, user=None, **env):
        """A command line, split as a shell would, or a list."""
        argv = shlex.split(line) if isinstance(line, str) else [str(each) for each in line]
        settings = [f"{name}={value}" for name, value in env.items()]
        if self.mode.pair:
            settings += [f"{name}={value}" for name, value in PATIENCE.items()]
        whole = [*as_user(user), "env", f"--chdir={self.folder}", f"HOME={self.home}", *settings,
                 *self.install.prefix(rule, self.mode.tls), *argv]
        self.programs.append(program.Program(whole))
        return self.programs[-1]

    def server(self, line, port, rule="mode", user=None, **env):
        """Starts a server and waits until it listens, and until clients in auto may know it, which is once it waits for connections: those that
        come before are TCP's, as those to a server of which the library sees no wait, after some seconds."""
        rule = self.mode.server if rule == "mode" else rule
        started = self.start(line, rule, user, **env)
        started.wait_listening(port, SECONDS_MAX)
        deadline = time.monotonic() + ATTENDS_SECONDS
        while self.pair and rule == "auto" and not is_attended(port) and time.monotonic() < deadline:
            time.sleep(program.POLL_SECONDS)
        return started

    def client(self, line, user=None, status=0, rule="mode", **env):
        """Runs a client to its end and gives what it printed."""
        started = self.start(line, self.mode.client if rule == "mode" else rule, user, **env)
        ended = started.wait_exit(SECONDS_MAX)
        if ended != status:
            raise program.Trouble(f"expected status {status}\n{started.report()}")
        return started.output()

    def status(self, started):
        """What `anywarp sockets --status` tells of a program, or why it does not."""
        command = [*self.install.prefix("off")[:2], "--status", str(started.pid)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX,
                              check=False)
        return done.stdout + done.stderr

    def stop(self, started, signum=signal.SIGTERM):
        """Ends one server as its user would, and waits for it."""
        os.kill(started.pid, signum)
        return started.wait_exit(SECONDS_MAX)

    def judge(self, port, iwarp=None, unused=False, silent=False, pair=None):
        """Whether all connections to the port so far were what the mode wants. unused: the server
        may have closed some without looking at them, and so without a Reply. silent: it may have
        written nothing to some; a record's Reply goes out with its first FPDU. pair False: some ends are no pair, as those of two
        users never are."""
        pair = self.pair if pair is None else pair
        iwarp = self.mode.iwarp if iwarp is None else iwarp
        unused = unused or silent and RECORDS
        seen = self.tap.seen(port)
        assert seen.opened, f"nobody connected to port {port}"
        wanted = seen.opened if iwarp and not self.mode.tls else 0
        assert seen.hellos == (seen.opened if iwarp and self.mode.tls else 0), f"port {port}: {seen}"
        assert seen.requests == wanted, f"port {port}: {seen}"
        assert seen.replies == wanted or unused and seen.replies < wanted, f"port {port}: {seen}"
        assert seen.records == (wanted if RECORDS else 0), f"port {port}: {seen}"
        assert not pair or not seen.carried, f"port {port}: {seen}"
        if pair:
            self.pairs.add(port)
        self.judged.add(port)

    def judge_all(self):
        """Of every port that was not judged by the test itself."""
        for port in self.ports:
            if port not in self.judged:
                self.judge(port)

    def report(self):
        ports = [f"port {port}: {self.tap.seen(port)}" for port in self.ports]
        shown = [started.report() for started in self.programs]
        if len(shown) > REPORTED_MAX:
            shown[REPORTED_MAX // 2:-REPORTED_MAX // 2] = [f"[{len(shown) - REPORTED_MAX} programs]"]
        return "\n".join([*shown, *ports])

    def close(self):
        for started in reversed(self.programs):
            started.close()
        carried = [port for port in self.pairs if self.tap.seen(port).carried]
        self.tap.socket.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not carried, f"connections that were open when they were judged, and no pairs, to {carried}"


def is_attended(port):
    """Whether a listener at the port is registered for clients in auto: src/xsock/pair/name.c has the name, which ends with the port."""
    name = re.compile(rf"@anywarp-listener:[0-9a-f]+{port:04x}$", re.MULTILINE)
    return name.search(pathlib.Path("/proc/net/unix").read_text(encoding="latin-1")) is not None


def same_file(left, right):
    """Octet by octet, not by size and time."""
    return filecmp.cmp(left, right, shallow=False)


def ask_by_ab(scene, keep, requests, url, octets):
    """keep: -k, or nothing for a connection for each request."""
    said = scene.client(f"ab -q {keep} -n {requests} -c 8 {url}")
    assert int(re.search(r"Complete requests: +(\d+)", said)[1]) == requests
    assert int(re.search(r"Failed requests: +(\d+)", said)[1]) == 0, said
    assert int(re.search(r"HTML transferred: +(\d+)", said)[1]) == requests * octets, said
    assert "Non-2xx" not in said, said
