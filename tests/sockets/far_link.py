# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs a server and a client in two network namespaces, with a link between them that holds each packet for some time:
far_link.py MS SERVER CLIENT, both commands of the shell; the server prints "ready" once it listens. Ends with
the client's status. Needs root, or a user namespace of its own, and /dev/net/tun."""

import collections
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
import threading
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
PACKET_MAX = 65536
LIBC = ctypes.CDLL(None, use_errno=True)
CANNOT = 77


def enter_new_namespace():
    if LIBC.unshare(CLONE_NEWNET) != 0:
        sys.exit(f"no network namespace: {os.strerror(ctypes.get_errno())}")


def open_tun(address, peer):
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"far0", IFF_TUN | IFF_NO_PI))
    subprocess.run(f"ip link set lo up; ip address add {address} peer {peer} dev far0; ip link set far0 up",
                   shell=True, check=True)
    return tun


def hold_and_pass(one, other, seconds):
    """Each packet leaves seconds after it came, in order."""
    held = collections.deque()
    while True:
        left = max(0, held[0][0] - time.monotonic()) if held else None
        if select.select([one, other], [], [], left)[0]:
            for come, go in ((one, other), (other, one)):
                if select.select([come], [], [], 0)[0]:
                    held.append((time.monotonic() + seconds, go, os.read(come, PACKET_MAX)))
        while held and held[0][0] <= time.monotonic():
            _, go, packet = held.popleft()
            os.write(go, packet)


def main(ms, server, client):
    try:
        enter_new_namespace()
        near = open_tun("10.77.0.1", "10.77.0.2")
        serving = subprocess.Popen(server, shell=True, stdout=subprocess.PIPE, text=True)
        enter_new_namespace()
        far = open_tun("10.77.0.2", "10.77.0.1")
    except OSError as error:
        print(f"no link: {error}")
        return CANNOT
    threading.Thread(target=hold_and_pass, args=(near, far, ms / 1000), daemon=True).start()
    assert "ready" in serving.stdout.readline()
    status = subprocess.run(client, shell=True, check=False).returncode
    serving.stdout.close()
    serving.wait()
    return status


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
