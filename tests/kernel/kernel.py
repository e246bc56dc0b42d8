# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The running kernel: its modules, its RDMA devices, what it says."""

import errno
import os
import pathlib
import re
import subprocess

import complaints

MODULES = pathlib.Path("/sys/module")
DEVICES = pathlib.Path("/sys/class/infiniband")
KMEMLEAK = pathlib.Path("/sys/kernel/debug/kmemleak")
MESSAGE_OCTETS_MAX = 8192
# ib_uverbs' own leak, whoever registers the device: where radix_tree_insert() runs out of memory it leaves inner nodes without
# an entry, and uverbs_destroy_api() frees only the nodes above an entry.
# So does xa_insert(), and rdma_cm frees the nodes of its ports only with the last entry below them.
OWN_NODE = re.compile(r"\] radix_tree_node_alloc\b[^\n]*\n[^\n]*\] radix_tree_insert\b[^\n]*\n[^\n]*\] uapi_add_(?:get_)?elm\+|"
                      r"\] xas_alloc\+[^\n]*\n(?:[^\n]*\] (?:xas_|__xa_insert)[^\n]*\n)+[^\n]*\] cma_alloc_port\+")


class Kernel:
    def __init__(self):
        if KMEMLEAK.exists():
            KMEMLEAK.write_text("scan=off", encoding="ascii")  # leaks() scans, and judges what is found
        self.messages = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        self.faults_made = False
        self.directories = os.environ["ANYWARP_MODULES"].split(":")

    def path_of(self, module):
        return next(path for directory in self.directories
                    if (path := pathlib.Path(directory, f"{module}.ko")).exists())

    def try_load(self, module, *parameters):
        return subprocess.run(["insmod", self.path_of(module), *parameters], capture_output=True, text=True,
                              check=False)

    def load(self, module, *parameters):
        done = self.try_load(module, *parameters)
        assert done.returncode == 0, done.stderr

    @staticmethod
    def try_unload(module):
        return subprocess.run(["rmmod", module], capture_output=True, text=True, check=False)

    def unload(self, module):
        done = self.try_unload(module)
        assert done.returncode == 0, done.stderr

    def unload_if_there(self, module):
        if self.has(module):
            self.unload(module)

    @staticmethod
    def has(module):
        return MODULES.joinpath(module).exists()

    @staticmethod
    def users_of(module):
        return int(MODULES.joinpath(module, "refcnt").read_text(encoding="ascii"))

    @staticmethod
    def devices():
        return sorted(path.name for path in DEVICES.iterdir()) if DEVICES.exists() else []

    @staticmethod
    def device_says(device, name):
        return DEVICES.joinpath(device, name).read_text(encoding="utf-8").strip()

    def forget_messages(self):
        os.lseek(self.messages, 0, os.SEEK_END)

    def read_messages(self):
        """Those since forget_messages(); each once."""
        read = []
        while True:
            try:
                record = os.read(self.messages, MESSAGE_OCTETS_MAX).decode("utf-8", "replace")
            except OSError as error:
                if error.errno == errno.EPIPE:  # the oldest were overwritten
                    continue
                assert error.errno == errno.EAGAIN
                return read
            read.append(record.split(";", 1)[1].splitlines()[0])

    @staticmethod
    def say(line):
        """Writes a line to the kernel's log, which complaints are looked for in."""
        pathlib.Path("/dev/kmsg").write_text(f"{line}\n", encoding="ascii")

    def tell_of_faults(self):
        """From here on allocations are made to fail: complaints() leaves out what the kernel itself then does wrong."""
        self.say(complaints.FAULTS_MADE)
        self.faults_made = True

    def complaints(self):
        before = [complaints.FAULTS_MADE] if self.faults_made else []
        return complaints.in_text("\n".join(before + self.read_messages()))

    @staticmethod
    def leaks():
        """Memory that nothing points to any more. A first scan may still take a register for a pointer."""
        if not KMEMLEAK.exists():
            return ""
        for _ in range(2):
            KMEMLEAK.write_text("scan", encoding="ascii")
        reports = KMEMLEAK.read_text(encoding="utf-8", errors="replace")
        leaks = leaks_in(reports)
        if reports and not leaks:
            Kernel.say(complaints.LEAKS_JUDGED)
        return leaks


def leaks_in(text):
    """kmemleak's reports without those of ib_uverbs' and rdma_cm's nodes."""
    reports = re.split(r"^(?=unreferenced object )", text, flags=re.M)
    return "".join(report for report in reports if not OWN_NODE.search(report))
