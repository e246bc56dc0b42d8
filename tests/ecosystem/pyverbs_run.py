# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs pyverbs' own tests as their run_tests.py does, and writes what came of each as JSON:
pyverbs_run.py DIRECTORY RESULTS. Standard error is left to the tests and their children."""

import io
import json
import sys
import unittest
from importlib.machinery import SourceFileLoader


class Results(unittest.TextTestResult):
    """{test: [outcome, reason]}; the reason of a failure is its last line."""

    def __init__(self, *args):
        super().__init__(*args)
        self.told = {}

    def addSuccess(self, test):
        self.told[test.id()] = ["passed", ""]

    def addSkip(self, test, reason):
        self.told[test.id()] = ["skipped", reason]

    def addError(self, test, err):
        self.told[test.id()] = ["failed", str(err[1])[:200]]

    addFailure = addError


def main(folder, results):
    sys.path.insert(0, folder)
    sys.argv[1:] = []
    tests = SourceFileLoader("tests", f"{folder}/__init__.py").load_module()
    from args_parser import parser
    parser.parse_args()
    suite = unittest.defaultTestLoader.loadTestsFromModule(tests)
    runner = unittest.TextTestRunner(stream=io.StringIO(), resultclass=Results)
    with open(results, "w", encoding="utf-8") as file:
        json.dump(runner.run(suite).told, file, indent=1)


main(*sys.argv[1:])
