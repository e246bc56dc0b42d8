# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""An attacker under TLS by Python's library, and a victim that requires it. The records are in the attacker's hands: it cuts,
changes, repeats or, with the keys (tls_records.py), makes them."""

import os
import socket
import ssl

import pytest
import tls_records
from attacker import Attacker, Victim
from certificates import Authority, variables

ALPN = "anywarp-mpa"
NAME = "victims"  # of every honest certificate here


class TlsSocket:
    """A TCP socket through a session whose records the test holds in its hands."""

    heard = b""  # what came last, of all sockets

    def __init__(self, sock, context, server_side=False, cut=None):
        self.sock = sock
        self.cut = cut  # records leave in pieces of so many octets
        self.side = "SERVER" if server_side else "CLIENT"
        self.sealed = 0  # records, behind the handshake
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side)
        self.finish(self.tls.do_handshake)

    def __getattr__(self, name):
        return getattr(self.sock, name)

    def records(self, octets):
        """As records, which are not sent."""
        self.tls.write(octets)
        records = self.outgoing.read()
        self.sealed += tls_records.records_in(records)
        return records

    def sealer(self):
        """Goes on where the library has stopped, which sends nothing any more."""
        words = [line.split() for line in open(self.tls.context.keylog_filename, encoding="ascii")]
        secret = [line[2] for line in words if line[0] == f"{self.side}_TRAFFIC_SECRET_0"][-1]
        return tls_records.Sealer(self.tls.cipher()[0], bytes.fromhex(secret), self.sealed)

    def flush(self, records):
        for at in range(0, len(records), self.cut or len(records) or 1):
            self.sock.sendall(records[at:at + (self.cut or len(records))])

    def finish(self, step, *args):
        """The step's result, once the records that it waits for have come."""
        while True:
            try:
                result = step(*args)
                self.flush(self.outgoing.read())
                return result
            except ssl.SSLWantReadError:
                self.flush(self.outgoing.read())
                more = TlsSocket.heard = self.sock.recv(1 << 16)
                self.incoming.write(more) if more else self.incoming.write_eof()

    def sendall(self, octets):
        self.flush(self.records(octets))

    def recv(self, count):
        try:
            return self.finish(self.tls.read, count)
        except ssl.SSLZeroReturnError:
            return b""

    def close_notify(self):
        """Ends this direction as TLS does."""
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        self.flush(self.outgoing.read())


class TlsAttacker(Attacker):
    """An attacker whose certificate is right."""

    context, server_side, cut = None, False, None

    def __init__(self, sock, victim):
        super().__init__(TlsSocket(sock, self.context, self.server_side, self.cut), victim)


class SlowAttacker(TlsAttacker):
    """The same, byte by byte from the handshake on."""

    cut = 1


class TlsServer(TlsAttacker):
    """The same that the victim connects to. It sends no ticket that the test does not make."""

    server_side = True


def context_of(files, alpn=(ALPN,), most=None, server_side=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server_side else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # a FIN alone is no end
    context.load_verify_locations(files.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    if files.cert:
        context.load_cert_chain(files.cert, files.key)
    if alpn:
        context.set_alpn_protocols(alpn)
    if most:
        context.maximum_version = most
    return context


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authorities") / "right")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Another CA, which issues the same names."""
    return Authority(tmp_path_factory.mktemp("authorities") / "wrong")


@pytest.fixture(scope="module")
def right(authority):
    return authority.issue(NAME)


def under_tls(folder, right, **more):
    """A victim whose own two ends are under TLS as well; more: its environment."""
    victim = Victim(os.environ["ANYWARP_BUILD"], folder, ANYWARP_LOG="info", **variables(right, NAME), **more)
    victim.log = folder / "stderr"
    TlsAttacker.context, TlsServer.context = context_of(right), context_of(right, server_side=True)
    TlsServer.context.num_tickets = 0
    for context in (TlsAttacker.context, TlsServer.context):
        context.keylog_filename = str(folder / "keys")
    yield victim
    victim.quit()


@pytest.fixture(scope="module")
def process(tmp_path_factory, right):
    """In place of conftest.py's."""
    yield from under_tls(tmp_path_factory.mktemp("victim"), right)


def said(victim):
    return victim.log.read_text(errors="replace")


def wait_said(victim, before, words):
    """What was logged behind the text before."""
    victim.wait_until(lambda: words in said(victim)[len(before):], f"'{words}' in the log")
