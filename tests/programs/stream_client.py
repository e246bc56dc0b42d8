# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""asyncio: many streams at once through stream_server.py, each read while it is written."""

import asyncio
import random
import sys

STREAMS = 24
OCTETS_MAX = 2_000_000


async def feed(writer, octets, chance):
    at = 0
    while at < len(octets):
        size = chance.randrange(1, 100_000)
        writer.write(octets[at:at + size])
        at += size
        await writer.drain()
    writer.write_eof()


async def stream(number, address, port):
    chance = random.Random(number)
    octets = chance.randbytes(int(OCTETS_MAX ** chance.random()))
    reader, writer = await asyncio.open_connection(address, port)
    _, got = await asyncio.gather(feed(writer, octets, chance), reader.read())
    assert got == octets + len(octets).to_bytes(8, "big"), f"stream {number}: {len(got)} octets"
    writer.close()
    await writer.wait_closed()


async def main(address, port):
    await asyncio.gather(*(stream(number, address, int(port)) for number in range(STREAMS)))
    print("every stream is right")


asyncio.run(main(*sys.argv[1:]))
