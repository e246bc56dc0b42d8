# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Records by the kernel, where this machine's kernel may have no TLS: then by the library, with a reason. What a kernel that has it
does, tests/kernel/test_tls_user.py shows."""

import os
import subprocess

import pytest

import conftest
from certificates import ADDRESSES, words

ANYWARP = conftest.BUILD / "bin" / "anywarp"
WHY = "tls records are made in user space, not by the kernel as ANYWARP_TLS_RECORDS asks: "


@pytest.fixture(scope="module")
def files(authority):
    return authority.issue("here", ADDRESSES)


def ping(start, port, prefix):
    server = start.server("rping -s -a 127.0.0.1 -C 3 -v", port, prefix=prefix)
    client = start(f"rping -c -a 127.0.0.1 -p {port} -C 3 -v", prefix=prefix)
    for end in client, server:
        assert end.wait_exit() == 0 and end.output().count("ping data: ") == 3
        yield end.output()


def test_pings_whoever_makes_the_records(start, port, files):
    for said in ping(start, port, [*words(files), "ANYWARP_TLS_RECORDS=kernel", "ANYWARP_LOG=info"]):
        assert said.count("connection secured by tls") == 1
        assert (" records kernel\n" in said) != (said.count(WHY) == 1)


def test_a_word_that_is_none(start, port, files):
    for said in ping(start, port, [*words(files), "ANYWARP_TLS_RECORDS=sometimes"]):
        assert "ANYWARP_TLS_RECORDS is 'sometimes': it must be user or kernel" in said and WHY not in said


def run(command, *options):
    return subprocess.run([str(ANYWARP), command, *map(str, options), "--", "env"], env=dict(os.environ), capture_output=True,
                          text=True, check=False)


def test_the_option_of_the_command(files):
    asked = ["--tls", "require", "--tls-cert", files.cert, "--tls-key", files.key, "--tls-ca", files.ca]
    assert "ANYWARP_TLS_RECORDS=kernel" in run("run", *asked, "--tls-records", "kernel").stdout.splitlines()
    done = run("run", *asked, "--tls-records", "sometimes")
    assert done.returncode == 125 and "--tls-records needs one of: user kernel" in done.stderr
    done = run("run", "--tls-records", "kernel")
    assert done.returncode == 125 and "--tls-records (ANYWARP_TLS_RECORDS) has no effect without --tls require" in done.stderr
    done = run("sockets", *asked, "--tls-records", "kernel")
    assert done.returncode == 2 and "--tls-records (ANYWARP_TLS_RECORDS) is for RDMA programs alone" in done.stderr
