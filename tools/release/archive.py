# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The archive of a release: it is unpacked anywhere, and its command finds the rest by itself."""

import gzip
import io
import tarfile

import stage as stages

PREFIX = b"prefix=/usr\n"


def moved(entry):
    """pkg-config's files name no place but their own."""
    if not entry.name.endswith(".pc"):
        return entry
    assert PREFIX in entry.data, entry.name
    return entry._replace(data=entry.data.replace(PREFIX, b"prefix=${pcfiledir}/../..\n"))


def header(name, entry, epoch):
    info = tarfile.TarInfo(name)
    info.mode, info.mtime, info.size = entry.mode, epoch, len(entry.data)
    if entry.link is not None:
        info.type, info.linkname = tarfile.SYMTYPE, entry.link
    return info


def make(stage, out):
    top = f"anywarp-{stage.version}"
    path = out / f"{top}-linux-{stages.MACHINES[stage.machine]}.tar.gz"
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, stage.epoch) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for entry in map(moved, stage.entries()):
            tar.addfile(header(f"{top}/{entry.name}", entry, stage.epoch), io.BytesIO(entry.data))
    return path
