# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A Linux kernel with an RDMA device, under User Mode Linux: a process in the network namespace of the taps
(network.py), whose root is this machine's file system, read-only. Programs in it are watched by its agent
(agent.py), as those on the host are (tools/lib/program.py)."""

import json
import os
import pathlib
import shlex
import shutil
import socket
import tempfile

import complaints
import network
import program
import uml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CONFIGURATION = os.environ.get("ANYWARP_KERNEL", "base")
KERNEL = ROOT / "build" / "kernel" / CONFIGURATION / "build" / "linux"
MODULES = {"siw": ROOT / "build" / "kmod" / f"siw-{CONFIGURATION}" / "siw.ko",
           "anywarp": ROOT / "build" / "kmod" / f"uml-{CONFIGURATION}" / "src" / "kmod" / "anywarp.ko"}
INTERFACE = "vec0"
# Its own file system, in memory.
FOLDER = "/run/tmp"
BOOT_SECONDS_MAX = 120
SCRIPT_SECONDS_MAX = 60
# More than the longest wait that the agent is asked for.
ANSWER_SECONDS_MAX = 400
SET_UP = """insmod {module}
ip -batch - <<end
link set {interface} mtu {mtu} up gso_max_segs 1
{addresses}
end
rdma link add {device} type {link_type} netdev {interface}
until grep -q ACTIVE /sys/class/infiniband/{device}/ports/1/state; do usleep 1000; done
"""
# A first scan may still take a register for a pointer.
LEAKS = """rmmod {link_type}
[ -e {file} ] || exit 0
echo scan >{file}; echo scan >{file}
cat {file}"""


class Guest:
    """A context manager; exec() and start() are for its users. number: whose tap and addresses it has, from 1."""

    def __init__(self, joined, number, link_type):
        self.network, self.number, self.link_type = joined, number, link_type
        self.address, self.address6 = network.ADDRESSES[number]
        self.device = f"{link_type}0"
        self.folder = tempfile.mkdtemp(prefix="anywarp-guest-")
        self.console = pathlib.Path(self.folder, "console")
        self.console_read = 0
        self.tap = self.line = self.answers = self.process = None

    def __enter__(self):
        try:
            self.tap = self.network.add_tap(self.number)
            self.boot()
            self.set_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def boot(self):
        self.exchange = uml.prepare(self.folder, ["python3", str(HERE / "agent.py"), "/dev/tty1"])
        self.line, theirs = socket.socketpair()
        with theirs:
            line = uml.command_line(str(KERNEL), self.folder, (
                f"con1=fd:{theirs.fileno()}",
                f"vec0:transport=tap,ifname={self.tap},mtu={network.MTU_MAX},depth=128"))
            self.process = uml.start([*self.network.into, *line], self.folder, (theirs.fileno(),), stays=True)
        self.line.settimeout(BOOT_SECONDS_MAX)
        self.answers = self.line.makefile("rb")
        self.read_line()

    def set_up(self):
        self.exec(SET_UP.format(
            module=MODULES[self.link_type], interface=INTERFACE, mtu=network.MTU_MAX, device=self.device,
            link_type=self.link_type, addresses="\n".join(network.address_lines(self.number, INTERFACE))))
        self.ask("reach", network.ADDRESSES[0][0])

    def read_line(self):
        try:
            line = self.answers.readline()
        except OSError as error:
            raise program.Trouble(f"the guest does not answer: {error!r}\n{self.console_end()}") from error
        if not line:
            raise program.Trouble(f"the guest has ended\n{self.console_end()}")
        return line

    def ask(self, name, *arguments):
        """A method of agent.Agent."""
        self.line.settimeout(ANSWER_SECONDS_MAX)
        try:
            self.line.sendall(json.dumps([name, *arguments]).encode() + b"\n")
        except OSError as error:
            raise program.Trouble(f"the guest has ended: {error!r}\n{self.console_end()}") from error
        answer = json.loads(self.read_line())
        if "trouble" in answer:
            raise program.Trouble(f"in the guest: {answer['trouble']}")
        return answer["value"]

    def console_end(self):
        """With what the agent printed, which is nothing while all is well."""
        said = uml.read(self.exchange / "output")
        return f"{said}\nthe end of its console:\n{uml.read(self.console)[-program.TEXT_SHOWN_MAX:]}"

    def complaints(self):
        """What its kernel complained of since the last call."""
        text = self.console.read_bytes()
        new, self.console_read = text[self.console_read:], len(text)
        return complaints.in_text(new.decode("utf-8", "replace"))

    def leaks(self):
        """Without the module: memory that nothing points to any more."""
        return self.exec(LEAKS.format(link_type=self.link_type, file="/sys/kernel/debug/kmemleak"))

    def exec(self, script, seconds=SCRIPT_SECONDS_MAX):
        """What a shell script prints; it has to end well."""
        return self.ask("exec", script, seconds)

    def start(self, line):
        return GuestProgram(self, self.ask("start", ["stdbuf", "-oL", *shlex.split(line)]))

    def state(self):
        """For the report of a failed test: its TCP connections, what its kernel said, and the stacks
        of tasks that are blocked."""
        return self.exec("cat /proc/net/tcp\necho w >/proc/sysrq-trigger\ndmesg | tail -n 60")

    def set_mtu(self, mtu):
        self.exec(f"ip link set {INTERFACE} mtu {mtu}")

    def set_parameters(self, **parameters):
        """Of the module; they hold for connections made afterwards."""
        self.exec("\n".join(f"echo {int(value)} >/sys/module/{self.link_type}/parameters/{name}"
                            for name, value in parameters.items()))

    def __exit__(self, *_):
        if self.line:
            self.line.close()
        if self.process:
            uml.end(self.process)
        if self.tap:
            self.network.remove_tap(self.tap)
        shutil.rmtree(self.folder, ignore_errors=True)


class GuestProgram:
    """One process in the guest, with the ways of program.Program."""

    def __init__(self, guest, number):
        self.guest, self.number = guest, number

    def __getattr__(self, name):
        return lambda *arguments: self.guest.ask("ask", self.number, name, *arguments)

    def report(self):
        return f"in the guest with {self.guest.device}:\n{self.guest.ask('report', self.number)}"

    def close(self):
        """Also when the guest is gone: then a test that wants it says so."""
        try:
            self.guest.ask("ask", self.number, "close")
        except program.Trouble:
            pass
