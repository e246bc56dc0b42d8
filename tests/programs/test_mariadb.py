# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""mariadb: a thread for each connection, whose reads wait by poll; large rows either way, several clients at once."""

import shutil

import pytest
import scene as scenes

USER = "mysql"
CLIENTS, UPDATES = 8, 400
pytestmark = pytest.mark.skipif(not shutil.which("mariadbd"), reason="mariadb-server is not installed")


@pytest.fixture
def database(scene):
    """The scene with the server in it: how its clients find it."""
    port, data = scene.port(), scene.directory("data", USER)
    scene.client(f"mariadb-install-db --no-defaults --datadir={data} --auth-root-authentication-method=normal "
                 "--skip-test-db", rule=None, user=USER)
    scene.server(f"mariadbd --no-defaults --datadir={data} --socket={data}/socket --pid-file={data}/pid "
                 f"--bind-address={scenes.ADDRESS} --port={port} --innodb-buffer-pool-size=16M", port, user=USER)
    return f"--no-defaults --protocol=tcp --host={scenes.ADDRESS} --port={port} --user=root"


def ask(scene, database, words):
    path = scene.write("orders", words)
    return scene.client(["sh", "-c", f"mariadb {database} --batch --skip-column-names <{path}"], user=USER)


def test_rows_come_back_as_they_went(scene, database):
    values = [scene.file(f"value{octets}", octets).read_bytes().hex().upper() for octets in scenes.SIZES]
    rows = "".join(f"INSERT INTO at.rows VALUES ({number}, X'{value}');\n" for number, value in enumerate(values))
    ask(scene, database, f"CREATE DATABASE at; CREATE TABLE at.rows (n INT, v LONGBLOB);\n{rows}")
    assert ask(scene, database, "SELECT HEX(v) FROM at.rows ORDER BY n").splitlines() == values


def test_many_clients_count_together(scene, database):
    ask(scene, database, "CREATE DATABASE at; CREATE TABLE at.counter (n INT); INSERT INTO at.counter VALUES (0)")
    scene.client(f"mariadb-slap {database} --no-drop --create-schema=at --concurrency={CLIENTS} "
                 f"--number-of-queries={UPDATES} --query='UPDATE counter SET n = n + 1'", user=USER)
    assert ask(scene, database, "SELECT n FROM at.counter").strip() == str(UPDATES)
