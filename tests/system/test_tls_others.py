# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs with TLS of their own at the other end of a rule tls-plain: openssl, stunnel in either role, curl and redis."""

import shutil
import socket
import subprocess

import pytest
from test_tls_plain import LARGE, PLAIN, READ_ALL
from test_tls_sockets import HEAD, NAME, SECONDS_MAX, SECRET, command, end_well
from test_tls_sockets import proxied as ends  # noqa: F401

import conftest


def need(*programs):
    missing = [name for name in programs if not shutil.which(name)]
    if missing:
        pytest.skip(f"not installed: {' '.join(missing)}")


def identity(files):
    return [str(word) for word in ("-cert", files.cert, "-key", files.key, "-CAfile", files.ca, "-verify_return_error", "-tls1_3")]


def test_openssl_s_client(ends, port, files):  # noqa: F811
    server = ends.server(port, files=files, rules=PLAIN)
    client = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *identity(files), "-servername", NAME, "-quiet",
                             "-no_ign_eof"], input=SECRET, capture_output=True, timeout=SECONDS_MAX, check=False)
    end_well(server)
    assert f"got {SECRET}" in server.output(), server.report() + client.stderr.decode()


def test_openssl_s_server(ends, port, files):  # noqa: F811
    server = conftest.program.Program(["openssl", "s_server", "-accept", f"127.0.0.1:{port}", *identity(files), "-Verify", "1", "-rev", "-naccept", "1"])
    ends.programs.append(server)
    server.wait_listening(port)
    client = ends(HEAD + """
sock = socket.create_connection(("127.0.0.1", port))
sock.sendall(b"drawer\\n")
told(lambda: sock.recv(100))
""", port, files=files, rules=PLAIN)
    end_well(client)
    assert "got b'reward\\n'" in client.output(), client.report()


def stunnel(ends, folder, files, *lines):  # noqa: F811
    need("stunnel")
    setup = folder / "stunnel.conf"
    setup.write_text("\n".join(["foreground = yes", "pid =", f"cert = {files.cert}", f"key = {files.key}", f"CAfile = {files.ca}",
                                "verifyChain = yes", "sslVersionMin = TLSv1.3", "[service]", *lines, ""]))
    ends.programs.append(conftest.program.Program(["stunnel", str(setup)]))
    return ends.programs[-1]


def test_stunnel_as_client(ends, port, files, tmp_path):  # noqa: F811
    """The program behind it ends its direction first, and still gets the answer."""
    server = ends.server(port, READ_ALL, files=files, rules=PLAIN)
    near = conftest.program.free_port()
    stunnel(ends, tmp_path, files, "client = yes", f"accept = 127.0.0.1:{near}", f"connect = 127.0.0.1:{port}",
            f"checkHost = {NAME}").wait_listening(near)
    with socket.create_connection(("127.0.0.1", near), timeout=SECONDS_MAX) as sock:
        sock.sendall(bytes(LARGE))
        sock.shutdown(socket.SHUT_WR)
        assert b"".join(iter(lambda: sock.recv(100), b"")) == str(LARGE).encode()
    end_well(server)
    assert f"got {LARGE}" in server.output()


def test_stunnel_as_server(ends, port, files, tmp_path):  # noqa: F811
    near = conftest.program.free_port()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        behind = listener.getsockname()[1]
        stunnel(ends, tmp_path, files, f"accept = 127.0.0.1:{near}", f"connect = 127.0.0.1:{behind}").wait_listening(near)
        client = ends(HEAD + f"""
sock = socket.create_connection(("127.0.0.1", port))
sock.sendall(bytes({LARGE}))
sock.shutdown(socket.SHUT_WR)
told(lambda: b"".join(iter(lambda: sock.recv(100), b"")))
""", near, files=files, rules=PLAIN)
        listener.settimeout(SECONDS_MAX)
        with listener.accept()[0] as conn:
            count = sum(map(len, iter(lambda: conn.recv(1 << 16), b"")))
            conn.sendall(str(count).encode())
        end_well(client)
    assert f"got {str(LARGE).encode()}" in client.output(), client.report()


def test_curl(ends, port, files, tmp_path):  # noqa: F811
    need("curl")
    (tmp_path / "page").write_bytes(bytes(LARGE))
    script = f"""
import functools, http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), functools.partial(Handler, directory={str(tmp_path)!r}))
server.serve_forever()
"""
    ends.server(port, script, files=files, rules=PLAIN)
    for _ in range(2):
        got = subprocess.run(["curl", "-sS", "--fail", "--cacert", files.ca, "--cert", files.cert, "--key", files.key, "--resolve",
                              f"{NAME}:{port}:127.0.0.1", f"https://{NAME}:{port}/page", f"https://{NAME}:{port}/page"],
                             capture_output=True, timeout=SECONDS_MAX, check=False)
        assert len(got.stdout) == 2 * LARGE, got.stderr


@pytest.mark.parametrize("protected", ["server", "client"])
def test_redis(ends, port, files, tmp_path, protected):  # noqa: F811
    """Redis' own TLS at one end, and none at the other."""
    need("redis-server", "redis-cli")
    own = ["--tls", "--cert", str(files.cert), "--key", str(files.key), "--cacert", str(files.ca), "--sni", NAME]
    theirs = ["--port", "0", "--tls-port", str(port), "--tls-cert-file", str(files.cert), "--tls-key-file", str(files.key), "--tls-ca-cert-file",
              str(files.ca)]
    under = [str(word) for word in (conftest.BUILD / "bin" / "anywarp", *command(files, "--tls-name", NAME, "--rule", f"{PLAIN} port={port}"), "--")]
    serves, asks = protected == "server", protected == "client"
    line = ["redis-server", "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path), *(["--port", str(port)] if serves else theirs)]
    server = conftest.program.Program((under if serves else []) + line, conftest.environment(ends.logs))
    ends.programs.append(server)
    server.wait_listening(port)
    done = subprocess.run((under if asks else []) + ["redis-cli", "-h", "127.0.0.1", "-p", str(port), *([] if asks else own), "incrby", "x", "41"],
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False, env=conftest.environment(ends.logs))
    assert done.stdout.strip().endswith("41"), done.stderr + server.report()
