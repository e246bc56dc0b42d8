# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""How a system test starts Debian's own programs on our libraries, and what it tells of them when
it fails. ctest sets ANYWARP_BUILD, and for a sanitizer build ANYWARP_SAN ('address,undefined' or
'thread') and ANYWARP_PRELOAD (its run-time library). Under tests/kernel/run the programs have the distribution's libraries,
over the kernel module."""

import os
import pathlib
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tools/lib", "tests/kernel")]
sys.dont_write_bytecode = True

import beds  # noqa: E402
import certificates  # noqa: E402
import ground  # noqa: E402
import program  # noqa: E402
from failures import pytest_runtest_makereport  # noqa: E402, F401

if ground.KERNEL:
    from over_module import device, kernel, no_complaint  # noqa: E402, F401

if "ANYWARP_BUILD" not in os.environ:
    sys.exit("set ANYWARP_BUILD to the build directory, or use ./dev test --system")
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
SANITIZER = os.environ.get("ANYWARP_SAN", "")
PRELOAD = os.environ.get("ANYWARP_PRELOAD", "")
# Debian's programs are not instrumented and free little when they end: leaks and what they touch
# themselves are not looked at. What our libraries do is.
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0:abort_on_error=0:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": f"{os.environ.get('TSAN_OPTIONS', '')}:ignore_noninstrumented_modules=1:exitcode=98",
}


def environment(logs):
    """The environment of a program under test; sanitizers write their reports into logs."""
    env = {**os.environ, "LD_LIBRARY_PATH": ground.libraries(BUILD)}
    if SANITIZER:
        env["LD_PRELOAD"] = PRELOAD
        for name, options in SANITIZER_OPTIONS.items():
            env[name] = f"{options}:log_path={logs}/report"
    return env


class Starter:
    """Starts the programs of one test, ends them all when it is over."""

    def __init__(self, logs):
        self.logs = logs
        self.programs = []

    def __call__(self, line, prefix=(), env=None):
        """line is a command line; its output comes line by line."""
        inside = environment(self.logs) if env is None else env
        wanted = ("LD_LIBRARY_PATH", "LD_PRELOAD", *SANITIZER_OPTIONS)
        inner = [f"{name}={inside[name]}" for name in wanted if name in inside]
        argv = [*prefix, "env", *inner, "stdbuf", "-oL", *shlex.split(line)]
        started = program.Program(argv)
        self.programs.append(started)
        return started

    def server(self, line, port, **how):
        """Starts a server and waits until it listens on its port."""
        started = self(f"{line} -p {port}", **how)
        started.wait_listening(port)
        return started

    def reports(self):
        texts = [started.report() for started in self.programs]
        return "\n".join(texts + [f"{path.name}:\n{path.read_text(errors='replace')}"
                                  for path in self.sanitizer_reports()])

    def sanitizer_reports(self):
        return sorted(pathlib.Path(self.logs).glob("report*"))

    def close(self):
        for started in self.programs:
            started.close()


@pytest.fixture
def start(tmp_path, request):
    logs = tmp_path / "sanitizer"
    logs.mkdir()
    logs.chmod(0o777)
    starter = Starter(logs)
    request.node.told = starter.reports
    yield starter
    for started in starter.programs:
        started.kill()
    found = starter.sanitizer_reports()
    reports = starter.reports() if found else ""
    starter.close()
    assert not found, reports


@pytest.fixture
def port():
    return program.free_port()


@pytest.fixture(params=[1500, 9000], ids=lambda mtu: f"mtu{mtu}")
def veth(request):
    yield from open_veth(request.param)


@pytest.fixture
def veth1500():
    yield from open_veth(1500)


def open_veth(mtu):
    try:
        with beds.VethBed(mtu) as bed:
            yield bed
    except beds.NotAllowed as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session", autouse=True)
def programs_are_ours_to_load():
    """A test on the system's own libraries would prove nothing of ours."""
    if ground.KERNEL:
        return
    env = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "lib")}
    linked = subprocess.run(["ldd", "/usr/bin/rping"], env=env, capture_output=True, text=True,
                            check=True).stdout
    for library in ("libibverbs.so.1", "librdmacm.so.1"):
        assert f"{library} => {BUILD}/lib/" in linked, f"{library} is not ours:\n{linked}"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return certificates.Authority(tmp_path_factory.mktemp("authorities") / "right")


@pytest.fixture(scope="module")
def files(authority):
    return authority.issue(certificates.NAME, f"DNS:{certificates.NAME},{certificates.ADDRESSES}")
