# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""examples/container and .devcontainer, as their files have it, without the services that they are for: what a Dockerfile does is done in
a fresh Debian, and bwrap gives what the pods are given. test_ci.py has the examples for CI."""

import errno
import json
import pathlib
import re
import shlex

import pytest
import seccomp
import yaml
from conftest import LISTENS, PACKAGES

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
# Of what the seccomp profile RuntimeDefault refuses, the calls that a library like ours might want.
REFUSED = ["add_key", "bpf", "clone3", "io_uring_enter", "io_uring_register", "io_uring_setup", "kcmp", "keyctl", "mount",
           "name_to_handle_at", "open_by_handle_at", "perf_event_open", "pidfd_getfd", "process_madvise", "setns",
           "unshare", "userfaultfd"]
# As Kubernetes runs a pod of rping.yaml: a user that is nobody, no capability, a root that cannot be written.
BWRAP = """setpriv --reuid {user} --regid {user} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
 bwrap --ro-bind / / --ro-bind /run/hosts /etc/hosts --dev /dev --proc /proc --tmpfs /tmp --tmpfs /run --unshare-user \
 --unshare-pid --unshare-ipc --unshare-uts --cap-drop ALL --die-with-parent \
 --seccomp 9 9</run/files/refused.bpf """


@pytest.fixture(scope="module", autouse=True)
def refused():
    """The filter for bwrap. glibc takes another call for clone3 where there is none."""
    calls = seccomp.SyscallFilter(seccomp.ALLOW)
    for name in REFUSED:
        calls.add_rule(seccomp.ERRNO(errno.ENOSYS if name == "clone3" else errno.EPERM), name)
    with open(PACKAGES / "refused.bpf", "wb") as file:
        calls.export_bpf(file)


def instructions(path=EXAMPLES / "container" / "Dockerfile"):
    text = path.read_text().replace("\\\n", " ")
    return [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]


def installs(debian, command):
    """Alone, since its apt waits for no other test's."""
    debian.run(f"export DEBIAN_FRONTEND=noninteractive; flock /var/cache/apt/archives sh -ec {shlex.quote(command)}", network="host")


def documents():
    return list(yaml.safe_load_all((EXAMPLES / "container" / "rping.yaml").read_text()))


def pod_spec(kind):
    document, = (document for document in documents() if document["kind"] == kind)
    return document["spec"].get("template", document)["spec"]


def entry_point():
    return json.loads(dict(instructions())["ENTRYPOINT"])


def confined(kind, command=None):
    """The command line of a pod, or of a command in its place."""
    spec = pod_spec(kind)
    container, = spec["containers"]
    return BWRAP.format(user=spec["securityContext"]["runAsUser"]) + shlex.join(
        command or entry_point() + container["args"])


def test_the_dockerfile_installs(debian):
    for word, rest in instructions():
        if word == "COPY":
            *sources, target = rest.split()
            debian.run(f"mkdir -p {target}; cd /run/files; cp {' '.join(sources)} {target}")
        elif word == "RUN":
            installs(debian, rest)
    command = shlex.join(entry_point() + json.loads(dict(instructions())["CMD"]))
    assert "\nfail" not in debian.run(command)


def test_mpi_and_perftest_are_in_the_image(debian):
    """UCX shows the device, by the variables that the image sets."""
    told = debian.run(f"export {dict(instructions())['ENV']}; command -v ib_write_bw mpirun; anywarp run --persona roce -- ucx_info -d")
    assert "Device: anywarp0:1" in told, told


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_no_pod_asks_for_a_privilege(kind):
    spec = pod_spec(kind)
    container, = spec["containers"]
    assert spec["securityContext"] == {"runAsNonRoot": True, "runAsUser": 65534,
                                       "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                            "capabilities": {"drop": ["ALL"]}}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)


def test_a_pod_is_confined(debian):
    """Else the next test shows nothing."""
    debian.apt("update")
    debian.apt("install bubblewrap")
    told = debian.run("cp /etc/hosts /run/hosts\n" + confined("Pod", [
        "sh", "-c", "id -u; grep -E '^(CapEff|NoNewPrivs)' /proc/self/status; unshare -U true || touch /etc/x || echo no file"]))
    assert told.split("\n")[0] == "65534" and told.endswith("no file\n"), told
    assert re.search(r"CapEff:\s+0+\n", told) and re.search(r"NoNewPrivs:\s+1\n", told), told


def test_the_pods_ping_each_other(debian):
    told = debian.run(LISTENS + f"""
        (cat /etc/hosts; echo 127.0.0.1 rping-server) >/run/hosts
        {confined("Pod")} >/tmp/server 2>&1 &
        listens 7174
        {confined("Job")}
        kill $!
        cat /tmp/server""")
    assert "\nping data: rdma-ping-9:" in told and "\nserver DISCONNECT EVENT" in told, told


def test_sockets_programs_in_pods(debian):
    debian.apt("install netcat-openbsd")
    told = debian.run(LISTENS + f"""
        cp /etc/hosts /run/hosts
        {confined("Pod", shlex.split("anywarp sockets --rule on -- nc -l -N 127.0.0.1 5000"))} >/tmp/heard &
        listens 5000
        echo heard | {confined("Pod", shlex.split("anywarp sockets --rule on -- nc -N 127.0.0.1 5000"))}
        wait $!
        cat /tmp/heard""")
    assert told.endswith("heard\n"), told


def test_the_development_container_installs(debian):
    """As devcontainer.json says; nothing is built there. It is of one release."""
    if debian.suite != "bookworm":
        pytest.skip("the container is of Debian 12")
    told = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    path = ROOT / ".devcontainer" / told["build"]["dockerfile"]
    for word, rest in instructions(path):
        if word == "RUN":
            installs(debian, rest)
    assert dict(instructions(path))["USER"] == told["remoteUser"]
    assert debian.run(f"id -un {told['remoteUser']}; su {told['remoteUser']} -c 'sudo -n id -u; cmake --version'").startswith("developer\n0\n")
