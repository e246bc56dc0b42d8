# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Prints the result of each program in each persona on one host, and in its personas between two, of what the tests left in a
directory, and compares it with the table in a document: table.py DIRECTORY DOCUMENT. Status 1 where the two differ."""

import collections
import json
import pathlib
import re
import sys

COLUMNS = ("iwarp", "roce", "two hosts")
NOT_RUN = "not run: "
NONE = "-"  # no test: the program needs what the persona has not, or has one end


def read_rows(folder):
    """{program: {column: [outcome, ...]}}, the programs in the order of the tests."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in sorted(folder.glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8")):
            found[row["program"]][row["column"]].append(row)
    return found


def cell(rows):
    """One word, or a few: what came of a program's tests in a column."""
    if not rows:
        return NONE
    count = collections.Counter(row["outcome"] for row in rows)
    if count["failed"]:
        return f"FAILED ({count['failed']} of {len(rows)})"
    faults = [row for row in rows if row["fault"]]
    if faults and not count["passed"]:
        return "no"
    if faults:
        return f"in part ({count['passed']} of {len(rows)})"
    if count["passed"]:
        return "yes"
    return NOT_RUN + rows[0]["reason"]


def table(found):
    return {name: tuple(cell(found[name][column]) for column in COLUMNS) for name in found}


def documented(text):
    """The same of a document: the first and the last three cells of each line of its table."""
    rows = re.findall(r"(?m)^\| (.+?) \|.*\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$",
                      text.partition("<!-- ecosystem -->")[2].partition("<!-- end -->")[0])
    return {name: tuple(cells) for name, *cells in rows if name != "program"}


def agrees(row, documented_row, part):
    """Whether the tests came out as the document says, in each column in which they ran."""
    if not row or not documented_row:
        return False
    return all(came.startswith(NOT_RUN) or came == said or (part and came == NONE) for came, said in zip(row, documented_row))


def print_table(rows):
    width = max(map(len, rows), default=7)
    for name, cells in {"program": COLUMNS, **rows}.items():
        print(f"{name:{width}}  {'  '.join(f'{cell:24}' for cell in cells)}".rstrip())


def main(folder, document, part=""):
    """part: only some tests have run; lines and cells of the document that no test has a row for are passed over. In either case a program
    that was not run, as where it could not be installed, is no difference; but one at least must have run."""
    rows = table(read_rows(pathlib.Path(folder)))
    print_table(rows)
    told = documented(pathlib.Path(document).read_text(encoding="utf-8"))
    wrong = [name for name in {**rows, **({} if part else told)} if not agrees(rows.get(name), told.get(name), part)]
    for name in wrong:
        print(f"{document} says of {name}: {told.get(name)}; the tests: {rows.get(name)}")
    ran = [cells for cells in rows.values() if any(cell != NONE and not cell.startswith(NOT_RUN) for cell in cells)]
    return 1 if wrong or not ran else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
