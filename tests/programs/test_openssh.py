# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""OpenSSH: sshd runs itself anew for each connection, splits into a monitor and a child in a seccomp
sandbox, and hands the connection on to the user's process; scp starts ssh."""

import getpass
import os
import pathlib
import subprocess

import pytest
import scene as scenes

SERVER = """
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PermitUserEnvironment no
# A shell that sshd starts reads the user's ~/.bashrc, which may print or wait for what it likes.
SetEnv HOME={folder}/home
Subsystem sftp /usr/lib/openssh/sftp-server
"""
CLIENT = """
Host there
HostName {address}
Port {port}
User {user}
IdentityFile {folder}/user_key
IdentitiesOnly yes
UserKnownHostsFile {folder}/known_hosts
StrictHostKeyChecking accept-new
BatchMode yes
LogLevel ERROR
"""


@pytest.fixture
def there(scene):
    """The options that lead ssh and scp to a server of their own."""
    port = scene.port()
    fields = {"port": port, "address": scenes.ADDRESS, "folder": scene.folder,
              "user": getpass.getuser()}
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", scene.folder / name],
                       check=True)
    if os.geteuid() == 0:
        pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    server = scene.write("sshd_config", SERVER.format(**fields))
    client = scene.write("ssh_config", CLIENT.format(**fields))
    scene.server(f"/usr/sbin/sshd -D -e -f {server}", port)
    return f"-F {client}"


def test_ssh_carries_a_commands_input_and_output(scene, there):
    """The end of the input has to arrive, or sha256sum would wait for ever."""
    path = scene.file("input", 2_000_011)
    wanted = subprocess.run(["sha256sum"], stdin=path.open("rb"), capture_output=True, check=True)
    got = scene.client(["sh", "-c", f"ssh {there} there sha256sum <{path}"])
    assert got.encode() == wanted.stdout
    scene.client(["sh", "-c", f"ssh {there} there cat <{path} >{path}.got"])
    assert scenes.same_file(path, f"{path}.got")
    assert scene.client(f"ssh {there} there exit 17", status=17) == ""


@pytest.mark.parametrize("octets", [0, 5_000_000])
@pytest.mark.parametrize("protocol", ["sftp", "scp"])
def test_scp(scene, there, octets, protocol):
    path = scene.file("file", octets)
    option = "-O" if protocol == "scp" else "-s"
    scene.client(f"scp -q {option} {there} {path} there:{path}.there")
    assert scenes.same_file(path, f"{path}.there")
    scene.client(f"scp -q {option} {there} there:{path}.there {path}.back")
    assert scenes.same_file(path, f"{path}.back")
