# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two machines: the one whose programs run under qemu-user, and this one. ctest sets ANYWARP_BUILD, the build for the
other machine, ANYWARP_SYSROOT, its Debian packages, and ANYWARP_EMULATOR. This machine's build is build/release."""

import os
import pathlib
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lib"))
sys.dont_write_bytecode = True

import program  # noqa: E402
from failures import pytest_runtest_makereport  # noqa: E402, F401

if "ANYWARP_BUILD" not in os.environ:
    sys.exit("ANYWARP_BUILD is not set: use ./dev test --arch")


class Machine:
    """Where a machine has its programs, and how one of them is started on our libraries."""

    def __init__(self, build, root, emulator):
        self.build, self.root, self.emulator = pathlib.Path(build), root, emulator
        # The byte of an ELF file that says so.
        self.byteorder = (self.build / "lib" / "libibverbs.so.1").read_bytes()[5]

    def argv(self, line, variables):
        """Of a command line whose first word is the name of a Debian program, or the path of one in the build. An
        emulator has variables of its own for the loader: its own process needs this machine's libraries."""
        name, *options = shlex.split(line)
        path = self.build / name if "/" in name else f"{self.root}/usr/bin/{name}"
        given = {"LD_LIBRARY_PATH": self.build / "lib", **variables}
        pairs = [f"{name}={value}" for name, value in given.items()]
        if not self.emulator:
            return ["env", *pairs, str(path), *options]
        return [*self.emulator, *(word for pair in pairs for word in ("-E", pair)), str(path), *options]


THERE = Machine(os.environ["ANYWARP_BUILD"], os.environ["ANYWARP_SYSROOT"],
                shlex.split(os.environ["ANYWARP_EMULATOR"]))
HERE = Machine(ROOT / "build" / "release", "", [])


class Starter:
    """Starts programs and kills them when the test is over."""

    def __init__(self):
        self.programs = []

    def __call__(self, machine, line, **variables):
        started = program.Program(machine.argv(line, variables))
        self.programs.append(started)
        return started

    def server(self, machine, line, port, **variables):
        started = self(machine, f"{line} -p {port}", **variables)
        started.wait_listening(port)
        return started

    def reports(self):
        return "\n".join(started.report() for started in self.programs)


@pytest.fixture
def start(request):
    starter = Starter()
    request.node.told = starter.reports
    yield starter
    for started in starter.programs:
        started.kill()
        started.close()


@pytest.fixture
def port():
    return program.free_port()


@pytest.fixture(params=["there_there", "there_here", "here_there"])
def ends(request):
    """The machines of a server and of its client."""
    return [{"here": HERE, "there": THERE}[name] for name in request.param.split("_")]


@pytest.fixture(scope="session", autouse=True)
def libraries_are_ours():
    """A test on Debian's libraries would prove nothing of ours."""
    for machine in (HERE, THERE):
        traced = machine.argv("rping -h", {"LD_TRACE_LOADED_OBJECTS": 1})
        linked = subprocess.run(traced, capture_output=True, text=True, check=False).stdout
        for library in ("libibverbs.so.1", "librdmacm.so.1"):
            assert f"{library} => {machine.build}/lib/" in linked, f"{library} is not ours:\n{linked}"
