# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Files by FTP, vsftpd to tnftp, from memory to memory. The rate is the client's own; the file that came is compared with the
one that went."""

import filecmp
import os

import application
import pair
import sockets
from values import MI


class Ftp(application.Application):
    packages = {"vsftpd": "vsftpd", "tnftp": "tnftp"}

    def measure(self, scene, keys, seconds):
        octets = keys["size"]
        free = os.statvfs(application.MEMORY)
        if free.f_bavail * free.f_frsize < 3 * octets:
            raise pair.Failure(f"{application.MEMORY} has no room for two files of {octets} bytes")
        os.mkdir(scene.path("root"))
        scene.write(f"root/{sockets.FILE_NAME}", os.urandom(MI) * (octets // MI))
        # vsftpd wants a root that its guests cannot write to.
        os.chmod(scene.path("root"), 0o555)
        port, got = scene.port(), scene.path("got")
        settings = scene.write("vsftpd.conf", sockets.VSFTPD.format(address=scene.bed.address, port=port,
                                                                    folder=scene.folder))
        scene.server([application.program_path("vsftpd"), settings], port)
        said = scene.load(["tnftp", "-V", "-v", "-o", got, f"ftp://{scene.bed.address}:{port}/{sockets.FILE_NAME}"])
        application.check(filecmp.cmp(scene.path("root", sockets.FILE_NAME), got, shallow=False),
                          "the file is another than the server's")
        return {**sockets.parse_tnftp(said, octets), "checked": f"{octets} bytes of the file"}
