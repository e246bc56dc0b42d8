# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""CPython's own tests of TCP sockets (Debian's libpython3.11-testsuite), as they are."""

import subprocess

import pytest
from program import SLOWNESS

PYTHON = "/usr/bin/python3"
SECONDS_MAX = 100 * SLOWNESS
# With ports of its own: the tests look for free ones, and bind them later.
ALONE = ["unshare", "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "alone"]
CLASSES = [
    "BasicTCPTest", "BasicTCPTest2", "SendmsgTCPTest", "RecvmsgTCPTest", "RecvmsgIntoTCPTest",
    "InterruptedSendTimeoutTest", "TCPCloserTest", "NonBlockingTCPTests",
    "FileObjectClassTestCase", "UnbufferedFileObjectClassTestCase",
    "LineBufferedFileObjectClassTestCase", "SmallBufferedFileObjectClassTestCase",
    "UnicodeReadFileObjectClassTestCase", "UnicodeWriteFileObjectClassTestCase",
    "UnicodeReadWriteFileObjectClassTestCase", "NetworkConnectionNoServer",
    "NetworkConnectionAttributesTest", "NetworkConnectionBehaviourTest", "TCPTimeoutTest",
    "BufferIOTest", "ContextManagersTest", "InheritanceTest", "NonblockConstantTest",
    "SendfileUsingSendTest", "SendfileUsingSendfileTest", "CreateServerTest",
    "CreateServerFunctionalTest", "GeneralModuleTests", "TestExceptions",
]
TESTS_MIN = 280
# Each with its reason.
LEFT_OUT = {"plain": {}, "pass": {}, "iwarp": {}, "record": {}}
LIST = """
import sys, unittest
def walk(suite):
    for test in suite:
        yield from walk(test) if isinstance(test, unittest.TestSuite) else [test.id()]
for name in sys.argv[1:]:
    print(*walk(unittest.defaultTestLoader.loadTestsFromName("test.test_socket." + name)))
"""


def no_namespaces():
    return subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode != 0


def list_tests():
    """The names of each class's tests, or a skip where the package is not installed."""
    if subprocess.run([PYTHON, "-c", "import test.test_socket"], capture_output=True).returncode:
        pytest.skip("no libpython3.11-testsuite")
    listed = subprocess.run([PYTHON, "-c", LIST, *CLASSES], capture_output=True, text=True,
                            check=True).stdout.splitlines()
    return [line.split() for line in listed]


@pytest.mark.skipif(no_namespaces(), reason="no network namespaces of our own")
def test_socket(mode):
    """All classes at once: most of their time they wait."""
    left_out = LEFT_OUT[mode.name]
    classes = [[test for test in tests if ".".join(test.split(".")[-2:]) not in left_out]
               for tests in list_tests()]
    assert sum(map(len, classes)) >= TESTS_MIN
    runs = [mode.start([*ALONE, PYTHON, "-m", "unittest", "-v", *tests], TMPDIR=str(mode.logs))
            for tests in classes]
    failed = [run for run in runs if run.wait_exit(SECONDS_MAX) != 0]
    for run in set(runs) - set(failed):
        mode.forget(run)
    assert not failed, [run.argv[-1] for run in failed]
