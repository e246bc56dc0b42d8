# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""PostgreSQL: a process for each connection, forked after accept; latches on epoll and signals."""

import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
import scene as scenes

USER = "postgres"
SETTINGS = ("-c fsync=off -c unix_socket_directories= -c shared_buffers=16MB -c autovacuum=off "
            "-c listen_addresses=127.0.0.1 -c max_connections=20 -c log_line_prefix=%p:")


@pytest.fixture(scope="module")
def binaries():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    assert found, "install postgresql"
    return pathlib.Path(found[-1]).parent


@pytest.fixture(scope="module")
def cluster(binaries):
    """A data directory, made once: each test starts its own server on it."""
    folder = scenes.new_folder()
    if os.geteuid() == 0:
        shutil.chown(folder, USER)
    data = folder / "data"
    subprocess.run([*scenes.as_user(USER), binaries / "initdb", "-D", data, "-U", USER, "-A", "trust",
                    "-N", "--locale=C"], check=True, capture_output=True, cwd="/")
    yield data
    shutil.rmtree(folder)


@pytest.fixture
def database(scene, binaries, cluster):
    """The server's port."""
    port = scene.port()
    if os.geteuid() == 0:
        shutil.chown(scene.folder, USER)  # its clients are the server's user, too
    server = scene.server(f"{binaries}/postgres -D {cluster} -p {port} {SETTINGS}", port, user=USER)
    server.wait_output("ready to accept connections")
    yield port
    assert scene.stop(server, signal.SIGINT) == 0


def psql(scene, port, sql, more=""):
    return scene.client(f"psql -h {scenes.ADDRESS} -p {port} -U {USER} -XAtq -v ON_ERROR_STOP=1 "
                        f"{more} postgres -c \"{sql}\"", user=USER).strip()


def test_pgbench(scene, database):
    bench = f"pgbench -h {scenes.ADDRESS} -p {database} -U {USER} postgres"
    scene.client(f"{bench} -i -q -s 1", user=USER)
    said = scene.client(f"{bench} -n -c 6 -j 2 -t 60 -M prepared", user=USER)
    assert "actually processed: 360/360" in said and "failed transactions: 0 " in said, said
    said = scene.client(f"{bench} -n -c 4 -t 10 -C -S", user=USER)
    assert re.search(r"actually processed: 40/40", said), said
    sums = [psql(scene, database, f"SELECT {what}") for what in (
        "sum(abalance) FROM pgbench_accounts", "sum(bbalance) FROM pgbench_branches",
        "sum(delta) FROM pgbench_history")]
    assert len(set(sums)) == 1, sums


def test_large_rows_come_back(scene, database):
    """COPY one way and the other: 4 MB of text."""
    sent = scene.write("rows", "".join(f"{n}\t{'x' * (n * 7919 % 3001)}\n" for n in range(2500)))
    psql(scene, database, "DROP TABLE IF EXISTS t; CREATE TABLE t (n int, x text)")
    psql(scene, database, f"\\copy t FROM {sent}")
    psql(scene, database, f"\\copy (SELECT * FROM t ORDER BY n) TO {sent}.got")
    assert scenes.same_file(sent, f"{sent}.got")


def test_a_query_is_cancelled(scene, database):
    """The client opens a second connection for it; the server signals a backend that computes."""
    port = database
    endless = "SELECT count(*) FROM generate_series(1, 100000000000)"
    running = scene.start(f"psql -h {scenes.ADDRESS} -p {port} -U {USER} -XAtq postgres "
                          f"-c \"{endless}\"", scene.mode.client, USER)
    busy = ("SELECT count(*) FROM pg_stat_activity WHERE query ~ 'generate_series' "
            "AND pid <> pg_backend_pid()")
    running.wait_until(lambda: psql(scene, port, busy) == "1", "query that runs")
    os.kill(running.pid, signal.SIGINT)
    assert running.wait_exit() == 1
    assert "canceling statement due to user request" in running.output()
    scene.judge(port, silent=True)  # to the second one nobody answers
