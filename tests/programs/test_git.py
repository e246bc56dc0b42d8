# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""git and its daemon, which runs a program for each connection, whose standard input and output this is."""

import pytest
import scene as scenes

GIT = "git -c user.name=me -c user.email=me@here -c init.defaultBranch=main -c safe.directory=*"


def git(scene, line, folder="."):
    """git by itself, without a connection."""
    return scene.client(f"{GIT} -C {folder} {line}", rule=None)


@pytest.fixture
def there(scene):
    """The scene with the daemon and a repository `here` in it: the URL of an empty one that can be pushed to."""
    port = scene.port()
    scene.directory("repositories")
    git(scene, "init -q --bare repositories/there.git")
    git(scene, "init -q here")
    scene.server(f"git -c safe.directory=* daemon --reuseaddr --listen={scenes.ADDRESS} --port={port} --export-all "
                 f"--base-path={scene.folder}/repositories --enable=receive-pack", port,
                 GIT_CONFIG_COUNT=1, GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")
    return f"git://{scenes.ADDRESS}:{port}/there.git"


def commit(scene, octets):
    scenes.random_file(scene.folder / "here" / f"file{octets}", octets)
    git(scene, "add .", "here")
    git(scene, f"commit -q -m {octets}", "here")


@pytest.mark.parametrize("protocol", [0, 2])
def test_push_clone_and_fetch(scene, there, protocol):
    remote = f"{GIT} -c protocol.version={protocol}"
    for octets in scenes.SIZES:
        commit(scene, octets)
    scene.client(f"{remote} -C here push -q {there} main")
    scene.client(f"{remote} clone -q -b main {there} clone")
    commit(scene, 70_000)
    scene.client(f"{remote} -C here push -q {there} main")
    scene.client(f"{remote} -C clone pull -q")
    assert git(scene, "rev-parse HEAD", "clone") == git(scene, "rev-parse HEAD", "here")
    git(scene, "fsck --full --strict", "clone")
    for octets in (*scenes.SIZES, 70_000):
        assert scenes.same_file(scene.folder / "here" / f"file{octets}", scene.folder / "clone" / f"file{octets}")


def test_what_is_not_there(scene, there):
    said = scene.client(f"{GIT} ls-remote {there}.not", status=128)
    assert "access denied or repository not exported" in said, said
