# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""asyncio: gives back what comes, until its end; then says how much it was."""

import asyncio
import sys


async def serve(reader, writer):
    octets = 0
    while piece := await reader.read(65536):
        octets += len(piece)
        writer.write(piece)
        await writer.drain()
    writer.write(octets.to_bytes(8, "big"))
    writer.close()
    await writer.wait_closed()


async def main(address, port):
    async with await asyncio.start_server(serve, address, int(port)) as server:
        await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
