# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A client of InfiniStore: move_infinistore.py ADDRESS PORT. It writes blocks under keys, reads them back into other
memory and compares."""

import asyncio
import sys

import infinistore
import moves


async def move(connection, memory):
    blocks = [(f"block {i}", moves.BLOCK * i) for i in range(moves.BLOCKS)]
    await connection.rdma_write_cache_async(blocks, moves.BLOCK, memory.base)
    assert all(connection.check_exist(key) for key, _ in blocks)
    await connection.rdma_read_cache_async(blocks, moves.BLOCK, memory.base + moves.HALF)


def main(address, port):
    memory = moves.Memory("client")
    connection = infinistore.InfinityConnection(infinistore.ClientConfig(
        host_addr=address, service_port=int(port), log_level="info", connection_type=infinistore.TYPE_RDMA,
        ib_port=1, link_type=infinistore.LINK_ETHERNET, dev_name="anywarp0"))
    connection.connect()
    for half in (memory.base, memory.base + moves.HALF):
        connection.register_mr(half, moves.HALF)
    asyncio.run(move(connection, memory))
    assert memory.buffer[moves.HALF:] == moves.octets(moves.FROM_CLIENT), "what was read differs"
    connection.close()
    print("the octets are equal", flush=True)


main(*sys.argv[1:])
