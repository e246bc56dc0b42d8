#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""RDMA in Python, by rdma_cm and pyverbs (package python3-pyverbs): the client writes a text into the server's
memory, and Sends its length. note.py PORT serves one client, note.py PORT ADDRESS TEXT is one."""

import struct
import sys

from pyverbs.cmid import CMID, AddrInfo
from pyverbs.cm_enums import RAI_PASSIVE, RDMA_PS_TCP
from pyverbs.cq import cqe_status_to_str
from pyverbs.enums import IBV_QPT_RC, IBV_SEND_SIGNALED, IBV_WC_SUCCESS
from pyverbs.qp import QPCap, QPInitAttr

PAGE = 4096
PLACE = struct.Struct("!QI")  # an address and an rkey
LENGTH = struct.Struct("!I")


def endpoint(**addresses):
    found = AddrInfo(port_space=RDMA_PS_TCP, **addresses)
    cap = QPCap(max_send_wr=4, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
    return CMID(creator=found, qp_init_attr=QPInitAttr(qp_type=IBV_QPT_RC, cap=cap))


def wait(completion):
    """Waits for one completion. completion is get_send_comp or get_recv_comp of a CMID."""
    wc = completion()
    if wc.status != IBV_WC_SUCCESS:
        sys.exit(f"failed: {cqe_status_to_str(wc.status)}")


def send(cmid, message):
    mr = cmid.reg_msgs(len(message))
    mr.write(message, len(message))
    cmid.post_send(mr, IBV_SEND_SIGNALED)
    wait(cmid.get_send_comp)


def serve(port):
    listener = endpoint(src="0.0.0.0", src_service=port, flags=RAI_PASSIVE)
    listener.listen()
    cmid = listener.get_request()
    message = cmid.reg_msgs(LENGTH.size)
    cmid.post_recv(message)
    cmid.accept()
    page = cmid.reg_write(PAGE)
    send(cmid, PLACE.pack(page.buf, page.rkey))
    wait(cmid.get_recv_comp)
    length, = LENGTH.unpack(message.read(LENGTH.size, 0))
    print("the client wrote:", page.read(length, 0).decode())


def write(port, address, text):
    cmid = endpoint(dst=address, dst_service=port)
    message = cmid.reg_msgs(PLACE.size)
    cmid.post_recv(message)
    cmid.connect()
    wait(cmid.get_recv_comp)
    target, rkey = PLACE.unpack(message.read(PLACE.size, 0))
    data = text.encode()
    page = cmid.reg_msgs(len(data))
    page.write(data, len(data))
    cmid.post_write(page, len(data), target, rkey, IBV_SEND_SIGNALED)
    wait(cmid.get_send_comp)
    send(cmid, LENGTH.pack(len(data)))


if len(sys.argv) == 4:
    write(*sys.argv[1:])
elif len(sys.argv) == 2:
    serve(sys.argv[1])
else:
    sys.exit("usage: note.py PORT [ADDRESS TEXT]")
