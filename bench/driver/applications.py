# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Servers that many know, with the load generators made for them, as Debian has them: redis-server with redis-benchmark, nginx
with wrk. The rate is the generator's own."""

import contextlib
import csv
import io
import os
import re
import shutil
import subprocess
import tempfile
import time

import pair
import program

SECONDS_MAX = 60
PATH = os.environ.get("PATH", "") + ":/usr/sbin"
NGINX = """daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/temp;
    proxy_temp_path {folder}/temp;
    fastcgi_temp_path {folder}/temp;
    uwsgi_temp_path {folder}/temp;
    scgi_temp_path {folder}/temp;
    server {{ listen {address}:{port}; root {folder}/root; }}
}}
"""
FILE_NAME, FILE_BYTES = "file", 1024


class Served:
    """A server and its load generator, both with one environment."""
    packages = {}

    def __init__(self, why_not, env):
        self.why_not, self.env = why_not, env

    def missing(self):
        for name, package in self.packages.items():
            if not shutil.which(name, path=PATH):
                return f"{name} is not installed (Debian package {package})"
        return self.why_not

    def run(self, bed, series, seconds):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, program.borrowed_port() as port:
            server = self.server(folder, bed.address, port)
            with contextlib.closing(pair.End("server", [*bed.server_prefix, *server], self.env)) as end:
                end.wait_listening(port, time.monotonic() + SECONDS_MAX)
                client = self.client(bed.address, port, series.keys, seconds)
                return self.result(self.output([*bed.client_prefix, *client]))

    def output(self, client):
        try:
            done = subprocess.run(client, env=self.env, capture_output=True, text=True, timeout=SECONDS_MAX,
                                  check=False)
        except subprocess.TimeoutExpired as error:
            raise pair.Failure(f"{client[0]}: time-out") from error
        if done.returncode:
            raise pair.Failure(f"{client[0]} ended with status {done.returncode}: {done.stderr[-200:]!r}")
        return done.stdout


class Redis(Served):
    """GET of 64 bytes."""
    packages = {"redis-server": "redis-server", "redis-benchmark": "redis-tools"}

    @staticmethod
    def server(folder, address, port):
        return ["redis-server", "--bind", address, "--port", str(port), "--dir", folder, "--save", "",
                "--appendonly", "no"]

    @staticmethod
    def client(address, port, keys, _):
        return ["redis-benchmark", "-h", address, "-p", str(port), "-c", str(keys["clients"]),
                "-n", str(keys["requests"]), "-d", "64", "-t", "set,get", "--csv"]

    @staticmethod
    def result(output):
        rows = {row["test"]: row for row in csv.DictReader(io.StringIO(output)) if row.get("rps")}
        if not {"GET", "SET"} <= set(rows):
            raise pair.Failure(f"redis-benchmark printed no rate: {output[-200:]!r}")
        return {"test": "redis", "requests_per_second": float(rows["GET"]["rps"]),
                "usec": {"median": 1000 * float(rows["GET"]["p50_latency_ms"])}}


class Nginx(Served):
    """A file of 1 Ki."""
    packages = {"nginx": "nginx", "wrk": "wrk"}

    @staticmethod
    def server(folder, address, port):
        os.chmod(folder, 0o755)
        os.mkdir(os.path.join(folder, "root"))
        with open(os.path.join(folder, "root", FILE_NAME), "wb") as file:
            file.write(os.urandom(FILE_BYTES))
        settings = os.path.join(folder, "nginx.conf")
        with open(settings, "w", encoding="ascii") as file:
            file.write(NGINX.format(folder=folder, address=address, port=port))
        return [shutil.which("nginx", path=PATH), "-p", folder, "-e", "stderr", "-c", settings]

    @staticmethod
    def client(address, port, keys, seconds):
        return ["wrk", "-t", "1", "-c", str(keys["clients"]), "-d", f"{max(1, round(seconds))}s",
                f"http://{address}:{port}/{FILE_NAME}"]

    @staticmethod
    def result(output):
        found = re.search(r"Requests/sec:\s+([\d.]+)", output)
        if not found or "Non-2xx" in output or "Socket errors" in output:
            raise pair.Failure(f"wrk met errors: {output[-300:]!r}")
        return {"test": "nginx", "requests_per_second": float(found[1])}
