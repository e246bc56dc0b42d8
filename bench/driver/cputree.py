# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The processor time of all that this process has started, and what became of it: also of a daemon that left its parent, since
orphans become children of a subreaper."""

import contextlib
import ctypes
import os
import resource
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
TICK = 1 / os.sysconf("SC_CLK_TCK")
END_SECONDS_MAX = 5


def adopt_orphans():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def stat_of(pid):
    """The fields of /proc/PID/stat behind the name: [0] is the state, [1] the parent."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def descendants():
    """The processes below this one, with their stat: {pid: fields}."""
    found = {int(name): stat for name in os.listdir("/proc") if name.isdigit() and (stat := stat_of(name))}
    children = {}
    for pid, stat in found.items():
        children.setdefault(int(stat[1]), []).append(pid)
    below, left = {}, [os.getpid()]
    while left:
        for pid in children.get(left.pop(), ()):
            below[pid] = found[pid]
            left.append(pid)
    return below


def seconds(without=()):
    """Of all that live, with what they have waited for, and of all that this process has waited for."""
    ticks = sum(int(field) for pid, stat in descendants().items() if pid not in without for field in stat[11:15])
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ticks * TICK + ended.ru_utime + ended.ru_stime


def end_all(without=()):
    """Ends what is left but these: daemons above all."""
    deadline = time.monotonic() + END_SECONDS_MAX
    while left := set(descendants()) - set(without):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            return
        time.sleep(0.005)
