# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Go's HTTP client and server make their own system calls, whether the program is linked with libc
or not: our library never sees their sockets, and they speak plain TCP in every mode. What is asked
of them is that nothing breaks."""

import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest
import scene as scenes

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def folder():
    made = scenes.new_folder()
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module", params=["1", "0"], ids=["libc", "static"])
def web(request, folder):
    """Debian's Go has its standard library compiled for libc; what it compiles anew is kept."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GO")}
    env |= {"CGO_ENABLED": request.param, "GOPROXY": "off", "GO111MODULE": "off",
            "GOCACHE": str(folder / "cache"), "HOME": str(folder)}
    made = folder / f"web{request.param}"
    subprocess.run(["/usr/bin/go", "build", "-o", made, HERE / "web.go"], env=env, check=True,
                   cwd=folder)
    return made


@pytest.fixture
def files(scene):
    folder = scene.directory("files")
    for octets in scenes.SIZES:
        scenes.random_file(folder / f"file{octets}", octets)
    return sorted(str(path) for path in folder.iterdir())


def test_both_ends(scene, web, files):
    port = scene.port()
    scene.server(f"{web} serve {scenes.ADDRESS}:{port} {scene.folder}/files", port)
    said = scene.client([web, "fetch", f"http://{scenes.ADDRESS}:{port}/", *files])
    assert "every file is right" in said
    scene.judge(port, iwarp=False, pair=False)


def test_client(scene, web, files):
    """Of a server in libc: one in `auto` serves it as a plain client, one in `on` turns it away."""
    port = scene.port()
    scene.server(f"{scenes.PYTHON} -m http.server {port} --bind {scenes.ADDRESS} "
                 f"--directory {scene.folder}/files", port)
    refused = scene.mode.server == "on"
    said = scene.client([web, "fetch", f"http://{scenes.ADDRESS}:{port}/", *files],
                        status=int(refused))
    assert refused or "every file is right" in said
    scene.judge(port, iwarp=False, pair=False)


def curl(scene, port, paths):
    return [each for path in paths for each in
            ("-o", f"{path}.got", f"http://{scenes.ADDRESS}:{port}/{os.path.basename(path)}")]


@pytest.mark.parametrize("mode", [mode for mode in scenes.MODES if mode.client != "on"],
                         ids=lambda mode: mode.name)
def test_server(scene, web, files):
    """With a client in libc: one in `auto` finds that nobody answers its question and is plain."""
    port = scene.port()
    scene.server(f"{web} serve {scenes.ADDRESS}:{port} {scene.folder}/files", port)
    scene.client(["curl", "-sSf", *curl(scene, port, files)])
    assert all(scenes.same_file(path, f"{path}.got") for path in files)
    scene.judge(port, iwarp=False, pair=False)


@pytest.mark.parametrize("mode", [scenes.Mode("mistaken", None, "on", True)],
                         ids=lambda mode: mode.name)
def test_a_client_in_on_says_what_it_waits_for(scene, web, files):
    """The server takes the MPA Request for the start of a line and waits for the rest. It could be one that comes
    late: the client waits as over TCP, says why, and ends when the server does. Or the Request, which names memory by random
    keys, has an end of line in it, and the server answers by an error of its own protocol."""
    port = scene.port()
    server = scene.server(f"{web} serve {scenes.ADDRESS}:{port} {scene.folder}/files", port)
    started = scene.start(["curl", "-sSf", *curl(scene, port, files[:1])], "on", ANYWARP_LOG="warn")
    deadline = time.monotonic() + scenes.SECONDS_MAX
    while not re.search("no mpa reply yet|does not speak mpa", started.output()):
        assert time.monotonic() < deadline, started.report()
        time.sleep(0.05)
    scene.stop(server)
    # CURLE_RECV_ERROR; but CURLE_SEND_ERROR, too, where the server's own answer came before curl wrote.
    answered = "does not speak mpa" in started.output()
    assert started.wait_exit() in ((55, 56) if answered else (56,))
    seen = scene.tap.seen(port)
    assert seen.requests == seen.opened > 0 and seen.replies == 0
    scene.judged.add(port)
