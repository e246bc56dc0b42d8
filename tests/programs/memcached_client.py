# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A client of memcached's text protocol on several connections at once: every value is checked."""

import random
import socket
import sys

CONNECTIONS, ROUNDS = 16, 12
VALUE_OCTETS_MAX = 400_000


def exact(reader, octets):
    value = reader.read(octets)
    assert len(value) == octets, f"{len(value)} octets of {octets}"
    return value


def store(each, key, value):
    each.write(f"set {key} 0 0 {len(value)}\r\n".encode() + value + b"\r\n")
    each.flush()
    assert each.readline() == b"STORED\r\n"


def load(each, key, value):
    each.write(f"get {key}\r\n".encode())
    each.flush()
    assert each.readline() == f"VALUE {key} 0 {len(value)}\r\n".encode()
    assert exact(each, len(value) + 2) == value + b"\r\n"
    assert each.readline() == b"END\r\n"


def main(address, port):
    chance = random.Random(5)
    links = [socket.create_connection((address, int(port))) for _ in range(CONNECTIONS)]
    files = [link.makefile("rwb") for link in links]
    values = {}
    for _ in range(ROUNDS):
        for number, each in enumerate(files):
            values[number] = chance.randbytes(int(VALUE_OCTETS_MAX ** chance.random()))
            store(each, f"key{number}", values[number])
        for number, value in values.items():
            load(files[number - 1], f"key{number}", value)
    for each, link in zip(files, links):
        each.close()
        link.close()
    print("every value is right")


main(*sys.argv[1:])
