# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The libraries that programs under test run on: ours; or the distribution's, over the kernel module, where
tests/kernel/run starts the tests. rdma_cm has no device for addresses of loopback: there ADDRESS is that of a dummy interface
(tests/kernel/over_module.py)."""

import contextlib
import os
import pathlib
import re
import resource
import subprocess

KERNEL = "ANYWARP_MODULES" in os.environ
ADDRESS = "192.0.2.1" if KERNEL else "127.0.0.1"
PARAMETERS = pathlib.Path("/sys/module/anywarp/parameters")
SLABS = pathlib.Path("/sys/kernel/slab")
PAGE_KIB = resource.getpagesize() // 1024
LISTEN_STATE = "0A"
BY_PARAMETER = {"on": "Y", "off": "N"}


def libraries(build):
    """The directory of the libibverbs.so.1 and librdmacm.so.1 that programs load."""
    if not KERNEL:
        return f"{build}/lib"
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return os.path.dirname(os.path.realpath(re.search(r"libibverbs\.so\.1 .*=> (\S+)", known).group(1)))


def environment(build):
    """The environment in which a program that was linked with our libraries loads those of this ground."""
    return {"LD_LIBRARY_PATH": libraries(build)} if KERNEL else {}


@contextlib.contextmanager
def policy(text):
    """Start-ups meanwhile are under this policy, as ANYWARP_MPA says it: the environment of a program, which has one of
    its own, or the module's parameters."""
    if not KERNEL:
        yield {"ANYWARP_MPA": text}
        return
    before = {}
    for name, value in (word.split("=") for word in text.split(",")):
        parameter = PARAMETERS / name
        before[parameter] = parameter.read_text(encoding="ascii")
        parameter.write_text(BY_PARAMETER.get(value, value), encoding="ascii")
    try:
        yield {}
    finally:
        for parameter, value in before.items():
            parameter.write_text(value, encoding="ascii")


def take_back_freed():
    """KASAN keeps freed objects from reuse, up to a 32nd of the memory, and SLUB keeps empty slabs. Writing to shrink frees
    both."""
    for shrink in SLABS.glob("*/shrink"):
        shrink.write_text("1", encoding="ascii")


def cached_pages():
    """Free pages that the processors' own lists have: MemFree leaves them out."""
    zones = pathlib.Path("/proc/zoneinfo").read_text(encoding="ascii")
    return sum(int(count) for count in re.findall(r"^ +count: (\d+)$", zones, re.MULTILINE))


def kernel_kib():
    """The KiB that the kernel itself needs, over the module: all but free memory and that of files and processes."""
    if not KERNEL:
        return 0
    take_back_freed()
    with open("/proc/meminfo", encoding="ascii") as file:
        rows = {line.split(":")[0]: int(line.split()[1]) for line in file}
    used = rows["MemTotal"] - sum(rows[name] for name in ("MemFree", "Buffers", "Cached", "AnonPages"))
    return used - cached_pages() * PAGE_KIB


def tcp_kib():
    """What TCP has charged to the buffers of all sockets: over the module kernel_kib counts these, too."""
    if not KERNEL:
        return 0
    sockstat = pathlib.Path("/proc/net/sockstat").read_text(encoding="ascii")
    return int(re.search(r"^TCP:.* mem (\d+)$", sockstat, re.MULTILINE).group(1)) * PAGE_KIB


def module_sockets(port):
    """How many connections with this port of a listener the module has. Those in TCP's backlog or in the hands of TCP
    alone have no inode."""
    if not KERNEL:
        return 0
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] != LISTEN_STATE and row[9] != "0" for row in rows)
