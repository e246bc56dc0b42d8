# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The Debian packages in a Debian that has nothing else: installed, used, and purged in the end. The tests depend on
those before them."""

import re
import shutil
import subprocess

import pytest
from conftest import LISTENS, PACKAGES, pipe_through, rping_through, version

# What apt, dpkg, ldconfig and groupadd keep for themselves changes with any package.
FILES = """
find / -xdev \\( -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/cache -o -path /var/log -o -path /root \
  -o -path /etc/ld.so.cache -o -path '/etc/*-' \\) -prune -o -printf '%p %y %m %l\\n' | sort
"""
DEVICES = """
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <anywarp/cm.h>
#include <stdio.h>

int main(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	anywarp_sleep_limit(-1);
	printf("%d device: %s\\n", n, ibv_get_device_name(list[0]));
	ibv_free_device_list(list);
	return 0;
}
"""


def debs(*names):
    return " ".join(f"/run/files/{name}_{version()}_*.deb" for name in names)


@pytest.mark.skipif(not shutil.which("lintian"), reason="no lintian")
def test_lintian_has_nothing_to_say():
    changes, = PACKAGES.glob("*.changes")
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "warning,error", changes],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stdout, done.stdout


def installed(debian):
    return set(debian.run("dpkg-query -W -f '${Package}\\n'").split())


@pytest.fixture(scope="module")
def before(debian):
    """The packages and the files of the root before anything is installed."""
    return installed(debian), set(debian.run(FILES).splitlines())


def test_the_command_installs_and_names_its_version(debian, before):
    assert "dpkg" in before[0] and not [line for line in before[1] if "anywarp" in line]
    debian.apt(f"install {debs('libanywarp', 'anywarp')}")
    assert debian.run("anywarp --version") == f"anywarp {version()}\n"


def test_it_brings_no_library_of_rdma_core(debian):
    assert not re.findall(r"(?m)^ii +(?:libibverbs|librdmacm)\S*", debian.run("dpkg -l"))


def test_doctor_finds_nothing_wrong(debian):
    told = debian.run("anywarp doctor")
    assert "\nok" in f"\n{told}" and "\nfail" not in told, told


def test_it_has_manual_pages_and_completions(debian):
    debian.run("""
        for page in man1/anywarp.1 man1/anywarp-check.1 man1/anywarp-sockets.1 man1/anywarp-stat.1 man1/anywarp-capture.1 man1/anywarp-bench.1 man7/libanywarp-sockets.7 man7/anywarp-faults.7; do
            zcat /usr/share/man/$page.gz | grep -q '^\\.TH'
        done
        . /usr/share/bash-completion/completions/anywarp
        complete -p anywarp
        test -s /usr/share/zsh/vendor-completions/_anywarp""")


def test_programs_of_rdma_core_have_their_own_libraries(debian):
    debian.apt("install rdmacm-utils ibverbs-utils ibverbs-providers")
    assert debian.run("dpkg --verify") == ""
    told = debian.run("ldd $(command -v rping); ldconfig -p")
    assert "libibverbs.so.1 => /lib/" in told and "anywarp" not in told, told


def test_rping(debian):
    rping_through(debian, "anywarp")


def test_sockets(debian):
    debian.apt("install netcat-openbsd")
    pipe_through(debian, "anywarp")


def test_pkg_config_compiles_a_verbs_program_that_runs_by_itself(debian):
    debian.apt(f"install gcc libc6-dev pkg-config {debs('anywarp-dev')}")
    assert debian.run(f"""
        cd /tmp
        cat >devices.c <<'END'\n{DEVICES}\nEND
        gcc -Wall -Werror devices.c -o devices $(pkg-config --cflags --libs anywarp)
        ./devices""") == "1 device: anywarp0\n"


def test_pkg_config_compiles_the_example_of_extended_sockets(debian):
    told = debian.run(LISTENS + """
        cd /tmp
        gcc /usr/share/doc/anywarp-dev/examples/onesided.c -o onesided $(pkg-config --cflags --libs anywarp-sockets)
        ./onesided 5001 >heard &
        listens 5001
        ./onesided 5001 127.0.0.1 'so be it'
        wait $!
        cat heard""")
    assert told.endswith("the client wrote: so be it\n"), told


def test_purged_it_leaves_nothing(debian, before):
    debian.apt("purge anywarp libanywarp anywarp-dev")
    assert "anywarp" not in debian.run("dpkg -l")
    assert debian.run("dpkg --verify; command -v rping ibv_devinfo | wc -l") == "2\n"
    debian.apt("purge " + " ".join(installed(debian) - before[0]))
    left = set(debian.run(FILES).splitlines())
    assert left == before[1], sorted(left ^ before[1])[:50]
