# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a program under `anywarp run` sees in /dev/infiniband and /sys/class/infiniband, and by which calls."""

import os
import pathlib
import shutil
import subprocess

import beds
import pytest

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
TYPES = {"iwarp": "IB/RoCE v1", "roce": "RoCE v2"}
# What is preloaded has no sanitizer, and comes before one.
ENV = {"ASAN_OPTIONS": "verify_asan_link_order=0"}

unsanitized = pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="the sanitizer's library has to come first")


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
    assert len(led) > 60 and [name for name, word in led.items() if word != "yes"] == []
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


def sh(folder, script, persona="roce", prefix=(), **env):
    """What a shell script prints that runs with the device's files."""
    done = run("sh", "-c", script, prefix=prefix, XDG_RUNTIME_DIR=str(folder), ANYWARP_PERSONA=persona, **env)
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    return done.stdout


@unsanitized
def test_the_attributes_are_those_of_the_verbs(tmp_path):
    shown = sh(tmp_path, "cd /sys/class/infiniband/anywarp0; grep . node_* sys_image_guid fw_ver hca_type board_id hw_rev"
                         " ports/1/* ports/1/pkeys/* 2>/dev/null; true")
    found = dict(line.split(":", 1) for line in shown.splitlines())
    device = run("ibv_devinfo", "-v", XDG_RUNTIME_DIR=str(tmp_path), ANYWARP_PERSONA="roce").stdout
    told = dict(line.split(":", 1) for line in device.splitlines() if ":" in line)
    told = {name.strip(): value.strip() for name, value in told.items()}
    assert found["node_guid"] == told["node_guid"] == found["sys_image_guid"]
    assert found["fw_ver"] == told["fw_ver"]
    assert found["node_type"] == "1: CA"
    assert found["hca_type"] == found["board_id"] == "anywarp"
    assert found["node_desc"].endswith("anywarp0")
    port = {name.removeprefix("ports/1/"): value for name, value in found.items() if name.startswith("ports/1/")}
    assert port["state"] == "4: ACTIVE" and port["phys_state"] == "5: LinkUp"
    assert port["link_layer"] == "Ethernet" and port["pkeys/0"] == "0xffff"
    assert port["lid"] == port["sm_lid"] == "0x0" and port["lid_mask_count"] == port["sm_sl"] == "0"
    assert port["rate"] == "100 Gb/sec (4X EDR)" and int(port["cap_mask"], 16) != 0


def test_the_node_of_iwarp_is_an_rnic(tmp_path):
    assert sh(tmp_path, "cat /sys/class/infiniband/anywarp0/node_type", persona="iwarp") == "4: RNIC\n"


def test_ls_finds_each_file_that_it_lists(tmp_path):
    """It asks for more of each than for its text."""
    shown = sh(tmp_path, "ls -lR /sys/class/infiniband/ /sys/class/infiniband/anywarp0/ /dev/infiniband;"
                         " find /sys/class/infiniband/anywarp0/ -type f -exec cat {} + >/dev/null")
    assert "anywarp0 -> ../../devices/platform/anywarp.00.0/infiniband/anywarp0" in shown
    assert "port_xmit_data" in shown


def test_the_state_follows_the_links(tmp_path, namespace):
    look = "cat /sys/class/infiniband/anywarp0/ports/1/state /sys/class/infiniband/anywarp0/ports/1/phys_state"
    assert sh(tmp_path, look, prefix=namespace.into) == "1: DOWN\n3: Disabled\n"
    namespace.ip("link set lo up")
    assert sh(tmp_path, look, prefix=namespace.into) == "4: ACTIVE\n5: LinkUp\n"
    down = f"ip link set lo down; {look}; ip link set lo up"
    assert sh(tmp_path, down, prefix=namespace.into) == "1: DOWN\n3: Disabled\n"


COUNTERS = "cd /sys/class/infiniband/anywarp0/ports/1; for c in counters/* hw_counters/*; do echo $c $(cat $c); done"


def roce_at(folder):
    """The prefix of a program that has its device's files in this folder."""
    return ("env", f"XDG_RUNTIME_DIR={folder}", str(BUILD / "bin" / "anywarp"), "run", "--persona", "roce", "--")


def counters(folder):
    return {name: int(value) for name, value in (line.split() for line in sh(folder, COUNTERS).splitlines())}


def test_the_counters_count(tmp_path, start, port):
    """While programs run, when they have ended, and when one was killed."""
    before = counters(tmp_path)
    assert before["counters/port_xmit_data"] == 0 and before["hw_counters/sent_messages"] == 0
    roce = roce_at(tmp_path)
    server = start.server("ibv_rc_pingpong -g 0 -s 4096 -n 1000", port, prefix=roce)
    client = start(f"ibv_rc_pingpong -g 0 -s 4096 -n 1000 -p {port} 127.0.0.1", prefix=roce)
    assert client.wait_exit() == 0 and server.wait_exit() == 0
    after = counters(tmp_path)
    # Each end sends 1000 messages of 4096 bytes, and some acknowledgements.
    assert after["counters/port_xmit_data"] == after["counters/port_rcv_data"] == 2 * 1000 * 4096 // 4
    assert after["hw_counters/sent_bytes"] == after["hw_counters/rcvd_bytes"] == 2 * 1000 * 4096
    assert after["hw_counters/sent_messages"] >= 2000
    assert after["counters/port_xmit_packets"] == after["hw_counters/sent_pkts"] >= 2000
    assert after["counters/symbol_error"] == after["hw_counters/crc_errors"] == 0
    assert counters(tmp_path) == after


def test_no_counter_goes_back(tmp_path, start, port):
    """A process that is killed takes along what it had counted: what was shown stays."""
    roce = roce_at(tmp_path)
    server = start.server("ibv_rc_pingpong -g 0 -n 100000000", port, prefix=roce)
    client = start(f"ibv_rc_pingpong -g 0 -n 100000000 -p {port} 127.0.0.1", prefix=roce)
    running = counters(tmp_path)
    while not running["counters/port_xmit_data"]:
        running = counters(tmp_path)
    client.kill()
    server.kill()
    after = counters(tmp_path)
    assert all(after[name] >= value for name, value in running.items())


@pytest.mark.skipif(not shutil.which("ibstat"), reason="no ibstat here (infiniband-diags)")
def test_ibstat(tmp_path):
    shown = sh(tmp_path, "ibstat; ibstat -l; ibstat -p; ibstatus; ibstatus anywarp0:1")
    for line in ("CA 'anywarp0'", "CA type: anywarp", "Number of ports: 1", "State: Active", "Physical state: LinkUp",
                 "Rate: 100", "Base lid: 0", "Link layer: Ethernet"):
        assert line in shown, shown
    assert shown.count("Infiniband device 'anywarp0' port 1 status:") == 2
    assert shown.count("4: ACTIVE") == 2


@pytest.mark.skipif(not shutil.which("lstopo-no-graphics"), reason="no lstopo here (hwloc-nox)")
def test_lstopo(tmp_path):
    assert 'OpenFabrics "anywarp0"' in sh(tmp_path, "lstopo-no-graphics --of console")


SHOW_GIDS = """for d in $(ls /sys/class/infiniband); do for p in $(ls /sys/class/infiniband/$d/ports); do
cd /sys/class/infiniband/$d/ports/$p/gids; for g in *; do
echo $d $p $g $(cat $g) $(cat ../gid_attrs/types/$g) $(cat ../gid_attrs/ndevs/$g); done; done; done"""


def test_a_script_shows_the_gids(tmp_path):
    """As NVIDIA's show_gids does."""
    lines = sh(tmp_path, SHOW_GIDS).splitlines()
    assert lines and all(line.startswith("anywarp0 1 ") and "RoCE v2" in line for line in lines)


STRAY = """mkdir /sys/class/infiniband /sys/class/infiniband_verbs 2>/dev/null ||
{ mount -t tmpfs none /sys/class && mkdir /sys/class/infiniband /sys/class/infiniband_verbs; } || exit 77
mkdir -p /sys/class/infiniband/mana_0/ports/1 /sys/class/infiniband_verbs/uverbs0
echo '1: CA' >/sys/class/infiniband/mana_0/node_type
echo mana_0 >/sys/class/infiniband_verbs/uverbs0/ibdev
ls /sys/class/infiniband
exec "$@"
"""


@unsanitized
@pytest.mark.parametrize("options", [("--persona", "roce"), ("--device-files",)])
def test_a_device_of_the_machine_is_hidden(tmp_path, options):
    """As on runners whose kernel has one, which no program can use."""
    own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--user", "--map-root-user"]
    look = "ls /sys/class/infiniband /sys/class/infiniband_verbs; ibv_devices; ls -d /sys/class/infiniband/*"
    done = run("sh", "-c", look, prefix=(*own, "sh", "-c", STRAY, "sh"), options=options, XDG_RUNTIME_DIR=str(tmp_path))
    if done.returncode in (1, 77) and not done.stdout:
        pytest.skip(f"no mount namespace here: {done.stderr}")
    seen, rest = done.stdout.split("\n", 1)
    assert seen == "mana_0"
    assert done.returncode == 0 and "anywarp0" in rest and "mana_0" not in rest and "uverbs0\n" not in rest, done.stdout
