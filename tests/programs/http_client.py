# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Fetches URLs by urllib, in threads and one after another, and compares with files."""

import concurrent.futures
import pathlib
import sys
import urllib.request

ROUNDS, THREADS = 3, 4


def fetch(url, path):
    with urllib.request.urlopen(url, timeout=30) as answer:
        got = answer.read()
    assert got == path.read_bytes(), f"{url}: {len(got)} octets"


def main(base, folder):
    paths = sorted(pathlib.Path(folder).iterdir())
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        tasks = [pool.submit(fetch, base + path.name, path) for path in paths * ROUNDS]
        for task in tasks:
            task.result()
    print(f"{len(tasks)} files are right")


main(*sys.argv[1:])
