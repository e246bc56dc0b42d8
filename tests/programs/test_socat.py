# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""socat: select, shutdown of one direction, fork for each connection, a program behind the socket."""

import pytest
import scene as scenes

OCTETS = 8_000_003


def listen(scene, port, target, options="", flags="-t 30", **env):
    return scene.server(f"socat {flags} TCP4-LISTEN:{port},bind={scenes.ADDRESS},reuseaddr{options} "
                        f"{target}", port, **env)


def talk(scene, port, sent):
    """Sends a file, ends its direction, and keeps what comes until the end of the other."""
    got = f"{sent}.got"
    scene.client(["sh", "-c", f"socat -t 30 - TCP4:{scenes.ADDRESS}:{port} <{sent} >{got}"])
    return got


@pytest.mark.parametrize("direction", ["forth", "back"])
def test_one_way(scene, direction):
    sent, port = scene.file("sent", OCTETS), scene.port()
    if direction == "forth":
        server = listen(scene, port, f"CREATE:{sent}.got", flags="-u")
        scene.client(f"socat -u OPEN:{sent} TCP4:{scenes.ADDRESS}:{port}")
    else:
        server = listen(scene, port, f"OPEN:{sent}", flags="-U")
        scene.client(f"socat -u TCP4:{scenes.ADDRESS}:{port} CREATE:{sent}.got")
    assert server.wait_exit() == 0
    assert scenes.same_file(sent, f"{sent}.got")
    scene.judge(port, silent=direction == "forth")


@pytest.mark.parametrize("target", ["EXEC:cat", "SYSTEM:'exec cat'"])
def test_echo_until_one_direction_ends(scene, target):
    sent, port = scene.file("sent", OCTETS), scene.port()
    listen(scene, port, target, ",fork")
    assert scenes.same_file(sent, talk(scene, port, sent))


@pytest.mark.parametrize("octets", [0, 1, OCTETS])
def test_the_answer_comes_after_the_end_of_the_question(scene, octets):
    sent, port = scene.file("sent", octets), scene.port()
    listen(scene, port, "EXEC:sha256sum", ",fork")
    wanted = scene.client(["sh", "-c", f"sha256sum <{sent}"], rule=None)
    got = talk(scene, port, sent)
    with open(got, encoding="ascii") as file:
        assert file.read() == wanted


def test_a_program_that_has_the_socket_itself(scene):
    """nofork: socat becomes the program, with the connection as its standard input and output."""
    sent, port = scene.file("sent", OCTETS), scene.port()
    listen(scene, port, "EXEC:cat,nofork", ",fork")
    assert scenes.same_file(sent, talk(scene, port, sent))


def test_relay(scene):
    """Three processes in a row: the one in the midst is server and client."""
    sent, inner, outer = scene.file("sent", OCTETS), scene.port(), scene.port()
    listen(scene, inner, "EXEC:cat", ",fork")
    listen(scene, outer, f"TCP4:{scenes.ADDRESS}:{inner}", ",fork")
    assert scenes.same_file(sent, talk(scene, outer, sent))
    scene.judge(inner, iwarp=scene.mode.server == "on")


GATEWAY = scenes.Mode("gateway", "on", None, False)


@pytest.mark.parametrize("mode", [GATEWAY], ids=lambda mode: mode.name)
def test_a_gateway_from_plain_clients_to_an_iwarp_server(scene):
    """By one rule for one port; all else of the gateway is off."""
    sent, inner, outer = scene.file("sent", OCTETS), scene.port(), scene.port()
    listen(scene, inner, "EXEC:cat", ",fork")
    scene.server(f"socat -t 30 TCP4-LISTEN:{outer},bind={scenes.ADDRESS},fork "
                 f"TCP4:{scenes.ADDRESS}:{inner}", outer, rule=f"on port={inner} connect\noff")
    assert scenes.same_file(sent, talk(scene, outer, sent))
    scene.judge(inner, iwarp=True)
