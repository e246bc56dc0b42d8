# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The module is loaded and removed, beside siw and in place of it, and `anywarp doctor` tells of it."""

import errno
import pathlib
import platform
import subprocess

import conftest
import ends
import pytest

pytestmark = pytest.mark.skipif(conftest.LINK_TYPE != "anywarp", reason="of anywarp alone")
OURS = "anywarp"
TLS = pathlib.Path("/sys/module/anywarp/parameters/tls")
VERSION = tuple(int(part) for part in platform.release().split(".")[:2])


@pytest.fixture(autouse=True)
def siw_is_gone(kernel):
    yield
    kernel.unload_if_there("siw")
    if not kernel.has(OURS):
        kernel.load(OURS)


@pytest.fixture
def device():
    ends.run(["ip", "link", "add", "spare0", "type", "veth", "peer", "name", "spare1"])
    ends.run(["rdma", "link", "add", "spare_dev", "type", OURS, "netdev", "spare0"])
    yield "spare_dev"
    ends.run(["ip", "link", "delete", "spare0"])


def doctor():
    done = subprocess.run([conftest.BUILD / "bin" / "anywarp", "doctor"], capture_output=True, text=True,
                          timeout=ends.SECONDS_MAX, check=False)
    return [line for line in done.stdout.splitlines() if line[6:].startswith("kernel module")]


def test_loaded_and_removed_again_and_again(kernel):
    for _ in range(5):
        kernel.unload(OURS)
        assert not kernel.has(OURS)
        kernel.load(OURS)


def test_removal_takes_the_devices_along(kernel, device):
    assert device in kernel.devices()
    kernel.unload(OURS)
    assert device not in kernel.devices()


def test_it_refuses_to_load_beside_siw(kernel):
    kernel.unload(OURS)
    kernel.load("siw")
    done = kernel.try_load(OURS)
    assert done.returncode != 0 and not kernel.has(OURS)
    assert any("siw" in line for line in kernel.read_messages())
    kernel.unload("siw")
    kernel.load(OURS)


def test_siw_is_refused_beside_it(kernel, device):
    done = kernel.try_load("siw")
    assert done.returncode != 0 and not kernel.has("siw")
    assert device in kernel.devices()


@pytest.mark.skipif(VERSION >= (6, 6), reason="a kernel that has the handshake")
def test_tls_is_refused_by_a_kernel_that_has_none(kernel):
    with pytest.raises(OSError) as caught:
        TLS.write_text("Y", encoding="ascii")
    assert caught.value.errno == errno.EOPNOTSUPP
    assert any("tls=Y is refused" in line and "6.6" in line for line in kernel.read_messages())
    assert TLS.read_text(encoding="ascii") == "N\n"


def test_doctor_tells_of_the_devices(device):
    assert doctor() == [f"ok    kernel module     loaded, with 1 device: {device}"]


def test_doctor_tells_that_there_is_no_device():
    assert doctor() == ["warn  kernel module     loaded, without a device; remedy: "
                        "rdma link add NAME type anywarp netdev INTERFACE"]


def test_doctor_tells_that_it_is_not_loaded(kernel):
    kernel.unload(OURS)
    assert "only RDMA users in the kernel need it" in doctor()[0]
