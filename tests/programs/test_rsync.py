# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rsync and its daemon: three processes that send both ways at once by select on non-blocking sockets, either end forking
when the connection is in use already."""

import filecmp
import getpass
import os
import pathlib
import re

import pytest
import scene as scenes

CONFIGURATION = """
use chroot = no
log file = {folder}/log
pid file = {folder}/pid
[there]
    path = {folder}/there
    read only = no
    uid = {user}
    gid = {group}
"""


@pytest.fixture
def there(scene):
    """The scene with the daemon in it: the URL of its folder `there`."""
    if pathlib.Path("/proc/self/setgroups").read_text(encoding="ascii") == "deny\n":
        pytest.skip("rsync's daemon calls setgroups, which the user namespace of a user who is not root denies")
    port, user = scene.port(), "root" if os.geteuid() == 0 else getpass.getuser()
    scene.directory("there")
    path = scene.write("rsyncd.conf", CONFIGURATION.format(
        folder=scene.folder, user=user, group=scenes.group_of(user)))
    scene.server(f"rsync --daemon --no-detach --address={scenes.ADDRESS} --port={port} --config={path}",
                 port)
    return f"rsync://{scenes.ADDRESS}:{port}/there"


def fill(scene, name, count=40):
    folder = scene.folder / name
    folder.mkdir(exist_ok=True)
    for number in range(count):
        scenes.random_file(folder / f"small{number}", number * 317)
    for octets in scenes.SIZES:
        scenes.random_file(folder / f"file{octets}", octets)
    return folder


def assert_same(left, right):
    compared = filecmp.dircmp(left, right)
    assert not compared.left_only and not compared.right_only
    names = compared.common_files
    assert names and filecmp.cmpfiles(left, right, names, shallow=False)[0] == names


@pytest.mark.parametrize("more", ["", "-z"], ids=["as_is", "packed"])
def test_there_and_back(scene, there, more):
    here = fill(scene, "here")
    scene.client(f"rsync -a {more} {here}/ {there}/")
    assert_same(here, scene.folder / "there")
    scene.client(f"rsync -a {more} {there}/ {scene.folder}/back/")
    assert_same(here, scene.folder / "back")


def test_what_has_changed(scene, there):
    """Sums go one way while the differences go the other."""
    here = fill(scene, "here")
    scene.client(f"rsync -a {here}/ {there}/")
    with open(here / "file3000017", "r+b") as file:
        for offset in range(0, 3_000_000, 300_000):
            file.seek(offset)
            file.write(b"changed")
    said = scene.client(f"rsync -a --no-whole-file --checksum --stats {here}/ {there}/")
    assert int(re.search(r"Literal data: ([\d,]+)", said)[1].replace(",", "")) < 500_000, said
    assert_same(here, scene.folder / "there")
