# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""'anywarp sockets' as a user meets it. ANYWARP_BUILD names the build directory."""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import pytest
from sockets_command import ANYWARP, LIBDIR, LIBRARY, PRELOADED, needs_library, sockets


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
    ("on\n\n# x\nyes port=1\n", 4, "'yes': a rule begins with on, auto, off, rsockets or tls-plain"),
    ("on port=70000", 1, "'70000': port must be a number of 1 to 65535"),
    ("off\non remote=10.1.1.1/8\n", 2, "that would be 10.0.0.0/8"),
    ("on\non colour=red\n", 2, "'colour=red': no such word"),
    ("on\n" * 257, 257, "more than 256 rules"),
    ("on\n" + "x" * 512, 2, "longer than 511 bytes"),
    ("\n" * 65536, 1, "more than 65535 bytes"),
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
    options = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", helped))
    assert len(options) == 13
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
    assert len(calls) == 12
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
    (("--log", "loud", "true"), "error warn info debug"),
    (("--mpa", "crc=maybe", "true"), "'crc=maybe': crc must be on or off"),
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
    first, behind = PRELOADED.get("LD_PRELOAD"), os.environ.get("LD_PRELOAD")
    preload = ":".join(filter(None, [first, str(LIBRARY), *([] if first else [behind])]))
    assert done.stdout == f"on port=1\noff\n|{preload}|{LIBDIR}:/a:/b|warn|crc=off\n"


@needs_library
def test_what_was_preloaded_stays_behind_ours():
    old = " ".join(filter(None, ["libdl.so.2", PRELOADED.get("LD_PRELOAD"), "libutil.so.1"]))
    done = sockets("--", "sh", "-c", "echo $LD_PRELOAD", **{**PRELOADED, "LD_PRELOAD": old})
    ordered = [PRELOADED.get("LD_PRELOAD"), str(LIBRARY), "libdl.so.2", "libutil.so.1"]
    assert done.stdout == ":".join(filter(None, ordered)) + "\n"


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


# --- what the proxy has no room for

FEW_FDS = 12  # too few for one connection of the proxy's
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
    environment = {**os.environ, **PRELOADED, "ANYWARP_SOCKETS_RECORD": "off"}
    with subprocess.Popen([*command, POLLING_SERVER, str(FEW_FDS)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=environment) as server:
        port = server.stdout.readline().strip()
        client = subprocess.run([*command, POLLING_CLIENT, port], capture_output=True, text=True,
                                timeout=60, env=environment, check=False)
        told = server.communicate(timeout=60)
    assert "text" not in told[0], told
    assert "raise the hard limits of open files" in told[1], (told, client)


# --- the look at the program

def elf(*segments):
    """A program of these segments, each a type and its bytes; nobody runs it."""
    at = 64 + 56 * len(segments)
    headers, bodies = b"", b""
    for kind, body in segments:
        headers += struct.pack("<IIQQQQQQ", kind, 4, at + len(bodies), 0, 0, len(body), len(body), 4)
        bodies += body
    start = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    return start + headers + bodies


INTERPRETER, NOTE = (3, b"/lib64/ld-linux-x86-64.so.2\0"), 4
GO = (NOTE, struct.pack("<III", 4, 4, 4) + b"Go\0\0id\0\0")
GNU = (NOTE, struct.pack("<III", 4, 4, 3) + b"GNU\0id\0\0")


@pytest.mark.skipif(sys.maxsize < 1 << 32 or sys.byteorder != "little", reason="the files are of 64 bits")
@pytest.mark.parametrize("segments, words", [
    ((GNU,), "it is linked statically"), ((INTERPRETER, GNU, GO), "it is a Go program"), ((GO,), "it is a Go program"),
], ids=["static", "go", "static go"])
@pytest.mark.parametrize("rule", ["on", "rsockets remote=10.0.0.0/8", "on connect program=unseen"])
def test_a_program_that_loads_no_library_is_not_started(tmp_path, segments, words, rule):
    path = tmp_path / "unseen"
    path.write_bytes(elf(*segments))
    path.chmod(0o755)
    done = sockets("--rule", rule, "--", path)
    assert done.returncode == 2
    assert words in done.stderr and "--rule 'off program=unseen'" in done.stderr
    done = sockets("--rule", "off program=unseen", "--rule", rule, "--", path)
    assert words not in done.stderr
    assert words not in sockets("--rule", "auto", "--", path).stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_program_with_other_rights_is_not_started(tmp_path):
    path = tmp_path / "unseen"
    shutil.copy("/bin/true", path)
    os.chown(path, 65534, 65534)
    path.chmod(0o4755)
    done = sockets("--rule", "on", "--", path)
    assert done.returncode == 2
    assert "it runs with other rights" in done.stderr


@needs_library
def test_a_program_that_loads_the_library_is_started():
    done = sockets("--rule", "on", "--", "true", **PRELOADED)
    assert done.returncode == 0, done.stderr
