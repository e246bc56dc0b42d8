# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Both ends of the scenes of test_sockets_scenes.py, which know nothing of what is preloaded:
`sockets_peer.py serve|connect SCENE PORT [FD]`. It exits with 0 when all was as over TCP."""

import sys

import sockets_processes  # noqa: F401
import sockets_streams  # noqa: F401
from sockets_ends import CONNECT, SERVE


def main():
    role, scene, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    (SERVE if role == "serve" else CONNECT)[scene](port)


if __name__ == "__main__":
    main()
