# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Looks for the names of an entry in the tree: "src/core/rx.c:check_untagged" is a file and what it
defines; "unit.rx:aw_rx_write__errors" is a test that ctest has and one of its cases."""

import functools
import json
import os
import re
import subprocess

# Where the cases of the ctest test <suite>.<name> are written down, in its suite's folder.
CASE_FILES = ("test_{}.c", "prop_{}.c", "test_{}.py")


class Tree:
    """root is the repository; tests maps a ctest name to the folder of its suite."""

    def __init__(self, root, tests):
        self.root, self.tests = root, tests

    @functools.lru_cache(maxsize=None)
    def read(self, path):
        try:
            with open(os.path.join(self.root, path), encoding="utf-8") as file:
                return file.read()
        except OSError:
            return None

    def code_problem(self, reference):
        """The problem of a reference to code, or None."""
        path, _, symbol = reference.partition(":")
        text = self.read(path)
        if text is None:
            return f"no file {path}"
        if not symbol:
            return f"{reference} names no function"
        return None if defines(text, symbol) else f"{path} does not define {symbol}"

    def test_problem(self, reference):
        name, _, case = reference.partition(":")
        if name not in self.tests:
            return f"ctest has no test {name}"
        texts = [self.read(path) for path in self.case_files(name)]
        texts = [text for text in texts if text is not None]
        if bool(case) != bool(texts):
            return f"{reference} should name a case" if texts else f"{name} has no cases"
        if case and not any(has_case(text, case) for text in texts):
            return f"{name} has no case {case}"
        return None

    def case_files(self, name):
        short = name.partition(".")[2]
        return [os.path.join(self.tests[name], form.format(short)) for form in CASE_FILES]


def defines(text, symbol):
    """A function, macro, table or variable that begins in the first column, or a Python def."""
    name = re.escape(symbol)
    for line in re.findall(rf"^[^\s/*].*\b{name}\b.*$|^\s+(?:def|class) {name}\b.*$", text, re.M):
        is_prototype = line.endswith(";") and "(" in line and "=" not in line
        if not is_prototype and re.search(rf"\b{name}\b\s*(\(|\[|=|;|,|\s\S|:|$)", line):
            return True
    return False


def has_case(text, case):
    """A cmocka case counts only when it is in a table of tests, that is, named twice."""
    name = re.escape(case)
    if re.search(rf"^\s*def {name}\(", text, re.M):
        return case.startswith("test_")
    defined = re.search(rf"^static void {name}\(", text, re.M)
    return bool(defined) and len(re.findall(rf"\b{name}\b", text)) > 1


def ctest_tests(root, build):
    """Every test that ctest knows of in a configured build, with the folder of its suite."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"],
                           capture_output=True, text=True, check=True)
    tests = {}
    for test in json.loads(shown.stdout)["tests"]:
        folder = next(p["value"] for p in test["properties"] if p["name"] == "WORKING_DIRECTORY")
        tests[test["name"]] = os.path.relpath(folder, os.path.abspath(build))
    assert all(os.path.isdir(os.path.join(root, folder)) for folder in tests.values())
    return tests
