# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""'anywarp sockets' as a user meets it. ANYWARP_BUILD names the build directory."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
import sockets_status
from program import is_open_to_others

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
ANYWARP = BUILD / "bin" / "anywarp"
LIBDIR = BUILD / "lib"
LIBRARY = LIBDIR / "libanywarp-sockets.so"
# A user that nobody is, and no other run of these tests; and one more.
STRANGER = 61000 + os.getpid() % 2000 * 2
# A sanitizer's run-time library has to be in programs that were built without it.
PRELOADED = {"LD_PRELOAD": os.environ.get("ANYWARP_PRELOAD", ""),
             "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
             } if os.environ.get("ANYWARP_SAN") else {}

needs_library = pytest.mark.skipif(not LIBRARY.exists(), reason="no libanywarp-sockets.so")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")


def sockets(*args, command=ANYWARP, user=None, **env):
    return subprocess.run([str(command), "sockets", *map(str, args)], capture_output=True,
                          text=True, timeout=60, stdin=subprocess.DEVNULL, user=user,
                          env={**os.environ, **env}, check=False)


@pytest.fixture
def rules(tmp_path):
    def write(text):
        path = tmp_path / "my.rules"
        path.write_text(text)
        return path
    return write


# --- the rules

def test_check_prints_the_rules_as_understood_in_the_order_given(rules):
    path = rules("# those of the file\n  off   port=22 # ssh\n\nauto listen program=redis-*\n")
    done = sockets("--rule", "on port=1-1", "--rules", path, "--rule=on remote=::1/128", "--check")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("on port=1\noff port=22\nauto program=redis-* listen\n"
                           "on remote=::1\n")


def test_check_without_rules_tells_the_default():
    done = sockets("--check")
    assert done.returncode == 0
    assert done.stdout == "# no rules: every socket is in auto\n"


def test_check_takes_the_rules_of_the_environment():
    assert sockets("--check", ANYWARP_SOCKETS_RULES="off port=1-2").stdout == "off port=1-2\n"
    done = sockets("--check", "--rule", "on", ANYWARP_SOCKETS_RULES="off")
    assert done.stdout == "on\n"


def test_what_check_prints_is_a_file_of_rules(rules):
    text = "auto program=a* local=10.0.0.0/8 remote=2001:db8::/32 port=1-2 connect\n"
    assert sockets("--check", "--rules", rules(text)).stdout == text
    nothing = sockets("--check").stdout
    assert sockets("--check", "--rules", rules(nothing)).stdout == nothing


@pytest.mark.parametrize("text, line, words", [
    ("on\n\n# x\nyes port=1\n", 4, "'yes': a rule begins with on, auto or off"),
    ("on port=70000", 1, "'70000': port must be a number of 1 to 65535"),
    ("off\non remote=10.1.1.1/8\n", 2, "that would be 10.0.0.0/8"),
    ("on\non colour=red\n", 2, "'colour=red': no such word"),
    ("on\n" * 257, 257, "more than 256 rules"),
    ("on\n" + "x" * 512, 2, "longer than 511 octets"),
    ("\n" * 65536, 1, "more than 65535 octets"),
], ids=["mode", "port", "prefix", "word", "rules", "line", "text"])
def test_a_wrong_file_is_named_with_its_line(rules, text, line, words):
    path = rules(text)
    done = sockets("--rules", path, "--", "sh", "-c", "echo started")
    assert done.returncode == 2
    assert done.stderr.startswith(f"{path}:{line}: ")
    assert words in done.stderr
    assert done.stdout == ""


def test_a_wrong_rule_of_the_command_line_and_of_the_environment():
    done = sockets("--rule", "on", "--rule", "on port=x", "--", "true")
    assert done.returncode == 2
    assert done.stderr.startswith("--rule:1: 'x': port must be")
    done = sockets("true", ANYWARP_SOCKETS_RULES="on\nof\n")
    assert done.returncode == 2
    assert done.stderr.startswith("ANYWARP_SOCKETS_RULES:2: 'of': ")


def test_rules_that_are_too_many_together(rules):
    done = sockets("--rules", rules("on\n" * 256), "--rule", "off", "--check")
    assert done.returncode == 2
    assert "all rules:257: " in done.stderr


def test_files_that_cannot_be_read(tmp_path):
    done = sockets("--rules", tmp_path / "none", "--check")
    assert done.returncode == 2
    assert "none: No such file" in done.stderr
    done = sockets("--rules", tmp_path, "--check")
    assert done.returncode == 2
    assert "Is a directory" in done.stderr
    (tmp_path / "binary").write_bytes(b"on\0\n")
    done = sockets("--rules", tmp_path / "binary", "--check")
    assert done.returncode == 2
    assert "NUL" in done.stderr


# --- the manual

MAN = pathlib.Path(__file__).resolve().parents[2] / "man"


def test_the_manual_has_every_option():
    helped = subprocess.run([str(ANYWARP), "help", "sockets"], capture_output=True, text=True,
                            check=True).stdout
    page = (MAN / "anywarp-sockets.1").read_text().replace("\\-", "-")
    options = set(re.findall(r"--[a-z]+", helped))
    assert len(options) == 6
    for option in options:
        assert re.search(rf"^\.(B|BI) {option}\b", page, re.M), option


def test_the_rules_of_the_manual_are_right(rules):
    page = (MAN / "anywarp-sockets.1").read_text()
    example = page.split("A file of rules:")[1].split(".RS\n")[1].split(".RE")[0]
    done = sockets("--check", "--rules", rules(example))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 4


def test_the_manual_has_every_call():
    header = (MAN.parent / "include" / "anywarp" / "sockets.h").read_text()
    page = (MAN / "anywarp_sockets.3").read_text()
    calls = set(re.findall(r"\b(iwarp_\w+)\(", header))
    assert len(calls) == 11
    name = page.split(".SH NAME")[1].split(".SH SYNOPSIS")[0]
    assert set(re.findall(r"iwarp_\w+", name)) == calls


@pytest.mark.parametrize("page", ["anywarp-sockets.1", "libanywarp-sockets.7",
                                  "anywarp_sockets.3"])
def test_the_manual_is_set_without_a_warning(page):
    groff = shutil.which("groff")
    if not groff:
        pytest.skip("no groff")
    done = subprocess.run([groff, "-man", "-ww", "-Tutf8", str(MAN / page)], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""


# --- the program

@pytest.mark.parametrize("args, words", [
    (("--fast", "true"), "unknown option '--fast'"),
    (("--checks", "true"), "unknown option '--checks'"),
    (("--rules",), "--rules needs a file"),
    (("--rule",), "--rule needs a rule"),
    (("--status",), "--status needs the number of a process"),
    (("--log", "loud", "true"), "error warn info debug"),
    (("--mpa", "crc=maybe", "true"), "'crc=maybe': crc must be on, off"),
    ((), "no program to run"),
    (("--rule", "on", "--"), "no program to run"),
])
def test_wrong_usage(args, words):
    done = sockets(*args)
    assert done.returncode == 2
    assert words in done.stderr and done.stderr.startswith("anywarp sockets: ")


@needs_library
def test_environment_of_the_program(rules):
    script = 'echo "$ANYWARP_SOCKETS_RULES|$LD_PRELOAD|$LD_LIBRARY_PATH|$ANYWARP_LOG|$ANYWARP_MPA"'
    done = sockets("--rules", rules("on  port=1 # x\noff\n"), "--log=warn", "--mpa", "crc=off", "--",
                   "sh", "-c", script, LD_LIBRARY_PATH="/a:/b", **PRELOADED)
    assert done.returncode == 0, done.stderr
    before = PRELOADED.get("LD_PRELOAD") or os.environ.get("LD_PRELOAD", "")
    preload = f"{LIBRARY}:{before}" if before else str(LIBRARY)
    assert done.stdout == f"on port=1\noff\n|{preload}|{LIBDIR}:/a:/b|warn|crc=off\n"


@needs_library
def test_what_was_preloaded_stays_behind_ours():
    old = PRELOADED.get("LD_PRELOAD") or "libdl.so.2"
    done = sockets("--", "sh", "-c", "echo $LD_PRELOAD", **{**PRELOADED, "LD_PRELOAD": old})
    assert done.stdout == f"{LIBRARY}:{old}\n"


@needs_library
def test_without_rules_those_of_the_environment_stay():
    script = "echo ${ANYWARP_SOCKETS_RULES-unset}"
    assert sockets("sh", "-c", script, **PRELOADED).stdout == "unset\n"
    done = sockets("sh", "-c", script, ANYWARP_SOCKETS_RULES=" on  listen", **PRELOADED)
    assert done.stdout == "on listen\n"


@needs_library
def test_arguments_and_status_pass_unchanged():
    done = sockets("--rule", "off", "sh", "-c", 'printf "%s|" "$@"; exit 42', "sh", "--rule", "--",
                   **PRELOADED)
    assert done.returncode == 42
    assert done.stdout == "--rule|--|"


@needs_library
@pytest.mark.parametrize("name, status", [("no-such-program", 127), ("/etc/passwd", 126)])
def test_program_that_does_not_start(name, status):
    done = sockets("--", name)
    assert done.returncode == status
    assert done.stderr.startswith("anywarp sockets: ") and name in done.stderr


def lone_tree(tmp_path, names):
    """An anywarp in a directory of its own, with empty libraries of those names."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    shutil.copy(ANYWARP, tmp_path / "bin" / "anywarp")
    for name in names:
        (tmp_path / "lib" / name).touch()
    return tmp_path / "bin" / "anywarp"


def test_without_the_library_it_says_where_it_looked(tmp_path):
    command = lone_tree(tmp_path, ["libibverbs.so.1", "librdmacm.so.1"])
    done = sockets("true", command=command)
    assert done.returncode == 125
    assert f"no libanywarp-sockets.so in {tmp_path}/lib" in done.stderr
    assert "./dev build" in done.stderr


def test_a_directory_that_the_loader_cannot_name(tmp_path):
    place = tmp_path / "a b"
    place.mkdir()
    command = lone_tree(place, ["libibverbs.so.1", "librdmacm.so.1", "libanywarp-sockets.so"])
    done = sockets("true", command=command)
    assert done.returncode == 125
    assert "anywarp sockets: LD_PRELOAD cannot name" in done.stderr
    done = subprocess.run([command, "run", "--device-files", "true"], capture_output=True, text=True,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}, check=False)
    assert done.returncode == 125
    assert "anywarp run: LD_PRELOAD cannot name" in done.stderr


# --- the status of a process

ANSWERER = """
import os, socket, sys
directory, mode, answer = sys.argv[1], int(sys.argv[2], 8), sys.argv[3].encode()
name = f"{directory}/sockets.{os.getpid()}"
if mode:
    os.makedirs(directory, exist_ok=True)
    os.chmod(directory, mode)
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    if answer == b"closed":
        server.close()
print("ready", flush=True)
if mode and answer not in (b"no", b"closed"):
    connection = server.accept()[0]
    connection.sendall(answer)
    connection.close()
sys.stdin.read()
"""


@contextlib.contextmanager
def answerer(answer, directory=f"/tmp/anywarp-{STRANGER}", mode="0700", user=STRANGER):
    """A process of another user that answers so. Its directory goes with it."""
    process = subprocess.Popen([sys.executable, "-c", ANSWERER, directory, mode, answer],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=user,
                               env={"PATH": "/usr/bin:/bin"})
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        shutil.rmtree(directory, ignore_errors=True)


@needs_root
def test_status_is_a_table():
    with answerer("7 on 192.0.2.7:80 12 3456789 1 384 established\n"
                  "12 auto [2001:db8::1]:65535 0 0 0 0 connecting\n") as process:
        done = sockets("--status", process.pid)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["fd", "mode", "peer", "bytes", "in", "bytes", "out", "send",
                                "credits", "receive", "credits", "state"]
    assert lines[1].split() == ["7", "on", "192.0.2.7:80", "12", "3456789", "1", "384",
                                "established"]
    assert lines[2].split()[2] == "[2001:db8::1]:65535"
    assert len({line.index(word) for line, word in zip(lines, ("state", "established",
                                                               "connecting"))}) == 1


@needs_root
def test_status_of_one_that_has_nothing_open_is_the_head_alone():
    with answerer("") as process:
        done = sockets("--status", process.pid)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1


@needs_root
@pytest.mark.parametrize("answer", ["7 on peer 1 2 3 4\n", "1 2 3 4 5 6 7 8 9\n", "\n",
                                    "x" * 3000])
def test_status_that_is_no_table_is_refused(answer):
    with answerer(answer) as process:
        done = sockets("--status", process.pid)
    assert done.returncode == 1
    assert "another version" in done.stderr


@needs_root
def test_status_shows_no_octets_that_a_terminal_obeys():
    with answerer("7 on \033[2J 1 2 3 4 open\n") as process:
        done = sockets("--status", process.pid)
    assert done.returncode == 0
    assert "\033" not in done.stdout and "?[2J" in done.stdout


@needs_root
def test_status_of_a_stopped_process_ends():
    with answerer("no") as process:
        os.kill(process.pid, signal.SIGSTOP)
        done = sockets("--status", process.pid)
    assert done.returncode == 1
    assert "is it stopped?" in done.stderr


@needs_root
def test_status_takes_no_directory_that_others_can_write():
    with answerer("", mode="0755") as process:
        done = sockets("--status", process.pid)
    assert done.returncode == 1
    assert f"is not a directory of uid {STRANGER} with mode 0700: remove it" in done.stderr


@needs_root
def test_status_takes_no_directory_of_another_user():
    directory = f"/tmp/anywarp-{STRANGER}"
    with answerer("", mode="0", user=STRANGER) as process:
        os.mkdir(directory, mode=0o700)
        done = sockets("--status", process.pid)
    assert done.returncode == 1
    assert f"is not a directory of uid {STRANGER}" in done.stderr


@needs_root
def test_status_passes_over_what_a_stranger_made_beside():
    """A keeper chooses such a name at random: everybody may have one."""
    beside = f"/tmp/anywarp-{STRANGER}-beside"
    with answerer("", mode="0") as process:
        os.mkdir(beside, mode=0o700)
        try:
            done = sockets("--status", process.pid)
        finally:
            os.rmdir(beside)
    assert done.returncode == 1
    assert "does not run under 'anywarp sockets': start it so" in done.stderr


@needs_root
def test_status_finds_roots_keeper_whatever_a_stranger_made(tmp_path):
    """Of a process that has given up root."""
    ours = tmp_path / "anywarp-0"
    with answerer("no", mode="0") as asked, answerer("", directory=str(ours), user=0) as keeper:
        os.mkdir(f"/tmp/anywarp-{STRANGER}", mode=0o700)
        os.rename(ours / f"sockets.{keeper.pid}", ours / f"sockets.{asked.pid}")
        done = sockets("--status", asked.pid, XDG_RUNTIME_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr


@needs_root
def test_status_takes_no_answer_of_another_user(tmp_path):
    forged = tmp_path / "forged"
    ours = f"/tmp/anywarp-{STRANGER}"
    with answerer("no") as asked, answerer("no", directory=str(forged), user=0) as process:
        os.rename(forged / f"sockets.{process.pid}", f"{ours}/sockets.{asked.pid}")
        done = sockets("--status", asked.pid)
    assert done.returncode == 1
    assert f"it is process {process.pid} of uid 0 that answers" in done.stderr


@needs_root
def test_status_without_a_socket_or_with_one_left_over():
    for answer, mode in (("no", "0"), ("closed", "0700")):
        with answerer(answer, mode=mode) as process:
            done = sockets("--status", process.pid)
        assert done.returncode == 1
        assert "does not run under 'anywarp sockets': start it so" in done.stderr


@needs_root
@pytest.mark.skipif(not is_open_to_others(BUILD),
                    reason="other users may not enter the build's directory")
def test_status_of_a_process_of_another_user_names_it():
    with answerer("", user=STRANGER) as process:
        done = sockets("--status", process.pid, user=STRANGER + 1)
    assert done.returncode == 1
    assert f"is not yours but of uid {STRANGER}: ask as that user or as root" in done.stderr


def test_status_of_no_process():
    child = subprocess.Popen(["true"])
    child.wait()
    done = sockets("--status", child.pid)
    assert done.returncode == 1
    assert f"no process {child.pid}" in done.stderr and "pgrep" in done.stderr


@pytest.mark.parametrize("pid", ["0", "-1", "self", "1x", "99999999999999999999", ""])
def test_status_needs_a_number(pid):
    done = sockets("--status", pid)
    assert done.returncode == 2
    assert "needs the number of a process" in done.stderr


@needs_library
def test_status_of_a_program_that_has_no_socket():
    with subprocess.Popen([str(ANYWARP), "sockets", "--rule", "off", "--", "sh", "-c",
                           "echo ready; read line"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **PRELOADED}) as program:
        assert program.stdout.readline() == "ready\n"
        done = sockets("--status", program.pid)
        program.communicate("\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"process {program.pid} has had no socket in iWARP mode\n"


SERVER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection = listener.accept()[0]
print(connection.recv(5), connection.fileno(), flush=True)
sys.stdin.read()
"""
CLIENT = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(b"hello")
print("sent", connection.fileno(), flush=True)
sys.stdin.read()
"""


# The status has the connections that a proxy process, or the program for it, carries.
CARRIED = {"ANYWARP_SOCKETS_RECORD": "off"}


def program(rule, *arguments):
    return subprocess.Popen([str(ANYWARP), "sockets", "--rule", rule, "--", sys.executable, "-c",
                             *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, **PRELOADED, **CARRIED})


def row_of(pid):
    """The one that there is, or soon: a process does not wait until its keeper knows of it."""
    end, rows = time.monotonic() + 20, []
    while not rows:
        assert time.monotonic() < end, f"no row of {pid}"
        done = sockets("--status", pid)
        assert done.returncode == 0, done.stderr
        rows = sockets_status.rows(done.stdout)
    row, = rows
    return row


@needs_library
def test_status_of_both_ends_of_a_connection():
    with program("on listen", SERVER) as server:
        port = server.stdout.readline().strip()
        with program("on connect", CLIENT, port) as client:
            client_fd = client.stdout.readline().split()[1]
            server_fd = server.stdout.readline().split()[1]
            asked = row_of(client.pid)
            served = row_of(server.pid)
            client.communicate()
        server.communicate()
    assert asked[:5] == (client_fd, "on", f"127.0.0.1:{port}", "0", "5")
    assert asked.state == "established"
    assert served[:2] == (server_fd, "on") and served.peer.startswith("127.0.0.1:")
    assert (served.octets_in, served.octets_out) == ("5", "0")
    assert all(int(row.send_credits) > 0 and int(row.receive_credits) > 0 for row in (asked, served))


FORKER = """
import os, socket, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection = listener.accept()[0]
connection.recv(5)
if os.fork() == 0:
    os.write(1, b"%d %d\\n" % (os.getpid(), connection.fileno()))  # whole, as echo's
    sys.stdin.read()
    os._exit(0)
fd = connection.fileno()
with subprocess.Popen(["sh", "-c", f"echo $$ {fd}; read line"], pass_fds=[fd]):
    pass
os.wait()
"""


@needs_library
@pytest.mark.skipif(os.environ.get("ANYWARP_SAN") == "thread",
                    reason="a carrier has threads, and this sanitizer allows them to no forked child")
def test_status_of_processes_that_were_forked_and_exec_ed():
    with program("on listen", FORKER) as server:
        port = server.stdout.readline().strip()
        with program("on connect", CLIENT, port) as client:
            for _ in range(2):
                pid, fd = server.stdout.readline().split()
                row = row_of(int(pid))
                assert row[:2] == (fd, "on") and row.peer.startswith("127.0.0.1:")
                assert (row.octets_in, row.octets_out, row.state) == ("5", "0", "established")
            client.communicate()
        server.communicate()


# --- what the keeper has no room for

FEW_FDS = 12  # too few for one connection of the keeper's
POLLING_SERVER = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection = listener.accept()[0]
connection.settimeout(30)
try:
    print(connection.recv(100), flush=True)
except OSError as error:
    print(error, flush=True)
"""
POLLING_CLIENT = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 30)
try:
    connection.send(b"text")
    print(connection.recv(100))
except OSError as error:
    print(error)
"""


@needs_library
def test_a_connection_that_too_few_fds_lose_is_an_error_of_the_log():
    command = [ANYWARP, "sockets", "--rule", "on", "--log", "error", "--", sys.executable, "-c"]
    environment = {**os.environ, **PRELOADED, **CARRIED}
    with subprocess.Popen([*command, POLLING_SERVER, str(FEW_FDS)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=environment) as server:
        port = server.stdout.readline().strip()
        client = subprocess.run([*command, POLLING_CLIENT, port], capture_output=True, text=True,
                                timeout=60, env=environment, check=False)
        told = server.communicate(timeout=60)
    assert "text" not in told[0], told
    assert "raise the hard limits of open files" in told[1], (told, client)
