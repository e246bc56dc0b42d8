# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""action.yml, templates/anywarp.yml and the shell's lines of docs/ci.md in a Debian that has nothing: by a user without root and sudo, and
by root. The tests depend on those before them: later ones have the packages that earlier ones install."""

import contextlib
import functools
import http.server
import pathlib
import re
import threading
import time

import pytest
import yaml
from conftest import LISTENS, PACKAGES
from runner import PLACE, STRAY, Action, Runner

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = "/run/files/anywarp"  # without .git, and nothing can be written to it
SECONDS_MAX = 60
# One end waits for the other by itself.
RPING = LISTENS + """
rping -s -C 10 &
listens 7174
rping -c -a 127.0.0.1 -C 10 -v
wait $!
"""
PINGPONG = """
ibv_rc_pingpong -g 0 >served &
until ibv_rc_pingpong -g 0 127.0.0.1; do kill -0 $!; done
wait $!
"""


@pytest.fixture(scope="module")
def stored(debian):
    """The caches of the repository, by key."""
    assert debian
    return {}


@contextlib.contextmanager
def served(folder):
    """The URL of a release."""
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def used(runner, stored, **inputs):
    """The action after it has succeeded, and how long it took."""
    action = Action(runner, ROOT / "action.yml", {name.replace("_", "-"): value for name, value in inputs.items()}, stored)
    began = time.monotonic()
    assert action.run() == 0, action.told
    return action.told, time.monotonic() - began


def test_without_root_and_a_release_it_names_what_it_lacks(debian):
    runner = Runner(debian, TREE, as_root=False)
    action = Action(runner, ROOT / "action.yml", {}, {})
    assert action.run() == 1
    assert re.search("cannot build: .* Install as root: build-essential cmake .*--release", action.told), action.told
    assert not runner.paths and not runner.variables


@pytest.fixture(scope="module")
def user(debian):
    """A user's job behind the action, which took a release."""
    runner = Runner(debian, TREE, as_root=False)
    with served(PACKAGES / "release") as url:
        runner.told, runner.seconds = used(runner, {}, release=url)
    return runner


@pytest.fixture(scope="module")
def programs(debian):
    """What later steps run, installed by root before the job."""
    debian.apt("install rdmacm-utils ibverbs-utils")
    return debian


def test_a_user_installs_a_release(user):
    assert user.seconds < SECONDS_MAX
    assert re.search(r"anywarp: installed anywarp [\d.]+ in ", user.told) and "building" not in user.told, user.told
    assert "\nok" in user.told and "\nfail" not in user.told, user.told


def test_a_release_that_was_changed_is_refused(debian, tmp_path):
    runner = Runner(debian, TREE, as_root=False)
    archive, = (PACKAGES / "release").glob("anywarp-*-linux-x86_64.tar.gz")
    (tmp_path / archive.name).write_bytes(archive.read_bytes() + b"\0")
    (tmp_path / "SHA256SUMS").write_bytes((PACKAGES / "release" / "SHA256SUMS").read_bytes())
    with served(tmp_path) as url:
        action = Action(runner, ROOT / "action.yml", {"release": url}, {})
        assert action.run() == 1
    assert "does not have the sum in SHA256SUMS" in action.told, action.told


def test_the_example_of_a_workflow(debian):
    """By root, which takes the same archive from a folder."""
    steps = yaml.safe_load((ROOT / "examples/github-action/rdma.yml").read_text())["jobs"]["rping"]["steps"]
    assert "OWNER/anywarp@TAG" in [step.get("uses") for step in steps]
    debian.run("printf '#!/bin/sh\nexec \"$@\"\n' >/usr/local/bin/sudo; chmod 755 /usr/local/bin/sudo")
    runner = Runner(debian, TREE, as_root=True)
    used(runner, {}, archive="/run/files/release")
    told = "".join(runner.step(step["run"], network="host" if "apt-get" in step["run"] else "loopback") for step in steps if "run" in step)
    debian.run("rm /usr/local/bin/sudo")
    assert "\nping data: rdma-ping-9:" in told and "bytes in" in told, told


def test_only_anywarps_device_is_seen(programs):
    runner = Runner(programs, TREE, as_root=False)
    script = "ls /sys/class/infiniband; ibv_devices; test -e /dev/infiniband/uverbs_anywarp0"
    assert "mana_0" in runner.try_step(script, before=STRAY).stdout
    used(runner, {}, archive="/run/files/release")
    told = runner.step(script + RPING, before=STRAY)
    assert "mana" not in told and told.startswith("anywarp0\n"), told
    assert "\nping data: rdma-ping-9:" in told, told


def test_faults_come_in_later_steps(programs):
    runner = Runner(programs, TREE, as_root=False)
    used(runner, {}, archive="/run/files/release", faults="ibv_open_device:nth=1")
    done = runner.try_step("ibv_devinfo")
    assert done.returncode != 0 and "Failed to open device" in done.stdout, done.stdout


PROGRAM = r"""
#include <infiniband/verbs.h>

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(list[0]);

	ibv_alloc_pd(context);
	return ibv_close_device(context);
}
"""


def test_a_program_that_breaks_a_rule_fails_its_step(debian):
    debian.apt("install gcc libc6-dev libibverbs-dev libdw1")
    debian.run(f"cat >/opt/program.c <<'END'\n{PROGRAM}\nEND\ngcc -g /opt/program.c -o /opt/program -libverbs")
    runner = Runner(debian, TREE, as_root=True)
    used(runner, {}, archive="/run/files/release", check="halt")
    done = runner.try_step("/opt/program")
    assert done.returncode != 0 and "program.c:" in done.stdout and "anywarp check:" in done.stdout, done.stdout
    gentle = Runner(debian, TREE, as_root=True)
    used(gentle, {}, archive="/run/files/release", check="report")
    assert "anywarp check:" in gentle.step("/opt/program || true")


def test_wrong_inputs_say_so(debian):
    runner = Runner(debian, TREE, as_root=False)
    wrong = [({"archive": "/nosuch"}, "there is no /nosuch"), ({"check": "hlat"}, "--check is 'hlat'"), ({"persona": "rcoe"}, "rcoe"),
             ({"mpi": "yes"}, "--mpi is 'yes'"), ({"mpi": "true", "persona": "iwarp"}, "--mpi needs --persona roce"),
             ({"faults": "ibv_reg_rm:nth=1"}, "ibv_reg_rm")]
    for inputs, said in wrong:
        action = Action(runner, ROOT / "action.yml", {"archive": "/run/files/release", **inputs}, {})
        assert action.run() != 0 and said in action.told, (inputs, action.told)


RING = r"""
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, sum = 0;
	static char sent[1 << 20], got[1 << 20];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	sent[0] = (char)(rank + 1);
	MPI_Sendrecv(sent, sizeof(sent), MPI_CHAR, 1 - rank, 0, got, sizeof(got), MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	rank = got[0];
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("sum %d\n", sum);
	return MPI_Finalize();
}
"""


def test_mpi_finds_the_device(debian):
    """Of UCX's transports it has none but verbs."""
    debian.apt("install openmpi-bin libopenmpi-dev gcc libc6-dev")
    debian.run(f"cat >/opt/ring.c <<'END'\n{RING}\nEND\nmpicc /opt/ring.c -o /opt/ring")
    runner = Runner(debian, TREE, as_root=True)
    used(runner, {}, archive="/run/files/release", mpi="true")
    assert runner.variables["UCX_TLS"] == "rc_verbs,ud_verbs,self"
    assert runner.step("mpirun -n 2 /opt/ring").count("sum 3\n") == 2
    runner.variables["UCX_NET_DEVICES"] = "nosuch0:1"
    assert runner.try_step("timeout 60 mpirun -n 2 /opt/ring").returncode != 0


def test_nothing_is_preloaded_where_it_should_not(programs):
    runner = Runner(programs, TREE, as_root=False)
    used(runner, {}, archive="/run/files/release", device_files="false")
    assert "LD_PRELOAD" not in runner.variables and runner.variables["ANYWARP_PERSONA"] == "roce"
    assert "bytes in" in runner.step(PINGPONG)


def test_the_lines_of_a_shell(programs):
    """As docs/ci.md has them, where the sources are here already; a failure fails the shell."""
    line, = re.findall(r'(?m)^ +(eval .*)$', (ROOT / "docs/ci.md").read_text())
    line = line.replace("anywarp/ci/setup", f"{TREE}/ci/setup")
    runner = Runner(programs, TREE, as_root=False)
    assert runner.try_step(line.replace(")", " --archive /nosuch)")).returncode == 1
    assert "\nping data: rdma-ping-9:" in runner.step(line.replace(")", " --archive /run/files/release)") + RPING)


def gitlab(inputs):
    """The lines of the template's job."""
    spec, jobs = yaml.safe_load_all((ROOT / "templates/anywarp.yml").read_text())
    given = {name: inputs.get(name, row.get("default")) for name, row in spec["spec"]["inputs"].items()}
    return [re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: given[found[1]], line) for line in jobs[".anywarp"]["before_script"]]


def test_the_template_of_gitlab(programs):
    runner = Runner(programs, TREE, as_root=True)
    programs.run(f"mkdir -p {PLACE}/user/.anywarp; cp -r {TREE} {PLACE}/user/.anywarp/source")
    with served(PACKAGES / "release") as url:
        lines = gitlab({"url": "/nosuch", "ref": "v0", "release": url})
        assert any("git clone" in line for line in lines)
        runner.step("\n".join([*lines[1:], "test $ANYWARP_PERSONA = roce", "anywarp --version", "ibv_devinfo"]), shell="sh -e", network="host")


def test_root_builds_and_the_cache_keeps_it(debian, stored):
    """The second job has no compiler: it has the cache."""
    builder = Runner(debian, TREE, as_root=True)
    told, seconds = used(builder, stored)
    assert "anywarp: building in" in told and len(stored) == 1, told
    print(f"built in {seconds:.0f} s")
    debian.apt("purge cmake cpp build-essential")
    runner = Runner(debian, TREE, as_root=False)
    told, seconds = used(runner, stored)
    assert "is there" in told and "building" not in told and seconds < SECONDS_MAX, told
    assert re.search("ok +CRC32c +by ", told), told
    debian.apt("install rdmacm-utils")
    assert "\nping data: rdma-ping-9:" in runner.step(RPING)
