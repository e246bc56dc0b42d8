# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""ask_peer.py ADDRESS PORT METRICS CLIENTS SECONDS|until: clients that connect, read XML to its end, and connect again after a
while, the longer the more they are: a gmond lets few connections wait. METRICS is a file with what has to be in each answer.
until: one client, until all is there."""

import json
import random
import re
import socket
import statistics
import sys
import threading
import time
import xml.etree.ElementTree as xml

UNTIL_SECONDS_MAX = 30
PIECE = 65536
APART_SECONDS = 0.01  # of two questions, whichever clients they are of
METRIC = re.compile(rb'<METRIC NAME="(metric\d+)" VAL="(\d+)"')


def answer(address):
    """All that it says."""
    pieces = []
    with socket.create_connection(address, timeout=30) as conn:
        while piece := conn.recv(PIECE):
            pieces.append(piece)
    return b"".join(pieces)


def by_xml(said):
    try:
        return {each.get("NAME"): each.get("VAL") for each in xml.fromstring(said).iter("METRIC")
                if each.get("NAME", "").startswith("metric")}
    except xml.ParseError:
        return {}


def by_text(said):
    return {name.decode(): value.decode() for name, value in METRIC.findall(said)}


class Client(threading.Thread):
    def __init__(self, of_whom, pause, end):
        super().__init__()
        self.address, self.metrics = of_whom
        self.pause, self.end = pause, end
        self.took, self.octets, self.wrong = [], 0, None

    def run(self):
        try:
            while time.monotonic() < self.end:
                time.sleep(self.pause * 2 * random.random())
                began = time.perf_counter_ns()
                said = answer(self.address)
                self.took.append((time.perf_counter_ns() - began) / 1000)
                self.octets += len(said)
                if by_text(said) != self.metrics:
                    self.wrong = "WRONG OUTPUT: an answer lacks metrics"
                    return
            if by_xml(said) != self.metrics:
                self.wrong = "WRONG OUTPUT: an answer is no XML with all metrics"
        except OSError as error:
            self.wrong = f"a client: {error}"


def ask(address, metrics, count, seconds):
    began = time.monotonic()
    clients = [Client((address, metrics), count * APART_SECONDS, began + seconds) for _ in range(count)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    elapsed = time.monotonic() - began
    for each in clients:
        if each.wrong:
            sys.exit(f"ask_peer: {each.wrong}")
    took = sorted(us for each in clients for us in each.took)
    return {"usec": {"median": statistics.median(took), "p99": took[int(len(took) * 0.99)]}, "operations": len(took),
            "requests_per_second": len(took) / elapsed, "octets": sum(each.octets for each in clients),
            "checked": f"{len(metrics)} metrics of each answer"}


def ask_until(address, metrics):
    end = time.monotonic() + UNTIL_SECONDS_MAX
    while by_xml(answer(address)) != metrics:
        if time.monotonic() > end:
            sys.exit("ask_peer: the metrics are not there")
        time.sleep(0.05)
    return {"checked": "all"}


def main(address, port, metrics, clients, how):
    with open(metrics, encoding="utf-8") as file:
        wanted = json.load(file)
    whom = (address, int(port))
    print(json.dumps(ask_until(whom, wanted) if how == "until" else ask(whom, wanted, int(clients), float(how))))


if __name__ == "__main__":
    main(*sys.argv[1:])
