# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The example of one-sided writes, as a reader would try it: two processes on this machine."""

import os
import pathlib
import subprocess
import time

import program

ONESIDED = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve() / "examples" / "onesided"
SOURCE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "onesided.c"

# The leak sanitizer does not bear the threads of a library that is loaded later, and the thread
# sanitizer does not know that an octet of the socket orders what the peer has written before.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "report_bugs=0"}


def test_the_client_writes_into_the_servers_memory():
    port = str(program.free_port())
    with subprocess.Popen([str(ONESIDED), port], stdout=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, env=ENVIRONMENT) as server:
        deadline = time.monotonic() + 30
        while True:  # until the server listens
            client = subprocess.run([str(ONESIDED), port, "127.0.0.1", "so be it"], timeout=60,
                                    stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    env=ENVIRONMENT, check=False)
            if "refused" not in client.stderr or time.monotonic() > deadline:
                break
        told = server.communicate(timeout=60)[0]
    assert client.returncode == 0, client.stderr
    assert server.returncode == 0
    assert told == "the client wrote: so be it\n"


def test_the_example_is_short():
    assert len(SOURCE.read_text().splitlines()) < 60
