# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where a test of unmodified RDMA programs happens: a directory, programs under `anywarp run`, and a
judge of what went over the wire. The network namespace is this test file's alone (with-net), so what
its kernel counted is what these programs sent. Where there is a second host (hosts.py), clients run there."""

import contextlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess

import pytest

import hosts
import program
import tap

HERE = pathlib.Path(__file__).resolve().parent
CHECKED = os.environ.get("ANYWARP_TEST_CHECKED") == "1"  # every program runs under `anywarp check`
TLS = os.environ.get("ANYWARP_TEST_TLS") == "1"  # and none connects without mutual TLS
SECURED = "connection secured by tls peer "  # the log has it once for each end
SECONDS_MAX = program.SECONDS_MAX * (4 if CHECKED else 1)
PERSONAS = ("iwarp", "roce")


def need(*names):
    """Skips a test whose programs are not installed, and so are no part of this run."""
    missing = [name for name in names if not shutil.which(name)]
    if missing:
        pytest.skip(f"not installed: {' '.join(missing)}")


def counted(proc_net, file, group, name):
    """A counter of the network namespace that this directory of /proc is of."""
    with open(f"{proc_net}/{file}", encoding="ascii") as lines:
        rows = [line.split() for line in lines if line.startswith(f"{group}:")]
    return int(dict(zip(rows[0], rows[1]))[name])


def counted6(proc_net, name):
    """One of IPv6."""
    with open(f"{proc_net}/snmp6", encoding="ascii") as lines:
        return int(dict(line.split() for line in lines)[name])


class Wire:
    """What went over it since it was made. A tap sees what comes to its host by one family, so that each host has two."""

    def __init__(self, far):
        self.networks, self.taps = ["/proc/self/net"], []
        self.add_taps()
        if far:
            self.networks.append(far.proc_net)
            with far.network():
                self.add_taps()
        self.octets_before, self.datagrams_before = self.octets_now(), self.datagrams_now()

    def add_taps(self):
        self.taps += [tap.Tap(family) for family in (socket.AF_INET, socket.AF_INET6)]

    def octets_now(self):
        return sum(counted(each, "netstat", "IpExt", "OutOctets") + counted6(each, "Ip6OutOctets") for each in self.networks)

    def datagrams_now(self):
        return sum(counted(each, "snmp", "Udp", "OutDatagrams") + counted6(each, "Udp6OutDatagrams") for each in self.networks)

    def octets(self):
        return self.octets_now() - self.octets_before

    def datagrams(self):
        return self.datagrams_now() - self.datagrams_before

    def connections(self):
        """Those over iWARP: an MPA Request that was accepted."""
        return sum(each.seen(port).replies for each in self.taps for port in each.ports())

    def close(self):
        for each in self.taps:
            each.socket.close()


class Scene:
    """One test's: everything it starts ends with it."""

    def __init__(self, persona, build, folder, far=None, tls=()):
        """tls: the options by which `anywarp run` requires it."""
        self.persona, self.folder, self.far, self.tls = persona, folder, far, list(tls)
        self.build = build
        self.anywarp = str(build / "bin" / "anywarp")
        self.address = os.environ["ANYWARP_TEST_NET"]
        self.client_address = hosts.ADDRESS if far else self.address
        self.wire = Wire(far)
        self.programs = []
        self.reports = []  # of each program under the checker, a file

    def port(self):
        return program.free_port()

    def library(self, name):
        """The path of one of ours, for LD_PRELOAD."""
        return str(self.build / "lib" / name)

    def prefix(self, *options):
        """What a user writes before a program; the iwarp persona needs no word."""
        chosen = self.tls + ([] if self.persona == "iwarp" else ["--persona", self.persona])
        if not CHECKED:
            return [self.anywarp, "run", *chosen, *options, "--"]
        self.reports.append(self.folder / f"reports-{len(self.reports)}.json")
        return [self.anywarp, "check", "--exit-code", "0", "--json", str(self.reports[-1]), *chosen, *options, "--"]

    def start(self, line, options=(), plain=False, far=False, **env):
        """A command line, split as a shell would, or a list; plain: without anywarp; far: on the second host, if there is one."""
        argv = shlex.split(line) if isinstance(line, str) else [str(each) for each in line]
        need(argv[0])
        settings = [f"{name}={value}" for name, value in env.items()]
        before = [] if plain else self.prefix(*options)
        into = self.far.into if far and self.far else []
        whole = [*into, "env", f"--chdir={self.folder}", *settings, *before, "stdbuf", "-oL", *argv]
        self.programs.append(program.Program(whole))
        return self.programs[-1]

    def server(self, line, port, **how):
        """Starts a server and waits until it listens."""
        started = self.start(line, **how)
        started.wait_listening(port, SECONDS_MAX)
        return started

    def client(self, line, **how):
        return self.start(line, far=True, **how)

    def set_mtu(self, mtu):
        for into in ([], self.far.into) if self.far else ([],):
            subprocess.run([*into, "ip", "link", "set", hosts.INTERFACE, "mtu", str(mtu)], check=True)

    @contextlib.contextmanager
    def jumbo_frames(self):
        """The interface's MTU, and with it the device's, is as large as Ethernet has it."""
        self.set_mtu(9000)
        try:
            yield
        finally:
            self.set_mtu(1500)

    def run(self, line, status=0, seconds=SECONDS_MAX, **how):
        """Runs a program to its end and gives what it printed."""
        started = self.start(line, **how)
        ended = started.wait_exit(seconds)
        assert ended == status, f"{line} ended with status {ended}"
        return started.output()

    def compiled(self, compiler, source, *libraries):
        """A program of this directory's, made by a compiler that a package brings."""
        words = shlex.split(compiler)
        need(words[0])
        target = self.folder / pathlib.Path(source).stem
        done = subprocess.run([*words, "-o", target, HERE / source, *libraries], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stderr
        return target

    def ends_well(self, *ended, seconds=SECONDS_MAX):
        for each in ended:
            status = each.wait_exit(seconds)
            assert status == 0, f"{each.name} ended with status {status}"

    def carried(self, connections=1, octets=0):
        """That the programs' octets really went over iWARP. Those that go through memory are on no wire."""
        if self.tls:
            self.secured(connections)
        else:
            assert self.wire.connections() >= connections, "too few connections over iWARP"
        if os.environ["ANYWARP_HOST_PATH"] != "off" and not self.far:
            return
        assert self.wire.octets() >= octets, f"only {self.wire.octets()} octets went over the wire"

    def secured(self, connections):
        """That both ends of so many connections have proven who they are, and that no MPA Request was on the wire in the clear."""
        told = sum(each.output().count(SECURED) for each in self.programs)
        assert told >= 2 * connections, f"{told} ends of connections were secured"
        assert self.wire.connections() == 0, "a connection without TLS"

    def carried_datagrams(self, least):
        assert self.wire.datagrams() >= least, f"only {self.wire.datagrams()} datagrams were sent"

    def reports_read(self):
        """What `anywarp check` says of the programs that ended by themselves or by SIGTERM."""
        return [report for file in self.reports if file.exists() and file.stat().st_size for report in json.loads(file.read_text())]

    def report(self):
        return "\n".join(started.report() for started in self.programs)

    def close(self):
        for started in reversed(self.programs):
            if CHECKED:  # so that it leaves its reports
                started.kill(signal.SIGTERM)
            started.close()
        self.wire.close()
