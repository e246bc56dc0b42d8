# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The table of 'anywarp help environment' against the sources, which read the variables, and the manual."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ANYWARP = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve() / "bin" / "anywarp"
ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = {path: path.read_text() for path in sorted((ROOT / "src").rglob("*.[ch]")) if "kmod" not in path.parts}
MACROS = dict(re.findall(r'#define (\w+) "(\w+)"', "\n".join(SOURCES.values())))
READ = re.compile(r'\b(?:aw_tls_)?getenv\(("\w+"|[A-Z_]+)|\bsecure_getenv\(("\w+"|[A-Z_]+)')
SETTINGS = dict(re.findall(r'\[AW_SETTING_\w+\] = \{ "(\w+)", (.*) \}', (ROOT / "src/base/setting.c").read_text()))
# In these directories a library reads, in a process that may have more rights than its user. Of cli/ one file is one.
LIBRARIES = ("src/check", "src/core", "src/net", "src/rdmacm", "src/record", "src/ring", "src/verbs", "src/wire", "src/xsock",
             "src/cli/paths_")


def help_environment():
    return subprocess.run([str(ANYWARP), "help", "environment"], capture_output=True, text=True, check=True).stdout


def listed():
    return re.findall(r"(?m)^  (\w+)=", help_environment())


def names_read():
    """Those of base/setting.c are read by their number."""
    found = ("".join(names) for text in SOURCES.values() for names in READ.findall(text))
    return {MACROS.get(name, name).strip('"') for name in found} | set(SETTINGS)


def test_each_variable_that_is_read_is_listed_and_no_other():
    read = names_read()
    assert len(read) >= 16
    assert sorted(listed()) == sorted(read)


def test_each_variable_has_its_values_and_readers():
    entries = re.findall(r"(?m)^  (\w+)=(\S.*)\n      (\S.*)\n      read by (\S.*)$", help_environment())
    assert [entry[0] for entry in entries] == listed()
    assert all("|" in values for _, values, _, _ in entries)


def test_the_words_of_a_setting_are_those_of_the_sources():
    values = dict(re.findall(r"(?m)^  (\w+)=(\S+)$", help_environment()))
    assert len(SETTINGS) == 9
    for name, words in SETTINGS.items():
        assert values[name].replace("|", " ") == words.split('"')[1] if '"' in words else values[name].endswith(words[-5:])


def test_libraries_read_no_environment_of_a_program_with_more_rights():
    for path, text in SOURCES.items():
        if str(path.relative_to(ROOT)).startswith(LIBRARIES):
            # PATH must be read as execvp reads it; and where such a program's user asks for TLS, it must not go on without.
            assert not re.search(r"(?<!secure_)\bgetenv\((?!\"PATH\"\)|\"ANYWARP_TLS\"\)|\"ANYWARP_TLS_RULES\"\))", text), path


def test_the_manual_lists_each_variable():
    page = (ROOT / "man" / "anywarp.1").read_text().split(".SH ENVIRONMENT")[1].split(".SH EXAMPLES")[0]
    described = re.findall(r"(?m)^\.TP\n\.BR? (.*)$", page)
    assert sorted(re.findall(r"\w+", " ".join(described))) == sorted(listed())


def with_names(*command, **names):
    env = {key: value for key, value in os.environ.items() if not key.startswith("ANYWARP_")}
    return subprocess.run([str(ANYWARP), *command], env={**env, **names}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name,is_known", [("ANYWARP_LOG", True), ("ANYWARP_PERSOMA", False), ("ANYWARP_", False)])
def test_doctor_finds_a_name_that_is_none(name, is_known):
    done = with_names("doctor", **{name: "info"})
    assert (f"{name} is no variable of anywarp" in done.stdout) is not is_known


MISTYPED = {"ANYWARP_LOGG": "ANYWARP_LOG", "ANYWARP_HOSTPATH": "ANYWARP_HOST_PATH", "ANYWRAP_MPA": "ANYWARP_MPA",
            "anywarp_persona": "ANYWARP_PERSONA", "ANYWARP_SOCKET_RULE": "ANYWARP_SOCKETS_RULES"}


def test_doctor_names_each_mistyped_name_and_what_may_be_meant():
    done = with_names("doctor", ANYWARP_LOG="info", ANYWARP_OF_ANOTHER="x", **{name: "info" for name in MISTYPED})
    assert done.returncode == 0
    told = dict(re.findall(r"warn  environment       (\w+) is no variable of anywarp; remedy: (?:correct it to (\w+), or )?unset it",
                           done.stdout))
    assert told == {**MISTYPED, "ANYWARP_OF_ANOTHER": ""}


# A sanitizer's run-time library has to come first, and anywarp sockets puts its own there.
@pytest.mark.parametrize("command", ["run"] if os.environ.get("ANYWARP_SAN") else ["run", "sockets"])
def test_a_program_that_is_started_with_a_mistyped_name_is_noted(command):
    done = with_names(command, "--", "echo", "here", ANYWARP_LOG="info", ANYWARP_OF_ANOTHER="x",
                      **{name: "info" for name in MISTYPED})
    assert done.returncode == 0 and done.stdout == "here\n"
    told = re.findall(rf"(?m)^anywarp {command}: note: (\w+) is no variable of anywarp, and has no effect: (\w+) is one$",
                      done.stderr)
    assert dict(told) == MISTYPED and len(done.stderr.splitlines()) == len(MISTYPED)


# --- what a library says of a wrong value that 'anywarp run' has not seen

LIBDIR = ANYWARP.parents[1] / "lib"
WRONG = {"ANYWARP_HOST_PATH": "it must be auto, on or off; nothing connects", "ANYWARP_LOG": "it must be error, warn, info or debug; taken as error",
         "ANYWARP_PERSONA": "it must be iwarp or roce; there is no device",
         "ANYWARP_SOCKETS_RECORD": "it must be on, off or tls; taken as on",
         "ANYWARP_SOCKETS_PAIR_MS": "it must be a number from 0 to 60000; taken as 10",
         "ANYWARP_TLS": "it must be off, require or offer; nothing connects",
         "ANYWARP_VARY": "it must be a number from 0 to 4294967295; there is no device"}
EXCHANGE = """
import socket
with socket.create_server(("127.0.0.1", 0)) as listener:
    for _ in range(3):
        with socket.create_connection(listener.getsockname()) as client, listener.accept()[0] as server:
            client.sendall(b"x")
            assert server.recv(1) == b"x"
print("done")
"""


def directly(*command, **env):
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=60, check=False)
    return done, [line.split(" error: ")[1] for line in done.stderr.splitlines() if " error: " in line]


@pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="the sanitizer's library has to come first")
@pytest.mark.parametrize("variable", ["ANYWARP_HOST_PATH", "ANYWARP_LOG", "ANYWARP_PERSONA", "ANYWARP_TLS", "ANYWARP_VARY"])
def test_the_verbs_library_tells_once_of_a_wrong_value(variable):
    done, errors = directly("ibv_devinfo", "-l", LD_LIBRARY_PATH=str(LIBDIR), **{variable: "bad"})
    assert errors == [f"{variable} is 'bad': {WRONG[variable]}"]
    assert ("anywarp0" in done.stdout) is (variable not in ("ANYWARP_PERSONA", "ANYWARP_VARY"))


@pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="the sanitizer's library has to come first")
@pytest.mark.parametrize("names", [["ANYWARP_LOG"], ["ANYWARP_SOCKETS_PAIR_MS"], ["ANYWARP_SOCKETS_RECORD"],
                                   ["ANYWARP_LOG", "ANYWARP_SOCKETS_PAIR_MS", "ANYWARP_SOCKETS_RECORD"]])
def test_the_sockets_library_tells_once_of_each_wrong_value(names):
    """In auto no socket needs some of them."""
    done, errors = directly(sys.executable, "-c", EXCHANGE, LD_PRELOAD=f"{LIBDIR}/libanywarp-sockets.so",
                            **{name: "bad" for name in names})
    assert done.returncode == 0 and done.stdout == "done\n"
    assert sorted(errors) == [f"{name} is 'bad': {WRONG[name]}" for name in names]


@pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="the sanitizer's library has to come first")
@pytest.mark.parametrize("variable, words", [
    ("ANYWARP_MPA", ": 'bad': no such key; allowed are markers, crc, revision, p2p, rtr, extensions, ird_ord, large_fpdus, each as key=value"),
    *((variable, f" is 'bad': {WRONG[variable]}") for variable in ("ANYWARP_HOST_PATH", "ANYWARP_PERSONA"))])
def test_the_proxy_process_tells_once_of_a_wrong_value(variable, words):
    """Its stderr is the program's until then."""
    done, errors = directly(sys.executable, "-c", EXCHANGE, LD_PRELOAD=f"{LIBDIR}/libanywarp-sockets.so",
                            ANYWARP_SOCKETS_RULES="on", ANYWARP_SOCKETS_RECORD="off", **{variable: "bad"})
    assert done.returncode != 0 and errors == [variable + words]
