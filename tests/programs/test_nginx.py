# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""nginx: several workers that accept on one socket, edge-triggered epoll, sendfile, writev; and as a
client of itself. curl and wrk are its clients."""

import os
import re

import pytest
import scene as scenes

CONFIGURATION = """
daemon off;
worker_processes 3;
{user}
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
    access_log off;
    {paths}
    server {{
        listen {address}:{sendfile} reuseport;
        root files;
        sendfile on;
        tcp_nopush on;
    }}
    server {{
        listen {address}:{plain};
        root files;
        sendfile off;
        client_max_body_size 0;
        location /put/ {{ dav_methods PUT; root .; }}
        location /again/ {{ proxy_pass http://{address}:{sendfile}/; proxy_buffering off; }}
    }}
}}
"""


@pytest.fixture
def site(scene):
    """The scene with nginx in it: (port with sendfile, port without)."""
    ports = scene.port(), scene.port()
    for name in ("put", "temp"):
        scene.directory(name, "www-data")
    files = scene.directory("files")
    for octets in scenes.SIZES:
        scenes.random_file(files / f"file{octets}", octets)
    path = scene.write("nginx.conf", CONFIGURATION.format(
        paths=scenes.NGINX_PATHS, address=scenes.ADDRESS, sendfile=ports[0], plain=ports[1],
        user=scenes.nginx_user(scene.mode)))
    scene.nginx = scene.server(f"nginx -p {scene.folder} -e stderr -c {path}", ports[1])
    scene.nginx.wait_listening(ports[0])
    return ports


def fetch_all(scene, port, path):
    """Every file on one connection, and each on its own."""
    wanted = [f"http://{scenes.ADDRESS}:{port}/{path}file{octets}" for octets in scenes.SIZES]
    for each in ([wanted] + [[one] for one in wanted]):
        got = [argument for url in each for argument in
               ("-o", f"{url.rsplit('/', 1)[1]}.got", url)]
        scene.client(["curl", "-sSf", *got])
        for url in each:
            name = url.rsplit("/", 1)[1]
            assert scenes.same_file(scene.folder / "files" / name, scene.folder / f"{name}.got")
            (scene.folder / f"{name}.got").unlink()


def test_curl_gets_what_is_there(scene, site):
    for port in site:
        fetch_all(scene, port, "")


def test_curl_puts_what_it_has(scene, site):
    path = scene.file("upload", 3_000_017)
    scene.client(f"curl -sSf -T {path} http://{scenes.ADDRESS}:{site[1]}/put/there")
    assert scenes.same_file(path, scene.folder / "put" / "there")
    scene.judged.add(site[0])


def test_proxy(scene, site):
    """nginx is a client, too: it connects without waiting, in the midst of its epoll. With a plain
    client it asks itself as its rule says."""
    fetch_all(scene, site[1], "again/")
    scene.judge(site[0], iwarp=scene.mode.server in ("on", "tls-plain"), pair=False)  # one thread: who connects would have to accept


@pytest.mark.parametrize("server,file,connections", [(0, "file3000017", 8), (1, "file4096", 24)])
def test_wrk(scene, site, server, file, connections):
    said = scene.client(f"wrk -t 2 -c {connections} -d 1s "
                        f"http://{scenes.ADDRESS}:{site[server]}/{file}")
    assert int(re.search(r"(\d+) requests in", said)[1]) > 0
    assert "Socket errors" not in said and "Non-2xx" not in said, said
    scene.judge(site[server], silent=True)  # wrk begins one more connection than it asks on
    scene.judged.add(site[1 - server])


def test_quits_when_asked(scene, site):
    """Graceful: a worker ends once its connections are over."""
    fetch_all(scene, site[0], "")
    assert scene.stop(scene.nginx, scenes.signal.SIGQUIT) == 0
    scene.judged.add(site[1])
