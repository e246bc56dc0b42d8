# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Each test runs in three modes: 'plain' (the kernel's TCP alone, which proves the test), 'pass'
(libanywarp-sockets.so loaded, every socket left to TCP) and 'iwarp' (each connection over iWARP: a record
beside the program's own TCP socket); some in 'auto' as well, and the contract in 'proxy', where the proxy carries all, and in 'tls' and 'tls_plain',
where it does so under TLS, with iWARP and without, and in 'tls_record', where records have TLS.
ctest sets ANYWARP_BUILD, and for a sanitizer build ANYWARP_SAN and ANYWARP_PRELOAD (its run-time
library)."""

import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lib"))
sys.path.insert(0, str(ROOT / "tests" / "system"))
sys.dont_write_bytecode = True

import certificates  # noqa: E402
import program  # noqa: E402
from failures import pytest_runtest_makereport  # noqa: E402, F401
from open_build import open_build  # noqa: E402

if "ANYWARP_BUILD" not in os.environ:
    sys.exit("set ANYWARP_BUILD to the build directory, or use ./dev test --system")
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
SANITIZER = os.environ.get("ANYWARP_SAN", "")
SOCKETS = BUILD / "lib" / "libanywarp-sockets.so"
RULES = {"pass": "off", "iwarp": "on", "auto": "auto", "pair": "auto", "proxy": "on", "tls": "on", "tls_plain": "tls-plain", "tls_record": "on"}
# The kernel alone has nothing for a sanitizer.
ALL_MODES = [mode for mode in (*([] if SANITIZER else ["plain"]), *RULES)
             if mode in os.environ.get("ANYWARP_MODES", "plain pass iwarp auto pair proxy tls tls_plain tls_record").split()]
MODES_AND_AUTO = [mode for mode in ALL_MODES if mode not in ("pair", "proxy", "tls", "tls_plain", "tls_record")]
MODES = [mode for mode in MODES_AND_AUTO if mode != "auto"]


# Waits until the thread or process with this directory in /proc sleeps, and not for a moment only: it does so at that many looks. A
# thread in a futex waits for another one of Python's.
AWAIT_SLEEP = """
import pathlib, time
def is_asleep(directory):
    state = pathlib.Path(directory, "stat").read_text().rpartition(")")[2].split()[0]
    return state == "S" and "futex" not in pathlib.Path(directory, "wchan").read_text()
def await_sleep(directory, looks):
    in_a_row = 0
    while in_a_row < looks:
        in_a_row = in_a_row + 1 if is_asleep(directory) else 0
        time.sleep(0.001)
"""


@functools.cache
def authority():
    """A certificate of both ends, which lasts as long as the tests."""
    folder = tempfile.TemporaryDirectory(prefix="anywarp-contract-")
    atexit.register(folder.cleanup)
    return certificates.Authority(pathlib.Path(folder.name) / "ca").issue("contract")


class Mode:
    """How a program is started in one of the modes."""

    def __init__(self, name, logs, rules=None):
        self.name = name
        self.logs = pathlib.Path(logs)
        self.rules = rules or RULES.get(name)
        self.programs = []

    def environment(self, **more):
        env = {**os.environ, **more}
        preload = [os.environ.get("ANYWARP_PRELOAD", "")] if SANITIZER else []
        if self.name != "plain":
            preload.append(str(SOCKETS))
            env["ANYWARP_SOCKETS_RULES"] = self.rules
        if self.name == "proxy":
            env["ANYWARP_SOCKETS_RECORD"] = "off"
        if self.name == "tls_record":
            env["ANYWARP_SOCKETS_RECORD"] = "tls"
        if self.name in ("tls", "tls_plain", "tls_record"):
            env.update(certificates.variables(authority(), "contract"))
        if self.name == "pair":
            env["CONTRACT_PAIR"] = "1"
            env.setdefault("ANYWARP_SOCKETS_PAIR_MS", "20000")  # however loaded the machine
        env["LD_PRELOAD"] = " ".join(filter(None, preload))
        # Programs that are not instrumented free little when they end: leaks are not looked at.
        env["ASAN_OPTIONS"] = ("detect_leaks=0:verify_asan_link_order=0:exitcode=99:"
                               f"log_path={self.logs}/report")
        env["UBSAN_OPTIONS"] = f"print_stacktrace=1:log_path={self.logs}/report"
        return env

    def start(self, argv, **more):
        started = program.Program([str(arg) for arg in argv], self.environment(**more))
        self.programs.append(started)
        return started

    def forget(self, started):
        """Its output is not needed any more."""
        self.programs.remove(started)
        started.close()

    def reports(self):
        return "\n".join([started.report() for started in self.programs] +
                         [path.read_text(errors="replace") for path in self.sanitizer_reports()])

    def sanitizer_reports(self):
        return sorted(self.logs.glob("report*"))

    def close(self):
        found = self.sanitizer_reports()
        reports = self.reports() if found else ""
        for started in self.programs:
            started.close()
        assert not found, reports


@pytest.fixture(params=MODES)
def mode(request, tmp_path):
    yield from open_mode(request, tmp_path, request.param)


@pytest.fixture(scope="session")
def strace():
    """A sandbox may refuse ptrace."""
    if not shutil.which("strace"):
        pytest.skip("no strace")
    if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace cannot trace here")


@pytest.fixture
def plain(tmp_path):
    """For the end that has nothing of ours."""
    opened = Mode("plain", tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def open_libraries(monkeypatch):
    """Where any user may read them."""
    monkeypatch.setattr(sys.modules[__name__], "SOCKETS", open_build(BUILD) / "lib" / SOCKETS.name)


@pytest.fixture
def only_proxy(request, tmp_path):
    yield from open_mode(request, tmp_path, "proxy")


@pytest.fixture
def only_iwarp(request, tmp_path):
    yield from open_mode(request, tmp_path, "iwarp")


def open_mode(request, logs, name):
    if name != "plain" and not SOCKETS.exists():
        pytest.skip("this build has no libanywarp-sockets.so")
    opened = Mode(name, logs)
    request.node.told = opened.reports
    yield opened
    opened.close()
