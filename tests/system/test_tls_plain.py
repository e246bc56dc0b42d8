# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Rules tls-plain: a sockets program under TLS 1.3 without MPA, whose peer here is Python's library (test_tls_others.py has more).
Who is let in and by which alert the others go, how a stream ends, and that the wire shows nothing. RFC 8446 6, RFC 7301 3.2."""

import collections
import contextlib
import socket
import ssl
import subprocess
import sys

import pytest
from test_tls import run_anywarp
from test_tls_sockets import ANSWER, AT_ONCE, CLIENT, HEAD, LASTING_SERVER, LIBRARY, NAME, SECONDS_MAX, SECRET, Tap, command, end_well, renew
from test_tls_sockets import stranger  # noqa: F401
from test_tls_sockets import proxied as ends  # noqa: F401

import conftest
from certificates import variables

PLAIN = "tls-plain"
ALERT, FATAL, NO_APPLICATION_PROTOCOL = 21, 2, 120  # RFC 8446 5.1 and 6
MPA = "anywarp-mpa"
LARGE = 5_000_003


def context_of(own, server_side=False, alpn=(), most=None):
    """Of Python's end, which has to show a certificate and wants one. own.cert None: it has none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server_side else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # a FIN alone is no end
    context.load_verify_locations(own.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    if own.cert:
        context.load_cert_chain(own.cert, own.key)
    if alpn:
        context.set_alpn_protocols(alpn)
    if most:
        context.maximum_version = most
    return context


def connect(port, context):
    sock = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
    return context.wrap_socket(sock, server_hostname=NAME, suppress_ragged_eofs=False)


def ask(port, context):
    with connect(port, context) as sock:
        sock.sendall(SECRET)
        return sock.recv(100)


# --- as a server

def test_a_client_of_python(ends, port, files):  # noqa: F811
    server = ends.server(port, files=files, rules=PLAIN, name=NAME)
    wire = Tap(port)
    assert ask(wire.port, context_of(files)) == ANSWER
    end_well(server)
    assert f"got {SECRET}" in server.output()
    wire.join(SECONDS_MAX)
    assert SECRET not in wire.octets and ANSWER not in wire.octets and b"MPA ID" not in wire.octets


@pytest.mark.parametrize("offered, chosen", [((), None), (("postgresql",), "postgresql"), (("h2", "http/1.1"), None)])
def test_the_only_protocol_that_a_client_offers_is_taken(ends, port, files, offered, chosen):  # noqa: F811
    ends.server(port, files=files, rules=PLAIN)
    with connect(port, context_of(files, alpn=offered)) as sock:
        assert sock.selected_alpn_protocol() == chosen
        sock.sendall(SECRET)
        assert sock.recv(100) == ANSWER


# A client that is refused: its files, its alert, what the log of the server says, and its hello.
Client = collections.namedtuple("Client", "make alert log how", defaults=({},))
CLIENTS = {
    "no_certificate": Client(lambda a, s: a.issue("none")._replace(cert=None), "CERTIFICATE_REQUIRED",
                             "the peer has no certificate: give its program one; a rule with client=any"),
    "wrong_ca": Client(lambda a, s: s._replace(ca=a.cert), "UNKNOWN_CA", "name the ca that issued it by --tls-ca here"),
    "expired": Client(lambda a, s: a.issue("old", f"DNS:{NAME}", days=-1), "CERTIFICATE_EXPIRED", "certificate has expired: renew it there"),
    "wrong_name": Client(lambda a, s: a.issue("other"), "BAD_CERTIFICATE", "make one with the name of --tls-name as subjectAltName there"),
    "for_servers_alone": Client(lambda a, s: a.issue("server", f"DNS:{NAME}", usage="serverAuth"), "UNSUPPORTED_CERTIFICATE",
                                "make one for both clientAuth and serverAuth there"),
    "tls_1_2": Client(lambda a, s: a.issue("two", f"DNS:{NAME}"), "PROTOCOL_VERSION", "the peer does not speak tls 1.3",
                      {"most": ssl.TLSVersion.TLSv1_2}),
    "mpa": Client(lambda a, s: a.issue("mpa", f"DNS:{NAME}"), None, "the client wants mpa under tls: give both ends a rule tls-plain, or both on",
                  {"alpn": (MPA, "http/1.1")}),
}


@pytest.mark.parametrize("case", CLIENTS)
def test_a_client_that_is_refused(ends, port, authority, stranger, files, case):  # noqa: F811
    row = CLIENTS[case]
    server = ends.server(port, files=files, rules=PLAIN)
    with pytest.raises(ssl.SSLError) as refused:
        ask(port, context_of(row.make(authority, stranger), **row.how))
    # Python has no name for the alert no_application_protocol.
    assert refused.value.reason is None if row.alert is None else refused.value.reason.endswith(f"ALERT_{row.alert}"), refused.value
    end_well(server)
    server.wait_output(row.log)
    server.wait_output("has no tls connection with peer 127.0.0.1")
    assert "failed EPROTO" in server.output() and "got" not in server.output(), server.report()
    assert "connection refused peer 127.0.0.1 port" in server.output()


STRANGE = {"http": b"GET / HTTP/1.1\r\n\r\n", "mpa": b"MPA ID Req Frame\0\1\0\0", "zeroes": bytes(64)}


@pytest.mark.parametrize("case", STRANGE)
def test_a_client_without_tls_is_told_by_an_alert(ends, port, files, case):  # noqa: F811
    server = ends.server(port, files=files, rules=PLAIN)
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(STRANGE[case])
        assert sock.recv(100) == bytes([ALERT, 3, 3, 0, 2, FATAL, 70])
    end_well(server)
    server.wait_output("the peer speaks no tls")
    assert "failed EPROTO" in server.output(), server.report()


def test_a_client_that_says_nothing(ends, port, files):  # noqa: F811
    server = ends.server(port, files=files, rules=PLAIN)
    with socket.create_connection(("127.0.0.1", port)) as sock:
        end_well(server)
        server.wait_output("cause no tls handshake within 10 s")
        assert "failed EPROTO" in server.output(), server.report()
        sock.settimeout(SECONDS_MAX)
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""


def test_a_client_that_only_looks(ends, port, files):  # noqa: F811
    server = ends.server(port, files=files, rules=PLAIN)
    socket.create_connection(("127.0.0.1", port)).close()
    end_well(server)
    assert "got b''" in server.output() and "refused" not in server.output(), server.report()


def test_clients_without_a_certificate_by_a_rule(ends, port, authority, stranger, files):  # noqa: F811
    """One that is wrong is refused all the same."""
    rule = f"{PLAIN} client=any listen"
    server = ends.server(port, files=files, rules=rule)
    assert ask(port, context_of(files._replace(cert=None))) == ANSWER
    for own in (stranger._replace(ca=authority.cert), authority.issue("other")):
        end_well(server)  # its port is the next one's
        server = ends.server(port, files=files, rules=rule)
        with pytest.raises(ssl.SSLError):
            ask(port, context_of(own))


# --- as a client

@contextlib.contextmanager
def serving(context):
    """A listener's port, and what its one connection is made of: accept() of it is a session."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS_MAX)

        def accept():
            accepted = listener.accept()[0]
            accepted.settimeout(SECONDS_MAX)
            return context.wrap_socket(accepted, server_side=True, suppress_ragged_eofs=False)
        yield listener.getsockname()[1], accept


@pytest.mark.parametrize("named", [True, False], ids=["by_name", "by_address"])
def test_a_server_of_python(ends, files, named):  # noqa: F811
    """It is asked for the name, and for no protocol."""
    context = context_of(files, server_side=True, alpn=("http/1.1",))
    asked = []
    context.sni_callback = lambda sock, name, _: asked.append(name)
    with serving(context) as (port, accept):
        client = ends(CLIENT, port, files=files, rules=PLAIN, name=NAME if named else None)
        with accept() as sock:
            assert sock.selected_alpn_protocol() is None and asked == [NAME if named else None]
            assert sock.getpeercert()["subject"] == ((("commonName", NAME),),)
            sock.sendall(sock.recv(100).upper())
            end_well(client)
            assert f"got {ANSWER}" in client.output()


SERVERS = {
    "wrong_ca": (lambda a, s: s._replace(ca=a.cert), "UNKNOWN_CA", "name the ca that issued it by --tls-ca here"),
    "expired": (lambda a, s: a.issue("over", f"DNS:{NAME}", days=-1), "CERTIFICATE_EXPIRED", "certificate has expired: renew it there"),
    "wrong_name": (lambda a, s: a.issue("another"), "BAD_CERTIFICATE", "make one with the name of --tls-name as subjectAltName there"),
    "for_clients_alone": (lambda a, s: a.issue("client", f"DNS:{NAME}", usage="clientAuth"), "UNSUPPORTED_CERTIFICATE",
                          "make one for both clientAuth and serverAuth there"),
}


@pytest.mark.parametrize("case", SERVERS)
def test_a_server_that_is_refused(ends, authority, stranger, files, case):  # noqa: F811
    """Not a byte of the program's reaches it."""
    make, alert, log = SERVERS[case]
    with serving(context_of(make(authority, stranger), server_side=True)) as (port, accept):
        client = ends(CLIENT, port, files=files, rules=PLAIN)
        with pytest.raises(ssl.SSLError) as refused:
            accept().recv(100)
        assert refused.value.reason.endswith(f"ALERT_{alert}"), refused.value
    end_well(client)
    client.wait_output(log)
    client.wait_output("connection failed peer 127.0.0.1 port")
    assert "failed EPROTO" in client.output() and "got" not in client.output(), client.report()


def test_a_server_that_refuses_this_end(ends, authority, stranger, files):  # noqa: F811
    """It does so behind the handshake: the program's first read tells."""
    with serving(context_of(stranger, server_side=True)) as (port, accept):
        client = ends(CLIENT, port, files=files._replace(ca=stranger.ca), rules=PLAIN)
        with pytest.raises(ssl.SSLError):
            accept().recv(100)
    end_well(client)
    client.wait_output("the peer's tls alert: unknown ca")
    assert "failed EPROTO" in client.output(), client.report()


def test_a_server_of_tls_1_2_is_refused(ends, files):  # noqa: F811
    with serving(context_of(files, server_side=True, most=ssl.TLSVersion.TLSv1_2)) as (port, accept):
        client = ends(CLIENT, port, files=files, rules=PLAIN)
        with pytest.raises(ssl.SSLError):
            accept()
    end_well(client)
    client.wait_output("the peer's tls alert: protocol version: the peer does not speak tls 1.3")
    assert "failed EPROTO" in client.output(), client.report()


@pytest.mark.parametrize("answer", [b"220 ready\r\n", b"MPA ID Rep Frame\0\1\0\0", b""])
def test_a_server_without_tls(ends, files, answer):  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = ends(CLIENT, listener.getsockname()[1], files=files, rules=PLAIN)
        with listener.accept()[0] as conn:
            assert SECRET not in conn.recv(4096)
            conn.sendall(answer)
            if not answer:
                conn.shutdown(socket.SHUT_WR)
            end_well(client)
    client.wait_output("the peer speaks no tls" if answer else "the peer closed without a tls record: does it speak tls 1.3?")
    assert "failed EPROTO" in client.output(), client.report()


WRITES = {
    "send": "sock.send(secret)",
    "sendfile": "os.sendfile(sock.fileno(), file, 0, len(secret))",
    "pwritev2": "os.pwritev(sock.fileno(), [secret], -1)",
    "splice": "os.splice(pipe[0], sock.fileno(), len(secret))",
}


@pytest.mark.parametrize("call, behind", [*((call, "failed EPIPE\nsignals 1\n") for call in WRITES.values()),
                                          ("os.splice(sock.fileno(), pipe[1], 9)", "got 0\nsignals 0\n")], ids=[*WRITES, "splice_from"])
def test_a_call_tells_of_a_refusal(ends, files, call, behind):  # noqa: F811
    """Behind it the connection has ended, as TCP's behind an error: SIGPIPE comes with EPIPE alone."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = ends(HEAD + f"""
import select, signal
signals = []
signal.signal(signal.SIGPIPE, lambda *_: signals.append(1))
pipe, file = os.pipe(), os.memfd_create("file")
os.write(pipe[1], 2 * secret)
os.write(file, secret)
with socket.create_connection(("127.0.0.1", port)) as sock:
    poller = select.poll()
    poller.register(sock, select.POLLIN)
    poller.poll()
    for _ in range(2):
        told(lambda: {call})
print("signals", len(signals))
""", listener.getsockname()[1], files=files, rules=PLAIN)
        with listener.accept()[0] as conn:
            conn.sendall(b"220 ready\r\n")
            end_well(client)
    client.wait_output("the peer speaks no tls")
    assert f"failed EPROTO\n{behind}" in client.output(), client.report()


# --- two ends of anywarp's

def test_two_ends(ends, port, files):  # noqa: F811
    server = ends.server(port, files=files, rules=PLAIN)
    wire = Tap(port)
    client = ends(CLIENT, wire.port, files=files, rules=PLAIN)
    end_well(server, client)
    assert f"got {ANSWER}" in client.output() and f"got {SECRET}" in server.output()
    wire.join(SECONDS_MAX)
    assert SECRET not in wire.octets and b"MPA ID" not in wire.octets and MPA.encode() not in wire.octets


@pytest.mark.parametrize("servers, clients, told", [
    ("on", PLAIN, ("the client asks for another protocol inside tls, or for none", "the peer wants one by name, and tls-plain names none")),
    (PLAIN, "on", ("the client wants mpa under tls", "the peer speaks tls without mpa")),
])
def test_ends_of_different_rules(ends, port, files, servers, clients, told):  # noqa: F811
    server = ends.server(port, files=files, rules=servers)
    wire = Tap(port)
    client = ends(CLIENT, wire.port, files=files, rules=clients)
    end_well(server, client)
    for program, words in zip((server, client), told):
        program.wait_output(words)
        assert "failed EPROTO" in program.output() and "got" not in program.output(), program.report()
    wire.join(SECONDS_MAX)
    assert SECRET not in wire.octets and bytes([ALERT, 3, 3, 0, 2, FATAL, NO_APPLICATION_PROTOCOL]) in wire.octets


# --- the stream

READ_ALL = HEAD + """
listener = socket.create_server(("127.0.0.1", port))
conn = listener.accept()[0]
def read_all():
    octets = b"".join(iter(lambda: conn.recv(1 << 16), b""))
    conn.sendall(b"%d" % len(octets))
    conn.shutdown(socket.SHUT_WR)
    return len(octets)
told(read_all)
"""


def test_half_close_and_a_large_stream(ends, port, files):  # noqa: F811
    """The answer comes behind the client's close_notify, and ends by the server's."""
    server = ends.server(port, READ_ALL, files=files, rules=PLAIN)
    client = subprocess.run([sys.executable, "-c", f"""
import ssl, socket
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations({str(files.ca)!r})
context.load_cert_chain({str(files.cert)!r}, {str(files.key)!r})
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
sock = socket.create_connection(("127.0.0.1", {port}))
tls = context.wrap_bio(incoming, outgoing, server_hostname={NAME!r})
def finish(step, *args):
    while True:
        try:
            result = step(*args)
            sock.sendall(outgoing.read())
            return result
        except ssl.SSLWantReadError:
            sock.sendall(outgoing.read())
            more = sock.recv(1 << 16)
            incoming.write(more) if more else incoming.write_eof()
finish(tls.do_handshake)
for at in range(0, {LARGE}, 1 << 16):
    finish(tls.write, bytes(min(1 << 16, {LARGE} - at)))
try:
    tls.unwrap()
except ssl.SSLWantReadError:
    pass
sock.sendall(outgoing.read())
print(finish(tls.read, 100).decode())
try:
    finish(tls.read, 1)
except ssl.SSLZeroReturnError:
    print("close_notify")
print(sock.recv(1))
"""], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert client.stdout.split() == [str(LARGE), "close_notify", "b''"], client.stderr
    end_well(server)
    assert f"got {LARGE}" in server.output()


def test_large_both_ways_between_two_ends(ends, port, files):  # noqa: F811
    script = HEAD + f"""
import threading
def both(sock):
    sent = threading.Thread(target=lambda: (sock.sendall(bytes({LARGE})), sock.shutdown(socket.SHUT_WR)))
    sent.start()
    count = sum(map(len, iter(lambda: sock.recv(1 << 16), b"")))
    sent.join()
    return count
"""
    server = ends.server(port, script + 'told(lambda: both(socket.create_server(("127.0.0.1", port)).accept()[0]))\n', files=files, rules=PLAIN)
    client = ends(script + 'told(lambda: both(socket.create_connection(("127.0.0.1", port))))\n', port, files=files, rules=PLAIN)
    end_well(server, client)
    assert f"got {LARGE}" in server.output() and f"got {LARGE}" in client.output()


def test_a_stream_that_is_cut_is_a_reset(ends, port, files):  # noqa: F811
    """A FIN without close_notify: anybody between the two ends can make one."""
    server = ends.server(port, READ_ALL, files=files, rules=PLAIN, **{"ANYWARP_LOG": "warn"})
    sock = connect(port, context_of(files))
    sock.sendall(SECRET)
    socket.socket(fileno=sock.detach()).shutdown(socket.SHUT_RDWR)
    end_well(server)
    assert "failed ECONNRESET" in server.output(), server.report()
    server.wait_output("the stream ended without tls's close_notify")


def test_a_reset_behind_the_end_leaves_nothing(ends, port, files):  # noqa: F811
    """The proxy process ends with the program, though close_notify finds nobody: it has the program's standard error open until then."""
    env = {**conftest.environment(ends.logs), **variables(files, NAME), "ANYWARP_SOCKETS_RULES": PLAIN, "ANYWARP_LOG": "error"}
    env["LD_PRELOAD"] = " ".join(filter(None, [env.get("LD_PRELOAD"), str(LIBRARY)]))
    server = subprocess.Popen([sys.executable, "-S", "-c", HEAD + """
listener = socket.create_server(("127.0.0.1", port))
print("listens", flush=True)
conn = listener.accept()[0]
print(conn.recv(100), flush=True)
sys.stdin.read()
""", str(port)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert server.stdout.readline() == b"listens\n"
        sock = connect(port, context_of(files))
        sock.setblocking(False)
        with contextlib.suppress(ssl.SSLWantReadError):
            sock.unwrap()
        assert server.stdout.readline() == b"b''\n"
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        socket.socket(fileno=sock.detach()).close()
        server.communicate(timeout=SECONDS_MAX)
    finally:
        server.kill()
    assert server.returncode == 0


def test_forked_children_go_on(ends, port, files):  # noqa: F811
    script = HEAD + """
listener = socket.create_server(("127.0.0.1", port))
conn = listener.accept()[0]
if os.fork() == 0:
    conn.sendall(conn.recv(100).upper())
    os._exit(0)
os.wait()
print("got", conn.recv(100), flush=True)
"""
    server = ends.server(port, script, files=files, rules=PLAIN)
    with connect(port, context_of(files)) as sock:
        sock.sendall(SECRET)
        assert sock.recv(100) == ANSWER and not sock.sendall(b"to the parent")
        end_well(server)
    assert "got b'to the parent'" in server.output()


@pytest.mark.parametrize("how", ["poll", "epoll"])
def test_readiness(ends, port, files, how):  # noqa: F811
    """Nothing is readable before the peer's bytes, and a readable fd has them."""
    script = HEAD + f"""
import select
listener = socket.create_server(("127.0.0.1", port))
conn = listener.accept()[0]
poll = select.{how}()
poll.register(conn, select.{'POLLIN' if how == 'poll' else 'EPOLLIN'})
conn.setblocking(False)
print("ready", len(poll.poll(0)), flush=True)
assert poll.poll() and conn.recv(100)
print("read", len(poll.poll(0)), flush=True)
conn.sendall(b"first")
assert poll.poll()
told(lambda: conn.recv(100))
"""
    server = ends.server(port, script, files=files, rules=PLAIN)
    with connect(port, context_of(files)) as sock:
        server.wait_output("ready 0")
        sock.sendall(SECRET)
        assert sock.recv(100) == b"first"
        assert "read 0" in server.output()
        sock.unwrap()
    end_well(server)
    assert "got b''" in server.output()


def test_the_key_log(ends, port, files, tmp_path):  # noqa: F811
    keys = tmp_path / "keys"
    server = ends.server(port, files=files, rules=PLAIN, ANYWARP_TLS_KEYLOG=str(keys))
    assert ask(port, context_of(files)) == ANSWER
    end_well(server)
    assert {line.split()[0] for line in keys.read_text().splitlines()} >= {"CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"}


def test_renewed_files_are_read_without_a_restart(ends, port, authority, files, tmp_path):  # noqa: F811
    own = files._replace(cert=tmp_path / "own.pem", key=tmp_path / "own.key")
    renew(own, files)
    ends.server(port, LASTING_SERVER, files=own, rules=PLAIN)
    assert ask(port, context_of(files)) == ANSWER
    renew(own, authority.issue("past", f"DNS:{NAME}", days=-1))
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(port, context_of(files))
    renew(own, authority.issue("renewed", f"DNS:{NAME}"))
    assert ask(port, context_of(files)) == ANSWER


def test_a_session_is_resumed(ends, port, files):  # noqa: F811
    script = HEAD + """
listener = socket.create_server(("127.0.0.1", port))
for _ in range(2):
    conn = listener.accept()[0]
    conn.sendall(conn.recv(100).upper())
"""
    server = ends.server(port, script, files=files, rules=PLAIN)
    client = ends(HEAD + """
for _ in range(2):
    told(lambda: ask(socket.create_connection(("127.0.0.1", port))))
""", port, files=files, rules=PLAIN, ANYWARP_LOG="info")
    end_well(server, client)
    assert client.output().count(f"got {ANSWER}") == 2
    assert f"connection secured by tls without mpa peer 127.0.0.1 port {port} as client certificate {NAME} resumed" in client.output()


# --- the command and the settings

def test_the_rule_asks_for_tls():
    done = run_anywarp("sockets", "--rule", PLAIN, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (2, "") and "a rule says 'tls-plain': it needs --tls require" in done.stderr


@pytest.mark.skipif(bool(conftest.SANITIZER), reason="the sanitizer's library has to come first")
@pytest.mark.parametrize("rules, runs", [(PLAIN, False), (f"on port=1\n \t{PLAIN} port=2", False), (f"# {PLAIN}", True), ("on", True)])
def test_without_tls_nothing_starts(ends, rules, runs):  # noqa: F811
    """No connection of such a rule may be plain."""
    env = {**conftest.environment(ends.logs), "ANYWARP_SOCKETS_RULES": rules, "LD_PRELOAD": str(conftest.BUILD / "lib" / "libanywarp-sockets.so")}
    done = subprocess.run(["echo", "ran"], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == ((0, "ran\n") if runs else (125, "")), done.stderr
    assert runs or "a rule tls-plain needs ANYWARP_TLS=require" in done.stderr


@pytest.mark.parametrize("rule, told", [
    (f"{PLAIN} client=any listen", None),
    (f"{PLAIN} client=any", "needs the word listen"),
    (f"{PLAIN} client=any connect", "needs the word listen"),
    ("on client=any listen", "client=any is for tls-plain"),
    (f"{PLAIN} client=none listen", "client must be any"),
])
def test_client_any(files, rule, told):
    done = run_anywarp(*command(files, "--rule", rule, "--", "echo", "ran"))
    assert (done.returncode, done.stdout) == ((2, "") if told else (0, "ran\n")), done.stderr
    assert not told or told in done.stderr


def test_the_status_names_the_mode(ends, port, files):  # noqa: F811
    server = ends.server(port, HEAD + """
listener = socket.create_server(("127.0.0.1", port))
conn = listener.accept()[0]
conn.sendall(conn.recv(100).upper())
conn.recv(100)
""", files=files, rules=PLAIN)
    with connect(port, context_of(files)) as sock:
        sock.sendall(SECRET)
        assert sock.recv(100) == ANSWER
        done = run_anywarp("sockets", "--status", str(server.pid))
        assert PLAIN in done.stdout and "established" in done.stdout, done.stdout + done.stderr
        sock.unwrap()
    end_well(server)
