# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Go's HTTP client and server make their own system calls, whether the program is linked with libc
or not: our library never sees their sockets. In `on` such a program is not started; in all other modes it
speaks plain TCP, and what is asked is that nothing breaks."""

import os
import pathlib
import shutil
import subprocess

import pytest
import scene as scenes

HERE = pathlib.Path(__file__).parent
PLAIN = pytest.mark.parametrize("mode", [mode for mode in scenes.MODES if not mode.iwarp], ids=lambda mode: mode.name)


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


@PLAIN
def test_both_ends(scene, web, files):
    port = scene.port()
    scene.server(f"{web} serve {scenes.ADDRESS}:{port} {scene.folder}/files", port)
    said = scene.client([web, "fetch", f"http://{scenes.ADDRESS}:{port}/", *files])
    assert "every file is right" in said
    scene.judge(port, iwarp=False, pair=False)


@PLAIN
def test_client(scene, web, files):
    """Of a server in libc."""
    port = scene.port()
    scene.server(f"{scenes.PYTHON} -m http.server {port} --bind {scenes.ADDRESS} "
                 f"--directory {scene.folder}/files", port)
    said = scene.client([web, "fetch", f"http://{scenes.ADDRESS}:{port}/", *files])
    assert "every file is right" in said
    scene.judge(port, iwarp=False, pair=False)


def curl(scene, port, paths):
    return [each for path in paths for each in
            ("-o", f"{path}.got", f"http://{scenes.ADDRESS}:{port}/{os.path.basename(path)}")]


@PLAIN
def test_server(scene, web, files):
    """With a client in libc: in `auto` no listener is registered, and it is plain."""
    port = scene.port()
    scene.server(f"{web} serve {scenes.ADDRESS}:{port} {scene.folder}/files", port)
    scene.client(["curl", "-sSf", *curl(scene, port, files)])
    assert all(scenes.same_file(path, f"{path}.got") for path in files)
    scene.judge(port, iwarp=False, pair=False)


@pytest.mark.parametrize("mode", [scenes.Mode("refused", "on", "on", True)], ids=lambda mode: mode.name)
def test_on_does_not_start_it(scene, web):
    port = scene.port()
    said = scene.client([web, "serve", f"{scenes.ADDRESS}:{port}", scene.folder], status=2)
    assert "it is a Go program" in said and f"--rule 'off program={web.name}'" in said
    scene.judged.add(port)


@pytest.mark.parametrize("mode", [scenes.Mode("mistaken", None, "on", True)], ids=lambda mode: mode.name)
def test_a_client_in_on_says_what_its_server_is(scene, web, files):
    """The server takes the MPA Request for the start of a line and waits for the rest; or the Request, which names memory by random
    keys, has an end of line in it, and the server answers by an error of its own protocol."""
    port = scene.port()
    scene.server(f"{web} serve {scenes.ADDRESS}:{port} {scene.folder}/files", port)
    started = scene.start(["curl", "-sSf", *curl(scene, port, files[:1])], "on")
    # CURLE_RECV_ERROR; but CURLE_SEND_ERROR, too, where the server's own answer came before curl wrote.
    ended = started.wait_exit()
    answered = "first bytes are no MPA Reply" in started.output()
    assert ended in ((55, 56) if answered else (56,)), started.report()
    assert f"cannot be iWARP with peer {scenes.ADDRESS} port {port}" in started.output(), started.report()
    seen = scene.tap.seen(port)
    assert seen.requests == seen.opened > 0 and seen.replies == 0
    scene.judged.add(port)
