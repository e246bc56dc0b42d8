# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The programs of this directory and what their comments say of them: README.md."""

import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = sorted(path for path in HERE.glob("*.c") if path.name not in ("pair.c", "refused.c"))
NAMES = [source.stem for source in SOURCES]
RISKS = {"cq-small"}  # reported, but no reason for another exit status
FOUND = 66  # the exit status where there was a report


def expected(name):
    """The rules that the program breaks, each with the lines of which one is at fault, or none where any may be."""
    text = (HERE / f"{name}.c").read_text()
    rules = {rule: set() for rule in re.findall(r"/\* ALSO ([a-z-]+) \*/", text)}
    for number, line in enumerate(text.splitlines(), 1):
        for rule in re.findall(r"/\* REPORT ([a-z-]+) \*/", line):
            rules.setdefault(rule, set()).add(number)
    return rules


def options(name):
    """The options of `anywarp check` that the program's comment asks for."""
    text = (HERE / f"{name}.c").read_text()
    return [word for words in re.findall(r"/\* WITH (.*) \*/", text) for word in words.split()]


def place(report):
    """The innermost call of the program: its file's name and line. The inline functions of the headers are not its own."""
    frame = next(frame for frame in report["stack"]
                 if frame.get("file") and not re.search(r"/(infiniband|rdma)/|(^|/)src/", frame["file"]))
    return pathlib.Path(frame["file"]).name, frame["line"]
