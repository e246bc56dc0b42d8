# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""apache2: its processes with threads that share an epoll, and its processes without, which accept in turn; ab and curl
are its clients."""

import pytest
import scene as scenes

CONFIGURATION = """
ServerRoot {folder}
ServerName {address}
PidFile apache.pid
ErrorLog /dev/stderr
User www-data
Group www-data
Listen {address}:{port}
LoadModule mpm_{mpm}_module /usr/lib/apache2/modules/mod_mpm_{mpm}.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
StartServers 8
DocumentRoot {folder}/files
EnableSendfile {sendfile}
MaxKeepAliveRequests 100
"""


@pytest.fixture(params=["event-on", "event-off", "prefork-on"])
def site(scene, request):
    """The scene with apache2 in it: the URL of its files."""
    mpm, sendfile = request.param.split("-")
    scene.port_of_site = port = scene.port()
    scene.pair = False  # TCP_DEFER_ACCEPT: a connection is accepted with its first octets
    files = scene.directory("files")
    for octets in scenes.SIZES:
        scenes.random_file(files / f"file{octets}", octets)
    path = scene.write("apache.conf", CONFIGURATION.format(
        folder=scene.folder, address=scenes.ADDRESS, port=port, mpm=mpm, sendfile=sendfile))
    scene.server(f"apache2 -f {path} -D FOREGROUND", port)
    return f"http://{scenes.ADDRESS}:{port}"


def test_curl_gets_what_is_there(scene, site):
    got = [argument for octets in scenes.SIZES for argument in
           ("-o", f"file{octets}.got", f"{site}/file{octets}")]
    scene.client(["curl", "-sSf", *got])
    for octets in scenes.SIZES:
        assert scenes.same_file(scene.folder / "files" / f"file{octets}", scene.folder / f"file{octets}.got")


@pytest.mark.parametrize("keep", ["", "-k"], ids=["one", "kept"])
@pytest.mark.parametrize("octets,requests", [(4096, 600), (3_000_017, 24)])
def test_ab(scene, site, keep, octets, requests):
    scenes.ask_by_ab(scene, keep, requests, f"{site}/file{octets}", octets)
    scene.judge(scene.port_of_site, silent=True)  # ab opens some more at its end, and closes them
