# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a test of TLS in the kernel needs around it: tlshd in a network namespace, an eye on the wire, peers of OpenSSL's."""

import os
import pathlib
import socket
import ssl

import ends
import program

TLSHD = os.environ.get("ANYWARP_TLSHD", "")
PARAMETERS = pathlib.Path("/sys/module/anywarp/parameters")
ETH_P_ALL = 3
NETLINK_GENERIC = "16"
SO_RCVBUFFORCE = 33
BUFFER_OCTETS = 64 << 20
PACKET_OCTETS_MAX = 1 << 17
SECONDS = 60


def configuration(files):
    """For both roles. files: a certificates.Files; without its cert the daemon has none to show."""
    role = f"x509.truststore={files.ca}\n" + (f"x509.certificate={files.cert}\nx509.private_key={files.key}\n" if files.cert else "")
    return f"[debug]\nloglevel=1\n[authenticate]\n[authenticate.client]\n{role}[authenticate.server]\n{role}"


def start(end, folder, files):
    """A tlshd of an end's network namespace, which hears of handshakes."""
    path = folder / f"tlshd{end.number}.conf"
    path.write_text(configuration(files), encoding="ascii")
    daemon = program.Program([*end.into, TLSHD, "--stderr", "--config", str(path)])
    daemon.wait_until(lambda: hears(end), "member of the kernel's group", SECONDS)
    return daemon


def hears(end):
    """True when a socket of the namespace listens to one of generic netlink's groups."""
    rows = ends.run([*end.into, "cat", "/proc/net/netlink"]).splitlines()[1:]
    return any(row.split()[1] == NETLINK_GENERIC and int(row.split()[3], 16) for row in rows)


class Tap:
    """All that goes over an end's interface, from here on."""

    def __init__(self, end):
        with end.namespace.network():
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_OCTETS)
        self.socket.setblocking(False)

    def octets(self):
        """Since the last call."""
        packets = []
        while True:
            try:
                packets.append(self.socket.recv(PACKET_OCTETS_MAX))
            except BlockingIOError:
                return b"".join(packets)

    def close(self):
        self.socket.close()


def connect(end, address, port):
    with end.namespace.network():
        plain = socket.socket()
    plain.settimeout(SECONDS)
    plain.connect((address, port))
    return plain


def listen(end, port):
    with end.namespace.network():
        listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.settimeout(SECONDS)
    listener.bind((end.address, port))
    listener.listen()
    return listener


def context(files):
    """OpenSSL's client, with a certificate where there is one."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    made.load_verify_locations(files.ca)
    if files.cert:
        made.load_cert_chain(files.cert, files.key)
    return made


def read_end(sock):
    """What comes until the end, however that comes."""
    octets = b""
    try:
        while piece := sock.recv(4096):
            octets += piece
    except OSError:  # ssl.SSLError is one
        pass
    return octets
