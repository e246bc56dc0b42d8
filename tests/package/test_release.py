# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What ./dev release makes: installed and used in a Debian that has nothing else, compared with a second build, and described rightly."""

import base64
import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import zipfile

import pytest
from conftest import PACKAGES, rping_through, version

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = PACKAGES / "release"
SPDX = ROOT / "build/wheel-tools/bin/pyspdxtools"
GLIBC_NEWEST = (2, 35)  # of Ubuntu 22.04
COMPILED = r"""
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	return puts(ibv_get_device_name(list[0])) < 0;
}
"""


def sums():
    return {name: digest for digest, name in (line.split() for line in (RELEASE / "SHA256SUMS").read_text().splitlines())}


def test_the_sums_are_those_of_the_files():
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in RELEASE.iterdir() if path.name != "SHA256SUMS"}
    assert sums() == found
    kinds = {re.sub(r"manylinux_[\d_]+_x86_64|x86_64|amd64", "MACHINE", name.replace(version(), "V")) for name in found}
    assert kinds == {"anywarp-V-linux-MACHINE.tar.gz", "anywarp-V-py3-none-MACHINE.whl", "anywarp-V-source.tar.gz", "anywarp-V.spdx.json",
                     "anywarp_V_MACHINE.deb", "libanywarp_V_MACHINE.deb", "anywarp-dev_V_MACHINE.deb"}


def test_two_builds_are_equal(tmp_path):
    """In directories of other lengths, at other times, under another umask, without a compiler's cache."""
    tree = tmp_path / "another-directory-of-another-length"
    shutil.copytree(PACKAGES / "anywarp", tree, symlinks=True)
    (tree / "build").mkdir()
    (tree / "build" / "release-sysroot").symlink_to(ROOT / "build" / "release-sysroot")
    epoch = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    script = "umask 077; git init -q; git add -A; ./dev release amd64"
    done = subprocess.run(["bash", "-euc", script], cwd=tree, capture_output=True, text=True, check=False,
                          env={**os.environ, "SOURCE_DATE_EPOCH": epoch, "TZ": "Asia/Tokyo", "LC_ALL": "C", "CCACHE_DISABLE": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tree / "build/dist/SHA256SUMS").read_text() == (RELEASE / "SHA256SUMS").read_text()


def test_no_file_names_a_directory_of_the_build():
    """As the build's own directory would be in what assert prints."""
    for deb in RELEASE.glob("*.deb"):
        files = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], capture_output=True, check=True).stdout
        assert str(ROOT).encode() not in files and b"release-sysroot" not in files, deb


def test_the_wheel_is_as_its_record_says():
    path, = RELEASE.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        record, = (name for name in names if name.endswith("/RECORD"))
        rows = {row[0]: row[1:] for row in csv.reader(wheel.read(record).decode().splitlines())}
        assert set(rows) == set(names) and len(names) == len(rows)
        for name in set(names) - {record}:
            digest = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
            assert rows[name] == [f"sha256={digest}", str(wheel.getinfo(name).file_size)], name
        assert wheel.getinfo("anywarp/prefix/bin/anywarp").external_attr >> 16 == 0o100755
        assert not [name for name in names if "/include/" in name or "pkgconfig" in name]
        points = wheel.read(f"anywarp-{version()}.dist-info/entry_points.txt").decode()
    assert points == "[console_scripts]\nanywarp = anywarp:main\n\n[pytest11]\nanywarp = anywarp.pytest_plugin\n"


def test_the_sbom_names_what_is_there():
    told = json.loads((RELEASE / f"anywarp-{version()}.spdx.json").read_text())
    assert told["spdxVersion"] == "SPDX-2.3" and told["dataLicense"] == "CC0-1.0"
    found = {each["fileName"].removeprefix("./"): {row["algorithm"]: row["checksumValue"] for row in each["checksums"]} for each in told["files"]}
    assert {name: row["SHA256"] for name, row in found.items()} == {name: digest for name, digest in sums().items() if ".spdx." not in name}
    assert {each["name"] for each in told["packages"]} == {"anywarp", "glibc"}


@pytest.mark.skipif(not SPDX.exists(), reason="pip does not find spdx-tools here")
def test_the_sbom_is_valid():
    done = subprocess.run([SPDX, "-i", RELEASE / f"anywarp-{version()}.spdx.json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_packages_need_the_c_library_alone(debian):
    debian.apt("install " + " ".join(f"/run/files/release/{name}_{version()}_amd64.deb" for name in ("libanywarp", "anywarp")))
    fields = debian.run("dpkg-query -W -f '${Depends}\\n' libanywarp anywarp")
    needed = re.findall(r"libc6 \(>= (\d+)\.(\d+)\)", fields)
    assert len(needed) == 2 and all(tuple(map(int, each)) <= GLIBC_NEWEST for each in needed), fields
    assert re.sub(r"libc6 \(>= [\d.]+\)|libanywarp \(= [\d.]+\)|[\s,]", "", fields) == "", fields
    told = debian.run("anywarp doctor; dpkg --verify")
    assert "\nfail" not in told and re.search("ok +CRC32c +by ", told), told
    debian.apt("install rdmacm-utils man-db")
    rping_through(debian, "anywarp")


def test_purged_they_leave_nothing(debian):
    debian.apt("purge anywarp libanywarp")
    assert debian.run("find / -xdev -path /var/lib -prune -o -path /var/log -prune -o -path /var/cache -prune -o -name '*anywarp*' -print") == ""


def test_the_archive_runs_where_it_is_unpacked(debian):
    """By anybody, and what is linked with it finds it there."""
    debian.apt("install gcc libc6-dev pkg-config libibverbs-dev librdmacm-dev")
    told = debian.run(f"""
        mkdir /opt/place
        tar -xzf /run/files/release/anywarp-{version()}-linux-x86_64.tar.gz -C /opt/place
        cd /opt/place/anywarp-{version()}
        setpriv --reuid=1001 --regid=1001 --clear-groups bin/anywarp doctor
        cat >/opt/program.c <<'END'\n{COMPILED}\nEND
        export PKG_CONFIG_PATH=$PWD/lib/pkgconfig
        gcc /opt/program.c -o /opt/program $(pkg-config --cflags --libs anywarp)
        /opt/program""")
    assert "\nfail" not in told and told.endswith("\nanywarp0\n"), told


def test_the_wheel_installs(debian):
    debian.apt("install python3-venv rdmacm-utils")
    debian.run("python3 -m venv /opt/venv; /opt/venv/bin/pip install --no-index /run/files/release/anywarp-*.whl")
    told = debian.run("/opt/venv/bin/anywarp doctor; PATH=/opt/venv/bin:$PATH man -w anywarp")
    assert "\nfail" not in told and "/opt/venv/share/man/man1/anywarp.1" in told, told
    rping_through(debian, "/opt/venv/bin/anywarp")
    debian.run("/opt/venv/bin/pip uninstall -y anywarp")
    assert debian.run("find /opt/venv -name '*anywarp*'") == ""
