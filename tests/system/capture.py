# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Captures what goes over a wire, and reads it through tshark's MPA and DDP/RDMAP dissectors."""

import collections
import os
import re
import subprocess

import iwarp
import program
import tcp_order

# Octets that only our own datagram carries. When it is in the file, so is what came before it.
END_MARK = b"anywarp-capture-ends-here"
FIELDS = ("frame.number", "tcp.stream", "tcp.srcport", "tcp.len", "tcp.nxtseq",
          "iwarp_mpa.key.req", "iwarp_mpa.key.rep", "iwarp_mpa.crc_flag", "iwarp_mpa.marker_flag",
          "iwarp_mpa.rej_flag", "iwarp_mpa.rev", "iwarp_mpa.crc_check", "iwarp_rdma.opcode",
          "iwarp_mpa.ulpdulength", "iwarp_ddp.qn", "iwarp_ddp.msn", "iwarp_ddp.last_flag",
          "_ws.malformed", "iwarp_mpa.bad_length")
# MPA is asked first, for a port may belong to another protocol by name; and nobody guesses what the
# messages mean to the programs.
TSHARK_OPTIONS = ("-o", "tcp.try_heuristic_first:TRUE", "--disable-protocol", "rpcordma",
                  "--disable-protocol", "smb_direct")
TAGGED_OPCODES = (iwarp.WRITE, iwarp.READ_RESPONSE)
TAGGED_HEADER_OCTETS = 14

Frame = collections.namedtuple("Frame", [name.replace(".", "_").strip("_") for name in FIELDS])


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

    def stop(self):
        """Returns once everything sent so far is in the file."""
        send_mark = f"printf {END_MARK.decode()} >/dev/udp/{self.address}/{self.port}"
        subprocess.run([*self.prefix, "bash", "-c", send_mark], check=True)
        self.dumpcap.wait_until(self.has_mark, "end of the capture", seconds=10)
        self.dumpcap.close()
        lines = tshark(self.path, "-Y", "tcp", "-T", "fields", *columns(tcp_order.FIELDS))
        self.path += "-in-order"
        tcp_order.write(self.path, lines.splitlines())

    def has_mark(self):
        with open(self.path, "rb") as file:
            return END_MARK in file.read()

    def frames(self):
        """One Frame for each captured frame with TCP octets; lists where a frame has several."""
        lines = tshark(self.path, "-T", "fields", "-E", "aggregator=;", "-Y", "tcp.len > 0",
                       *columns(FIELDS)).splitlines()
        return [Frame(*line.split("\t")) for line in lines]

    def crc_verdicts(self):
        """How often the dissector found each verdict: {'Good': n, 'Bad': n}."""
        text = tshark(self.path, "-O", "iwarp_mpa")
        return collections.Counter(re.findall(r"CRC check: 0x\w+ \((Good|Bad)", text))


def columns(names):
    return [argument for name in names for argument in ("-e", name)]


def tshark(path, *arguments):
    """Without the user's own preferences."""
    env = {**os.environ, "HOME": os.path.dirname(path)}
    return subprocess.run(["tshark", "-r", path, *TSHARK_OPTIONS, *arguments], env=env,
                          check=True, text=True, capture_output=True).stdout


def numbers(field):
    return [int(number, 0) for number in field.split(";") if number]


def opcodes(frames):
    """How often each comes, the zero-length Writes that start a connection left out."""
    return collections.Counter(opcode for frame in frames
                               for opcode, octets in fpdus(frame) if not is_rtr(opcode, octets))


def rtr_count(frames):
    return sum(is_rtr(*each) for frame in frames for each in fpdus(frame))


def fpdus(frame):
    """(opcode, octets of the ULPDU) of each FPDU that ends in the frame."""
    return list(zip(numbers(frame.iwarp_rdma_opcode), numbers(frame.iwarp_mpa_ulpdulength)))


def is_rtr(opcode, octets):
    """RFC 6581 9.2: the initiator of a peer-to-peer connection sends first, if need be nothing."""
    return opcode == iwarp.WRITE and octets == TAGGED_HEADER_OCTETS


def messages(frames):
    """{(stream, source port, QN): the MSN of each last segment, in order}."""
    seen = collections.defaultdict(list)
    for frame in frames:
        last_flags = numbers(frame.iwarp_ddp_last_flag)
        places = iter(zip(numbers(frame.iwarp_ddp_qn), numbers(frame.iwarp_ddp_msn)))
        for opcode, is_last in zip(numbers(frame.iwarp_rdma_opcode), last_flags):
            if opcode in TAGGED_OPCODES:
                continue
            queue, msn = next(places)
            if is_last:
                seen[frame.tcp_stream, frame.tcp_srcport, queue].append(msn)
    return seen


def unaccounted(frames):
    """{(stream, source port): octets that TCP carried less those that the dissectors told of}."""
    octets = {}
    for frame in frames:
        end = frame.tcp_stream, frame.tcp_srcport
        octets.setdefault(end, [0, 0])
        octets[end][0] = max(octets[end][0], int(frame.tcp_nxtseq) - 1)
        if frame.iwarp_mpa_key_req or frame.iwarp_mpa_key_rep:
            octets[end][1] += int(frame.tcp_len)
        for _, length in fpdus(frame):
            octets[end][1] += length + 2 + -(length + 2) % 4 + 4
    return {end: carried - told for end, (carried, told) in octets.items() if carried != told}
