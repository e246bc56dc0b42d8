# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Files by FTP, vsftpd to tnftp, as Debian has them, from memory to memory. The rate is the client's own; the file that came is
compared with the one that went, or thrown away by the client."""

import filecmp
import os
import re

import application
import pair
from values import MI

FILE_NAME = "file"
VSFTPD = """listen=YES
listen_address={address}
listen_port={port}
background=NO
run_as_launching_user=YES
anonymous_enable=YES
local_enable=NO
anon_root={folder}/root
seccomp_sandbox=NO
"""


class Ftp(application.Application):
    packages = {"vsftpd": "vsftpd", "tnftp": "tnftp"}

    def measure(self, scene, keys, seconds):
        octets = keys["size"]
        free = os.statvfs(application.MEMORY)
        if free.f_bavail * free.f_frsize < 3 * octets:
            raise pair.Failure(f"{application.MEMORY} has no room for two files of {octets} bytes")
        os.mkdir(scene.path("root"))
        scene.write(f"root/{FILE_NAME}", os.urandom(MI) * (octets // MI))
        # vsftpd wants a root that its guests cannot write to.
        os.chmod(scene.path("root"), 0o555)
        port, got = scene.port(), keys.get("to") or scene.path("got")
        settings = scene.write("vsftpd.conf", VSFTPD.format(address=scene.bed.address, port=port, folder=scene.folder))
        scene.server([application.program_path("vsftpd"), settings], port)
        said = scene.load(["tnftp", "-V", "-v", "-o", got, f"ftp://{scene.bed.address}:{port}/{FILE_NAME}"])
        if "to" in keys:
            return {**parse_tnftp(said, octets), "checked": f"the number of {octets} bytes"}
        application.check(filecmp.cmp(scene.path("root", FILE_NAME), got, shallow=False), "the file is another than the server's")
        return {**parse_tnftp(said, octets), "checked": f"{octets} bytes of the file"}


def parse_tnftp(output, octets):
    """Its line is '19922944 bytes received in 00:00 (1.21 GiB/s)'."""
    found = re.search(r"(\d+) bytes received in \S+ \(([\d.]+) ([KMG]?)i?B/s\)", output)
    if not found or int(found[1]) != octets:
        raise pair.Failure(f"tnftp received no file of {octets} bytes: {output[-200:]!r}")
    unit = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[found[3]]
    return {"test": "ftp", "octets": octets, "octets_per_second": float(found[2]) * unit}
