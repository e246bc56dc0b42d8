# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Records under TLS: whom a handshake in the program's own process reaches, peers that stall in it, and its end with the process.
test_tls_sockets.py has what they have in common with the connections of the proxy process."""

import contextlib
import socket
import ssl

from test_tls_sockets import ANSWER, CLIENT, HEAD, NAME, SECONDS_MAX, SECRET, Tap, end_well
from test_tls_sockets import recorded as ends  # noqa: F401


def hello_of(protocol):
    """A ClientHello that offers the protocol."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    octets = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), octets).do_handshake()
    return octets.read()


# --- ends of two kinds

OLD, NEW = {"ANYWARP_SOCKETS_RECORD": "on"}, {"ANYWARP_SOCKETS_RECORD": "tls"}


def test_a_server_of_records_serves_a_client_of_the_proxy(ends, port, files):
    server = ends.server(port, files=files, **NEW)
    client = ends(CLIENT, port, files=files, **OLD)
    end_well(server, client)
    assert f"got {ANSWER}" in client.output() and f"got {SECRET}" in server.output()


def test_a_client_of_records_is_told_that_the_server_has_none(ends, port, files):
    server = ends.server(port, files=files, **OLD)
    wire = Tap(port)
    client = ends(CLIENT, wire.port, files=files, **NEW)
    end_well(server, client)
    assert "failed EPROTO" in client.output() and "got" not in server.output(), client.report() + server.report()
    client.wait_output("the peer does not carry records under tls")
    wire.join(SECONDS_MAX)
    assert SECRET not in wire.octets


# --- peers that stall amid the handshake

STALLED = 8
STALLS = HEAD + f"""
import select, time
listener = socket.create_server(("127.0.0.1", port))
conns = [listener.accept()[0] for _ in range({STALLED})]
while not select.select([listener, *conns], [], [], 10)[0]:
    pass
began = time.monotonic()
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print("forked after", time.monotonic() - began, flush=True)
"""


def test_a_fork_waits_once_for_all_that_stall(ends, port, files):
    server = ends.server(port, STALLS, files=files)
    with contextlib.ExitStack() as stack:
        for _ in range(STALLED):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX))
            client.sendall(hello_of("anywarp-record"))
        assert client.recv(1) == b"\x16"
        stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        end_well(server)
    assert float(server.output().split("forked after ")[1].split()[0]) < STALLED * 1.5 / 2, server.report()


ACCEPTS_LATE = HEAD + """
import select, time
listener = socket.create_server(("127.0.0.1", port))
select.select([listener], [], [])
time.sleep(2)  # longer than a connection has that is handed over
conn = listener.accept()[0]
conn.sendall(conn.recv(100) + b"all")
"""
SHUTS_DOWN = HEAD + """
conn = socket.create_connection(("127.0.0.1", port))
conn.shutdown(socket.SHUT_WR)
told(lambda: conn.recv(100))
"""


def test_shutdown_waits_for_the_handshake(ends, port, files):
    server = ends.server(port, ACCEPTS_LATE, files=files)
    client = ends(SHUTS_DOWN, port, files=files)
    end_well(server, client)
    assert client.output() == "got b'all'\n", client.report() + server.report()


TWO_THREADS = HEAD + """
import select, threading
listener = socket.create_server(("127.0.0.1", port))
for _ in range(ROUNDS):
    conn = listener.accept()[0]
    looker = threading.Thread(target=lambda: [select.select([conn], [], []) for _ in range(20)])
    looker.start()
    told(lambda: conn.recv(100))
    looker.join()
    conn.close()
"""
ROUNDS = 20


def test_two_threads_meet_a_first_record_that_is_wrong(ends, port, files):
    """One waits in select(2), which returns no error: the other one returns it, and neither begins the record."""
    context = ssl.create_default_context(cafile=files.ca)
    context.load_cert_chain(files.cert, files.key)
    context.set_alpn_protocols(["anywarp-record"])
    server = ends.server(port, TWO_THREADS.replace("ROUNDS", str(ROUNDS)), files=files)
    for _ in range(ROUNDS):
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as plain, \
                context.wrap_socket(plain, server_hostname=NAME) as client, contextlib.suppress(OSError):
            client.sendall(b"no Request of a record's" * 4)
            client.recv(1)
    end_well(server)
    assert SECRET.decode() not in server.output() and server.output().count("failed EPROTO") + server.output().count("got b''") == ROUNDS


# --- programs that have OpenSSL themselves, whose exit(3) ends it before this library has ended

LEAVES = HEAD + """
import ssl
ssl.create_default_context()
conn = socket.create_server(("127.0.0.1", port)).accept()[0]
conn.sendall(conn.recv(100).upper())
conn.detach()
"""
STAYS = HEAD + """
conn = socket.create_connection(("127.0.0.1", port))
told(lambda: ask(conn))
told(lambda: conn.recv(1))
"""
LEAVES_EARLY = HEAD + """
import select, ssl
ssl.create_default_context()
def has_come():
    with open("/proc/self/net/tcp") as sockets:
        return any(line.split()[2] == remote and int(line.split()[4].split(":")[1], 16) for line in sockets)
remote = "0100007F:%04X" % port
conn = socket.socket()
conn.setblocking(False)
conn.connect_ex(("127.0.0.1", port))
select.select([], [conn], [], 0)
while not has_come():
    os.sched_yield()
conn.detach()
"""


def test_exit_ends_a_stream_behind_openssl(ends, port, files):
    server = ends.server(port, LEAVES, files=files)
    client = ends(STAYS, port, files=files)
    end_well(server, client)
    assert f"got {ANSWER}\ngot b''" in client.output(), client.report() + server.report()


def test_exit_amid_a_handshake_behind_openssl(ends, port, files):
    server = ends.server(port, files=files)
    client = ends(LEAVES_EARLY, port, files=files)
    end_well(client)
    end_well(server)
    assert "has no tls connection with peer 127.0.0.1 port" in server.output(), server.report()
