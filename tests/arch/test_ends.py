# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Every kind of message between two ends of the other machine, and between one of it and one of this machine, which
may have another order of bytes and another size of a pointer."""

import pytest

from conftest import HERE, THERE

# Two ends of one order of bytes would move their stream into memory.
OVER_TCP = {"ANYWARP_HOST_PATH": "off"}
STEPS = ("write,read,send,send-se,bind,invalidate,bind,invalidate-se,"
         "write-imm,write-imm-se,send-imm,send-imm-se,atomic")
PINGS = 20


def run_both(start, ends, line, port, **variables):
    """A server and a client with the same options; returns what the client printed."""
    server = start.server(ends[0], line, port, **variables)
    client = start(ends[1], f"{line} -a 127.0.0.1 -p {port}", **variables)
    assert client.wait_exit() == 0
    assert server.wait_exit() == 0
    return client.output()


def test_rping_verifies(start, ends, port):
    line = f"-C {PINGS} -v -V -S 20000"
    server = start.server(ends[0], f"rping -s -a 127.0.0.1 {line}", port)
    client = start(ends[1], f"rping -c -a 127.0.0.1 -p {port} {line}")
    assert client.wait_exit() == 0
    assert server.wait_exit() == 0
    assert client.output().count("ping data: ") == PINGS


@pytest.mark.parametrize("mpa", ["", "markers=on"])
def test_every_kind_of_message(start, ends, port, mpa):
    printed = run_both(start, ends, f"tests/opcodes -S 1,500,4000,70000 -C 2 -o {STEPS}", port, ANYWARP_MPA=mpa,
                       **OVER_TCP)
    assert "connection 0 ended: as it should" in printed


def test_a_violation_ends_both(start, ends, port):
    """The Terminate, too, is read by the other machine."""
    printed = run_both(start, ends, f"tests/opcodes -S 500 -o {STEPS} -e client-violates", port, **OVER_TCP)
    assert "connection 0 ended" in printed


def test_shared_memory(start, ends, port):
    """The host path, docs/host-path.md. Machines with another order of bytes find that out and keep TCP."""
    printed = run_both(start, ends, f"tests/opcodes -S 1,500,4000,70000 -C 2 -o {STEPS}", port,
                       ANYWARP_HOST_PATH="on", ANYWARP_LOG="info")
    assert (" path memory" in printed) == (ends[0].byteorder == ends[1].byteorder)


def test_bytestreams(start, ends, port):
    """rsockets: their messages have an order of bytes of their own."""
    line = "rstream -T v -S 4000 -C 50 -I 3"
    server = start.server(ends[0], line, port)
    client = start(ends[1], f"{line} -s 127.0.0.1 -p {port}")
    assert client.wait_exit() == 0
    assert server.wait_exit() == 0


def test_offsets_of_a_file_have_64_bits(start):
    """The preloaded library has the calls of a program with a short off_t, too."""
    program = start(THERE, "tests/far_offset", LD_PRELOAD=THERE.build / "lib" / "libanywarp-sockets.so")
    assert program.wait_exit() == 0


def test_a_sockets_program(start, port):
    """Over iWARP. Where addresses have 32 bits its time_t has 64, and the names of the calls are others. The server is this
    machine's."""
    server, client = [{"LD_PRELOAD": end.build / "lib" / "libanywarp-sockets.so", "ANYWARP_SOCKETS_RULES": "on"}
                      for end in (HERE, THERE)]
    echo = start.server(HERE, "tests/echo", port, **server)
    assert start(THERE, f"tests/echo -a 127.0.0.1 -p {port}", **client).wait_exit() == 0
    assert echo.wait_exit() == 0
