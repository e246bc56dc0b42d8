#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Speaks as bench-tcp and bench-verbs do, after its own name, and measures nothing. What
FAKE_WORKER says goes wrong: 'TRANSPORT:TEST:WHAT', WHAT being exit, hang, silent, garbage."""

import json
import os
import random
import socket
import sys
import time


def usec(median):
    return {"min": median * 0.9, "median": median, "mean": median * 1.05, "p99": median * 1.7,
            "max": median * 40}


def cost(keys, ours):
    """Seconds of one message, as a small machine has them."""
    base = {"block": 9, "epoll": 10, "spin": 5, "event": 10}.get(keys.get("mode"), 1)
    return (base * (1.1 if ours else 1) + int(keys.get("size", 1)) / 3000) * 1e-6


def latency(keys, ours):
    return {"usec": usec(cost(keys, ours) * 1e6 * random.uniform(0.9, 1.2)), "iterations": 1000}


def bandwidth(keys, ours):
    octets = float(keys["size"]) / cost(keys, ours) * random.uniform(0.9, 1.1)
    return {"octets_per_second": octets, "messages_per_second": octets / int(keys["size"]),
            "seconds": 0.2, "octets": int(octets / 5), "messages": int(octets / 5 / int(keys["size"]))}


def connect(_, ours):
    each = 60 if ours else 30
    return {"per_second": 1e6 / each, "usec_connect": usec(each), "usec_first_octet": usec(each + 9)}


def hotspot(keys, ours):
    return {"usec": usec(int(keys["clients"]) * cost(keys, ours) * 1e6), "messages_per_second": 2e5}


def idle(_, ours):
    each = 5000 if ours else 300
    return {"octets_per_connection": {"client": each, "server": each}, "poll_ns": 40 if ours else None,
            "poll_ns_busy10": 45 if ours else None,
            "idle_cpu_percent": {"client": 0.01, "server": 0.02}}


TESTS = {"latency": latency, "bandwidth": bandwidth, "connect": connect, "hotspot": hotspot,
         "idle": idle}


def go_wrong(transport, test):
    wanted = os.environ.get("FAKE_WORKER", "").split(":")
    if wanted[:2] != [transport, test]:
        return
    if wanted[2] == "exit":
        sys.exit("fake: no memory left")
    if wanted[2] == "hang":
        time.sleep(60)
    if wanted[2] == "garbage":
        print("not JSON")
    sys.exit(0)


def note(transport, test):
    """Who ran, in order, for tests that want to know."""
    if "FAKE_LOG" in os.environ:
        with open(os.environ["FAKE_LOG"], "a", encoding="ascii") as file:
            print(transport, *sys.argv[4:],
                  f"host={os.environ.get('ANYWARP_HOST_PATH', 'off')}",
                  *([f"tls={os.environ['ANYWARP_TLS']}"] if "ANYWARP_TLS" in os.environ else []),
                  f"persona={os.environ.get('ANYWARP_PERSONA', 'iwarp')}", file=file)


def client(transport, address, port, test, *keys):
    socket.create_connection((address, int(port))).close()
    note(transport, test)
    go_wrong(transport, test)
    keys = dict(key.split("=", 1) for key in keys)
    print(json.dumps({"transport": transport, "test": test, **keys,
                      **TESTS[test](keys, transport == "verbs"),
                      "cpu": {"client_seconds": 0.1, "server_seconds": 0.12}}))


def server(address, port):
    listener = socket.create_server((address, int(port)))
    print("ready", flush=True)
    listener.accept()[0].close()


if __name__ == "__main__":
    if sys.argv[0].endswith("bench-handover"):
        print(json.dumps({"handover_ns": 55.0}))
    elif sys.argv[1] == "server":
        server(*sys.argv[2:])
    else:
        client(os.path.basename(sys.argv[0]).removeprefix("bench-"), *sys.argv[2:])
