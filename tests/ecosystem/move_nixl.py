# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""NIXL with its UCX backend (nixl, nixl-cu12): see moves.py."""

import base64
import time

import moves
from nixl._api import nixl_agent, nixl_agent_config

SECONDS_MAX = 30


def agent_of(name, memory):
    agent = nixl_agent(name, nixl_agent_config(backends=["UCX"]))
    registered = agent.register_memory(agent.get_reg_descs([(memory.base, 2 * moves.HALF, 0, "")], "DRAM"))
    return agent, registered


def move(agent, operation, peer, near, far):
    """BLOCKS transfers in one batch."""
    def blocks(base):
        return agent.get_xfer_descs([(base + moves.BLOCK * i, moves.BLOCK, 0) for i in range(moves.BLOCKS)], "DRAM")

    handle = agent.initialize_xfer(operation, blocks(near), blocks(far), peer)
    state, end = agent.transfer(handle), time.monotonic() + SECONDS_MAX
    while state == "PROC" and time.monotonic() < end:
        state = agent.check_xfer_state(handle)
    assert state == "DONE", f"{operation}: {state}"
    agent.release_xfer_handle(handle)


def server(link, memory, _):
    agent, registered = agent_of("server", memory)
    at = link()
    at.say(agent=base64.b64encode(agent.get_agent_metadata()).decode(), base=memory.base)
    at.hear()
    memory.check()
    agent.deregister_memory(registered)
    at.say(done=True)


def client(link, memory, _):
    agent, registered = agent_of("client", memory)
    at = link()
    far = at.hear()
    peer = agent.add_remote_agent(base64.b64decode(far["agent"]))
    move(agent, "WRITE", peer, memory.base, far["base"])
    move(agent, "READ", peer, memory.base + moves.HALF, far["base"] + moves.HALF)
    agent.remove_remote_agent(peer)
    at.say(done=True)
    at.hear()
    agent.deregister_memory(registered)


moves.run(server, client)
