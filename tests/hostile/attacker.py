# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The attacker's side: a handle on the victim's process and a peer that makes every octet itself.
What the victim must answer is worked out here from RFC 5040 4.8 alone, sharing nothing with it."""

import collections
import os
import select
import socket
import struct
import subprocess
import time

import ground
import iwarp
from program import SLOWNESS
from raw_peer import RawPeer

SECONDS_MAX = 60 * SLOWNESS
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0:exitcode=99", "UBSAN_OPTIONS": "print_stacktrace=1",
              "TSAN_OPTIONS": f"{os.environ.get('TSAN_OPTIONS', '')}:exitcode=98"}

LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC = 1, 2, 4, 8
ALL_RIGHTS = LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ
MIDDLE, START, END, BIG = range(4)
EVENT_ESTABLISHED, EVENT_DISCONNECTED = 9, 10
WR_WRITE, WR_SEND, WR_READ, WR_FETCH_ADD = 0, 2, 4, 6
OFFER, AGREE = 0x04, 0x02  # docs/extensions.md
ASYNC_CQ_ERR, ASYNC_QP_FATAL, ASYNC_LAST_WQE, ASYNC_SRQ_LIMIT = 0, 1, 16, 15
ASYNC_REQ_ERR, ASYNC_ACCESS_ERR, ASYNC_ANY = 2, 3, 0xFFFFFFFF
SUCCESS, LEN_ERR, PROT_ERR, FLUSH, REM_INV_REQ, REM_ACCESS = 0, 1, 4, 5, 9, 10
REM_OP = 21 if ground.KERNEL else 11  # libsiw has the general error alone for it


class Region(collections.namedtuple("Region", "number stag address length")):
    @property
    def end(self):
        return self.address + self.length


class Victim:
    """The victim's process; its death, or a line that does not come, fails the test that asked."""

    def __init__(self, build, logs, **env):
        self.errors = open(logs / "stderr", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [f"{build}/tests/victim", ground.ADDRESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, text=True, bufsize=1,
            # Its own two ends stay on TCP, as the attacker's do: memory of theirs would count as what he costs.
            env={**os.environ, **SANITIZERS, "ANYWARP_HOST_PATH": "off", **ground.environment(build), **env})
        self.port = int(self.answer().split()[1])

    @property
    def where(self):
        return ground.ADDRESS, self.port

    def answer(self):
        poller = select.poll()
        poller.register(self.process.stdout, select.POLLIN)
        ready = poller.poll(SECONDS_MAX * 1000)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.process.wait(SECONDS_MAX) if ready else self.process.kill()
            raise AssertionError(self.report())
        return line.strip()

    def ask(self, word, *numbers, text=""):
        line = " ".join([word, *map(str, numbers)])
        self.process.stdin.write(f"{line} :{text}\n")
        return self.answer()

    def numbers(self, word, *numbers):
        return [int(number) for number in self.ask(word, *numbers).split()]

    def region(self, pd=0, access=ALL_RIGHTS, length=4096, place=MIDDLE):
        return Region(*self.numbers("region", pd, access, length, place), length)

    def expect(self, region, offset, octets):
        """These octets the attacker may place there, and will."""
        assert self.ask("expect", region.number, offset, text=octets.hex()) == "ok"

    def dump(self, region, offset, length):
        return bytes.fromhex(self.ask("dump", region.number, offset, length))

    def resident_kib(self):
        return self.numbers("stats")[0] + ground.kernel_kib()

    def open_fds(self):
        """And what stands for them in the kernel."""
        return self.numbers("stats")[1] + ground.module_sockets(self.port)

    def honest_rounds(self):
        return self.numbers("stats")[2]

    def wait_honest(self, before, rounds=2):
        """The honest connection goes on: so many rounds more, every octet right."""
        self.wait_until(lambda: self.honest_rounds() >= before + rounds, "the honest connection")

    def wait_until(self, condition, what):
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            assert time.monotonic() < deadline, f"no end of waiting for {what}"
            select.select([], [], [], 0.002)

    def quit(self):
        assert self.ask("quit") == "bye"
        status = self.process.wait(SECONDS_MAX)
        report = self.report()
        assert status == 0 and "runtime error" not in report, report

    def report(self):
        self.errors.seek(0)
        return f"the victim ended with {self.process.poll()}:\n{self.errors.read()[-8000:]}"


def connect_to(victim):
    """Over the module rdma_cm chooses the next victim's ports without asking TCP: a socket of this one, which TCP keeps
    for a minute, is not to be in their way."""
    sock = socket.create_connection(victim.where, SECONDS_MAX)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return sock


def tagged(opcode, stag, offset, payload=b"", last=True, ddp=1, rdmap=1, reserved=0):
    """A tagged segment; reserved goes into the bits that nobody may look at."""
    head = [0x80 | (0x40 if last else 0) | reserved << 2 & 0x3C | ddp,
            rdmap << 6 | reserved << 4 & 0x30 | opcode]
    return bytes(head) + struct.pack(">IQ", stag & 0xFFFFFFFF, offset % 2**64) + payload


def untagged(opcode, qn, msn, payload=b"", mo=0, last=True, invalidate=0, ddp=1, rdmap=1,
             reserved=0):
    head = [(0x40 if last else 0) | reserved << 2 & 0x3C | ddp,
            rdmap << 6 | reserved << 4 & 0x30 | opcode]
    return bytes(head) + struct.pack(">IIII", invalidate, qn, msn % 2**32, mo) + payload


def write(stag, offset, payload=b"x", **header):
    return tagged(iwarp.WRITE, stag, offset, payload, **header)


def response(stag, offset, payload=b"", **header):
    return tagged(iwarp.READ_RESPONSE, stag, offset, payload, **header)


def send(msn=1, payload=b"x" * 16, opcode=iwarp.SEND, qn=0, **header):
    return untagged(opcode, qn, msn, payload, **header)


def read_request(stag, offset, size, msn=1, sink=(0x51, 0x5100), cut=0, **header):
    payload = struct.pack(">IQIIQ", *sink, size, stag & 0xFFFFFFFF, offset % 2**64)
    return untagged(iwarp.READ_REQUEST, 1, msn, payload[:28 - cut] if cut >= 0 else
                    payload + bytes(-cut), **header)


def terminate_of(error, offender=b""):
    """The ULPDU that reports error (layer, type, code) about the ULPDU offender: RFC 5040 figures
    7 to 10. Its length and DDP header come with errors of RDMAP and DDP where they are there, a
    Read Request's own header with RDMAP's protection errors."""
    layer, etype, code = error
    about_segment = layer == 1 or (layer == 0 and etype in (1, 2))
    head_octets = 14 if offender[:1] and offender[0] & 0x80 else 18
    bits, rest = 0, b""
    if about_segment and len(offender) >= head_octets:
        bits = 0xC0
        rest = struct.pack(">H", len(offender)) + offender[:head_octets]
        if (layer, etype) == (0, 1) and offender[1] & 0xF == iwarp.READ_REQUEST:
            bits |= 0x20
            rest += offender[18:46]
    control = bytes([layer << 4 | etype, code, bits, 0])
    return untagged(iwarp.TERMINATE, 2, 1, control + rest)


class Attacker(RawPeer):
    """One connection with the victim."""

    def __init__(self, sock, victim):
        super().__init__(sock)
        self.victim = victim
        self.conn = self.qpn = None
        self.octets = b""
        self.reply_flags = 0

    @classmethod
    def agreed(cls, victim, **how):
        """As accepted, with the extensions of docs/extensions.md agreed on."""
        peer = cls.accepted(victim, revision=2, flags=iwarp.CRC | iwarp.ENHANCED | OFFER,
                            private=struct.pack(">HH", 4, 4), **how)
        assert peer.reply_flags & (OFFER | AGREE) == AGREE
        return peer

    @classmethod
    def connected_agreed(cls, victim):
        return cls.connected(victim, flags=iwarp.CRC | AGREE)

    @classmethod
    def started(cls, victim, pd=0, srq=0, ird=4, ord=4, cqes=64, **frame):
        """We are the initiator; the victim has accepted and we sent nothing yet."""
        peer = cls(connect_to(victim), victim)
        peer.send(iwarp.start_frame(**frame))
        peer.conn, peer.qpn = victim.numbers("accept", pd, srq, ird, ord, cqes)
        reply = peer.recv_start_frame()
        assert reply.key == iwarp.KEY_REPLY and not reply.flags & iwarp.REJECT
        peer.reply_flags = reply.flags
        return peer

    @classmethod
    def accepted(cls, victim, **how):
        """We are the initiator. RFC 5044 7.1.2: before a valid FPDU the victim may not even send a
        Terminate, so it gets one."""
        peer = cls.started(victim, **how)
        peer.send_ulpdu(write(0, 0, b""))
        return peer

    @classmethod
    def connected(cls, victim, pd=0, ird=4, ord=4, flags=iwarp.CRC):
        """The victim is the initiator; we reply in its own revision, and want no more than it."""
        with socket.create_server((ground.ADDRESS, 0)) as listener:
            listener.settimeout(SECONDS_MAX)
            conn, qpn = victim.numbers("connect", listener.getsockname()[1], pd, ird, ord)
            peer = cls(listener.accept()[0], victim)
        peer.conn, peer.qpn = conn, qpn
        request = peer.recv_start_frame()
        assert request.key == iwarp.KEY_REQUEST
        enhanced = request.flags & iwarp.ENHANCED
        peer.send(iwarp.start_frame(
            key=iwarp.KEY_REPLY, revision=request.revision, flags=flags | enhanced,
            private=struct.pack(">HH", ird, ord) if enhanced else b""))
        victim.ask("event", conn, EVENT_ESTABLISHED)
        return peer

    def recv_ulpdu(self):
        """The next ULPDU, its CRC asserted; None at the end of the stream."""
        while len(self.octets) < 2 or len(self.octets) < self.fpdu_octets():
            more = self.sock.recv(1 << 20)
            if not more:
                assert self.octets == b"", f"half an FPDU at the end: {self.octets.hex()}"
                return None
            self.octets += more
        size = self.fpdu_octets()
        fpdu, self.octets = self.octets[:size], self.octets[size:]
        length = struct.unpack(">H", fpdu[:2])[0]
        assert fpdu == iwarp.fpdu(fpdu[2:2 + length]), f"not an FPDU: {fpdu.hex()}"
        return fpdu[2:2 + length]

    def fpdu_octets(self):
        length = struct.unpack(">H", self.octets[:2])[0]
        return 2 + length + -(length + 2) % 4 + 4

    def recv_all(self):
        """Every ULPDU until the victim closes."""
        return list(iter(self.recv_ulpdu, None))

    def ask_victim(self, word, *numbers):
        return self.victim.ask(word, self.conn, *numbers)

    def completions(self, count):
        """["wr:status", ...] of so many completions, and no more may be there."""
        texts = self.ask_victim("poll", count).split()
        return [":".join(text.split(":")[:2]) for text in texts]

    def wait_disconnected(self):
        self.ask_victim("event", EVENT_DISCONNECTED)

    def drop(self):
        assert self.ask_victim("drop") == "ok"
        self.sock.close()
