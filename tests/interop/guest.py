# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A virtual machine whose kernel drives siw, and the tap between it and a network namespace of this
machine. It is emulated, for a /dev/kvm that is there need not work; ANYWARP_ACCEL=kvm tries it.
Programs in the guest are watched as those on the host are (tools/lib/program.py)."""

import base64
import contextlib
import itertools
import os
import pathlib
import re
import shutil
import socket
import tempfile
import time

import beds
import program

# build-guest puts it there.
FILES = ("vmlinux", "initrd")
HOST, GUEST = beds.ENDS
EMULATION = "tcg,thread=multi"
BOOT_SECONDS_MAX = 120
SCRIPT_SECONDS_MAX = 60
# Beyond the script's own limit: what the answer takes.
ANSWER_SECONDS = 30
# Asking costs the guest some 30 ms of its one processor: the longer a wait, the less often.
POLL_SECONDS_MIN, POLL_SECONDS_MAX, POLL_PART = 0.03, 0.5, 0.1
MEMORY_MB = 1024
MTU_MAX = 9000
# The capture on the tap is to hold what a wire would carry: no segments joined for the way.
PLAIN_CARD = "".join(f",{end}_{kind}=off" for end in ("host", "guest")
                     for kind in ("tso4", "tso6", "ecn", "ufo"))


class Guest:
    """A context manager; exec() and start() are for its users."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.folder = tempfile.mkdtemp(prefix="anywarp-guest-")
        self.numbers = itertools.count(1)
        self.network = self.machine = None
        self.agent = socket.socket(socket.AF_UNIX)

    def __enter__(self):
        try:
            self.network = tap_namespace()
            self.boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def boot(self):
        kernel, initrd = (str(self.directory / name) for name in FILES)
        path = f"{self.folder}/agent"
        self.machine = program.Program([
            *self.network.into, "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display",
            "none", "-M", "pc", "-accel", os.environ.get("ANYWARP_ACCEL", EMULATION), "-cpu",
            "max,la57=off,-arch-capabilities", "-m", str(MEMORY_MB),
            "-no-reboot", "-kernel", kernel, "-initrd", initrd, "-append",
            "console=ttyS0 quiet loglevel=4 panic=-1 oops=panic nokaslr mitigations=off net.ifnames=0"
            f" no_timer_check guest.address={GUEST[0]} guest.address6={GUEST[1]}",
            "-serial", f"file:{self.folder}/console", "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,path={path},server=on,wait=off",
            "-device", "virtserialport,chardev=agent", "-object", "rng-random,id=rng,"
            "filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng",
            "-netdev", "tap,id=net,ifname=tap0,script=no,downscript=no", "-device",
            f"virtio-net-pci,netdev=net,romfile=,host_mtu={MTU_MAX}{PLAIN_CARD}"])
        try:
            self.machine.wait_until(lambda: self.agent.connect_ex(path) == 0, "agent's socket",
                                    BOOT_SECONDS_MAX)
            self.agent.settimeout(BOOT_SECONDS_MAX)
            self.lines = self.agent.makefile("rb")
            assert self.lines.readline() == b"ready\n"
        except (program.Trouble, OSError, AssertionError) as error:
            raise program.Trouble(f"the guest does not start: {error!r}\n{self.report()}") from error

    def report(self):
        try:
            console = pathlib.Path(self.folder, "console").read_text(errors="replace")
        except OSError:
            console = ""
        return f"{self.machine.report()}\nthe end of its console:\n{console[-program.TEXT_SHOWN_MAX:]}"

    def exec(self, script, seconds=SCRIPT_SECONDS_MAX):
        """What a shell script prints; it has to end well."""
        coded = base64.b64encode(script.encode()).decode()
        self.agent.settimeout(seconds + ANSWER_SECONDS)
        try:
            self.agent.sendall(f"{seconds}\n{coded}\n".encode())
            status, octets = self.lines.readline().split()
            text = self.lines.read(int(octets)).decode("utf-8", "replace")
        except (OSError, ValueError) as error:
            raise program.Trouble(f"the guest does not answer: {error!r}\n{self.report()}") from error
        if status != b"0":
            raise program.Trouble(f"in the guest, status {status.decode()}:\n{script}\n{text}")
        return text

    def state(self):
        """For the report of a failed test: its TCP connections, what its kernel said, and the stacks
        of tasks that are blocked."""
        return self.exec("cat /proc/net/tcp\necho w >/proc/sysrq-trigger\ndmesg | tail -n 60")

    def start(self, line):
        return GuestProgram(self, f"/run/program{next(self.numbers)}", line)

    def set_mtu(self, mtu):
        self.exec(f"ip link set eth0 mtu {mtu}")
        self.network.ip(f"link set tap0 mtu {mtu}")

    def siw(self, **parameters):
        """Sets parameters of the module; they hold for connections made afterwards."""
        self.exec("\n".join(f"echo {int(value)} >/sys/module/siw/parameters/{name}"
                            for name, value in parameters.items()))

    def __exit__(self, *_):
        self.agent.close()
        if self.machine:
            self.machine.close()
        if self.network:
            self.network.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def tap_namespace():
    network = beds.Namespace()
    try:
        network.ip("link set lo up")
        network.ip("tuntap add tap0 mode tap")
        for address in HOST:
            size = "64 nodad" if ":" in address else "24"
            network.ip(f"addr add {address}/{size} dev tap0")
        network.ip(f"link set tap0 mtu {MTU_MAX} up gso_max_segs 1")
    except BaseException:
        network.close()
        raise
    return network


def polls(seconds):
    """Yields until the time is over, at once and then ever more slowly."""
    began = time.monotonic()
    while True:
        yield
        waited = time.monotonic() - began
        if waited > seconds:
            return
        time.sleep(min(max(waited * POLL_PART, POLL_SECONDS_MIN), POLL_SECONDS_MAX))


class GuestProgram:
    """One process in the guest, with the ways of program.Program."""

    def __init__(self, guest, folder, line):
        self.guest, self.folder, self.line = guest, folder, line
        guest.exec(f"mkdir {folder}\ncd {folder}\n"
                   "{ setsid sh -c 'echo $$ >pid; exec \"$@\"' - stdbuf -oL "
                   f"{line} </dev/null >out 2>&1; echo $? >status; }} >/dev/null 2>&1 &\n"
                   "until [ -s pid ]; do usleep 1000; done")

    def read(self, name):
        return self.guest.exec(f"cat {self.folder}/{name} 2>/dev/null; true")

    def output(self):
        return self.read("out")

    def status(self):
        text = self.read("status").strip()
        return int(text) if text else None

    def report(self):
        status = self.status()
        where = self.threads() if status is None else ""
        return f"guest$ {self.line}\n(status {status})\n{program.both_ends(self.output())}{where}"

    def threads(self):
        """Where each thread of one that should have ended stands in the kernel."""
        return self.guest.exec(f"for task in /proc/$(cat {self.folder}/pid)/task/*; do\n"
                               "grep -E '^(Name|State)' $task/status; cat $task/stack; done; true")

    def wait_until(self, condition, what, seconds):
        for _ in polls(seconds):
            ended = self.status() is not None
            value = condition()
            if value:
                return value
            if ended:
                raise program.Trouble(f"ended with status {self.status()} before {what}")
        raise program.Trouble(f"no {what} within {seconds} s")

    def wait_listening(self, port, seconds):
        row = f"{port:04X} [0-9A-F]*:0000 {program.LISTEN_STATE}"
        self.wait_until(lambda: self.guest.exec(f"grep '{row}' /proc/net/tcp /proc/net/tcp6; true"),
                        f"listener on port {port}", seconds)

    def wait_output(self, pattern, seconds):
        return self.wait_until(lambda: re.search(pattern, self.output()), f"'{pattern}'", seconds)

    def wait_exit(self, seconds):
        """The exit status; 128 and the signal's number for a killed one."""
        for _ in polls(seconds):
            status = self.status()
            if status is not None:
                return status
        raise program.Trouble(f"did not end within {seconds} s")

    def signal(self, name):
        self.guest.exec(f"kill -{name} -$(cat {self.folder}/pid)")

    def kill(self):
        if self.status() is None:
            self.guest.exec(f"kill -KILL -$(cat {self.folder}/pid); true")
            self.wait_exit(SCRIPT_SECONDS_MAX)

    def close(self):
        """Also when the guest is gone: then a test that wants it says so."""
        with contextlib.suppress(program.Trouble):
            self.kill()
