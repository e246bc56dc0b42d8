# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""grpc_peer.py server ADDRESS PORT; grpc_peer.py client ADDRESS PORT unary|stream SIZE SECONDS. The messages are bytes as they
are: no code is generated, and what is measured is gRPC."""

import concurrent.futures
import json
import os
import statistics
import sys
import time

# Python's epoll in gRPC's core, and no proxy of the machine's.
os.environ.update(GRPC_ENABLE_FORK_SUPPORT="0", no_grpc_proxy="*")

import grpc  # noqa: E402

OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.enable_http_proxy", 0)]
ECHO, STREAM = "/bench.Bench/Echo", "/bench.Bench/Stream"
WARM_UP_PARTS = 5


def pattern(size):
    return bytes(at * 131 % 251 for at in range(size))


def echo(request, _):
    return request


def stream(request, context):
    """What was asked for, again and again until the client has enough."""
    while context.is_active():
        yield request


class Handlers(grpc.GenericRpcHandler):
    def service(self, details):
        if details.method == ECHO:
            return grpc.unary_unary_rpc_method_handler(echo)
        if details.method == STREAM:
            return grpc.unary_stream_rpc_method_handler(stream)
        return None


def serve(where):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), [Handlers()], options=OPTIONS)
    if not server.add_insecure_port(where):
        sys.exit(f"grpc_peer: cannot listen on {where}")
    server.start()
    server.wait_for_termination()


def unary(channel, message, seconds):
    call, took = channel.unary_unary(ECHO), []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter_ns()
        got = call(message, wait_for_ready=True)
        took.append((time.perf_counter_ns() - began) / 1000)
        if got != message:
            sys.exit("grpc_peer: WRONG OUTPUT: an answer is not what was sent")
    took.sort()
    return {"usec": {"median": statistics.median(took), "mean": statistics.fmean(took),
                     "p99": took[int(len(took) * 0.99)]}, "operations": len(took)}


def streamed(channel, message, seconds):
    count = 0
    answers = channel.unary_stream(STREAM)(message, wait_for_ready=True)
    began = time.monotonic()
    for got in answers:
        if got != message:
            sys.exit("grpc_peer: WRONG OUTPUT: a message of the stream is not what was asked for")
        count += 1
        if time.monotonic() - began > seconds:
            break
    took = time.monotonic() - began
    answers.cancel()
    octets = count * len(message)
    return {"octets": octets, "octets_per_second": octets / took, "operations": count}


def ask(where, kind, size, seconds):
    message, measure = pattern(size), {"unary": unary, "stream": streamed}[kind]
    with grpc.insecure_channel(where, options=OPTIONS) as channel:
        measure(channel, message, seconds / WARM_UP_PARTS)
        found = measure(channel, message, seconds)
    print(json.dumps({**found, "checked": f"{size} bytes of each message"}))


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve(":".join(sys.argv[2:4]))
    else:
        ask(":".join(sys.argv[2:4]), sys.argv[4], int(sys.argv[5]), float(sys.argv[6]))
