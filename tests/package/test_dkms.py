# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""anywarp-dkms beside the release's own kernel: the module is built as the package is installed, and is gone with it."""

LEFT = """
find /usr/src /lib/modules /var/lib/dkms /etc -name '*anywarp*'
"""


def test_the_module_is_built_for_the_releases_kernel(debian):
    debian.apt("install linux-headers-amd64 kmod /run/files/anywarp-dkms_*.deb")
    told = debian.run("dkms status")
    assert "anywarp/" in told and "installed" in told, told
    built = debian.run("modinfo $(find /lib/modules -name 'anywarp.ko*')")
    assert "rdma-link-anywarp" in built, built


def test_purged_it_leaves_no_module(debian):
    debian.apt("purge anywarp-dkms")
    assert debian.run(LEFT) == ""
