# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The source package, built in each release with what it says it needs and nothing else."""

PACKAGES_MADE = {"anywarp", "anywarp-dev", "anywarp-dkms", "libanywarp"}


def test_it_builds_with_what_it_names(debian):
    debian.apt("install dpkg-dev build-essential")
    debian.apt("build-dep /run/files/anywarp_*.dsc")
    debian.run("""
        mkdir -p /opt/build && cd /opt/build
        dpkg-source -x /run/files/anywarp_*.dsc anywarp
        cd anywarp && dpkg-buildpackage --no-sign""")
    made = debian.run("ls /opt/build | sed -n 's/_.*[.]deb$//p'").split()
    assert {name for name in made if not name.endswith("-dbgsym")} == PACKAGES_MADE


def test_lintian_of_the_release_has_nothing_to_say(debian):
    debian.apt("install lintian")
    assert debian.run("lintian --allow-root --fail-on warning,error /opt/build/*.changes") == ""
