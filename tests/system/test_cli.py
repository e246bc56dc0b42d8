# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The anywarp command as a user meets it. ANYWARP_BUILD names the build directory."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import pytest
from open_build import open_build

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
ANYWARP = BUILD / "bin" / "anywarp"
LIBDIR = str(BUILD / "lib")


def anywarp(*args, command=ANYWARP, **env):
    return subprocess.run([str(command), *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env={**os.environ, **env}, check=False)


def test_version_names_the_project():
    done = anywarp("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("anywarp 0.")


@pytest.mark.parametrize("args", [(), ("help",), ("--help",), ("-h",)])
def test_help_lists_every_subcommand(args):
    done = anywarp(*args)
    assert done.returncode == 0
    for name in ("run", "check", "sockets", "stat", "capture", "doctor", "help", "--version"):
        assert f"\n  {name} " in done.stdout


@pytest.mark.parametrize("name", ["run", "check", "sockets", "stat", "capture", "doctor", "help", "bench"])
def test_help_of_a_subcommand_shows_its_usage(name):
    done = anywarp("help", name)
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: anywarp {name}")
    assert anywarp(name, "--help").stdout == anywarp(name, "-h").stdout == done.stdout


@pytest.mark.parametrize("args", [("run", "--log", "info", "--help"), ("check", "--halt", "--help"), ("sockets", "--rule", "on", "-h", "true"),
                                  ("stat", "--json", "--help"), ("stat", "1", "-h"), ("capture", "-w", "file", "--help")])
def test_help_behind_other_options(args):
    done = anywarp(*args)
    assert done.returncode == 0 and not done.stderr
    assert done.stdout == anywarp("help", args[0]).stdout


@pytest.mark.parametrize("args", [("fly",), ("help", "fly"), ("--fly",)])
def test_unknown_subcommand_points_to_help(args):
    done = anywarp(*args)
    assert done.returncode == 2
    assert "fly" in done.stderr and "anywarp help" in done.stderr


@pytest.mark.parametrize("args", [("--version",), ("help",), ("run", "--help"), ("doctor",),
                                  ("sockets", "--check")])
def test_output_that_cannot_be_written_is_an_error(args):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([str(ANYWARP), *args], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False)
    assert done.returncode == 1
    assert "cannot write the output: No space left on device" in done.stderr


def test_run_puts_our_libraries_first_and_keeps_the_rest():
    done = anywarp("run", "--", "sh", "-c", "echo $LD_LIBRARY_PATH", LD_LIBRARY_PATH="/a:/b")
    assert done.returncode == 0
    assert done.stdout == f"{LIBDIR}:/a:/b\n"


def system_library(name):
    found = sorted(pathlib.Path("/usr/lib").glob(f"*-linux-gnu*/{name}"))
    if not found:
        pytest.skip(f"no {name} here")
    return found[0]


@pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="the sanitizer's library has to come first")
def test_run_notes_a_library_that_is_preloaded_before_ours():
    other = str(system_library("libibverbs.so.1"))
    for listed in (other, f"/no/such.so:{other}", f"{LIBDIR}/libibverbs.so.1 {other}"):
        done = anywarp("run", "echo", "here", LD_PRELOAD=listed)
        assert done.stdout == "here\n"
        assert f"anywarp run: note: LD_PRELOAD names {other}, which the loader takes before anywarp's" in done.stderr
    for listed in ("", "libibverbs.so.1", f"{LIBDIR}/libibverbs.so.1:{LIBDIR}/librdmacm.so.1"):
        assert "note:" not in anywarp("run", "true", LD_PRELOAD=listed).stderr


@pytest.mark.parametrize("line, noted", [
    ("LD_LIBRARY_PATH=/opt/lib exec echo here", True), ("unset LD_LIBRARY_PATH; echo here", True),
    ("export LD_LIBRARY_PATH=/opt/lib:$LD_LIBRARY_PATH; echo here", False),
    ("export LD_LIBRARY_PATH=${LD_LIBRARY_PATH}:/opt/lib; echo here", False), ("echo here", False)])
def test_run_notes_a_script_that_sets_the_path_of_libraries_anew(tmp_path, line, noted):
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\n{line}\n")
    script.chmod(0o755)
    for path, env in ((str(script), {}), ("script", {"PATH": f"{tmp_path}:{os.environ['PATH']}"})):
        done = anywarp("run", path, **env)
        assert done.returncode == 0 and done.stdout == "here\n"
        assert (f"note: {script} is a script that sets LD_LIBRARY_PATH anew" in done.stderr) is noted
        assert noted or not done.stderr


@pytest.mark.parametrize("flags, words", [
    ((), None), (("-static",), "is linked statically"), (("-static-pie",), "is linked statically"),
    (("-Wl,--disable-new-dtags,-rpath,/no/such:{}",), "has an RPATH, by which the loader takes {}/libibverbs.so.1"),
    (("-Wl,--disable-new-dtags,-rpath,/no/such",), None), (("-Wl,--enable-new-dtags,-rpath,{}",), None)])
def test_run_notes_a_program_that_takes_none_of_our_libraries(tmp_path, flags, words):
    other = str(system_library("libibverbs.so.1").parent)
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no compiler")
    source = tmp_path / "program.c"
    source.write_text("int main(void) { return 3; }\n")
    subprocess.run([compiler, "-o", str(tmp_path / "program"), str(source), *(flag.format(other) for flag in flags)], check=True)
    done = anywarp("run", str(tmp_path / "program"))
    assert done.returncode == 3
    assert done.stderr == "" if words is None else f"note: {tmp_path}/program {words.format(other)}" in done.stderr


def test_run_passes_arguments_and_status_unchanged():
    done = anywarp("run", "sh", "-c", 'printf "%s|" "$@"; exit 42', "sh", "--log", "a b", "--")
    assert done.returncode == 42
    assert done.stdout == "--log|a b|--|"


@pytest.mark.parametrize("args", [("--log", "debug"), ("--log=debug",)])
def test_run_log_sets_the_level(args):
    done = anywarp("run", *args, "--", "sh", "-c", "echo $ANYWARP_LOG")
    assert done.stdout == "debug\n"


@pytest.mark.parametrize("args", [("--log", "loud", "true"), ("--log",), ("--log=", "true")])
def test_run_wrong_log_level_names_the_right_ones(args):
    done = anywarp("run", *args)
    assert done.returncode == 125
    assert "error warn info debug" in done.stderr


@pytest.mark.parametrize("args", [("--mpa", "crc=off,rtr=read"), ("--mpa=crc=off,rtr=read",)])
def test_run_mpa_sets_the_policy(args):
    done = anywarp("run", *args, "--", "sh", "-c", "echo $ANYWARP_MPA")
    assert done.stdout == "crc=off,rtr=read\n"


@pytest.mark.parametrize("args, words", [
    (("--mpa", "crc=maybe", "true"), "'crc=maybe': crc must be on or off"),
    (("--mpa=revision=1,p2p=on", "true"), "'p2p': needs revision=2"),
    (("--mpa",), "needs a list"),
])
def test_run_wrong_mpa_list_names_the_mistake(args, words):
    done = anywarp("run", *args)
    assert done.returncode == 125
    assert words in done.stderr


@pytest.mark.parametrize("args", [("--host-path", "{}"), ("--host-path={}",)])
@pytest.mark.parametrize("word", ["auto", "on", "off"])
def test_run_host_path_sets_it(args, word):
    done = anywarp("run", *[arg.format(word) for arg in args], "--", "sh", "-c", "echo $ANYWARP_HOST_PATH")
    assert done.stdout == f"{word}\n"


@pytest.mark.parametrize("args", [("--host-path", "maybe", "true"), ("--host-path", "auto on", "true"),
                                  ("--host-path=", "true"), ("--host-path",)])
def test_run_wrong_host_path_names_the_right_ones(args):
    done = anywarp("run", *args)
    assert done.returncode == 125
    assert "--host-path needs one of: auto on off" in done.stderr


# What is said of the value "bad".
WRONG = [
    ("ANYWARP_LOG", "is 'bad': it must be error, warn, info or debug"),
    ("ANYWARP_PERSONA", "is 'bad': it must be iwarp or roce"),
    ("ANYWARP_HOST_PATH", "is 'bad': it must be auto, on or off"),
    ("ANYWARP_SOCKETS_RECORD", "is 'bad': it must be on, off or tls"),
    ("ANYWARP_SOCKETS_PAIR_MS", "is 'bad': it must be a number from 0 to 60000"),
    ("ANYWARP_VARY", "is 'bad': it must be a number from 0 to 4294967295"),
    ("ANYWARP_TLS", "is 'bad': it must be off, require or offer"),
]


@pytest.mark.parametrize("name", ["run", "sockets"])
@pytest.mark.parametrize("variable, words", [("ANYWARP_MPA", "'bad'"), *WRONG])
def test_a_wrong_value_in_the_environment_is_refused(name, variable, words):
    done = anywarp(name, "--", "true", **{variable: "bad"})
    assert done.returncode == 125
    assert variable in done.stderr and words in done.stderr
    assert anywarp("run", "--", "true", **{variable: ""}).returncode == 0


def test_each_wrong_value_is_named():
    done = anywarp("run", "--", "true", **{variable: "bad" for variable, _ in WRONG})
    assert done.returncode == 125
    assert done.stderr.splitlines() == [f"anywarp run: {variable} {words}" for variable, words in WRONG]


@pytest.mark.parametrize("option, variable", [("--mpa=crc=off", "ANYWARP_MPA"), ("--log=info", "ANYWARP_LOG"), ("--persona=iwarp", "ANYWARP_PERSONA"),
                                              ("--host-path=off", "ANYWARP_HOST_PATH")])
def test_run_option_stands_in_for_a_wrong_value(option, variable):
    assert anywarp("run", option, "--", "true", **{variable: "bad"}).returncode == 0


def test_run_without_a_program_gives_an_example():
    done = anywarp("run", "--")
    assert done.returncode == 125
    assert "no program to run" in done.stderr and "rping" in done.stderr


def test_run_unknown_option_is_refused():
    done = anywarp("run", "--fast", "true")
    assert done.returncode == 125
    assert "--fast" in done.stderr


@pytest.mark.parametrize("name", ["no-such-program", "/no/such/program"])
def test_run_missing_program_is_127(name):
    done = anywarp("run", name)
    assert done.returncode == 127
    assert name in done.stderr and "install" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may search every directory")
def test_run_missing_program_is_127_past_a_directory_that_is_closed(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    done = anywarp("run", "no-such-program", PATH=f"{closed}:{os.environ['PATH']}")
    assert done.returncode == 127
    assert "no program 'no-such-program'" in done.stderr


def test_run_program_without_execute_bit_is_126(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    done = anywarp("run", str(program))
    assert done.returncode == 126
    assert "chmod +x" in done.stderr


def test_run_looks_through_path_as_exec_does(tmp_path):
    """A file of the name is one that may not be executed; a directory is none; an empty element is the working directory."""
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "directory").mkdir()
    found = anywarp("run", "program", PATH=str(tmp_path))
    assert found.returncode == 126 and f"{tmp_path}/program may not be executed" in found.stderr
    assert anywarp("run", "directory", PATH=str(tmp_path)).returncode == 127
    for path in ("", f":{tmp_path}/none", f"{tmp_path}/none:"):
        here = subprocess.run([str(ANYWARP), "run", "program"], capture_output=True, text=True, timeout=60, check=False,
                              cwd=tmp_path, env={**os.environ, "PATH": path})
        assert here.returncode == 126 and "./program may not be executed" in here.stderr


def test_run_without_path_has_the_system_s():
    done = subprocess.run([str(ANYWARP), "run", "sh", "-c", "exit 3"], capture_output=True, text=True, timeout=60,
                          check=False, env={key: value for key, value in os.environ.items() if key != "PATH"})
    assert done.returncode == 3 and not done.stderr


@pytest.mark.parametrize("path", [None, "", "/usr/bin"])
def test_run_program_without_a_name_is_127(path):
    done = anywarp("run", "--", "", **({} if path is None else {"PATH": path}))
    assert done.returncode == 127 and "no program ''" in done.stderr


def test_run_program_with_missing_interpreter_is_126(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    done = anywarp("run", str(program))
    assert done.returncode == 126
    assert "interpreter" in done.stderr


def test_run_without_libraries_says_where_it_looked(tmp_path):
    lone = tmp_path / "bin" / "anywarp"
    lone.parent.mkdir()
    shutil.copy(ANYWARP, lone)
    done = anywarp("run", "true", command=lone)
    assert done.returncode == 125
    assert str(tmp_path) in done.stderr and "./dev build" in done.stderr


@pytest.mark.parametrize("mark", ":;$")
def test_run_refuses_a_directory_that_the_loader_cannot_be_told(tmp_path, mark):
    """It would take the system's libraries."""
    bin_, lib = (tmp_path / f"any{mark}warp" / name for name in ("bin", "lib"))
    bin_.mkdir(parents=True)
    lib.symlink_to(BUILD / "lib")
    shutil.copy(ANYWARP, bin_)
    assert anywarp("run", "true", command=bin_ / "anywarp").returncode == 0
    lib.unlink()
    lib.mkdir()
    for name in ("libibverbs.so.1", "librdmacm.so.1"):
        shutil.copy(BUILD / "lib" / name, lib)
    done = anywarp("run", "true", command=bin_ / "anywarp")
    assert done.returncode == 125
    assert f"cannot name '{lib}'" in done.stderr and "somewhere else" in done.stderr


@pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="sanitizers need /proc")
def test_no_libraries_are_found_without_proc(tmp_path):
    """The command says so, and does not show what it happens to have in memory."""
    lone = tmp_path / "anywarp"
    shutil.copy(ANYWARP, lone)
    done = subprocess.run(["unshare", "--mount", "--map-root-user", "sh", "-c",
                           f"mount -t tmpfs none /proc || exit 9; exec {lone} run true"],
                          capture_output=True, text=True, timeout=60, check=False, errors="backslashreplace")
    if done.returncode in (1, 9):
        pytest.skip(f"no namespaces here: {done.stderr}")
    assert done.returncode == 125
    assert "/anywarp: mount /proc" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a program capabilities")
def test_run_notes_a_program_with_file_capabilities():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        program = pathlib.Path(folder, "program")
        shutil.copy("/bin/true", program)
        os.chmod(folder, 0o755)
        try:
            # CAP_NET_RAW, effective: struct vfs_cap_data of revision 2.
            os.setxattr(program, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
        except OSError as error:
            pytest.skip(f"no file capabilities here: {error}")
        for user, noted in ((None, False), (61000 + os.getpid() % 2000, True)):
            done = subprocess.run([open_build(BUILD) / "bin" / "anywarp", "run", program], capture_output=True, text=True,
                                  timeout=60, check=False, user=user)
            assert ("file capabilities" in done.stderr) == noted, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's program")
def test_run_notes_a_set_user_id_program(tmp_path):
    program = tmp_path / "program"
    shutil.copy("/bin/true", program)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    done = anywarp("run", str(program))
    assert done.returncode == 0
    assert "set-user-ID" in done.stderr and "copy" in done.stderr


def test_run_shows_the_device_s_files_where_they_are_wanted(tmp_path):
    """A node that is a character device, an interface, and nothing else of the two directories."""
    look = ("ls /sys/class/infiniband; test -c /dev/infiniband/uverbs_anywarp0 &&"
            " ls /sys/class/infiniband/anywarp0/device/net")
    done = anywarp("run", "--device-files", "--", "sh", "-c", look, XDG_RUNTIME_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "anywarp0" and len(done.stdout.splitlines()) >= 2
    assert anywarp("run", "--", "sh", "-c", look, XDG_RUNTIME_DIR=str(tmp_path)).returncode != 0


def test_run_leaves_other_files_as_they_are(tmp_path):
    """What is opened and made elsewhere, with the rights that the program says."""
    make = ("import os, sys; os.umask(0); at = os.open(sys.argv[1], os.O_DIRECTORY);"
            " made = [os.open('made', os.O_CREAT | os.O_RDWR, 0o640, dir_fd=at),"
            " os.open('/dev/shm', os.O_TMPFILE | os.O_RDWR, 0o600)];"
            " print(*[oct(os.fstat(fd).st_mode & 0o777) for fd in made])")
    done = anywarp("run", "--device-files", "--", sys.executable, "-c", make, str(tmp_path),
                   XDG_RUNTIME_DIR=str(tmp_path))
    assert done.stdout.split() == ["0o640", "0o600"], done.stderr


@pytest.mark.parametrize("runtime", ["/nowhere", "relative", "open"])
def test_run_falls_back_where_the_directory_is_no_use(tmp_path, runtime):
    """As sudo and containers leave it. doctor says so."""
    tmp_path.chmod(0o777)
    env = {"XDG_RUNTIME_DIR": str(tmp_path) if runtime == "open" else runtime}
    look = "test -c /dev/infiniband/uverbs_anywarp0 && echo $ANYWARP_PATHS"
    done = anywarp("run", "--persona", "roce", "--", "sh", "-c", look, **env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("/tmp/anywarp-sys-")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
def test_run_goes_where_nobody_was_before():
    """In /tmp, where somebody else had made the directory."""
    user = 61000 + os.getpid() % 2000
    first = pathlib.Path(f"/tmp/anywarp-sys-{user}-{os.stat('/proc/self/ns/net').st_ino}")
    first.mkdir(mode=0o700)
    second = None
    try:
        done = subprocess.run([open_build(BUILD) / "bin" / "anywarp", "run", "--device-files", "--", "sh", "-c",
                               "echo $ANYWARP_PATHS"], capture_output=True, text=True, check=False, user=user,
                              env={"PATH": "/usr/bin:/bin", "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"})
        assert done.returncode == 0, done.stderr
        second = pathlib.Path(done.stdout.strip())
        assert second.name.startswith(first.name + "-") and second.stat().st_uid == user
        assert not list(first.iterdir())
    finally:
        first.rmdir()
        if second:
            shutil.rmtree(second)


def test_run_does_not_trust_a_directory_of_somebody_else(tmp_path):
    """Where others may write, they could lead the program anywhere."""
    done = anywarp("run", "--device-files", "true", XDG_RUNTIME_DIR=str(tmp_path))
    assert done.returncode == 0
    next(tmp_path.iterdir()).chmod(0o777)
    done = anywarp("run", "--device-files", "true", XDG_RUNTIME_DIR=str(tmp_path))
    assert done.returncode == 125 and "XDG_RUNTIME_DIR" in done.stderr


def test_run_tells_why_device_files_cannot_be_written(tmp_path):
    """And leaves no half of one."""
    done = subprocess.run(["sh", "-c", f"trap '' XFSZ; ulimit -f 0; exec {ANYWARP} run --device-files true"],
                          capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)})
    assert done.returncode == 125 and "File too large" in done.stderr
    assert not list(tmp_path.rglob("part-*"))
