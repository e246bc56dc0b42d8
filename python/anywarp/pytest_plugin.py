# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The pytest plugin of anywarp: the fixture 'anywarp' gives a test an RDMA device, and two hosts that are network namespaces joined by a
veth pair. docs/ci.md describes it. It makes nothing outside of these namespaces, and leaves nothing behind."""

import collections
import contextlib
import os
import pathlib
import shutil
import subprocess
import time

import pytest

from anywarp import COMMAND

DEVICE = "anywarp0"
# RFC 5737 and RFC 4193 addresses: they mean nothing outside.
ADDRESSES = {"server": ("192.0.2.1", "fd00:aa::1"), "client": ("192.0.2.2", "fd00:aa::2")}
LISTEN_STATE = "0A"
POLL_SECONDS = 0.005
OPTIONS = {"mtu": 1500, "loss": None, "persona": "roce", "check": False, "faults": None, "seconds": 60}

Options = collections.namedtuple("Options", OPTIONS)


class NotAllowed(Exception):
    """This machine does not let us make what a test asks for; the text says why."""


def command():
    """anywarp's command: of this wheel, or of PATH."""
    found = str(COMMAND) if COMMAND.exists() else shutil.which("anywarp")
    if not found:
        raise NotAllowed("no command 'anywarp': install the wheel, or put its directory into PATH")
    return found


def run(argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotAllowed(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")


class Namespace:
    """A network namespace, which lives as long as the process that holds it, and that waits for our end. An inner one is made under the user
    namespace of the outer, so that a veth pair may join the two."""

    def __init__(self, outer=None):
        as_user = os.geteuid() != 0
        self.into = ["nsenter", "--net", *(["--user", "--preserve-credentials"] if as_user else [])]
        start = [*outer.into, "unshare", "--net"] if outer else ["unshare", "--net", *(["--map-root-user"] if as_user else [])]
        self.holder = subprocess.Popen([*start, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.into += ["--target", str(self.holder.pid)]
        try:
            self.holder.stdin.write(b"ready\n")
            self.holder.stdin.flush()
            answer = self.holder.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            why = self.holder.stderr.read().decode().strip()
            self.close()
            raise NotAllowed(f"{why or 'unshare failed'}; where the system forbids it to users, root may: sudo pytest, or sysctl -w "
                             "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), kernel.unprivileged_userns_clone=1 (Debian)")

    def close(self):
        for pipe in (self.holder.stdin, self.holder.stdout, self.holder.stderr):
            with contextlib.suppress(BrokenPipeError):  # of what a holder that has ended was told
                pipe.close()
        self.holder.wait()


class End:
    """One of the two hosts. 'address' and 'address6' are its own."""

    def __init__(self, name, namespace, words, options):
        self.name = name
        self.address, self.address6 = ADDRESSES[name]
        self.namespace = namespace
        self.words = words
        self.seconds = options.seconds
        self.started = []

    def argv(self, *command_line):
        """The whole command line that runs a program at this end over anywarp."""
        return [*self.namespace.into, *self.words, "--", *map(str, command_line)]

    def run(self, *command_line, check=True, **how):
        """subprocess.run of a program at this end, with its output as text, for at most 'seconds' of the marker."""
        how = {"capture_output": True, "text": True, "timeout": self.seconds, "stdin": subprocess.DEVNULL, **how}
        done = subprocess.run(self.argv(*command_line), check=False, **how)
        if check and done.returncode != 0:
            pytest.fail(f"{self.name}: {' '.join(map(str, command_line))} ended with status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def start(self, *command_line, port=None, **how):
        """subprocess.Popen of a program at this end, which ends with the test; with a port, once it listens there by TCP, as a listener
        of rdma_cm does."""
        how = {"stdin": subprocess.DEVNULL, "text": True, **how}
        process = subprocess.Popen(self.argv(*command_line), **how)
        self.started.append(process)
        if port:
            self.wait_listening(port, process)
        return process

    def is_listening(self, port):
        for table in ("tcp", "tcp6"):
            rows = pathlib.Path(f"/proc/{self.namespace.holder.pid}/net/{table}").read_text().splitlines()[1:]
            if any(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == LISTEN_STATE for row in rows):
                return True
        return False

    def wait_listening(self, port, process):
        deadline = time.monotonic() + self.seconds
        while not self.is_listening(port):
            if process.poll() is not None:
                pytest.fail(f"{self.name} ended with status {process.returncode} before it listened on port {port}")
            if time.monotonic() > deadline:
                pytest.fail(f"{self.name} does not listen on port {port} after {self.seconds} s")
            time.sleep(POLL_SECONDS)

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe:
                    pipe.close()


class Anywarp:
    """What the fixture gives: the device's name, and two ends, 'server' and 'client'."""

    def __init__(self, options):
        self.device = DEVICE
        self.options = options
        self.namespaces = []
        self.ends = []

    def words(self):
        """How the command starts a program."""
        options = self.options
        return [command(), *(["check"] if options.check else ["run"]), "--device-files", "--persona", options.persona,
                *(["--faults", options.faults] if options.faults else [])]

    def open(self):
        words = self.words()
        for name in ADDRESSES:
            self.namespaces.append(Namespace(*self.namespaces))
            self.ends.append(End(name, self.namespaces[-1], words, self.options))
        self.server, self.client = self.ends
        mtu = str(self.options.mtu)
        run([*self.namespaces[0].into, "ip", "link", "add", "veth0", "mtu", mtu, "type", "veth",
             "peer", "name", "veth0", "mtu", mtu, "netns", str(self.namespaces[1].holder.pid)])
        for end in self.ends:
            self.raise_link(end)

    def raise_link(self, end):
        into = end.namespace.into
        for line in ("link set lo up", f"addr add {end.address}/24 dev veth0", f"addr add {end.address6}/64 dev veth0 nodad",
                     "link set veth0 up"):
            run([*into, "ip", *line.split()])
        if self.options.loss:
            run([*into, "tc", "qdisc", "add", "dev", "veth0", "root", "netem", "loss", self.options.loss])

    def close(self):
        for each in (*self.ends, *reversed(self.namespaces)):
            each.close()


def options_of(request):
    marker = request.node.get_closest_marker("anywarp")
    given = marker.kwargs if marker else {}
    unknown = set(given) - set(OPTIONS)
    if unknown or (marker and marker.args):
        raise pytest.UsageError(f"the marker anywarp has no {', '.join(sorted(unknown)) or 'argument without a name'}: it has "
                                f"{', '.join(OPTIONS)}")
    return Options(**{**OPTIONS, **given})


@pytest.fixture
def anywarp(request):
    """An RDMA device between two network namespaces; the test is skipped where these may not be made."""
    made = Anywarp(options_of(request))
    try:
        made.open()
    except (NotAllowed, OSError) as error:
        made.close()
        pytest.skip(f"anywarp: {error}")
    yield made
    made.close()


def pytest_configure(config):
    config.addinivalue_line("markers", "anywarp(mtu, loss, persona, check, faults, seconds): of the fixture anywarp: the MTU of the link, the "
                            "share of packets that are lost, as '1%', the persona, anywarp check or not, faults, and a program's time")
