# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""haproxy: two threads between curl or wrk and two backends, as HTTP and as a relay of octets, which uses splice;
it keeps idle connections to its backends and gives them to other clients."""

import re

import pytest
import scene as scenes

BACKENDS = """
{user}
daemon off;
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
    access_log off;
    {paths}
    add_header From $server_port;
    root files;
    server {{ listen {address}:{first}; }}
    server {{ listen {address}:{second}; }}
}}
"""
PROXY = """
global
    nbthread 2
    insecure-fork-wanted
defaults
    mode {mode}
    timeout connect 30s
    timeout client 30s
    timeout server 30s
    option splice-auto
frontend outside
    bind {address}:{outer}
    default_backend inside
backend inside
    balance roundrobin
    server first {address}:{first}
    server second {address}:{second}
"""


@pytest.fixture(params=["http", "tcp"])
def proxy(scene, request):
    """The scene with haproxy and its backends in it: the ports, haproxy's first."""
    ports = [scene.port() for _ in range(3)]
    named = dict(zip(("outer", "first", "second"), ports), address=scenes.ADDRESS, mode=request.param)
    scene.directory("temp", "www-data")
    files = scene.directory("files")
    for octets in scenes.SIZES:
        scenes.random_file(files / f"file{octets}", octets)
    path = scene.write("nginx.conf", BACKENDS.format(paths=scenes.NGINX_PATHS, user=scenes.nginx_user(scene.mode), **named))
    scene.server(f"nginx -p {scene.folder} -e stderr -c {path}", ports[1])
    scene.server(f"haproxy -db -f {scene.write('haproxy.cfg', PROXY.format(**named))}", ports[0])
    return ports


def judge_inside(scene, ports, silent=False):
    """haproxy asks its backends as its own rule says."""
    for port in ports:
        scene.judge(port, iwarp=scene.mode.server == "on", silent=silent)


def test_both_backends_answer(scene, proxy):
    seen = set()
    for octets in scenes.SIZES * 2:
        got = scene.folder / "got"
        said = scene.client(f"curl -sSf -D - -o {got} http://{scenes.ADDRESS}:{proxy[0]}/file{octets}")
        seen.add(int(re.search(r"(?mi)^from: (\d+)", said)[1]))
        assert scenes.same_file(scene.folder / "files" / f"file{octets}", got)
        got.unlink()
    assert seen == set(proxy[1:])
    judge_inside(scene, proxy[1:])


def test_many_at_once(scene, proxy):
    said = scene.client(f"wrk -t 2 -c 24 -d 1s http://{scenes.ADDRESS}:{proxy[0]}/file4096")
    assert int(re.search(r"(\d+) requests in", said)[1]) > 0
    assert "Socket errors" not in said and "Non-2xx" not in said, said
    scene.judge(proxy[0], silent=True)  # wrk begins one more connection than it asks on
    judge_inside(scene, proxy[1:], silent=True)
