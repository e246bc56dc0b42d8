# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs pyverbs' own tests as their run_tests.py does, and writes what came of each as JSON:
pyverbs_run.py DIRECTORY RESULTS [DEVICE INTERFACE]. Standard error is left to the tests and their children. Of iWARP's
devices, whose GID is a MAC address, the tests do not see by themselves which interface theirs is."""

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


def name_interface(name):
    from tests.base import RDMATestCase

    def add(case, dev, port, idx):
        case.args.append([dev, port, idx, *case.get_ip_mac_address(name)])

    RDMATestCase._get_ip_mac = add


def main(folder, results, device=None, interface=None):
    sys.path.insert(0, folder)
    sys.argv[1:] = ["--dev", device, "--port", "1", "--gid", "0"] if device else []
    tests = SourceFileLoader("tests", f"{folder}/__init__.py").load_module()
    if interface:
        name_interface(interface)
    from args_parser import parser
    parser.parse_args()
    suite = unittest.defaultTestLoader.loadTestsFromModule(tests)
    runner = unittest.TextTestRunner(stream=io.StringIO(), resultclass=Results)
    with open(results, "w", encoding="utf-8") as file:
        json.dump(runner.run(suite).told, file, indent=1)


main(*sys.argv[1:])
