# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""vsftpd with tnftp: a process for each session that gives up its rights, chroots and enters a
seccomp sandbox, and a second connection for each file, opened by either end."""

import os

import pytest
import scene as scenes

OCTETS = 19_000_000
DATA_PORTS = 8
SETTINGS = """
listen=YES
background=NO
listen_address={address}
listen_port={port}
anonymous_enable=YES
no_anon_password=YES
anon_root={folder}/ftp
local_enable=NO
write_enable=YES
anon_upload_enable=YES
anon_umask=022
pasv_min_port={first}
pasv_max_port={last}
connect_from_port_20=NO
secure_chroot_dir={folder}/empty
xferlog_enable=NO
vsftpd_log_file={folder}/log
"""
# As root it drops its rights to the user ftp; another user has none to drop.
AS_USER = "run_as_launching_user=YES\none_process_model=YES\nseccomp_sandbox=NO\n"


@pytest.fixture(params=["two_processes", "one_process"])
def ftp(scene, request):
    """The server's URL. Its passive ports follow its own."""
    port = scene.port(DATA_PORTS)
    scene.pair = False  # the server becomes the user ftp
    for name in ("ftp", "empty"):
        scene.directory(name)
    up = scene.directory("ftp/up", "ftp")
    up.chmod(0o755)
    text = SETTINGS.format(address=scenes.ADDRESS, port=port, folder=scene.folder, first=port + 1,
                           last=port + DATA_PORTS)
    if request.param == "one_process":
        text += "one_process_model=YES\n"
    path = scene.write("vsftpd.conf", text + ("" if os.geteuid() == 0 else AS_USER))
    scene.server(f"vsftpd {path}", port)
    return f"ftp://{scenes.ADDRESS}:{port}"


def judge_data(scene, unused=False):
    """Every connection but those to the server's own port carried a file or a list; or nothing, of an
    empty file or none: the server closes it before it has used it."""
    control = scene.ports[0]
    ports = [port for port in range(control + 1, control + DATA_PORTS + 1)
             if scene.tap.seen(port).opened]
    assert ports
    for port in ports:
        scene.judge(port, unused=unused, silent=True)  # an upload


@pytest.mark.parametrize("octets", [0, 1, OCTETS])
def test_passive(scene, ftp, octets):
    path = scene.file("ftp/file", octets)
    scene.client(f"tnftp -V -o {scene.folder}/got {ftp}/file")
    assert scenes.same_file(path, scene.folder / "got")
    scene.client(f"tnftp -V -u {ftp}/up/there {path}")
    assert scenes.same_file(path, scene.folder / "ftp" / "up" / "there")
    judge_data(scene, unused=not octets)


def test_active(scene, ftp):
    """The server connects to the client, from a process that may do little else."""
    path = scene.file("ftp/file", OCTETS)
    scene.client(f"tnftp -A -V -o {scene.folder}/got {ftp}/file")
    assert scenes.same_file(path, scene.folder / "got")
    scene.client(f"tnftp -A -V -u {ftp}/up/there {path}")
    assert scenes.same_file(path, scene.folder / "ftp" / "up" / "there")


def test_a_session_of_many_commands(scene, ftp):
    for number in range(12):
        scene.file(f"ftp/file{number}", number * 1000 + 1)
    script = scene.write("script", "prompt off\nls\nmget *\nquit\n")
    host, port = ftp.rsplit("/", 1)[1].split(":")
    scene.client(["sh", "-c", f"tnftp -a -V {host} {port} <{script}"])
    for number in range(12):
        assert scenes.same_file(scene.folder / f"ftp/file{number}", scene.folder / f"file{number}")
    judge_data(scene, unused=True)  # the directory is no file
