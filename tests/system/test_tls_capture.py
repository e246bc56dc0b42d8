# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A capture of TLS, which the key log opens: tshark then finds iWARP inside, and both judges of test_wire.py find it right."""

import os
import stat
import subprocess

import iwarp
import pytest

import conftest
from certificates import NAME, variables, words
from wiretap import wire  # noqa: F401

ANYWARP = conftest.BUILD / "bin" / "anywarp"
PINGS = 5


def ping(start, port, server_prefix, client_prefix, address="127.0.0.1"):
    server = start.server(f"rping -s -C {PINGS} -V -S 5000", port, prefix=server_prefix)
    client = start(f"rping -c -a {address} -p {port} -C {PINGS} -V -S 5000", prefix=client_prefix)
    assert client.wait_exit() == 0 and server.wait_exit() == 0
    return server, client


@pytest.mark.parametrize("wire", ["lo"], indirect=True)
@pytest.mark.parametrize("policy", ["", "crc=off"])
def test_tshark_decodes_iwarp_inside_of_tls(start, wire, port, files, tmp_path, policy):  # noqa: F811
    """By the keys of either end."""
    _, captured = wire
    keys = tmp_path / "keys"
    plain = [*words(files, NAME), f"ANYWARP_MPA={policy}"]
    ping(start, port, *((plain, [*plain, f"ANYWARP_TLS_KEYLOG={keys}"]) if policy else ([*plain, f"ANYWARP_TLS_KEYLOG={keys}"], plain)))
    recorded = captured.stop(keys)
    assert recorded.problems() == []
    assert recorded.opcodes()[iwarp.SEND] == 4 * PINGS
    assert set(recorded.opcodes()) == {iwarp.WRITE, iwarp.READ_REQUEST, iwarp.READ_RESPONSE, iwarp.SEND}


@pytest.mark.parametrize("wire", ["lo"], indirect=True)
def test_without_the_keys_there_is_nothing_to_decode(start, wire, port, files, tmp_path):  # noqa: F811
    _, captured = wire
    ping(start, port, words(files, NAME), words(files, NAME))
    keys = tmp_path / "keys"
    keys.write_text("")
    assert captured.stop(keys).opcodes() == {}


def test_the_log_and_the_mode_tell_of_it(start, port, files, tmp_path):
    """A file that is there is appended to: both ends may have the same one."""
    keys = tmp_path / "keys"
    prefix = [*words(files, NAME), f"ANYWARP_TLS_KEYLOG={keys}"]
    for end in ping(start, port, prefix, prefix):
        assert f"ANYWARP_TLS_KEYLOG: the keys of every connection are written to {keys}" in end.output()
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    secrets = [line.split()[0] for line in keys.read_text().splitlines()]
    assert secrets.count("CLIENT_TRAFFIC_SECRET_0") == secrets.count("SERVER_TRAFFIC_SECRET_0") == 2


@pytest.mark.parametrize("path, why", [("/nowhere/keys", "No such file or directory"), ("/dev/null", "no regular file"), ("pipe", "No such device or address")])
def test_a_key_log_that_cannot_be_written_is_an_error(start, port, files, tmp_path, path, why):
    os.mkfifo(tmp_path / "pipe")
    prefix = [*words(files, NAME), f"ANYWARP_TLS_KEYLOG={tmp_path / path}"]
    program = start(f"rping -s -a 127.0.0.1 -p {port} -C 1", prefix=prefix)
    assert program.wait_exit() != 0 or "error" in program.output()
    assert f": {why}: it must be a file that can be written, or unset; nothing connects" in program.output()


def test_run_makes_the_file_and_names_it_by_its_whole_path(files, tmp_path):
    options = ["--tls", "require", "--tls-cert", files.cert, "--tls-key", files.key, "--tls-ca", files.ca]
    def run(*args, **env):
        return subprocess.run([str(ANYWARP), "run", *map(str, args), "--", "env"], cwd=tmp_path, env={**os.environ, **env},
                              capture_output=True, text=True, check=False)
    assert f"ANYWARP_TLS_KEYLOG={tmp_path}/keys" in run(*options, "--tls-keylog", "keys").stdout.splitlines()
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o600
    done = run(*options, "--tls-keylog", "none/keys")
    assert done.returncode == 125 and "--tls-keylog: cannot write 'none/keys'" in done.stderr
    done = run("--tls-keylog", "keys")
    assert done.returncode == 125 and "--tls-keylog (ANYWARP_TLS_KEYLOG) has no effect without --tls require" in done.stderr
    assert "ANYWARP_TLS_KEYLOG" not in variables(files)
