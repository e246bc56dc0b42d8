# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Mooncake's transfer engine (mooncake-transfer-engine-non-cuda): see moves.py."""

import moves
from mooncake.engine import TransferEngine


def engine_of(memory, own):
    engine = TransferEngine()
    assert engine.initialize(own, "P2PHANDSHAKE", "rdma", "anywarp0") == 0
    assert engine.register_memory(memory.base, 2 * moves.HALF) == 0
    return engine


def server(link, memory, own):
    engine = engine_of(memory, own)
    at = link()
    at.say(session=f"{own}:{engine.get_rpc_port()}", base=memory.base)
    at.hear()
    memory.check()
    at.say(done=True)


def client(link, memory, own):
    engine = engine_of(memory, own)
    at = link()
    far = at.hear()
    for start in range(0, moves.HALF, moves.BLOCK):
        assert engine.transfer_sync_write(far["session"], memory.base + start, far["base"] + start, moves.BLOCK) == 0
    halves = range(moves.HALF, 2 * moves.HALF, moves.BLOCK)
    assert engine.batch_transfer_sync_read(far["session"], [memory.base + start for start in halves],
                                           [far["base"] + start for start in halves],
                                           [moves.BLOCK] * moves.BLOCKS) == 0
    at.say(done=True)
    at.hear()


moves.run(server, client)
