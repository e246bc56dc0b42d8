# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs a server and a client in two network namespaces, with a link between them that holds each packet for some time:
far_link.py MS SERVER CLIENT, both commands of the shell; the server prints "ready" once it listens. Ends with
the client's status, or with CANNOT where no such namespace is allowed, or there is no /dev/net/tun. A user who is not root gets a user
namespace besides."""

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
        raise OSError(ctypes.get_errno(), f"no network namespace: {os.strerror(ctypes.get_errno())}")


def become_root():
    """In a user namespace, where nobody has to allow a network namespace."""
    own = ["unshare", "--user", "--map-root-user"]
    done = subprocess.run([*own, "true"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"no link: {done.stderr.strip()}")
        sys.exit(CANNOT)
    os.execvp(own[0], [*own, sys.executable, *sys.argv])


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
    if os.geteuid() != 0:
        become_root()
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
