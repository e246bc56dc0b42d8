# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""An application of the study: a server as its distribution has it, a load, and a check of what came out. The processor time
is that of every process of the run, from the start of the load to its end."""

import collections
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cputree
import pair
import program

SECONDS_MAX = 60
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
MEMORY = "/dev/shm"
# The last is that of an activated venv, for what no distribution has.
PYTHONS = ("/usr/bin/python3", sys.executable, os.path.join(os.environ.get("VIRTUAL_ENV", ""), "bin/python"))

# How a program's connections are carried: its environment, and why it cannot be so, or None.
Way = collections.namedtuple("Way", "name env why_not")


class Scene:
    """The processes, ports and files of one run."""

    def __init__(self, bed, way, folder):
        self.bed, self.way, self.folder = bed, way, folder
        self.there_before = set(cputree.descendants())
        self.stack = contextlib.ExitStack()
        self.cpu_seconds = 0

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        path = self.path(name)
        with open(path, "wb" if isinstance(text, bytes) else "w", **({} if isinstance(text, bytes) else {"encoding": "utf-8"})) as file:
            file.write(text)
        return path

    def port(self):
        return self.stack.enter_context(program.borrowed_port())

    def start(self, argv, user=None):
        """Starts it at the server's end."""
        try:
            started = program.Program([*self.bed.server_prefix, *as_user(user), *argv], self.way.env)
        except OSError as error:
            raise pair.Failure(f"{argv[0]} does not start: {error}") from error
        self.stack.callback(started.close)
        return started

    def server(self, argv, port, user=None, ready=None):
        """Starts it at the server's end, and waits until it listens, or says that it is ready."""
        started = self.start(argv, user)
        try:
            if ready:
                started.wait_output(ready, SECONDS_MAX)
            else:
                started.wait_listening(port, SECONDS_MAX)
        except program.Trouble as trouble:
            raise pair.Failure(f"{argv[0]} {trouble}: {last_lines(started.output())}") from trouble
        return started

    def client(self, argv, seconds=SECONDS_MAX, user=None, **how):
        """What it printed, both streams; Failure unless it ends with status 0."""
        return finished([*self.bed.client_prefix, *as_user(user), *argv], self.way.env, seconds, **how)

    def load(self, argv, seconds=SECONDS_MAX, **how):
        """A client whose run is what is measured."""
        before = cputree.seconds(self.there_before)
        said = self.client(argv, seconds, **how)
        self.cpu_seconds = cputree.seconds(self.there_before) - before
        return said

    def close(self):
        self.stack.close()
        cputree.end_all(self.there_before)


def as_user(name):
    """What goes before a command line for root to run it as another user."""
    if name is None or os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={name}", f"--regid={name}", "--clear-groups", "--"]


def finished(argv, env, seconds, **how):
    process = None
    try:
        process = subprocess.Popen(argv, env=env, text=True, errors="replace", start_new_session=True,
                                   stdin=subprocess.PIPE if "input" in how else subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   preexec_fn=program.end_with_starter)
        said, _ = process.communicate(timeout=seconds, **how)
    except OSError as error:
        raise pair.Failure(f"{argv[0]} does not start: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise pair.Failure(f"{argv[0]}: time-out") from error
    finally:
        if process and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode:
        raise pair.Failure(f"{os.path.basename(argv[0])} ended with status {process.returncode}: {last_lines(said)}")
    return said


def last_lines(text):
    return " | ".join(text.strip().splitlines()[-3:])[-pair.TEXT_SHOWN_MAX:]


def json_in(text):
    """The JSON object that a line of it is."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                return json.loads(line)
    raise pair.Failure(f"no JSON was printed: {last_lines(text)}")


def python_with(module):
    """A Python that can import it, or None."""
    for python in PYTHONS:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            if subprocess.run([python, "-c", f"import {module}"], capture_output=True, timeout=SECONDS_MAX,
                              check=False).returncode == 0:
                return python
    return None


def wait_until(condition, what, seconds=SECONDS_MAX):
    """The first true value of condition()."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise pair.Failure(f"no {what} within {seconds} s")
        time.sleep(0.02)
    return value


def check(holds, what):
    """The application's output is right, or the run is a failure."""
    if not holds:
        raise pair.Failure(f"WRONG OUTPUT: {what}")


class Application:
    """packages: the programs that it needs, by name, each with its Debian package."""

    packages = {}

    def __init__(self, way):
        self.way = way

    def missing(self):
        for name, package in self.packages.items():
            if not shutil.which(name, path=PATH):
                return f"{name} is not installed (Debian package {package})"
        return self.way.why_not

    def run(self, bed, series, seconds):
        with tempfile.TemporaryDirectory(dir=MEMORY, prefix="anywarp-bench-") as folder:
            os.chmod(folder, 0o755)
            scene = Scene(bed, self.way, folder)
            try:
                result = self.measure(scene, series.keys, seconds)
            finally:
                scene.close()
        return {"test": series.test, **result, "cpu": {"both_seconds": round(scene.cpu_seconds, 6)}}

    def measure(self, scene, keys, seconds):
        """The numbers of one run, and "checked": what of its output was compared."""
        raise NotImplementedError


def program_path(name):
    return shutil.which(name, path=PATH) or name
