# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What CMake has installed for one machine, in the order of its names and with modes that do not depend on who built it."""

import collections
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# As the kernel and Python name a machine that Debian names so.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}

# name: below usr/; link: where a symbolic link leads, or None; data: the bytes of a file.
Entry = collections.namedtuple("Entry", "name mode link data")


class Stage:
    """Files and links below usr/ of a folder that CMake has installed into."""

    def __init__(self, folder, machine, version):
        self.usr = pathlib.Path(folder) / "usr"
        self.machine = machine
        self.version = version
        self.epoch = int(os.environ["SOURCE_DATE_EPOCH"])

    def entries(self):
        for path in sorted(self.usr.rglob("*"), key=lambda each: each.relative_to(self.usr).as_posix()):
            name = path.relative_to(self.usr).as_posix()
            if path.is_symlink():
                yield Entry(name, 0o777, os.readlink(path), b"")
            elif path.is_file():
                yield Entry(name, 0o755 if path.stat().st_mode & 0o100 else 0o644, None, path.read_bytes())

    def glibc(self):
        """The version of the C library that the newest symbol needs, as (2, 35)."""
        needed = {(2, 0)}
        for path in self.usr.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
                told = subprocess.run(["readelf", "-W", "--version-info", path], capture_output=True, text=True, check=True).stdout
                needed |= {tuple(map(int, each.split("."))) for each in re.findall(r"\bGLIBC_(\d+\.\d+)", told)}
        return max(needed)
