# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The fixture 'wire' and what runs two programs over it: for tests that look at captures."""

import contextlib

import beds
import capture
import pytest


@pytest.fixture(params=["lo", "mtu1500", "mtu9000"])
def wire(request, tmp_path, port):
    """(Bed, Capture) on loopback and on a veth where each frame is as a wire would carry it."""
    try:
        with contextlib.ExitStack() as stack:
            bed, interface = beds.LOOPBACK, "lo"
            if request.param != "lo":
                bed = stack.enter_context(beds.VethBed(int(request.param[3:]), one_segment=True))
                interface = "veth0"
            yield bed, stack.enter_context(capture.Capture(tmp_path / "wire", interface,
                                                           bed.address, port, bed.client_prefix))
    except (beds.NotAllowed, capture.NotAllowed) as error:
        pytest.skip(str(error))


def run(start, wire, port, server_line, client_line, policies=("", "")):
    """The Recording of what the two programs exchange; policies are the server's and client's."""
    bed, captured = wire
    # Without "off" two ends over loopback move their stream into memory, away from the wire.
    prefixes = [[*prefix, "env", "ANYWARP_HOST_PATH=off", f"ANYWARP_MPA={policy}"]
                for prefix, policy in zip((bed.server_prefix, bed.client_prefix), policies)]
    server = start.server(server_line, port, prefix=prefixes[0])
    client = start(f"{client_line.format(address=bed.address)} -p {port}", prefix=prefixes[1])
    assert client.wait_exit() == 0
    assert server.wait_exit() == 0
    recorded = captured.stop()
    assert recorded.problems() == []
    return recorded
