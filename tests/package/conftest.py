# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A Debian that had nothing, for each test file anew: ./dev test --package makes the packages and the roots, and says
where they are."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
if "ANYWARP_PACKAGES" not in os.environ:
    sys.exit("ANYWARP_PACKAGES is not set: use ./dev test --package")
PACKAGES = pathlib.Path(os.environ["ANYWARP_PACKAGES"]).resolve()
ROOTS = pathlib.Path(os.environ["ANYWARP_ROOTS"]).resolve()
AS_ROOT = shlex.split(os.environ.get("ANYWARP_AS_ROOT", ""))
APT = "apt-get -qy -o APT::Keep-Downloaded-Packages=true -o Dpkg::Use-Pty=0 --no-install-recommends"
COMMAND_SECONDS_MAX = 900
# Waits until a port listens: nothing else in the root can say so.
LISTENS = """
listens() { until grep -q ":$(printf %04X "$1") 00*:0000 0A" /proc/net/tcp /proc/net/tcp6; do kill -0 $! || return 1; sleep 0.1; done; }
"""


def rping_through(debian, anywarp):
    """rping, both ends by this command."""
    told = debian.run(LISTENS + f"""
        {anywarp} run -- rping -s -C 10 -v >/tmp/server &
        listens 7174
        {anywarp} run -- rping -c -a 127.0.0.1 -C 10 -v
        wait $!
        cat /tmp/server""")
    assert told.count("server ping data: rdma-ping-9:") == 1, told


def pipe_through(debian, anywarp):
    """A pipe through nc by a rule that has no way but iWARP, both ends by this command."""
    told = debian.run(LISTENS + f"""
        {anywarp} sockets --rule on -- nc -l -N 127.0.0.1 5000 >/tmp/heard &
        listens 5000
        seq 200000 | {anywarp} sockets --rule on -- nc -N 127.0.0.1 5000
        wait $!
        seq 200000 | cmp - /tmp/heard
        tail -n 1 /tmp/heard""")
    assert told.endswith("200000\n"), told


def version():
    return re.search(r"project\(anywarp VERSION (\S+)", (HERE.parents[1] / "CMakeLists.txt").read_text())[1]


class Debian:
    """A release of Debian, and what is changed in it. 'files' is /run/files there."""

    def __init__(self, suite, changes, files):
        self.suite = suite
        self.changes = changes
        self.files = files

    def start(self, network, script):
        line = [*AS_ROOT, HERE / "in-root", network, ROOTS / self.suite, self.changes, self.files, "bash", "-euc", script]
        return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=COMMAND_SECONDS_MAX)

    def run(self, script, network="loopback"):
        """What the script prints on either; it is to succeed."""
        done = self.start(network, f"exec 2>&1\n{script}")
        assert done.returncode == 0, f"{script}\n{done.stdout[-8000:]}{done.stderr}"
        return done.stdout

    def apt(self, arguments):
        """What is downloaded is shared with other tests, which wait for that; what is installed is not."""
        return self.run(f"""
            export DEBIAN_FRONTEND=noninteractive
            flock /var/cache/apt/archives {APT} --download-only {arguments}
            {APT} -o Debug::NoLocking=true {arguments}""", network="host")

    def remove(self):
        subprocess.run([*AS_ROOT, "rm", "-rf", "--one-file-system", self.changes], check=True)


def fresh(suite, name):
    debian = Debian(suite, ROOTS / suite / f"changes-{name}", PACKAGES)
    debian.remove()
    debian.apt("update")
    return debian


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def debian(request):
    made = fresh(request.param, request.module.__name__)
    yield made
    made.remove()
