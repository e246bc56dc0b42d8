# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a process waits for, of /proc: a test that has waited in vain tells it, since nobody can look any more."""

import os
import pathlib

PROC = pathlib.Path("/proc")


def text_of(path):
    try:
        return path.read_text(errors="replace").strip()
    except OSError as error:
        return f"({error.strerror})"


def link_of(path):
    try:
        return os.readlink(path)
    except OSError:
        return "(gone)"


def tell_threads(process):
    """Each thread: its number and name, where it sleeps in the kernel, and its system call: number and arguments (proc(5))."""
    for task in sorted((process / "task").glob("*"), key=lambda each: int(each.name)):
        yield f"thread {task.name} {text_of(task / 'comm')}: {text_of(task / 'wchan')}, {text_of(task / 'syscall')}"


def tell_sets(process):
    """Each epoll set, with the fds in it and the events that they are there for."""
    for fd in sorted((process / "fd").glob("*"), key=lambda each: int(each.name)):
        if link_of(fd) != "anon_inode:[eventpoll]":
            continue
        for line in text_of(process / "fdinfo" / fd.name).splitlines():
            if line.startswith("tfd:"):
                _, member, _, events, *_ = line.split()
                yield f"epoll set {fd.name}: fd {member} {link_of(process / 'fd' / member)}, events {events}"


def tell(pid):
    """The lines of a report; few where the process has ended or may not be looked into."""
    process = PROC / str(pid)
    try:
        return "\n".join([*tell_threads(process), *tell_sets(process)])
    except OSError as error:
        return f"(/proc/{pid}: {error.strerror})"
