# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Devices come and go: by rdma(8), with their interface, with the module; in the middle of traffic, too."""

import json
import subprocess

import ends
import pytest

NODE_TYPE = "4: RNIC"


@pytest.fixture(name="link")
def kernel_link(open_link):
    return open_link("kernel_kernel")


@pytest.fixture
def spare(kernel, link_type):
    """An interface without a device."""
    ends.run(["ip", "link", "add", "spare0", "up", "type", "veth", "peer", "name", "spare1"])
    yield "spare0"
    subprocess.run(["ip", "link", "delete", "spare0"], capture_output=True, check=False)
    ends.wait_until(lambda: "spare" not in "".join(kernel.devices()), f"end of the {link_type} devices")


def add(name, link_type, netdev):
    return subprocess.run(["rdma", "link", "add", name, "type", link_type, "netdev", netdev],
                          capture_output=True, text=True, timeout=ends.SECONDS_MAX, check=False)


def test_add_and_delete(kernel, link_type, spare):
    for _ in range(3):
        assert add("spare_dev", link_type, spare).returncode == 0
        assert "spare_dev" in kernel.devices()
        assert kernel.device_says("spare_dev", "node_type") == NODE_TYPE
        told = json.loads(ends.run(["rdma", "-j", "link", "show", "spare_dev/1"]))
        assert told[0]["netdev"] == spare
        ends.run(["rdma", "link", "delete", "spare_dev"])
        assert "spare_dev" not in kernel.devices()


def test_rename(kernel, link_type, spare):
    assert add("spare_dev", link_type, spare).returncode == 0
    ends.run(["rdma", "dev", "set", "spare_dev", "name", "spare_other"])
    assert "spare_other" in kernel.devices() and "spare_dev" not in kernel.devices()
    ends.run(["rdma", "link", "delete", "spare_other"])


def test_one_device_an_interface(kernel, link_type, spare):
    assert add("spare_dev", link_type, spare).returncode == 0
    assert add("spare_more", link_type, spare).returncode != 0
    assert "spare_more" not in kernel.devices()


def test_a_name_that_is_taken(kernel, link_type, spare):
    assert add("spare_dev", link_type, spare).returncode == 0
    assert add("spare_dev", link_type, "spare1").returncode != 0
    ends.run(["rdma", "link", "delete", "spare_dev"])
    assert "spare_dev" not in kernel.devices()


def test_no_such_interface(kernel, link_type):
    before = kernel.devices()
    assert add("spare_dev", link_type, "none0").returncode != 0
    assert kernel.devices() == before


def test_the_device_goes_with_its_interface(kernel, link_type, spare):
    assert add("spare_dev", link_type, spare).returncode == 0
    ends.run(["ip", "link", "delete", spare])
    ends.wait_until(lambda: "spare_dev" not in kernel.devices(), "end of the device")


def test_the_port_follows_its_interface(kernel, link_type, spare):
    assert add("spare_dev", link_type, spare).returncode == 0
    state = "ports/1/state"
    ends.run(["ip", "link", "set", "spare1", "up"])
    ends.wait_until(lambda: kernel.device_says("spare_dev", state) == "4: ACTIVE", "active port")
    ends.run(["ip", "link", "set", "spare1", "down"])
    ends.wait_until(lambda: kernel.device_says("spare_dev", state) != "4: ACTIVE", "port that is down")


def test_the_gid_follows_the_address(of_ours, kernel, link_type, spare):  # pylint: disable=unused-argument
    assert add("spare_dev", link_type, spare).returncode == 0
    for last in "77", "78":
        ends.run(["ip", "link", "set", spare, "address", f"02:00:5e:10:00:{last}"])
        ends.wait_until(lambda: kernel.device_says("spare_dev", "ports/1/gids/0").startswith(f"0200:5e10:00{last}:0000:"),
                        "new GID")
        assert kernel.device_says("spare_dev", "node_guid") == f"0000:5eff:fe10:00{last}"


def test_what_programs_are_told(link):
    device = link.server.device
    told = ends.run([*link.server.into, "ibv_devinfo", "-v", "-d", device])
    assert f"hca_id:\t{device}" in told
    for line in (r"transport:\t\t\tiWARP", "PORT_ACTIVE", "Ethernet"):
        assert line.encode().decode("unicode_escape") in told, told
    assert device in ends.run(["ibv_devices"])


def test_a_query_shows_nothing_of_the_kernel_s_memory(of_ours, link):  # pylint: disable=unused-argument
    """Of a QP's attributes the device has few, and clears the others. siw does not."""
    server = link.server
    assert ends.run([*server.into, f"{server.build}/tests/kernel_query", server.device]) == ""


def test_there_are_as_many_pds_as_the_device_offers(of_ours, link):  # pylint: disable=unused-argument
    """Also once they were given back, which the end of their process does."""
    server = link.server
    for _ in range(2):
        counted = ends.run([*server.into, f"{server.build}/tests/kernel_query", server.device, "pds"])
        assert counted == "+0 Cannot allocate memory\n"


@pytest.mark.parametrize("name", ["client", "server"])
def test_a_device_goes_in_the_middle_of_traffic(link, link_type, port, name):
    """`rdma link delete` returns while the programs still live, or once they were killed; afterwards the
    interface takes a new device."""
    programs = [link.start_server("rping -s -S 60000", port)]
    programs.append(link.start_client("rping -c -a {address} -S 60000", port))
    ends.wait_for_traffic(link)
    end = getattr(link, name)
    deleting = subprocess.Popen([*end.into, "rdma", "link", "delete", end.device])
    ends.wait_until(lambda: any(each.status() is not None for each in programs) or deleting.poll() is not None,
                    "end of a program or of the device")
    for each in programs:
        each.kill()
    assert deleting.wait(ends.SECONDS_MAX) == 0
    end.add_device(link_type)
    link.rping(port + 1000)


def test_the_module_goes_from_under_programs(kernel, link_type, link, port):
    """It may be refused; if it is not, no device is left, and programs live on or end."""
    programs = [link.start_server("rping -s -S 60000", port)]
    programs.append(link.start_client("rping -c -a {address} -S 60000", port))
    ends.wait_for_traffic(link)
    gone = kernel.try_unload(link_type).returncode == 0
    assert kernel.has(link_type) != gone
    for each in programs:
        each.kill()
    if gone:
        assert not kernel.devices()
        kernel.load(link_type)
        for end in link.server, link.client:
            end.add_device(link_type)
    link.rping(port + 1000)
