# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A capture and its two judges: tshark's MPA and DDP/RDMAP dissectors, and conversation.py."""

import collections
import os
import re
import subprocess

import conversation
import tcp_order
import tshark_view

FIELDS = ("tcp.srcport", "tcp.dstport", "iwarp_mpa.key.req", "iwarp_mpa.key.rep",
          "iwarp_mpa.marker_flag", "iwarp_mpa.crc_flag", "iwarp_mpa.rej_flag", "iwarp_mpa.rev",
          "iwarp_rdma.opcode", "iwarp_mpa.ulpdulength", "iwarp_ddp.last_flag", "iwarp_ddp.qn",
          "iwarp_ddp.msn", "_ws.malformed", "iwarp_mpa.bad_length")
# MPA is asked first, for a port may belong to another protocol by name; and nobody guesses what the
# messages mean to the programs.
TSHARK_OPTIONS = ("-o", "tcp.try_heuristic_first:TRUE", "--disable-protocol", "rpcordma",
                  "--disable-protocol", "smb_direct")
# The dissector knows revision 1 alone, and no flag of RFC 6581.
KNOWN_REMARKS = {"Res field is NOT set to zero as required by RFC 5044",
                 "Rev field is NOT set to one as required by RFC 5044"}

Frame = collections.namedtuple("Frame", [name.replace(".", "_").strip("_") for name in FIELDS])


def columns(names):
    return [argument for name in names for argument in ("-e", name)]


def tshark(path, *arguments):
    """Without the user's own preferences."""
    env = {**os.environ, "HOME": os.path.dirname(path)}
    return subprocess.run(["tshark", "-r", path, *TSHARK_OPTIONS, *arguments], env=env,
                          check=True, text=True, capture_output=True).stdout


def opened(path, keys):
    """What tshark finds inside of TLS with the key log, as the packets of TCP without it. Its dissector of MPA looks for
    MPA only there."""
    for stream in sorted(set(tshark(path, "-Y", "tls", "-T", "fields", "-e", "tcp.stream").split())):
        text = tshark(path, "-o", f"tls.keylog_file:{keys}", "-q", "-z", f"follow,tls,raw,{stream}")
        ports = [int(port) for port in re.findall(r"(?m)^Node \d: .*:(\d+)$", text)]
        pieces = re.findall(r"(?m)^(\t?)([0-9a-f]+)$", text)
        if not pieces:
            continue
        ways = {"": ports, "\t": ports[::-1]}
        initiator = ways[pieces[0][0]]  # it speaks first
        sequences = dict.fromkeys(ports, 1)
        yield tcp_order.Packet(*initiator, tcp_order.SYN, 0, b"")
        yield tcp_order.Packet(*initiator[::-1], tcp_order.SYN | tcp_order.ACK, 0, b"")
        for tab, octets in pieces:
            source, destination = ways[tab]
            payload = bytes.fromhex(octets)
            yield tcp_order.Packet(source, destination, tcp_order.ACK, sequences[source], payload)
            sequences[source] += len(payload)


def number(text):
    """Of a flag newer releases of tshark say a word."""
    return {"True": 1, "False": 0}[text] if text in ("True", "False") else int(text, 0)


def numbers(field):
    return [number(text) for text in field.split(";") if text]


class Recording:
    """Connections as TCP delivered them, and what tshark says of each."""

    def __init__(self, path, packets):
        """Files of tshark's get names that begin with path."""
        self.packets = packets
        self.conversations = conversation.conversations(packets)
        self.paths = []
        for view in tshark_view.views(packets, self.conversations):
            self.paths.append(f"{path}-view{len(self.paths)}")
            tcp_order.write(self.paths[-1], view)

    def opcodes(self):
        """How often each comes in all connections, what only starts them left out."""
        counts = (each.opcodes() for each in self.conversations)
        return sum(counts, collections.Counter())

    def problems(self):
        """What either judge finds wrong, or the two see differently."""
        frames = self.frames()
        found = [f"malformed: {each}" for each in frames if each.ws_malformed
                 or each.iwarp_mpa_bad_length]
        verdicts, remarks = self.remarks()
        found += [f"tshark: {remark}" for remark in remarks - KNOWN_REMARKS]
        checked = sum(tshark_count(each) for each in self.conversations if each.crc_on)
        if verdicts != +collections.Counter(Good=checked):
            found.append(f"tshark's CRC verdicts {dict(verdicts)}, not {checked} good ones")
        for each in self.conversations:
            found += each.problems()
            found += differences(each, frames)
        return found

    def frames(self):
        """One Frame for each captured frame with TCP octets; lists where a frame has several."""
        return [Frame(*line.split("\t")) for path in self.paths
                for line in tshark(path, "-T", "fields", "-E", "aggregator=;", "-Y", "tcp.len > 0",
                                   *columns(FIELDS)).splitlines()]

    def remarks(self):
        """(how often each CRC verdict, the set of what tshark warns of beyond TCP)."""
        text = "\n".join(tshark(path, "-O", "iwarp_mpa", "-z", "expert") for path in self.paths)
        verdicts = collections.Counter(re.findall(r"CRC check: 0x\w+ \((Good|Bad)", text))
        experts = re.findall(r"(?m)^ +\d+ +\w+ +(\w+)  (.+)$", text)
        return verdicts, {remark for protocol, remark in experts if protocol != "TCP"}


def followed(direction):
    return [fpdu for fpdu in direction.fpdus if not tshark_view.is_misread(fpdu)]


def tshark_count(one):
    return sum(len(followed(direction)) for direction in one.directions)


def segments(frame):
    """(opcode, octets of the ULPDU, last flag, QN, MSN) of each FPDU that ends in the frame."""
    queues = iter(zip(numbers(frame.iwarp_ddp_qn), numbers(frame.iwarp_ddp_msn)))
    return [(opcode, octets, last, *(next(queues) if conversation.QUEUES.get(opcode) is not None
                                     else (None, None)))
            for opcode, octets, last in zip(numbers(frame.iwarp_rdma_opcode),
                                            numbers(frame.iwarp_mpa_ulpdulength),
                                            numbers(frame.iwarp_ddp_last_flag))]


def differences(one, frames):
    """Where tshark saw other start frames or segments than the second judge."""
    for ports, direction in zip((one.ports, one.ports[::-1]), one.directions):
        ours = [frame for frame in frames
                if (int(frame.tcp_srcport), int(frame.tcp_dstport)) == ports]
        starts = [frame for frame in ours if frame.iwarp_mpa_key_req or frame.iwarp_mpa_key_rep]
        seen = {(number(frame.iwarp_mpa_crc_flag), number(frame.iwarp_mpa_rej_flag),
                 number(frame.iwarp_mpa_rev)) for frame in starts}
        flags, revision = direction.start.flags, direction.start.revision
        if seen != {(flags >> 6 & 1, flags >> 5 & 1, revision)}:
            yield f"tshark saw start frames {seen}, not flags {flags:#x} at revision {revision}"
        wanted = [(segment.opcode, len(fpdu.ulpdu), segment.last, segment.qn, segment.msn)
                  for fpdu in followed(direction)
                  for segment in [conversation.iwarp.parse_segment(fpdu.ulpdu)]]
        seen = [segment for frame in ours for segment in segments(frame)]
        if seen != wanted:
            yield f"tshark saw {len(seen)} segments, not these {len(wanted)}: {seen[:4]}"
