# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a CI service does with action.yml and templates/anywarp.yml, in a Debian that has nothing: each 'run' is a shell of its own, which has
what earlier ones have put into the files of GITHUB_ENV and GITHUB_PATH."""

import os
import re
import shlex

import yaml

PLACE = "/opt/runner"
USER = 1001
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
SHELLS = {"bash": "bash --noprofile --norc -eo pipefail"}
# As what GitHub's runners on Azure show.
STRAY = """
mount -t tmpfs tmpfs /sys/class
mkdir -p /sys/class/infiniband/mana_0/ports/1
echo 1 >/sys/class/infiniband/mana_0/ports/1/state
"""


def pairs(text):
    return dict(line.split("=", 1) for line in text.splitlines() if line)


class Runner:
    """A job. Its steps are those of a user without root and sudo, or of root."""

    def __init__(self, debian, tree, as_root):
        self.debian = debian
        self.tree = tree
        self.as_root = as_root
        self.variables = {}
        self.paths = []
        self.files = {name: f"{PLACE}/{name}" for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT")}
        debian.run(f"""
            rm -rf {PLACE}
            mkdir -p {PLACE}/user {PLACE}/runtime
            touch {' '.join(self.files.values())}
            [ {int(as_root)} = 1 ] || chown -R {USER}:{USER} {PLACE}
            chmod 700 {PLACE}/runtime""")

    def environment(self, more):
        path = ":".join([*reversed(self.paths), "/usr/local/bin:/usr/bin:/bin"])
        return {"PATH": path, "HOME": f"{PLACE}/user", "XDG_RUNTIME_DIR": f"{PLACE}/runtime", "LANG": "C.UTF-8",
                **{name: os.environ[name] for name in ("http_proxy", "https_proxy", "no_proxy") if name in os.environ},
                **self.files, "GITHUB_ACTION_PATH": self.tree, **self.variables, **more}

    def line(self, script, shell, more):
        given = [f"{name}={value}" for name, value in self.environment(more).items()]
        user = [] if self.as_root else ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"]
        return shlex.join([*user, "env", "-i", *given, *shlex.split(SHELLS.get(shell, shell)), "-c", script])

    def try_step(self, script, shell="bash", more=None, network="loopback", before=""):
        """The ended process; 'before' is run by root. While root may install packages no other test does."""
        alone = "flock /var/cache/apt/archives " if network == "host" and self.as_root else ""
        done = self.debian.start(network, f"exec 2>&1\n{before}\ncd {PLACE}/user\n{alone}" + self.line(script, shell, more or {}))
        told = self.debian.run(f"cd {PLACE}; cat GITHUB_ENV; echo; echo --; cat GITHUB_PATH; : >GITHUB_ENV; : >GITHUB_PATH")
        variables, _, paths = told.partition("\n--\n")
        self.variables.update(pairs(variables))
        self.paths += paths.split()
        return done

    def step(self, script, **how):
        done = self.try_step(script, **how)
        assert done.returncode == 0, f"{script}\n{done.stdout[-8000:]}{done.stderr}"
        return done.stdout

    def cache(self, key, path, stored):
        """actions/cache: what is stored under the key is in the path; or will be stored, once the job has ended."""
        if key in stored:
            self.debian.run(f"mkdir -p {path}; tar -xf {stored[key]} -C {path}; chown -R --reference={PLACE} {PLACE}/user")
        return key, path

    def keep(self, key, path, stored):
        self.debian.run(f"tar -cf {PLACE}.{key}.tar -C {path} .")
        stored[key] = f"{PLACE}.{key}.tar"


def expand(text, context):
    return EXPRESSION.sub(lambda found: context.get(found[1], ""), text)


class Action:
    """'uses: OWNER/anywarp@TAG' with these inputs. The steps that are run, and what they print, are in 'told'."""

    def __init__(self, runner, path, inputs, stored):
        self.runner = runner
        self.stored = stored
        # Without an archive it has to reach a release, or packages.
        self.network = "loopback" if "archive" in inputs else "host"
        loaded = yaml.safe_load(path.read_text())
        unknown = set(inputs) - set(loaded["inputs"])
        assert not unknown, unknown
        self.steps = loaded["runs"]["steps"]
        self.context = {f"inputs.{name}": inputs.get(name, row["default"]) for name, row in loaded["inputs"].items()}
        self.told = ""
        self.kept = []

    def run_one(self, step):
        """The status of a step that runs a script."""
        more = {name: expand(value, self.context) for name, value in step.get("env", {}).items()}
        done = self.runner.try_step(expand(step["run"], self.context), step["shell"], more, network=self.network)
        self.told += done.stdout
        if "id" in step:
            output = self.runner.debian.run(f"cat {PLACE}/GITHUB_OUTPUT; : >{PLACE}/GITHUB_OUTPUT")
            self.context.update({f"steps.{step['id']}.outputs.{name}": value for name, value in pairs(output).items()})
        return done.returncode

    def run(self):
        """The first status that is not 0; then the cache keeps nothing."""
        for step in self.steps:
            if step.get("uses", "").startswith("actions/cache@"):
                given = {name: expand(value, self.context) for name, value in step["with"].items()}
                self.kept.append(self.runner.cache(given["key"], given["path"], self.stored))
            elif (status := self.run_one(step)) != 0:
                return status
        for key, path in self.kept:
            self.runner.keep(key, path, self.stored)
        return 0
