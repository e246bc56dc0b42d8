# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Servers that many know, with the load generators made for them, as Debian has them. The rate is the generator's own; what a
server holds or serves is read back and compared. A server's workers and its load are of one user, since the ends of a pair of
the kernel's are."""

import csv
import glob
import hashlib
import io
import os
import pwd
import re
import secrets
import shutil
import tempfile

import application
import pair
import program

VALUE_BYTES = 4096
POSTGRES = "postgres"
POSTGRES_SETTINGS = ("-c fsync=off -c unix_socket_directories= -c shared_buffers=64MB -c autovacuum=off "
                     "-c max_connections=40 -c logging_collector=off")
SCALE, SQL_CLIENTS = 4, 8
FILE_NAME = "file"
NGINX = """daemon off;
{user}
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


def own_name():
    return pwd.getpwuid(os.geteuid()).pw_name


class Redis(application.Application):
    """GET of 64 bytes; afterwards a random value is stored and read back."""
    packages = {"redis-server": "redis-server", "redis-benchmark": "redis-tools"}

    def measure(self, scene, keys, seconds):
        port = scene.port()
        where = ["-h", scene.bed.address, "-p", str(port)]
        scene.server(["redis-server", "--bind", scene.bed.address, "--port", str(port), "--dir", scene.folder, "--save", "",
                      "--appendonly", "no", "--protected-mode", "no"], port)
        requests = max(200, int(keys["requests"] * seconds))
        said = scene.load(["redis-benchmark", *where, "-c", str(keys["clients"]), "-n", str(requests), "-d", "64", "-t", "set,get",
                           "--csv"])
        value = secrets.token_hex(VALUE_BYTES // 2)
        ask = ["redis-cli", *where, "--raw"]
        scene.client([*ask, "-x", "set", "checked"], input=value)
        application.check(scene.client([*ask, "get", "checked"]).strip() == value, "the value is not what was stored")
        # Each request is made as a SET and as a GET.
        return {**self.numbers(said), "operations": 2 * requests, "checked": f"{VALUE_BYTES} bytes of a value"}

    @staticmethod
    def numbers(said):
        rows = {row["test"]: row for row in csv.DictReader(io.StringIO(said[max(0, said.find('"test"')):])) if row.get("rps")}
        if not {"GET", "SET"} <= set(rows):
            raise pair.Failure(f"redis-benchmark printed no rate: {application.last_lines(said)}")
        return {"requests_per_second": float(rows["GET"]["rps"]), "usec": {"median": 1000 * float(rows["GET"]["p50_latency_ms"])}}


class Nginx(application.Application):
    """A file, which curl fetches as well."""
    packages = {"nginx": "nginx", "wrk": "wrk", "curl": "curl"}

    def measure(self, scene, keys, seconds):
        port, content = scene.port(), os.urandom(keys["size"])
        os.mkdir(scene.path("root"))
        scene.write(f"root/{FILE_NAME}", content)
        # Only root's nginx gives its workers another user, and warns of the directive otherwise.
        user = f"user {own_name()};" if os.geteuid() == 0 else ""
        settings = scene.write("nginx.conf", NGINX.format(folder=scene.folder, address=scene.bed.address, port=port, user=user))
        scene.server([application.program_path("nginx"), "-p", scene.folder, "-e", "stderr", "-c", settings], port)
        url = f"http://{scene.bed.address}:{port}/{FILE_NAME}"
        scene.client(["curl", "-sSf", "--noproxy", "*", "-o", scene.path("got"), url])
        with open(scene.path("got"), "rb") as file:
            application.check(hashlib.sha256(file.read()).digest() == hashlib.sha256(content).digest(),
                              "the file is another than the server's")
        said = scene.load(["wrk", "-t", "1", "-c", str(keys["clients"]), "-d", f"{max(1, round(seconds))}s", url])
        return {**self.numbers(said, keys["size"]), "checked": f"SHA-256 of {keys['size']} bytes"}

    @staticmethod
    def numbers(said, size):
        rate, total = re.search(r"Requests/sec:\s+([\d.]+)", said), re.search(r"(\d+) requests in", said)
        if not (rate and total) or "Non-2xx" in said or "Socket errors" in said:
            raise pair.Failure(f"wrk met errors: {application.last_lines(said)}")
        return {"requests_per_second": float(rate[1]), "operations": int(total[1]), "octets": int(total[1]) * size,
                "octets_per_second": float(rate[1]) * size}


class Memcached(application.Application):
    """90 % get, 10 % set of 1 KiB; memcaslap compares every value that it gets."""
    packages = {"memcached": "memcached", "memcaslap": "libmemcached-tools"}

    def measure(self, scene, keys, seconds):
        port = scene.port()
        scene.server(["memcached", "-l", scene.bed.address, "-p", str(port), "-U", "0", "-t", "2", "-u", own_name()], port)
        said = scene.load(["memcaslap", "-s", f"{scene.bed.address}:{port}", "-T", "1", "-c", str(keys["clients"]),
                           "-t", f"{max(1, round(seconds))}s", "-v", "1.0", "-X", "1024", "-w", "1k"])
        return self.numbers(said)

    @staticmethod
    def numbers(said):
        counts = {name: int(number) for name, number in re.findall(r"^(\w+): (\d+)$", said, re.M)}
        found = re.search(r"Ops: (\d+) TPS: (\d+)", said)
        if not found or not counts.get("cmd_get"):
            raise pair.Failure(f"memcaslap printed no rate: {application.last_lines(said)}")
        wrong = sum(counts.get(name, 1) for name in ("get_misses", "verify_misses", "verify_failed"))
        application.check(wrong == 0, f"{wrong} values missing or other than stored")
        return {"requests_per_second": float(found[2]), "operations": int(found[1]),
                "checked": f"{counts['cmd_get']} values"}


class Postgres(application.Application):
    """pgbench over prepared statements; its sums are compared. The data directory is made once; pgbench fills it anew for each
    run."""
    packages = {"pgbench": "postgresql", "psql": "postgresql-client"}
    template = None  # shared by all ways

    def missing(self):
        if not self.binaries():
            return "postgres is not installed (Debian package postgresql)"
        if os.geteuid() == 0 and self.way.env.get("LD_PRELOAD") and not program.is_open_to_others(self.way.env["LD_PRELOAD"].split()[0]):
            return "PostgreSQL runs as another user, for whom the library's directory is closed"
        return super().missing()

    @staticmethod
    def binaries():
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
        return os.path.dirname(found[-1]) if found else None

    @classmethod
    def data(cls, env):
        """A directory with a database in it, without a server."""
        if not cls.template:
            folder = tempfile.TemporaryDirectory(dir=application.MEMORY, prefix="anywarp-bench-")
            if os.geteuid() == 0:
                shutil.chown(folder.name, POSTGRES, POSTGRES)
            application.finished([*application.as_user(POSTGRES), f"{cls.binaries()}/initdb", "-D", f"{folder.name}/data",
                                  "-U", POSTGRES, "-A", "trust", "-N", "--locale=C"],
                                 {**env, "HOME": folder.name}, application.SECONDS_MAX)
            cls.template = folder
        return cls.template.name

    def measure(self, scene, keys, seconds):
        plain = {name: text for name, text in os.environ.items() if name != "LD_PRELOAD"}
        data = f"{self.data(plain)}/data"
        port = scene.port()
        server = scene.server([f"{self.binaries()}/postgres", "-D", data, "-p", str(port), "-c",
                               f"listen_addresses={scene.bed.address}", *POSTGRES_SETTINGS.split(), "-c", "restart_after_crash=off"],
                              port, user=POSTGRES)
        self.admit(data, scene.bed)
        server.wait_output("ready to accept connections")
        bench = ["pgbench", "-h", scene.bed.address, "-p", str(port), "-U", POSTGRES, POSTGRES]
        scene.client([*bench, "-i", "-q", "-s", str(SCALE)], user=POSTGRES)
        said = scene.load([*bench, "-n", "-M", "prepared", "-c", str(SQL_CLIENTS), "-j", "2", "-T", str(max(1, round(seconds))),
                           *(["-S"] if keys["kind"] == "select" else [])], user=POSTGRES)
        self.check_sums(scene, port)
        server.kill(2)  # SIGINT: a fast shutdown, so that the next run finds the data whole
        return self.numbers(said)

    @staticmethod
    def admit(data, bed):
        """Whoever is in the bed may connect: the server reads it again for each run."""
        rule = "host all all 192.0.2.0/24 trust\n"
        path = os.path.join(data, "pg_hba.conf")
        with open(path, encoding="utf-8") as file:
            there = rule in file.read()
        if not there:
            with open(path, "a", encoding="utf-8") as file:
                file.write(rule)

    @staticmethod
    def check_sums(scene, port):
        sql = ("SELECT (SELECT sum(abalance) FROM pgbench_accounts) || ' ' || (SELECT sum(bbalance) FROM pgbench_branches) "
               "|| ' ' || (SELECT coalesce(sum(delta), 0) FROM pgbench_history)")
        sums = scene.client(["psql", "-h", scene.bed.address, "-p", str(port), "-U", POSTGRES, "-XAtq", "-v", "ON_ERROR_STOP=1",
                             POSTGRES, "-c", sql], user=POSTGRES).split()
        application.check(len(sums) == 3 and len(set(sums)) == 1, f"the sums of the accounts, branches and history are {sums}")

    @staticmethod
    def numbers(said):
        rate, count = re.search(r"tps = ([\d.]+)", said), re.search(r"actually processed: (\d+)", said)
        latency = re.search(r"latency average = ([\d.]+) ms", said)
        if not (rate and count and latency):
            raise pair.Failure(f"pgbench printed no rate: {application.last_lines(said)}")
        application.check("failed transactions: 0 " in said, "transactions failed")
        return {"requests_per_second": float(rate[1]), "operations": int(count[1]),
                "usec": {"mean": 1000 * float(latency[1])}, "checked": "the sums of accounts, branches and history"}
