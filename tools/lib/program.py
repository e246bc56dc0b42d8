# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A program that runs while its starter watches: its output, the port it listens on, its end.
Every wait has a time-out. Used by the demo, by the bench and by the system tests."""

import collections
import contextlib
import ctypes
import glob
import itertools
import os
import pathlib
import random
import re
import shlex
import signal
import socket
import struct
import subprocess
import tempfile
import time

import stuck

# How much longer what ends programs that hang waits here, as ./dev test has measured it.
SLOWNESS = int(os.environ.get("ANYWARP_SLOWNESS", "1"))
SECONDS_MAX = 60 * SLOWNESS
POLL_SECONDS = 0.005
LISTEN_STATE = 10
# Of <linux/netlink.h>, <linux/sock_diag.h>, <linux/inet_diag.h>.
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, DIAG_ID_OCTETS = 4, 20, 48
NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE, NLMSG_HEADER_OCTETS = 1, 0x300, 2, 3, 16
DATAGRAM_OCTETS_MAX = 65536
STATES_STOPPED = "TtZX"  # by a signal, by a tracer, or as it has ended
TEXT_SHOWN_MAX = 3000
# Below the range from which the kernel picks the ports of outgoing connections.
PORTS = range(10000, 32000)
CLAIMS = {}  # by port, a socket for each that this process was given
PR_SET_PDEATHSIG = 1
TERMINAL = "/dev/tty"  # of this process's session, if it has one
LIBC = ctypes.CDLL(None)


class Trouble(Exception):
    """A program did not do what was waited for; the text says which and what it printed."""


def is_open_to_others(path):
    """True when every user may reach the path: nobody else starts a program in its owner's private home directory."""
    return all(each.stat().st_mode & 0o001 for each in pathlib.Path(path).resolve().parents)


def claim_port(port):
    """True when no other test has the port; until it is given back, no other test gets it."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0anywarp-test-port-{port}")
    except OSError:
        claim.close()
        return False
    CLAIMS[port] = claim
    return True


def take_port(port):
    """True when nobody listens on the port here, and no other test has it or will be given it."""
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::", port))
        except OSError:
            return False
        return claim_port(port)


def give_port(port):
    CLAIMS.pop(port).close()


def free_ports(count):
    """The first of so many ports in a row, each as that of free_port."""
    while True:
        first = random.SystemRandom().choice(PORTS)
        taken = list(itertools.takewhile(take_port, range(first, first + count)))
        if len(taken) == count:
            return first
        for port in taken:
            give_port(port)


def free_port():
    """A port on which nobody listens here, and that no other test will be given."""
    return free_ports(1)


@contextlib.contextmanager
def borrowed_port():
    """A free port that is given back: for a process that needs thousands."""
    port = free_port()
    try:
        yield port
    finally:
        give_port(port)


def netlink_kinds(data):
    """Of each message of a datagram, its type and what is behind its header."""
    while data:
        length, kind = struct.unpack_from("=IH", data)
        yield kind, data[NLMSG_HEADER_OCTETS:length]
        data = data[(length + 3) // 4 * 4:]


def listens_here(port):
    """As is_listening, of this process's network namespace, by sock_diag(7): the kernel looks at the sockets that listen alone, where
    who reads /proc/net/tcp waits for a walk through the table of all connections, a millisecond of processor time."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as diag:
        for family in (socket.AF_INET, socket.AF_INET6):
            wanted = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, 1 << LISTEN_STATE)
            wanted += struct.pack("!H", port).ljust(DIAG_ID_OCTETS, b"\0")
            diag.send(struct.pack("=IHHII", NLMSG_HEADER_OCTETS + len(wanted), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 0, 0) + wanted)
            kinds = set()
            while NLMSG_DONE not in kinds:
                for kind, rest in netlink_kinds(diag.recv(DATAGRAM_OCTETS_MAX)):
                    if kind == NLMSG_ERROR:
                        raise OSError(-struct.unpack_from("=i", rest)[0], "sock_diag")
                    kinds.add(kind)
            if SOCK_DIAG_BY_FAMILY in kinds:
                return True
    return False


def is_listening(pid, port):
    """True when a TCP socket listens on the port, in the network namespace of the process."""
    try:
        if os.path.samefile(f"/proc/{pid}/ns/net", "/proc/self/ns/net"):
            return listens_here(port)
    except OSError:  # it has ended, or there is no such netlink
        pass
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:
                rows = [line.split() for line in file.readlines()[1:]]
        except OSError:
            continue
        if any(row[1].endswith(f":{port:04X}") and row[3] == f"{LISTEN_STATE:02X}" for row in rows):
            return True
    return False


def read_stat(path):
    """The words of /proc/PID/stat behind the program's name: state, parent, process group. None of what has ended."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_stopped(group):
    """True when no thread of the process group runs. A signal that stops is sent before they have stopped."""
    folders = [folder for folder in glob.glob("/proc/[0-9]*") if read_stat(f"{folder}/stat")[2:3] == [str(group)]]
    threads = [read_stat(path) for folder in folders for path in glob.glob(f"{folder}/task/*/stat")]
    return all(words[0] in STATES_STOPPED for words in threads if words)


def has_terminal():
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def end_with_starter():
    """In the new process: it dies with us, even if we are killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def begin_group():
    """In the new process: a process group of its own, which dies with us. Linux shares time between sessions first (sched(7),
    "The autogroup feature"), and a session whose tasks all wait now and then can leave another without any for seconds: the
    programs of a test run stay in one. A terminal would stop a group in its background that reads it, so there each program
    has a session."""
    if has_terminal():
        os.setsid()
    else:
        os.setpgid(0, 0)
    end_with_starter()


def read_whole(file):
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode("utf-8", "replace")


def both_ends(text):
    """The two ends of a long output, for a report."""
    if len(text) <= TEXT_SHOWN_MAX:
        return text
    half = TEXT_SHOWN_MAX // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters]\n{text[-half:]}"


def wait_until(condition, what, seconds=SECONDS_MAX):
    """The first true value of condition()."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise Trouble(f"no {what} within {seconds} s")
        time.sleep(POLL_SECONDS)
    return value


class Program:
    """One process. The files with its output belong to it and go when it is closed. They are two,
    because a buffered standard output is cut wherever a line of standard error falls."""

    def __init__(self, argv, env=None):
        self.argv = argv
        self.began = time.monotonic()
        self.files = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL,
                                        stdout=self.files[0], stderr=self.files[1],
                                        preexec_fn=begin_group)

    @property
    def pid(self):
        return self.process.pid

    @property
    def name(self):
        return " ".join(self.argv)

    def status(self):
        """The exit status, negative for a signal; None while it runs."""
        return self.process.poll()

    def output(self):
        """Standard output so far, then standard error. While the process runs, whole lines only: the kernel
        shows a reader of the file the first part of a line that reaches into the file's next page."""
        ended = self.status() is not None
        texts = [read_whole(file) for file in self.files]
        return "".join(text if ended else text[:text.rfind("\n") + 1] for text in texts)

    def report(self):
        """The report of a failed run: command line, state, output, and what it waits for if it has not ended."""
        ended = self.status() is not None
        state = f"ended with status {self.status()}" if ended else "still running"
        waits = "" if ended else both_ends(stuck.tell(self.pid))
        return f"$ {shlex.join(self.argv)}\n({state})\n{both_ends(self.output())}{waits}"

    def wait_until(self, condition, what, seconds=SECONDS_MAX):
        """The first true value of condition(); Trouble when the process ends or time runs out."""
        deadline = time.monotonic() + seconds
        while True:
            ended = self.status() is not None
            value = condition()
            if value:
                return value
            if ended:
                raise Trouble(f"ended with status {self.status()} before {what}")
            if time.monotonic() > deadline:
                raise Trouble(f"no {what} within {seconds} s")
            time.sleep(POLL_SECONDS)

    def wait_listening(self, port, seconds=SECONDS_MAX):
        self.wait_until(lambda: is_listening(self.pid, port), f"listener on port {port}", seconds)

    def wait_output(self, pattern, seconds=SECONDS_MAX):
        return self.wait_until(lambda: re.search(pattern, self.output()), f"'{pattern}'", seconds)

    def wait_exit(self, seconds=SECONDS_MAX):
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise Trouble(f"did not end within {seconds} s") from error

    def send_signal(self, name):
        """As kill(1) calls it. STOP: all of it has stopped."""
        os.killpg(self.pid, signal.Signals[f"SIG{name}"])
        if name == "STOP":
            self.wait_until(lambda: is_stopped(self.pid), "stop")

    def kill(self, signum=signal.SIGKILL):
        """Ends what still runs of it, with everything it started."""
        if self.process.poll() is None:
            os.killpg(self.pid, signum)
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(self.pid, signal.SIGKILL)
                self.process.wait()

    def close(self):
        self.kill()
        for file in self.files:
            file.close()


# problem is empty when both ends did well, else it ends in what both printed; client is the
# client's output.
PairOutcome = collections.namedtuple("PairOutcome", "problem client seconds")


def problem_of(who, status):
    if status < 0:
        return f"{who} died of signal {-status}"
    return f"{who} ended with status {status}" if status else ""


def finish_pair(server, client, seconds):
    """Waits for both ends; the server has only the time that the client left."""
    deadline = time.monotonic() + seconds
    who = "client"
    try:
        problem = problem_of(who, client.wait_exit(seconds))
        if problem:
            return problem
        who = "server"
        return problem_of(who, server.wait_exit(max(1.0, deadline - time.monotonic())))
    except Trouble as trouble:
        return f"{who} {trouble}"


def run_pair(server_argv, client_argv, port, env=None, seconds=SECONDS_MAX):
    """Starts the server, waits for its port, runs the client, waits for both."""
    began = time.monotonic()
    programs = [Program(server_argv, env)]
    try:
        try:
            programs[0].wait_listening(port, seconds)
            programs.append(Program(client_argv, env))
            problem = finish_pair(*programs, seconds)
        except Trouble as trouble:
            problem = f"server {trouble}"
        if problem:
            problem = "\n".join([problem, *(each.report() for each in programs)])
        client = programs[1].output() if len(programs) > 1 else ""
        return PairOutcome(problem, client, time.monotonic() - began)
    finally:
        for each in programs:
            each.close()
