# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Captures what goes over a wire by dumpcap; see recording.py for what is made of it."""

import subprocess

import program
import recording
import tcp_order

# Octets that only our own datagram carries. When it is in the file, so is what came before it.
END_MARK = b"anywarp-capture-ends-here"


class NotAllowed(Exception):
    """Capturing needs CAP_NET_RAW; the text is what dumpcap said."""


class Capture:
    """Captures one port on one interface from construction to stop()."""

    def __init__(self, path, interface, address, port, prefix=()):
        self.path, self.address, self.port, self.prefix = str(path), address, port, list(prefix)
        self.dumpcap = program.Program([*self.prefix, "dumpcap", "-q", "-B", "64", "-i", interface,
                                        "-w", self.path, "-f", f"port {port}"])
        try:
            self.dumpcap.wait_output("File: ")
        except program.Trouble as trouble:
            said = [line for line in self.dumpcap.output().splitlines() if "ermission" in line]
            self.dumpcap.close()
            raise NotAllowed(f"dumpcap {trouble}: {' '.join(said[:1])}") from trouble

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.dumpcap.close()

    def stop(self, keys=None):
        """The Recording of everything sent so far; with a key log, of what was inside of TLS."""
        send_mark = f"printf {END_MARK.decode()} >/dev/udp/{self.address}/{self.port}"
        subprocess.run([*self.prefix, "bash", "-c", send_mark], check=True)
        self.dumpcap.wait_until(self.has_mark, "end of the capture", seconds=10)
        self.dumpcap.close()
        if keys:
            return recording.Recording(self.path, list(recording.opened(self.path, keys)))
        lines = recording.tshark(self.path, "-Y", "tcp", "-T", "fields",
                                 *recording.columns(tcp_order.FIELDS))
        return recording.Recording(self.path, list(tcp_order.packets(lines.splitlines())))

    def has_mark(self):
        with open(self.path, "rb") as file:
            return END_MARK in file.read()
