# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The table of 'anywarp help environment' against the sources, which read the variables, and the manual."""

import os
import pathlib
import re
import subprocess

import pytest

ANYWARP = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve() / "bin" / "anywarp"
ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = {path: path.read_text() for path in sorted((ROOT / "src").rglob("*.[ch]")) if "kmod" not in path.parts}
MACROS = dict(re.findall(r'#define (\w+) "(\w+)"', "\n".join(SOURCES.values())))
READ = re.compile(r'\b(?:getenv|secure_getenv|aw_env_switch|aw_env_number)\(("\w+"|[A-Z_]+)')
# In these directories a library reads, in a process that may have more rights than its user. Of cli/ one file is one.
LIBRARIES = ("src/core", "src/net", "src/rdmacm", "src/record", "src/ring", "src/verbs", "src/wire", "src/xsock",
             "src/cli/paths_")


def help_environment():
    return subprocess.run([str(ANYWARP), "help", "environment"], capture_output=True, text=True, check=True).stdout


def listed():
    return re.findall(r"(?m)^  (\w+)=", help_environment())


def names_read():
    return {MACROS.get(name, name).strip('"') for text in SOURCES.values() for name in READ.findall(text)}


def test_each_variable_that_is_read_is_listed_and_no_other():
    read = names_read()
    assert len(read) >= 16
    assert sorted(listed()) == sorted(read)


def test_each_variable_has_its_values_and_readers():
    entries = re.findall(r"(?m)^  (\w+)=(\S.*)\n      (\S.*)\n      read by (\S.*)$", help_environment())
    assert [entry[0] for entry in entries] == listed()
    assert all("|" in values for _, values, _, _ in entries)


def test_libraries_read_no_environment_of_a_program_with_more_rights():
    for path, text in SOURCES.items():
        if str(path.relative_to(ROOT)).startswith(LIBRARIES):
            # PATH must be read as execvp reads it.
            assert not re.search(r"(?<!secure_)\bgetenv\((?!\"PATH\"\))", text), path


def test_the_manual_lists_each_variable():
    page = (ROOT / "man" / "anywarp.1").read_text().split(".SH ENVIRONMENT")[1].split(".SH EXAMPLES")[0]
    described = re.findall(r"(?m)^\.TP\n\.BR? (.*)$", page)
    assert sorted(re.findall(r"\w+", " ".join(described))) == sorted(listed())


@pytest.mark.parametrize("name,is_known", [("ANYWARP_LOG", True), ("ANYWARP_PERSOMA", False), ("ANYWARP_", False)])
def test_doctor_finds_a_name_that_is_none(name, is_known):
    env = {key: value for key, value in os.environ.items() if not key.startswith("ANYWARP_")}
    done = subprocess.run([str(ANYWARP), "doctor"], env={**env, name: "info"}, capture_output=True, text=True,
                          check=False)
    assert (f"{name} is no variable of anywarp" in done.stdout) is not is_known
