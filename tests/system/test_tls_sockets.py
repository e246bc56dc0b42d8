# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Sockets programs under mutual TLS: who is let in, what each end tells of a peer that is not, and that no way leads around it.
What the programs say to each other is a word that a tap between them looks for."""

import contextlib
import errno
import os
import signal
import socket
import struct
import subprocess
import sys

import pytest
from test_tls import Wire, run_anywarp

import conftest
from certificates import NAME, Authority, variables

LIBRARY = conftest.BUILD / "lib" / "libanywarp-sockets.so"
SECONDS_MAX = conftest.program.SECONDS_MAX
SECRET, ANSWER = b"what nobody reads", b"WHAT NOBODY READS"
AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER by which close resets

HEAD = f"""
import ctypes, errno, os, resource, socket, sys
port, secret = int(sys.argv[1]), {SECRET!r}
sanitized = {{name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}}  # all that is left of an environment
def told(call):
    try:
        print("got", call(), flush=True)
    except OSError as error:
        print("failed", errno.errorcode[error.errno], flush=True)
def ask(sock):
    sock.sendall(secret)
    return sock.recv(100)
"""
SERVER = HEAD + """
listener = socket.create_server(("127.0.0.1", port))
def serve():
    conn = listener.accept()[0]
    octets = conn.recv(100)
    conn.sendall(octets.upper())
    return octets
told(serve)
"""
LASTING_SERVER = HEAD + """
listener = socket.create_server(("127.0.0.1", port))
while True:
    conn = listener.accept()[0]
    try:
        conn.sendall(conn.recv(100).upper())
    except OSError:
        pass
    conn.close()
"""
CLIENT = HEAD + """
told(lambda: ask(socket.create_connection(("127.0.0.1", port))))
"""


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Of an authority that nobody trusts."""
    return Authority(tmp_path_factory.mktemp("authorities") / "wrong").issue(NAME)


class Tap(Wire):
    """Passes on that an end has reset the connection as well, as the end of the stream."""

    def carry(self, source, sink):
        super().carry(source, sink)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


class Ends:
    """record: the connections are to be records under TLS, without the proxy process."""

    def __init__(self, logs, record):
        self.logs = logs
        self.record = record
        self.programs = []

    def __call__(self, script, *args, files=None, rules=None, name=NAME, library=True, **env):
        """A Python program: with TLS where there are files, and without the library where library is False."""
        whole = {**conftest.environment(self.logs), "ANYWARP_LOG": "error"}
        if library:
            whole["LD_PRELOAD"] = " ".join(filter(None, [whole.get("LD_PRELOAD"), str(LIBRARY)]))
        whole.update(self.secured(files, name) if files else {})
        whole.update({"ANYWARP_SOCKETS_RULES": rules} if rules else {})
        whole.update(env)
        self.programs.append(conftest.program.Program([sys.executable, "-S", "-c", script, *map(str, args)], env=whole))
        return self.programs[-1]

    def secured(self, files, name=NAME):
        return {**variables(files, name), "ANYWARP_SOCKETS_RECORD": "tls" if self.record else "on"}

    def server(self, port, script=SERVER, **how):
        started = self(script, port, **how)
        started.wait_listening(port)
        return started

    def report(self):
        return "\n".join(program.report() for program in self.programs)

    def close(self):
        for program in self.programs:
            program.close()


def open_ends(tmp_path, request, record):
    opened = Ends(tmp_path, record)
    request.node.told = opened.report
    yield opened
    opened.close()


@pytest.fixture(params=["proxy", "record"])
def ends(tmp_path, request):
    yield from open_ends(tmp_path, request, request.param == "record")


@pytest.fixture
def proxied(tmp_path, request):
    yield from open_ends(tmp_path, request, False)


@pytest.fixture
def recorded(tmp_path, request):
    yield from open_ends(tmp_path, request, True)


def renew(own, issued):
    own.cert.write_bytes(issued.cert.read_bytes())
    own.key.write_bytes(issued.key.read_bytes())


def end_well(*programs):
    for program in programs:
        assert program.wait_exit(SECONDS_MAX) == 0, program.report()


@pytest.mark.parametrize("named", [True, False], ids=["by_name", "by_address"])
def test_two_ends_with_right_certificates(ends, port, files, named):
    """Without TLS the wire shows the word: the test can tell."""
    for own in (files, None):
        server = ends.server(port, files=own, name=NAME if named else None)
        wire = Tap(port)
        client = ends(CLIENT, wire.port, files=own, name=NAME if named else None)
        end_well(server, client)
        assert f"got {ANSWER}" in client.output() and f"got {SECRET}" in server.output()
        wire.join(SECONDS_MAX)
        assert [octets in wire.octets for octets in (SECRET, ANSWER, b"MPA ID Re")] == [not own, not own, False]


FORKS = HEAD + """
listener = socket.create_server(("127.0.0.1", port))
conn = listener.accept()[0]
child = os.fork()
if child == 0:
    listener.close()
    conn.sendall(conn.recv(100).upper())
    os._exit(0)
conn.close()
os.waitpid(child, 0)
"""


def test_a_child_serves_what_its_parent_has_accepted(ends, port, files):
    """Before its first byte: the proxy process makes the handshake, also of a record."""
    server = ends.server(port, FORKS, files=files)
    wire = Tap(port)
    client = ends(CLIENT, wire.port, files=files)
    end_well(server, client)
    assert f"got {ANSWER}" in client.output(), client.report() + server.report()
    wire.join(SECONDS_MAX)
    assert SECRET not in wire.octets and ANSWER not in wire.octets


# --- who is not let in

REFUSED = {
    "wrong_ca": (lambda right, wrong: (right.issue("one", f"DNS:{NAME}"), wrong),
                 "the peer's tls alert: unknown ca", "name the ca that issued it by --tls-ca here"),
    "clients_ca_is_wrong": (lambda right, wrong: (right.issue("one", f"DNS:{NAME}"), wrong._replace(ca=right.cert)),
                            "name the ca that issued it by --tls-ca here", "the peer's tls alert: unknown ca"),
    "servers_has_expired": (lambda right, _: (right.issue("old", f"DNS:{NAME}", days=-1), right.issue("one", f"DNS:{NAME}")),
                            "the peer's tls alert: certificate expired", "certificate has expired: renew it there"),
    "clients_has_expired": (lambda right, _: (right.issue("one", f"DNS:{NAME}"), right.issue("old", f"DNS:{NAME}", days=-1)),
                            "certificate has expired: renew it there", "the peer's tls alert: certificate expired"),
    "servers_name": (lambda right, _: (right.issue("other"), right.issue("one", f"DNS:{NAME}")),
                     "the peer's tls alert: bad certificate", "make one with the name of --tls-name as subjectAltName there"),
    "clients_name": (lambda right, _: (right.issue("one", f"DNS:{NAME}"), right.issue("other")),
                     "make one with the name of --tls-name as subjectAltName there", "the peer's tls alert: bad certificate"),
    "clients_usage": (lambda right, _: (right.issue("one", f"DNS:{NAME}"), right.issue("server", f"DNS:{NAME}", usage="serverAuth")),
                      "make one for both clientAuth and serverAuth there", "the peer's tls alert: unsupported certificate"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_certificate(ends, port, authority, stranger, case):
    """Each program's first read fails with EPROTO, and each end's log says what to do."""
    make, servers, clients = REFUSED[case]
    server_files, client_files = make(authority, stranger)
    server = ends.server(port, files=server_files)
    wire = Tap(port)
    client = ends(CLIENT, wire.port, files=client_files)
    end_well(server, client)
    for program, cause in ((server, servers), (client, clients)):
        program.wait_output(cause)
        program.wait_output("has no tls connection with peer 127.0.0.1")
        assert "failed EPROTO" in program.output() and "got" not in program.output(), program.report()
    wire.join(SECONDS_MAX)
    assert SECRET not in wire.octets


PLAIN = {"without_the_library": {"library": False}, "off": {"rules": "off"}, "auto": {"rules": "auto"}, "on": {"rules": "on"},
         "on_by_the_proxy": {"rules": "on", "ANYWARP_SOCKETS_RECORD": "off"}}


@pytest.mark.parametrize("how", PLAIN)
def test_a_plain_client(ends, port, files, how):
    server = ends.server(port, files=files)
    client = ends(CLIENT, port, **PLAIN[how])
    end_well(server)
    client.wait_exit(SECONDS_MAX)
    assert "failed EPROTO" in server.output() and "got" not in server.output(), server.report()
    server.wait_output("the peer speaks mpa without tls" if how.startswith("on") else "the peer speaks neither tls nor mpa")
    assert ANSWER.decode() not in client.output(), client.report()


@pytest.mark.parametrize("how", PLAIN)
def test_a_plain_server(ends, port, files, how):
    """One that answers whatever comes, or closes."""
    server = ends.server(port, **PLAIN[how])
    wire = Tap(port)
    client = ends(CLIENT, wire.port, files=files)
    end_well(client)
    server.wait_exit(SECONDS_MAX)
    assert "failed EPROTO" in client.output() or "failed ECONNRESET" in client.output(), client.report()
    client.wait_output("has no tls connection with peer" if ends.record else "connection failed peer 127.0.0.1")
    wire.join(SECONDS_MAX)
    assert SECRET not in wire.octets and SECRET.decode() not in server.output()


def test_a_server_that_speaks_first(ends, port, files):
    with socket.create_server(("127.0.0.1", port)) as listener:
        client = ends(CLIENT, port, files=files)
        conn = listener.accept()[0]
        conn.sendall(b"220 ready\r\n")
        assert SECRET not in conn.recv(1000)
        end_well(client)
        client.wait_output("the peer speaks neither tls nor mpa")
        assert "failed EPROTO" in client.output(), client.report()
        conn.close()


def test_a_client_that_says_nothing(ends, port, files):
    server = ends.server(port, files=files)
    with socket.create_connection(("127.0.0.1", port)) as client:
        end_well(server)
        told = "no end of the tls handshake within 10 s" if ends.record else "cause no tls handshake within 10 s"
        server.wait_output(told)
        assert "has no tls connection with peer 127.0.0.1 port" in server.output() and "failed EPROTO" in server.output()
        client.settimeout(SECONDS_MAX)
        with contextlib.nullcontext() if ends.record else pytest.raises(ConnectionResetError):
            assert client.recv(1) == b""


@pytest.mark.parametrize("ending", ["reset", "fin"])
def test_bytes_of_a_stranger_that_has_left(ends, port, files, ending):
    """They are in the kernel's queue when the program accepts, and are nobody's."""
    script = HEAD + """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
listener = socket.create_server(("127.0.0.1", port))
signal.sigwait({signal.SIGUSR1})
conn = listener.accept()[0]
for _ in range(2):
    told(lambda: conn.recv(100))
"""
    server = ends(script, port, files=files)
    server.wait_listening(port)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(SECRET)
        if ending == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    os.kill(server.pid, signal.SIGUSR1)
    end_well(server)
    assert "nobody reads" not in server.output(), server.report()


# --- no way around

WAYS = {
    "the_environment_is_cleared": """
ctypes.CDLL(None).clearenv()
told(lambda: ask(socket.create_connection(("127.0.0.1", port))))
""",
    "an_exec_without_environment": """
again = "import socket, sys; c = socket.create_connection(('127.0.0.1', %d)); c.sendall(%r); print('got', c.recv(100))" % (port, secret)
os.execve(sys.executable, [sys.executable, "-S", "-c", again], {"LD_PRELOAD": "", **sanitized})
""",
    "a_spawn_without_environment": """
import subprocess
again = "import socket, sys; c = socket.create_connection(('127.0.0.1', %d)); c.sendall(%r); print('got', c.recv(100))" % (port, secret)
subprocess.run([sys.executable, "-S", "-c", again], env=sanitized, check=True)
""",
    "syscall": """
address = (ctypes.c_char * 16).from_buffer_copy(bytes([2, 0]) + port.to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8))
sock = socket.socket()
libc = ctypes.CDLL(None, use_errno=True)
assert libc.syscall(ctypes.c_long(42), ctypes.c_long(sock.fileno()), ctypes.byref(address), ctypes.c_long(16)) == 0, ctypes.get_errno()
told(lambda: ask(sock))
""",
    "a_socket_made_unseen": """
libc = ctypes.CDLL(None)
sock = socket.socket(fileno=libc.syscall(ctypes.c_long(41), ctypes.c_long(2), ctypes.c_long(1), ctypes.c_long(0)))
sock.connect(("127.0.0.1", port))
told(lambda: ask(sock))
""",
    "a_fast_open": """
sock = socket.socket()
assert sock.sendto(secret, socket.MSG_FASTOPEN, ("127.0.0.1", port)) == len(secret)
told(lambda: sock.recv(100))
""",
    "a_fast_open_of_a_socket_made_unseen": """
libc = ctypes.CDLL(None)
sock = socket.socket(fileno=libc.syscall(ctypes.c_long(41), ctypes.c_long(2), ctypes.c_long(1), ctypes.c_long(0)))
assert sock.sendto(secret, socket.MSG_FASTOPEN, ("127.0.0.1", port)) == len(secret)
told(lambda: sock.recv(100))
""",
    "a_connect_without_waiting": """
import select
sock = socket.socket()
sock.setblocking(False)
assert sock.connect_ex(("127.0.0.1", port)) in (0, errno.EINPROGRESS)
select.select([], [sock], [])
sock.setblocking(True)
told(lambda: ask(sock))
""",
    "wrong_rules": CLIENT.removeprefix(HEAD),
    "a_rule_auto": CLIENT.removeprefix(HEAD),
}
RULES = {"wrong_rules": "nothing like a rule", "a_rule_auto": "auto"}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_has_tls(ends, port, files, way):
    if (way == "syscall" or way.endswith("unseen")) and os.uname().machine != "x86_64":
        pytest.skip("the calls' numbers are x86-64's")
    server = ends.server(port, files=files)
    wire = Tap(port)
    client = ends(HEAD + WAYS[way], wire.port, files=files, rules=RULES.get(way))
    end_well(client, server)
    assert f"got {ANSWER}" in client.output() and f"got {SECRET}" in server.output()
    wire.join(SECONDS_MAX)
    assert SECRET not in wire.octets and ANSWER not in wire.octets


REFUSALS = {
    "the_mode_off": ("""
sock = socket.socket()
told(lambda: sock.setsockopt(0x6957, 1, 0))
""", "failed EPERM", "IWARP_MODE of fd 3 refused: ANYWARP_TLS is require"),
    "an_extended_socket": ("""
sock = socket.create_connection(("127.0.0.1", port))
libc = ctypes.CDLL(None, use_errno=True)
print("failed", libc.iwarp_start(sock.fileno(), 1), errno.errorcode[ctypes.get_errno()])
""", "failed -1 ENOTSUP", "iwarp_start refused: an extended socket has no TLS"),
    "a_number_beyond_the_table": ("""
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (70000, 70000))
except (ValueError, OSError):
    sys.exit(3)
sock = socket.socket()
os.dup2(sock.fileno(), 66000)
told(lambda: socket.socket(fileno=66000).connect(("127.0.0.1", port)))
""", "failed ENOBUFS", "fd 66000 cannot have TLS, and is refused"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_have_tls_is_refused(ends, port, files, case):
    script, outcome, cause = REFUSALS[case]
    with socket.create_server(("127.0.0.1", port)):
        program = ends(HEAD + script, port, files=files)
        if program.wait_exit(SECONDS_MAX) == 3:
            pytest.skip("this process may not raise its limit of open files")
        assert outcome in program.output() and cause in program.output(), program.report()


def run_vforked(ends, port, how, files):
    argv = [conftest.BUILD / "tests" / "vforked", how, port]
    env = {**conftest.environment(ends.logs), **(ends.secured(files) if files else {"ANYWARP_SOCKETS_RULES": "auto"})}
    env["LD_PRELOAD"] = " ".join(filter(None, [env.get("LD_PRELOAD"), str(LIBRARY)]))
    ends.programs.append(conftest.program.Program([str(word) for word in argv], env=env))
    return ends.programs[-1]


@pytest.mark.parametrize("secured", [True, False])
def test_a_child_of_vfork_does_not_connect(ends, port, files, secured):
    """The table is its parent's: no connection of its own has a place there. Without TLS it is plain TCP."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        program = run_vforked(ends, port, "connect", files if secured else None)
        end_well(program)
        assert (str(errno.ENOBUFS) if secured else "0") in program.output().splitlines(), program.report()
        assert ("cannot have TLS, and is refused" in program.output()) is secured
        listener.settimeout(0 if secured else SECONDS_MAX)
        with pytest.raises(BlockingIOError) if secured else contextlib.nullcontext():
            assert listener.accept()[0].recv(100) == b"a word in clear"


@pytest.mark.parametrize("secured", [True, False])
def test_a_child_of_vfork_does_not_accept(ends, port, files, secured):
    program = run_vforked(ends, port, "accept", files if secured else None)
    program.wait_listening(port)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(SECRET)
        end_well(program)
    assert (str(errno.ECONNABORTED) if secured else "0") in program.output().splitlines(), program.report()


def inetd(ends, port, files, client):
    """Accepts a connection as a program without the library, and has one with TLS serve it as its stdin."""
    script = "import os, sys\noctets = os.read(0, 100)\nprint('read', octets, file=sys.stderr, flush=True)\nos.write(0, octets.upper())"
    with socket.create_server(("127.0.0.1", port)) as listener:
        started = ends(client["script"], port, **client["how"])
        conn = listener.accept()[0]
        env = {**conftest.environment(ends.logs), **ends.secured(files)}
        env["LD_PRELOAD"] = " ".join(filter(None, [env.get("LD_PRELOAD"), str(LIBRARY)]))
        served = subprocess.run([sys.executable, "-S", "-c", script], stdin=conn, env=env, capture_output=True, text=True,
                                timeout=SECONDS_MAX, check=False)
        conn.close()
    return started, served


def test_a_connection_that_another_program_has_accepted(ends, port, files):
    client, served = inetd(ends, port, files, {"script": CLIENT, "how": {"files": files}})
    end_well(client)
    assert f"got {ANSWER}" in client.output(), client.report() + served.stderr


def test_a_connection_that_a_rule_leaves_plain_outlives_an_exec(ends, port, files):
    """Its listener's rule would be another one."""
    script = HEAD + """
sock = socket.create_connection(("127.0.0.1", port))
os.dup2(sock.fileno(), 0)
os.execve("/bin/sh", ["sh", "-c", "echo in clear >&0"], sanitized)
"""
    with socket.create_server(("127.0.0.1", port)) as listener:
        client = ends(script, port, files=files, rules="off connect\non")
        assert listener.accept()[0].recv(100) == b"in clear\n", client.report()
        end_well(client)


def test_a_plain_one_is_refused(ends, port, files):
    _, served = inetd(ends, port, files, {"script": CLIENT, "how": {"library": False}})
    assert "nobody reads" not in served.stderr and "the peer speaks neither tls nor mpa" in served.stderr, served.stderr


@pytest.mark.skipif(bool(conftest.SANITIZER), reason="the sanitizer's library has to come first")
@pytest.mark.parametrize("word", ["offer", "Require", "yes"])
def test_a_word_that_asks_for_something_else_starts_nothing(files, word):
    done = subprocess.run(["echo", "ran"], env={**os.environ, **variables(files), "ANYWARP_TLS": word, "LD_PRELOAD": str(LIBRARY)},
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (125, "")
    assert "ANYWARP_TLS must be off or require for a sockets program" in done.stderr


@pytest.mark.skipif(bool(conftest.SANITIZER), reason="the sanitizer's library has to come first")
@pytest.mark.parametrize("word", ["", "off", "require"])
def test_rules_for_tls_start_nothing(files, word):
    """They may leave a peer without."""
    env = {**os.environ, **variables(files), "ANYWARP_TLS": word, "ANYWARP_TLS_RULES": "/dev/null", "LD_PRELOAD": str(LIBRARY)}
    done = subprocess.run(["echo", "ran"], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (125, "")
    assert "ANYWARP_TLS_RULES must be unset for a sockets program" in done.stderr


@pytest.mark.skipif(bool(conftest.SANITIZER), reason="the sanitizer's library has to come first")
@pytest.mark.parametrize("word", ["", "off"])
def test_records_under_tls_need_tls(word):
    env = {**os.environ, "ANYWARP_TLS": word, "ANYWARP_SOCKETS_RECORD": "tls", "LD_PRELOAD": str(LIBRARY)}
    done = subprocess.run(["echo", "ran"], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (125, "")
    assert "ANYWARP_SOCKETS_RECORD=tls needs ANYWARP_TLS=require" in done.stderr


# --- the command

def command(files, *more):
    return ("sockets", "--tls", "require", "--tls-cert", files.cert, "--tls-key", files.key, "--tls-ca", files.ca, *more)


def test_the_command_sets_what_the_program_needs(files):
    done = run_anywarp(*command(files, "--tls-name", NAME, "--", "env"))
    assert done.returncode == 0, done.stderr
    assert {f"{key}={value}" for key, value in variables(files, NAME).items()} <= set(done.stdout.splitlines())


def test_the_command_asks_for_records(files):
    done = run_anywarp(*command(files, "--record", "tls", "--", "env"))
    assert done.returncode == 0 and "ANYWARP_SOCKETS_RECORD=tls" in done.stdout.splitlines(), done.stderr
    done = run_anywarp("sockets", "--record", "tls", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (2, "") and "--record tls (ANYWARP_SOCKETS_RECORD) needs --tls require" in done.stderr
    done = run_anywarp("sockets", "--record", "yes", "--", "echo", "ran")
    assert done.returncode == 2 and "--record needs one of: on off tls" in done.stderr


@pytest.mark.parametrize("rule, told", [
    ("auto port=80", "a rule says 'auto', and TLS is required"),
    ("on", None), ("off", None), ("rsockets port=7", None),
])
def test_rules_beside_tls(files, rule, told):
    done = run_anywarp(*command(files, "--rule", rule, "--", "echo", "ran"))
    assert (done.returncode, done.stdout) == ((2, "") if told else (0, "ran\n")), done.stderr
    assert not told or told in done.stderr


def test_a_program_that_the_library_does_not_reach_is_not_started(files, tmp_path):
    (tmp_path / "program.c").write_text("int main(void) { return 0; }\n")
    built = subprocess.run(["cc", "-static", "-o", tmp_path / "program", tmp_path / "program.c"], capture_output=True, check=False)
    if built.returncode:
        pytest.skip("no static libc to link with")
    done = run_anywarp(*command(files, "--", tmp_path / "program"))
    assert done.returncode == 2 and "TLS is required, and the sockets of" in done.stderr and "linked statically" in done.stderr
    assert run_anywarp(*command(files, "--rule", "off program=program", "--rule", "on", "--", tmp_path / "program")).returncode == 0


# --- while it runs

def test_renewed_files_are_read_without_a_restart(ends, port, authority, files, tmp_path):
    """The same proxy process serves each client; one that finds an expired certificate shows that files are read anew."""
    own = files._replace(cert=tmp_path / "own.pem", key=tmp_path / "own.key")

    def outcome():
        client = ends(CLIENT, port, files=files)
        end_well(client)
        return client.output()
    renew(own, files)
    ends.server(port, LASTING_SERVER, files=own)
    assert f"got {ANSWER}" in outcome()
    renew(own, authority.issue("past", f"DNS:{NAME}", days=-1))
    assert "failed EPROTO" in outcome()
    renew(own, authority.issue("renewed", f"DNS:{NAME}"))
    assert f"got {ANSWER}" in outcome()
