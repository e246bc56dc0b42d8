# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Fixtures for the tests of other folders when they run over the module: it is loaded, its device is that of a dummy
interface, and a test during which the kernel complains fails."""

import importlib.util
import pathlib

import ends
import ground
import pytest

INTERFACE = "ground0"


def conftest_here():
    """Under a name of its own: the other folder has a conftest, too."""
    path = pathlib.Path(__file__).resolve().with_name("conftest.py")
    spec = importlib.util.spec_from_file_location("kernel_conftest", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HERE = conftest_here()
kernel, no_complaint = HERE.kernel, HERE.no_complaint


@pytest.fixture(scope="session", autouse=True)
def device(kernel):  # pylint: disable=unused-argument,redefined-outer-name
    """Its name."""
    ends.run(["ip", "link", "add", INTERFACE, "type", "dummy"])
    ends.run(["ip", "addr", "add", f"{ground.ADDRESS}/24", "dev", INTERFACE])
    ends.run(["ip", "link", "set", INTERFACE, "up"])
    name = f"{HERE.LINK_TYPE}0"
    ends.run(["rdma", "link", "add", name, "type", HERE.LINK_TYPE, "netdev", INTERFACE])
    extensions = pathlib.Path("/sys/module", HERE.LINK_TYPE, "parameters/extensions")
    if extensions.exists():
        extensions.write_text("Y", encoding="ascii")
    yield name
    ends.run(["rdma", "link", "delete", name])
    ends.run(["ip", "link", "delete", INTERFACE])
