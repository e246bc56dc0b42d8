# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""PHP: php-fpm's workers, forked before they accept on one socket, behind nginx and asked by cgi-fcgi; PHP's streams, and the
extension sockets, a module that PHP opens with RTLD_DEEPBIND, so that in mode auto no wrapper sees its calls."""

import glob
import hashlib
import os
import pathlib
import shutil

import pytest
import scene as scenes

HERE = pathlib.Path(__file__).parent
FPM = sorted(glob.glob("/usr/sbin/php-fpm*"))
PHP = shutil.which("php")
pytestmark = pytest.mark.skipif(not FPM or not PHP, reason="php-fpm or php is not installed")
POOL = """
[global]
daemonize = no
error_log = /dev/stderr
[www]
{user}
listen = {address}:{port}
pm = static
pm.max_children = 3
pm.max_requests = 20
catch_workers_output = yes
"""
SITE = """
daemon off;
{user}
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_max_body_size 0;
    {paths}
    upstream fpm {{ server {address}:{fpm}; keepalive 2; }}
    server {{
        listen {address}:{outer};
        location / {{
            fastcgi_pass fpm;
            fastcgi_keep_conn on;
            fastcgi_param SCRIPT_FILENAME {folder}/page.php;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param CONTENT_LENGTH $content_length;
            fastcgi_param CONTENT_TYPE application/octet-stream;
        }}
    }}
}}
"""
PAGE = """<?php
$got = file_get_contents("php://input");
header("Got: " . strlen($got) . " " . md5($got));
echo str_repeat($_SERVER["QUERY_STRING"], 100000);
"""
ECHO = """<?php
$way = $argv[1];
if ($way == "stream") {
    $link = stream_socket_client("tcp://$argv[2]:$argv[3]");
    $put = fn($bytes) => fwrite($link, $bytes);
    $get = fn() => fread($link, 65536);
    $end = fn() => stream_socket_shutdown($link, STREAM_SHUT_WR);
} else {
    $link = socket_create(AF_INET, SOCK_STREAM, SOL_TCP);
    socket_connect($link, $argv[2], (int)$argv[3]) or exit(2);
    $put = fn($bytes) => socket_write($link, $bytes);
    $get = fn() => socket_read($link, 65536);
    $end = fn() => socket_shutdown($link, 1);
}
$sent = "";
$got = "";
for ($round = 0; $round < 300; $round++) {
    $piece = random_bytes(random_int(1, 20000));
    for ($at = 0; $at < strlen($piece); $at += $n)
        $n = $put(substr($piece, $at)) or exit(3);
    $sent .= $piece;
    while (strlen($got) < strlen($sent) && ($more = $get()) !== false && $more !== "")
        $got .= $more;
}
$end();
while (($more = $get()) !== false && $more !== "")
    $got .= $more;
echo $got === $sent . pack("J", strlen($sent)) ? "right" : "wrong";
"""


def user_of(mode):
    """php-fpm's workers give up root; a pair's ends are of one user."""
    if os.geteuid() != 0:
        return ""
    return "user = root" if mode.pair else "user = www-data"


@pytest.fixture
def pool(scene):
    """The port of php-fpm."""
    port = scene.port()
    path = scene.write("fpm.conf", POOL.format(address=scenes.ADDRESS, port=port, user=user_of(scene.mode)))
    scene.write("page.php", PAGE)
    scene.server(f"{FPM[-1]} -n -R -y {path}", port)
    return port


def test_cgi_fcgi(scene, pool):
    """More requests than a worker serves: the master forks others."""
    for number in range(70):
        said = scene.client(f"cgi-fcgi -bind -connect {scenes.ADDRESS}:{pool}", REQUEST_METHOD="GET",
                            SCRIPT_FILENAME=scene.folder / "page.php", QUERY_STRING=f"<{number}>")
        assert said.endswith("\r\n\r\n" + f"<{number}>" * 100_000), said[:300]


def test_nginx(scene, pool):
    """nginx keeps connections to php-fpm, and brings it what curl puts."""
    outer = scene.port()
    upload = scene.file("upload", 3_000_017)
    scene.directory("temp", "www-data")
    path = scene.write("nginx.conf", SITE.format(paths=scenes.NGINX_PATHS, address=scenes.ADDRESS, fpm=pool, outer=outer,
                                                 user=scenes.nginx_user(scene.mode), folder=scene.folder))
    scene.server(f"nginx -p {scene.folder} -e stderr -c {path}", outer)
    digest = hashlib.md5(upload.read_bytes()).hexdigest()
    for number in range(12):
        said = scene.client(f"curl -sSf -i -X PUT -T {upload} http://{scenes.ADDRESS}:{outer}/?{number}")
        assert f"Got: 3000017 {digest}" in said, said[:300]
        assert said.endswith("\n" + f"{number}" * 100_000)
    scene.judge(pool, iwarp=scene.mode.server == "on")


@pytest.mark.parametrize("way", ["stream", "extension"])
def test_client(scene, way):
    port = scene.port()
    scene.pair = scene.pair and way == "stream"  # of the extension's connect nothing is seen
    scene.server(f"{scenes.PYTHON} {HERE}/stream_server.py {scenes.ADDRESS} {port}", port)
    assert scene.client(f"{PHP} {scene.write('echo.php', ECHO)} {way} {scenes.ADDRESS} {port}") == "right"
