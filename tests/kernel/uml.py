#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""uml.py KERNEL SECONDS COMMAND...: runs a command under User Mode Linux, on this machine's own file system,
read-only. Prints what it printed and ends with its status; with 1, and the end of the console, when the
kernel hung, panicked or complained (complaints.py)."""

import contextlib
import ctypes
import os
import pathlib
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import complaints

HERE = pathlib.Path(__file__).resolve().parent
MEMORY_MB = 768
CONSOLE_LINES_SHOWN = 160
CONSOLE_LINES_BEFORE = 10
SEED_OCTETS = 64
FAILED = 1
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PR_SET_CHILD_SUBREAPER = 36


class Hung(Exception):
    """The kernel did not end in time."""


def command_line(kernel, folder, arguments=()):
    return [kernel, "root=host", "rootfstype=hostfs", "rootflags=/", "ro", f"init={HERE / 'init'}",
            f"mem={os.environ.get('ANYWARP_UML_MEMORY_MB', MEMORY_MB)}M", "con=none", "con0=null,fd:1", "ssl=none",
            "oops=panic", f"uml_dir={folder}/", f"exchange={folder}/exchange", *arguments]


def prepare(folder, command):
    """What init finds in the directory for the exchange."""
    exchange = pathlib.Path(folder, "exchange")
    exchange.mkdir()
    (exchange / "command").write_text(f"exec {shlex.join(command)}\n", encoding="utf-8")
    (exchange / "seed").write_bytes(os.urandom(SEED_OCTETS))
    return exchange


def take_processor():
    """A processor that no other guest has, if there is one, and the socket whose name says so for as long as a process has it."""
    processors = list(os.sched_getaffinity(0))
    random.shuffle(processors)
    for processor in processors:
        hold = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            hold.bind(f"\0anywarp-guest-on-{processor}")
            return processor, hold
        except OSError:
            hold.close()
    return processors[0], None


def prepare_process(processor):
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    if processor is not None:
        os.sched_setaffinity(0, {processor})


def start(line, folder, pass_fds=(), stays=False):
    """In a session of its own: its processes are many, and all are to end. stays: on one processor, which one of them at a time uses.
    The kernel traces the others: on an idle machine each of their turns would wait for another processor to wake, and a guest
    would take three times as long."""
    processor, hold = take_processor() if stays else (None, None)
    with open(f"{folder}/console", "wb") as console, hold or contextlib.nullcontext():
        return subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                                start_new_session=True, pass_fds=(*pass_fds, *([hold.fileno()] if hold else [])),
                                preexec_fn=lambda: prepare_process(processor))


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    wait_for_orphans(process.pid)


def adopt_orphans():
    """The kernel's processes become this process's children when the kernel has ended."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def wait_for_orphans(group):
    """A process that was killed lives on until it is scheduled: on a busy machine after its parent."""
    while True:
        try:
            os.waitpid(-group, 0)
        except ChildProcessError:
            return


def boot(line_of, kernel, seconds, command, folder):
    """The command's output and status, and the console. The status is None when there is none."""
    exchange = prepare(folder, command)
    # A signal waits until it is known which kernel is to be ended.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    process = start(line_of(kernel, folder), folder, stays=line_of is command_line)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        process.wait(timeout=seconds)
        hung = False
    except subprocess.TimeoutExpired:
        hung = True
    finally:
        end(process)
    console = read(pathlib.Path(folder, "console"))
    if hung:
        console += f"\numl.py: not ended within {seconds} s"
    status = read(exchange / "status").strip()
    return read(exchange / "output"), int(status) if status and not hung else None, console


def read(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def tell_console(console, found):
    """From the first complaint on, or the end."""
    lines = console.splitlines()
    if found:
        first = max(next((n for n, line in enumerate(lines) if found[0] in line), 0) - CONSOLE_LINES_BEFORE, 0)
        print("the console where it complained first:")
        print("\n".join(lines[first:first + CONSOLE_LINES_SHOWN]))
    else:
        print("the end of the console:")
        print("\n".join(lines[-CONSOLE_LINES_SHOWN:]))


def end_by_signal(signum, _):
    """The kernel goes on the way out; further signals change nothing."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + signum)


def main(line_of, kernel, seconds, *command):
    """line_of gives the command line that starts the kernel with a folder of its own."""
    for each in ENDING:
        signal.signal(each, end_by_signal)
    adopt_orphans()
    folder = tempfile.mkdtemp(prefix="anywarp-uml-")
    try:
        output, status, console = boot(line_of, kernel, float(seconds), command, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = complaints.in_text(console)
    # What is printed last is counted (tools/junit_totals.py).
    if found or status is None:
        tell_console(console, found)
        print("the kernel " + (f"complained: {found[0]}" if found else "did not end by itself"))
    print(output, end="")
    return FAILED if found or status is None else status


if __name__ == "__main__":
    sys.exit(main(command_line, *sys.argv[1:]))
