# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""agent.py LINE: runs in a guest and does what guest.py asks for, so that the network carries nothing but the test.
LINE is a terminal of the guest's. A request is a line of JSON, a method of Agent and its arguments; so is the answer:
{"value": ...}, or {"trouble": "text"}."""

import errno
import itertools
import json
import pathlib
import re
import resource
import socket
import subprocess
import sys
import tty

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "lib"))
sys.dont_write_bytecode = True

import program  # noqa: E402


CLOSED_PORT = 9 # discard: nothing serves it


class Agent:
    def __init__(self):
        self.numbers = itertools.count()
        self.programs = {}

    def answer(self, request):
        name, *arguments = json.loads(request)
        try:
            return {"value": getattr(self, name)(*arguments)}
        except (program.Trouble, subprocess.TimeoutExpired, OSError) as trouble:
            return {"trouble": str(trouble)}

    @staticmethod
    def exec(script, seconds):
        """What a shell script prints; it has to end well."""
        done = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds, check=False)
        text = done.stdout.decode("utf-8", "replace")
        if done.returncode != 0:
            raise program.Trouble(f"status {done.returncode}:\n{script}\n{text}")
        return text

    @staticmethod
    def reach(host):
        """Returns when the host answers. To the host's own first packet the guest before, with the same address, is the one that failed."""
        while True:
            with socket.socket() as sock:
                if sock.connect_ex((host, CLOSED_PORT)) == errno.ECONNREFUSED:
                    return

    def start(self, argv):
        number = next(self.numbers)
        self.programs[number] = program.Program(argv)
        return number

    def ask(self, number, name, *arguments):
        """A method of program.Program's."""
        value = getattr(self.programs[number], name)(*arguments)
        return bool(value) if isinstance(value, re.Match) else value

    def report(self, number):
        """With where each thread of one that should have ended stands in the kernel."""
        one = self.programs[number]
        lines = [one.report()]
        if one.status() is None:
            for task in pathlib.Path(f"/proc/{one.pid}/task").iterdir():
                lines.append(" ".join((task / name).read_text().strip() for name in ("comm", "wchan")))
        return "\n".join(lines)


def main(line):
    # siw asks nobody's capabilities.
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    agent = Agent()
    with open(line, "r+b", buffering=0) as port:
        tty.setraw(port)
        port.write(b"ready\n")
        requests = open(port.fileno(), "rb", closefd=False)
        for request in requests:
            answer = json.dumps(agent.answer(request)).encode() + b"\n"
            while answer:
                answer = answer[port.write(answer):]


if __name__ == "__main__":
    main(*sys.argv[1:])
