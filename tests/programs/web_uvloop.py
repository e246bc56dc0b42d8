# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""aiohttp on uvloop, a server of files and of what it is sent, or a client of it: `serve ADDRESS PORT FOLDER`,
`fetch ADDRESS PORT FOLDER`."""

import asyncio
import pathlib
import sys

import aiohttp
import aiohttp.web
import uvloop

CLIENTS, ROUNDS = 8, 3
MESSAGES = 200
OCTETS_MAX = 16 * 2**20


async def give_back(request):
    return aiohttp.web.Response(body=await request.read())


async def echo(request):
    """Over a WebSocket."""
    link = aiohttp.web.WebSocketResponse(max_msg_size=OCTETS_MAX)
    await link.prepare(request)
    async for message in link:
        await link.send_bytes(message.data)
    return link


def serve(address, port, folder):
    app = aiohttp.web.Application(client_max_size=OCTETS_MAX)
    app.router.add_post("/back", give_back)
    app.router.add_get("/echo", echo)
    app.router.add_static("/files", folder)
    aiohttp.web.run_app(app, host=address, port=port, print=None)


async def fetch_all(session, paths):
    for path in paths:
        octets = path.read_bytes()
        async with session.get(f"/files/{path.name}") as answer:
            assert await answer.read() == octets, f"got {path.name}"
        async with session.post("/back", data=octets) as answer:
            assert await answer.read() == octets, f"posted {path.name}"


async def talk(session, octets):
    async with session.ws_connect("/echo", max_msg_size=OCTETS_MAX) as link:
        for number in range(1, MESSAGES):
            message = octets[:number * number]
            await link.send_bytes(message)
            assert await link.receive_bytes() == message, f"message {number}"


async def fetch(address, port, folder):
    paths = sorted(pathlib.Path(folder).iterdir())
    async with aiohttp.ClientSession(f"http://{address}:{port}") as session:
        await asyncio.gather(*(fetch_all(session, paths * ROUNDS) for _ in range(CLIENTS)),
                             talk(session, max(paths, key=lambda path: path.stat().st_size).read_bytes()))
    print("every answer is right")


def main(what, address, port, folder):
    uvloop.install()
    if what == "serve":
        serve(address, int(port), folder)
    else:
        asyncio.run(fetch(address, int(port), folder))


main(*sys.argv[1:])
