# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""'anywarp doctor' as a user meets it, on this machine and on others that namespaces make."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from certificates import ADDRESSES, Authority, variables
from test_cli import ANYWARP, BUILD, LIBDIR, WRONG, anywarp


def test_doctor_tells_of_the_host_path():
    found = {word: anywarp("doctor", ANYWARP_HOST_PATH=word).stdout for word in ("", "auto", "on", "off")}
    assert "auto: connections between programs of one user go through memory after some messages" in found[""]
    assert "go through memory after some messages" in found["auto"]
    assert "on: connections between programs of one user go through memory at once" in found["on"]
    assert "off, by ANYWARP_HOST_PATH" in found["off"]


def test_doctor_shows_a_policy_that_is_not_the_default():
    assert "MPA policy" not in anywarp("doctor").stdout
    shown = anywarp("doctor", ANYWARP_MPA="markers=on")
    assert "markers=on,crc=on,revision=2" in shown.stdout
    wrong = anywarp("doctor", ANYWARP_MPA="markers=yes")
    assert wrong.returncode == 1
    assert "fail  MPA policy" in wrong.stdout and "'markers=yes'" in wrong.stdout


def test_doctor_tells_of_tls(tmp_path):
    authority = Authority(tmp_path / "authority")
    right = authority.issue("here", ADDRESSES, days=90)
    assert "TLS" not in anywarp("doctor").stdout

    def found(files, **more):
        told = anywarp("doctor", **{**variables(files), **more})
        return told.returncode, [line for line in told.stdout.splitlines() if line[6:].startswith("TLS ")]
    returned, lines = found(right)
    assert returned == 0 and len(lines) == 3 and lines[0].startswith("ok") and re.search("is valid for (89|90) days more", lines[0])
    returned, lines = found(authority.issue("soon", ADDRESSES, days=3))
    assert returned == 0 and lines[0].startswith("warn") and re.search("expires in [23] days", lines[0])
    returned, lines = found(authority.issue("old", ADDRESSES, days=-1))
    assert returned == 1 and lines[0].startswith("fail") and "has expired; remedy: renew it: peers refuse it" in lines[0]
    other = authority.issue("other", ADDRESSES, days=90)
    returned, lines = found(right._replace(key=other.key))
    assert returned == 1 and f"the key in {other.key} does not fit the certificate in {right.cert}" in lines[0]
    returned, lines = found(right._replace(key=right.cert))
    assert returned == 1 and f"ANYWARP_TLS_KEY: no key in {right.cert}" in lines[-3]
    stranger = Authority(tmp_path / "stranger")
    _, lines = found(right._replace(ca=stranger.cert))
    assert lines[0].startswith("warn")
    assert f"no ca in {stranger.cert} has issued the certificate in {right.cert}: unable to get local issuer certificate" in lines[0]
    returned, lines = found(right._replace(ca=right.key))
    assert returned == 1 and "ANYWARP_TLS_CA: no certificate in " in lines[0]
    late = stranger.issue("late", ADDRESSES, days=3)
    _, lines = found(right._replace(ca=late.cert))
    assert lines[0].startswith("warn") and f"the certificate in {late.cert} expires in" in lines[0]
    _, lines = found(right)
    assert re.search(r"ok +TLS records .*made in user space; (not by this kernel's TLS: .*|this kernel's TLS can do it, too)", lines[1])
    _, lines = found(right, ANYWARP_TLS_RECORDS="kernel")
    assert "made by the kernel" in lines[1] or lines[1].startswith("warn") and "made in user space: the kernel's TLS cannot do it: " in lines[1]
    _, lines = found(right)
    assert re.search(r"ok +TLS host path .*connections with TLS go through memory as others do", lines[2])
    _, lines = found(right, ANYWARP_TLS_HOST_PATH="off")
    assert re.search(r"ok +TLS host path .*off, by ANYWARP_TLS_HOST_PATH: connections with TLS stay on TCP", lines[2])
    returned, lines = found(right, ANYWARP_TLS="offer")
    assert returned == 0 and " offered; the certificate in " in lines[0]
    returned, lines = found(right, ANYWARP_TLS_KEY="/nowhere")
    assert returned == 1 and "ANYWARP_TLS_KEY: No such file or directory" in lines[0]
    returned, lines = found(right, ANYWARP_TLS_CERT=str(right.key))
    assert returned == 1 and "ANYWARP_TLS_CERT: no certificate in " in lines[0]
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libcrypto.so.3").write_text("no library, though there is one by its name" * 10)
    returned, lines = found(right, LD_LIBRARY_PATH=str(tmp_path / "lib"))
    assert returned == 1 and "libcrypto.so.3 is of no use; remedy: install OpenSSL 3 (Debian: libssl3): " in lines[0]
    returned, lines = found(right, ANYWARP_TLS="")
    assert returned == 1 and "ANYWARP_TLS_CERT is set without ANYWARP_TLS: nothing connects" in lines[0]
    right.key.chmod(0o644)
    returned, lines = found(right)
    assert returned == 0 and any(line.startswith("warn") and "for others than its owner" in line for line in lines)


def test_doctor_checks_each_rule_for_tls(tmp_path):
    files = Authority(tmp_path / "authority").issue("here", ADDRESSES, days=90)
    rules = tmp_path / "rules"

    def found(text):
        rules.write_text(text)
        told = anywarp("doctor", **{**variables(files), "ANYWARP_TLS": "", "ANYWARP_TLS_RULES": str(rules)})
        return told.returncode, [line for line in told.stdout.splitlines() if "TLS rules" in line or line[6:].startswith("TLS ")]
    returned, lines = found("require remote=192.0.2.0/24 name=a.example\n\noff\n")
    assert returned == 0 and len(lines) == 4 and f"{rules}: 2 rules" in lines[0] and "off where no rule matches; the certificate" in lines[1]
    returned, lines = found("off\n# a comment\nrequire remote=192.0.2.7/24\n")
    assert returned == 1 and lines[0].startswith("fail") and f"{rules}: line 3: '192.0.2.7/24': remote has bits set beyond" in lines[0]
    returned, lines = found("off remote=192.0.2.0/24\nrequire remote=192.0.2.7\n")
    assert returned == 0 and lines[0].startswith("warn") and f"{rules}: line 2 decides nothing: an earlier one matches all" in lines[0]
    rules.unlink()
    told = anywarp("doctor", **{**variables(files), "ANYWARP_TLS_RULES": str(rules)})
    assert told.returncode == 1 and f"{rules}: No such file or directory: it must be a readable text" in told.stdout


def test_doctor_tells_of_sockets():
    told = anywarp("doctor", ANYWARP_SOCKETS_RULES="on port=1")
    assert told.returncode == 0
    library = BUILD / "lib" / "libanywarp-sockets.so"
    assert (", by the rules in ANYWARP_SOCKETS_RULES" if library.exists() else
            "no libanywarp-sockets.so in ") in told.stdout
    wrong = anywarp("doctor", ANYWARP_SOCKETS_RULES="off\non port=0")
    assert wrong.returncode == 1
    assert "fail  sockets rules" in wrong.stdout and "RULES:2: '0': port must" in wrong.stdout


@pytest.mark.parametrize("variable, words", WRONG)
def test_doctor_fails_with_a_wrong_value(variable, words):
    """With which 'anywarp run' runs nothing. All the rest is right with the default in its place."""
    told = anywarp("doctor", **{variable: "bad"})
    assert told.returncode == 1 and told.stderr == ""
    wrong = [line for line in told.stdout.splitlines() if line.startswith("fail")]
    assert wrong == [f"fail  environment       {variable} {words}; remedy: correct or unset it"]


def test_doctor_prints_json(tmp_path):
    lines = [line[:4].strip() for line in anywarp("doctor").stdout.split("\n\n")[0].splitlines()]
    told = anywarp("doctor", "--json")
    assert told.returncode == 0 and told.stderr == "" and told.stdout.count("\n") == 1
    found = json.loads(told.stdout)
    assert found["runs"] is True and [each["result"] for each in found["findings"]] == lines
    assert all(set(each) == {"result", "what", "finding", "remedy"} for each in found["findings"])
    assert {"libibverbs.so.1", "device", "connection", "file descriptors"} <= {each["what"] for each in found["findings"]}
    strange = tmp_path / 'a "b"\\\n\x1b é\udcff'
    strange.mkdir()
    wrong = anywarp("doctor", "--json", ANYWARP_LOG="bad", XDG_RUNTIME_DIR=str(strange))
    assert wrong.returncode == 1
    found = json.loads(wrong.stdout)
    assert found["runs"] is False
    assert {"result": "fail", "what": "environment", "finding": f"ANYWARP_LOG {WRONG[0][1]}",
            "remedy": "correct or unset it"} in found["findings"]
    assert str(strange).replace("\udcff", "?") in " ".join(each["finding"] for each in found["findings"])


@pytest.mark.parametrize("args", [("--fast",), ("--json", "x"), ("x",)])
def test_doctor_unknown_argument_is_refused(args):
    done = anywarp("doctor", *args)
    assert done.returncode == 2 and done.stdout == ""
    assert f"unknown argument '{args[-1]}'" in done.stderr and "anywarp help doctor" in done.stderr


def few_fds(limit, *command):
    return subprocess.run(["sh", "-c", f'ulimit -n {limit} && exec "$@"', "sh", str(ANYWARP), *command],
                          capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="a sanitizer has files of its own")
def test_doctor_within_few_fds():
    """As many as rping needs suffice, and with fewer the remedy is the limit, whichever end lacks them."""
    told = few_fds(20, "doctor")
    assert told.returncode == 0, told.stdout
    assert "ok    connection" in told.stdout and "warn  file descriptors  the limit is 20;" in told.stdout
    for limit in range(8, 13):
        told = few_fds(limit, "doctor")
        failed = [line for line in told.stdout.splitlines() if line.startswith("fail")]
        assert told.returncode == 1 and failed, told.stdout
        assert all(line.endswith("remedy: raise the limit of file descriptors: ulimit -n 65536") for line in failed)


@pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="the sanitizer's library has to come first")
def test_doctor_fails_where_the_accepting_end_dies(tmp_path):
    """Behind the message, which the connecting end knows to be delivered."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no compiler")
    library, source = tmp_path / "die.so", tmp_path / "die.c"
    source.write_text("#include <stdlib.h>\nint ibv_dereg_mr(void *mr) { (void)mr; abort(); }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    told = anywarp("doctor", LD_PRELOAD=str(library))
    assert told.returncode == 1
    assert "fail  connection        the process that accepts died of signal 6; remedy: " in told.stdout


def test_doctor_finds_network_namespaces_that_need_no_user_namespace():
    """As root has them in a chroot, where the kernel refuses user namespaces."""
    done = subprocess.run(["unshare", "--user", "--map-root-user", "sh", "-c",
                           f"echo 0 >/proc/sys/user/max_user_namespaces && ! unshare --user true 2>&1 && exec {ANYWARP} doctor"],
                          capture_output=True, text=True, timeout=60, check=False)
    if "namespaces" not in done.stdout:
        pytest.skip(f"no namespaces here: {done.stderr}")
    assert "ok    namespaces        network namespaces can be made" in done.stdout


def test_doctor_finds_that_the_main_job_works():
    done = anywarp("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    for what in ("libibverbs.so.1", "librdmacm.so.1", "device", "address", "connection",
                 "TCP over IPv4"):
        assert f"ok    {what}" in done.stdout
    assert "\nfail" not in done.stdout


@pytest.mark.parametrize("word, line", [
    ("", "ok    persona           iwarp: "), ("iwarp", "ok    persona           iwarp: "),
    ("roce", "ok    persona           roce, by ANYWARP_PERSONA")])
def test_doctor_tells_the_persona(word, line):
    told = anywarp("doctor", ANYWARP_PERSONA=word)
    assert told.returncode == 0, told.stdout + told.stderr
    assert line in told.stdout


def test_doctor_fails_in_a_persona_that_there_is_not():
    told = anywarp("doctor", ANYWARP_PERSONA="ib")
    assert told.returncode == 1
    assert "fail  environment       ANYWARP_PERSONA is 'ib': it must be iwarp or roce" in told.stdout


@pytest.mark.parametrize("path", ["/dev/infiniband", "/sys/class/infiniband"])
def test_doctor_tells_of_the_device_s_files(path, tmp_path):
    """Those of this machine, and those that a program under `anywarp run` sees, which doctor then is."""
    env = {"XDG_RUNTIME_DIR": str(tmp_path)}
    here = "here" if os.path.exists(path) else "not here"
    assert f"{path} is {here};" in anywarp("doctor", **env).stdout
    assert not list(tmp_path.iterdir())
    shown = anywarp("run", "--device-files", "--", str(ANYWARP), "doctor",
                    ASAN_OPTIONS="verify_asan_link_order=0", **env)
    assert f"{path} is here;" in shown.stdout


def test_doctor_tells_what_device_files_would_offer(tmp_path):
    offer = f"shows a program both, by files in {tmp_path}"
    env = {"XDG_RUNTIME_DIR": str(tmp_path)}
    assert f"anywarp run --device-files {offer}" in anywarp("doctor", **env).stdout
    assert f"anywarp run {offer}" in anywarp("doctor", ANYWARP_PERSONA="roce", **env).stdout
    nowhere = anywarp("doctor", XDG_RUNTIME_DIR=str(tmp_path / "none"))
    assert nowhere.returncode == 0
    assert "warn  device files" in nowhere.stdout and "set XDG_RUNTIME_DIR" in nowhere.stdout


@pytest.mark.parametrize("persona, kind, status", [("", "warn", 0), ("roce", "fail", 1)])
def test_doctor_tells_that_there_is_no_place_for_device_files(persona, kind, status):
    """Without them no program of the roce persona runs."""
    done = subprocess.run(["unshare", "--mount", "--map-root-user", "sh", "-c",
                           f"mount -t tmpfs -o ro none /tmp && exec {ANYWARP} doctor"],
                          capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_RUNTIME_DIR": "", "ANYWARP_PERSONA": persona})
    if not done.stdout:
        pytest.skip(f"no namespaces here: {done.stderr}")
    assert f"\n{kind}  device files      /tmp cannot be written to: anywarp run" in done.stdout
    assert done.returncode == status


def test_doctor_tells_what_a_short_backlog_does():
    done = subprocess.run(["unshare", "--net", "--map-root-user", "sh", "-c",
                           f"ip link set lo up && echo 16 >/proc/sys/net/core/somaxconn && exec {ANYWARP} doctor"],
                          capture_output=True, text=True, timeout=60, check=False)
    if not done.stdout:
        pytest.skip(f"no namespaces here: {done.stderr}")
    assert "warn  listen backlog    16; below 128 clients that connect at the same time have to try again; remedy: " \
           "sysctl -w net.core.somaxconn=4096\n" in done.stdout


COUNT_FDS = """
import os, socket, threading
fds = lambda: len(os.listdir("/proc/self/fd"))
listener = socket.create_server(("127.0.0.1", 0))
before, kept = fds(), []
def serve():
    for _ in range(10):
        kept.append(listener.accept()[0])
        kept[-1].sendall(kept[-1].recv(1))
server = threading.Thread(target=serve)
server.start()
for _ in range(10):
    client = socket.create_connection(listener.getsockname())
    client.sendall(b"x")
    assert client.recv(1) == b"x"
    kept.append(client)
server.join()
print(fds() - before)
"""


@pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="a sanitizer's run-time library goes first, and anywarp sockets puts its own there")
def test_doctor_tells_how_many_fds_a_connection_takes():
    """Of a sockets program each end takes one, as over TCP: both are in this process. The control socket, the proxy
    process's own fds and the memory of records come with the first connection."""
    assert "a connection takes one, or three through shared memory" in anywarp("doctor").stdout
    plain, carried = (int(subprocess.run([str(ANYWARP), "sockets", "--rule", rule, "--", sys.executable, "-c",
                                          COUNT_FDS], capture_output=True, text=True, timeout=60,
                                         check=True).stdout) for rule in ("off", "on"))
    assert plain == 20 and 20 <= carried < 25


def doctor_of_module(folder, module, devices):
    """What doctor says where /sys/module and /sys/class are these: as the kernel's would be with anywarp.ko."""
    for part in ("module", "class/infiniband"):
        folder.joinpath(part).mkdir(parents=True)
    if module:
        folder.joinpath("module", module).mkdir()
    for name, description in devices.items():
        folder.joinpath("class/infiniband", name).mkdir()
        folder.joinpath("class/infiniband", name, "node_desc").write_text(description, encoding="ascii")
    mounts = " && ".join(f"mount --bind {folder}/{part} /sys/{part}" for part in ("module", "class"))
    done = subprocess.run(["unshare", "--mount", "--map-root-user", "sh", "-c", f"{mounts} && exec {ANYWARP} doctor"],
                          capture_output=True, text=True, timeout=60, check=False)
    if not done.stdout:
        pytest.skip(f"no namespaces here: {done.stderr}")
    return [line for line in done.stdout.splitlines() if line[6:].startswith("kernel module")]


@pytest.mark.parametrize("module, devices, told", [
    ("anywarp", {"aw0": "anywarp: iWARP in software\n"}, "ok    kernel module     loaded, with 1 device: aw0"),
    ("anywarp", {}, "warn  kernel module     loaded, without a device; remedy: rdma link add "),
    ("anywarp", {"mlx5_0": "host HCA-1\n", "e": ""}, "warn  kernel module     loaded, without a device; "),
    ("siw", {"siw0": "host\n"}, "ok    kernel module     not installed; "),
])
def test_doctor_tells_of_the_kernel_module(tmp_path, module, devices, told):
    found, = doctor_of_module(tmp_path, module, devices)
    assert found.startswith(told)


def test_doctor_names_each_device_of_the_kernel_module(tmp_path):
    found, = doctor_of_module(tmp_path, "anywarp", {name: "anywarp" for name in ("a", "b", "c" * 60)})
    assert "with 3 devices:" in found and sorted(found.split()[-3:]) == ["a", "b", "c" * 60]


def test_doctor_tells_what_is_preloaded_before_us():
    done = anywarp("doctor", LD_PRELOAD="/no/such/libibverbs.so.1")
    assert done.returncode == 1
    assert "fail  environment" in done.stdout and "unset LD_PRELOAD" in done.stdout


@pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="the sanitizer's library has to come first")
def test_doctor_takes_our_own_library_in_ld_preload():
    """As docs/programs.md sets it for programs that bring a libibverbs."""
    done = anywarp("doctor", LD_PRELOAD=f"/no/such/other.so:{LIBDIR}/libibverbs.so.1 {LIBDIR}/../lib/librdmacm.so.1")
    assert done.returncode == 0, done.stdout
    assert "ok    environment" in done.stdout
    assert "fail  environment" in anywarp("doctor", LD_PRELOAD=f"{LIBDIR}/libibverbs.so.1:/usr/lib/librdmacm.so").stdout


def test_doctor_fails_without_libraries(tmp_path):
    lone = tmp_path / "bin" / "anywarp"
    lone.parent.mkdir()
    shutil.copy(ANYWARP, lone)
    done = anywarp("doctor", command=lone)
    assert done.returncode == 1
    assert "fail  libraries" in done.stdout


def test_doctor_takes_no_argument():
    done = anywarp("doctor", "now")
    assert done.returncode == 2
    assert "now" in done.stderr
