# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a program under `anywarp run` sees in /dev/infiniband and /sys/class/infiniband, and by which calls."""

import os
import pathlib
import subprocess

import beds
import pytest

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
TYPES = {"iwarp": "IB/RoCE v1", "roce": "RoCE v2"}
# What is preloaded has no sanitizer, and comes before one.
ENV = {"ASAN_OPTIONS": "verify_asan_link_order=0"}


def run(*argv, prefix=(), options=("--device-files",), **env):
    return subprocess.run([*prefix, str(BUILD / "bin" / "anywarp"), "run", *options, "--", *argv],
                          capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **ENV, **env})


def gids(folder, persona, prefix=()):
    """The entries that the program saw, in the files as by the verbs."""
    done = run(str(BUILD / "tests" / "device_gids"), TYPES[persona], prefix=prefix,
               XDG_RUNTIME_DIR=str(folder), ANYWARP_PERSONA=persona)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_every_call_with_a_path_comes_to_the_files(tmp_path):
    calls = str(BUILD / "tests" / "device_calls")
    done = run(calls, XDG_RUNTIME_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    led = dict(line.split() for line in done.stdout.splitlines())
    assert len(led) > 30 and [name for name, word in led.items() if word != "yes"] == []
    if not os.path.exists("/sys/class/infiniband"):
        assert "yes" not in run(calls, options=()).stdout


@pytest.fixture
def namespace():
    """The prefix of a network namespace in which nothing is up."""
    try:
        made = beds.Namespace()
    except beds.NotAllowed as error:
        pytest.skip(f"no network namespaces here: {error}")
    yield made
    made.close()


@pytest.mark.parametrize("persona", ["iwarp", "roce"])
def test_the_files_of_the_port_say_what_the_verbs_say(tmp_path, persona):
    assert gids(tmp_path, persona)


@pytest.mark.parametrize("persona", ["iwarp", "roce"])
def test_the_files_follow_the_addresses(tmp_path, persona, namespace):
    """Loopback comes behind the others; what is gone is gone from the files as well."""
    assert gids(tmp_path, persona, namespace.into) == []
    for line in ("link set lo up", "link add dummy0 type veth peer name dummy1",
                 "addr add 192.0.2.1/24 dev dummy0", "link set dummy0 up"):
        namespace.ip(line)
    found = gids(tmp_path, persona, namespace.into)
    assert found[0] == ["0000:0000:0000:0000:0000:ffff:c000:0201", "dummy0"]
    names = [name for _, name in found]
    assert set(names[names.index("lo"):]) == {"lo"}
    namespace.ip("link del dummy0")
    assert {name for _, name in gids(tmp_path, persona, namespace.into)} == {"lo"}
    namespace.ip("link set lo down")
    assert gids(tmp_path, persona, namespace.into) == []


@pytest.mark.parametrize("persona", ["iwarp", "roce"])
def test_the_interfaces_are_those_that_are_up(tmp_path, persona, namespace):
    """Loopback alone, one beside it, loopback again, none."""
    def shown():
        done = run("ls", "/sys/class/infiniband/anywarp0/device/net", prefix=namespace.into,
                   XDG_RUNTIME_DIR=str(tmp_path), ANYWARP_PERSONA=persona)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    namespace.ip("link set lo up")
    assert shown() == ["lo"]
    for line in ("link add dummy0 type veth peer name dummy1", "addr add 192.0.2.1/24 dev dummy0", "link set dummy0 up"):
        namespace.ip(line)
    assert shown() == ["dummy0"]
    namespace.ip("link del dummy0")
    assert shown() == ["lo"]
    namespace.ip("link set lo down")
    assert shown() == []


def test_each_persona_has_its_own_files(tmp_path):
    """Programs of both run beside each other."""
    look = "cat /sys/class/infiniband/anywarp0/ports/1/gid_attrs/types/0"
    other = f"{BUILD}/bin/anywarp run --persona roce -- {look}; {look}"
    done = run("sh", "-c", other, XDG_RUNTIME_DIR=str(tmp_path))
    assert done.stdout.splitlines() == ["RoCE v2", "IB/RoCE v1"], done.stderr
