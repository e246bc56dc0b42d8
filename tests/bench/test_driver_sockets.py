# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Sockets programs under the library: how they are started, and what their output means."""

import os

import driver_path  # noqa: F401
import pair
import pytest
import sockets
from values import MI


def test_the_environment_of_each_rule(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "other.so")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert sockets.environment("/lib/x", None) == dict(os.environ)
    env = sockets.environment("/lib/x", "on")
    assert env["LD_PRELOAD"] == "/lib/x/libanywarp-sockets.so other.so"
    assert (env["LD_LIBRARY_PATH"], env["ANYWARP_SOCKETS_RULES"]) == ("/lib/x", "on")
    assert "ANYWARP_SOCKETS_DIRECT" not in env
    env = sockets.environment("/lib/x", "keeper")
    assert (env["ANYWARP_SOCKETS_RULES"], env["ANYWARP_SOCKETS_DIRECT"]) == ("on", "off")


def test_without_the_library_only_what_needs_it_is_skipped(tmp_path):
    assert sockets.no_library(str(tmp_path), None) is None
    assert str(tmp_path) in sockets.no_library(str(tmp_path), "off")
    (tmp_path / sockets.LIBRARY).touch()
    assert sockets.no_library(str(tmp_path), "off") is None


@pytest.mark.parametrize("line, rate", [
    ("19922944 bytes received in 00:00 (1.25 GiB/s)", 1.25 * 2**30),
    ("19922944 bytes received in 00:00 (512.5 MiB/s)", 512.5 * MI),
    ("19922944 bytes received in 00:01 (900 KiB/s)", 900 * 1024)])
def test_the_rate_that_tnftp_prints(line, rate):
    found = sockets.parse_tnftp(f"226 Transfer complete.\n{line}\n221 Goodbye.\n", 19 * MI)
    assert found["octets_per_second"] == rate


@pytest.mark.parametrize("output", ["", "tnftp: Can't connect", "5 bytes received in 00:00 (1 KiB/s)"])
def test_a_file_that_did_not_come_whole_is_a_failure(output):
    with pytest.raises(pair.Failure):
        sockets.parse_tnftp(output, 19 * MI)
