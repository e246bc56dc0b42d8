# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Open MPI with two ranks (bench/mpi): messages, a reduction, a kernel as NAS IS, tiled MPI-IO. Over its btl tcp, as it is and
under libanywarp-sockets.so, and over UCX on the verbs of the roce persona. Every result is compared by the program itself."""

import os

import application

MPIRUN = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1",
          # ROMIO's two phases carry the data over MPI; shared memory is kept from it.
          "--mca", "io", "romio321"]
OVER_TCP = ["--mca", "pml", "ob1", "--mca", "osc", "pt2pt", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]
OVER_UCX = ["--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "self"]
UCX_SETTINGS = {"UCX_TLS": "rc_verbs,ud_verbs,self", "UCX_NET_DEVICES": "anywarp0:1"}


def command_of(libraries):
    """The command is beside the libraries' directory, or on PATH where it is installed elsewhere."""
    beside = os.path.join(os.path.dirname(os.path.normpath(libraries)), "bin", "anywarp")
    return beside if os.access(beside, os.X_OK) else "anywarp"


class Mpi(application.Application):
    packages = {"mpirun.openmpi": "openmpi-bin"}

    def __init__(self, way, workers):
        super().__init__(way)
        self.path = os.path.join(workers, "bench-mpi")

    def missing(self):
        why = super().missing()
        if not why and not os.access(self.path, os.X_OK):
            return f"no program {self.path}: it is built where libopenmpi-dev is installed"
        return why

    def measure(self, scene, keys, seconds):
        test = [self.path, keys["kind"], str(keys["size"]), str(seconds), scene.path("tiles")]
        found = application.json_in(scene.load(self.command(scene, test)))
        return {**found, "checked": "every result"}

    def command(self, scene, test):
        raise NotImplementedError


class OverTcp(Mpi):
    def command(self, scene, test):
        """The library and its rules are for the ranks alone, and for the port of each: their connections to mpirun, which is
        plain, stay as they are."""
        ports = [scene.port() for _ in range(2)]
        ranks = []
        for port in ports:
            settings = [f"OMPI_MCA_btl_tcp_port_min_v4={port}", "OMPI_MCA_btl_tcp_port_range_v4=1", *self.library(ports)]
            ranks += [":"] * bool(ranks) + ["-np", "1", "env", *settings, *test]
        return ["env", "-u", "LD_PRELOAD", "-u", "ANYWARP_SOCKETS_RULES", *MPIRUN, *OVER_TCP, *ranks]

    def library(self, ports):
        env = self.way.env
        if not env.get("ANYWARP_SOCKETS_RULES"):
            return []
        rule = env["ANYWARP_SOCKETS_RULES"]
        rules = "\n".join([f"{rule} port={port}" for port in ports] + ["off"]) if rule == "on" else rule
        return [f"LD_PRELOAD={env['LD_PRELOAD']}", f"LD_LIBRARY_PATH={env['LD_LIBRARY_PATH']}", f"ANYWARP_SOCKETS_RULES={rules}"]


class OverUcx(Mpi):
    def __init__(self, workers, libraries):
        self.anywarp = command_of(libraries)
        super().__init__(application.Way("ucx-roce", {**os.environ, **UCX_SETTINGS}, None), workers)

    def command(self, scene, test):
        exported = [word for name in UCX_SETTINGS for word in ("-x", name)]
        return [self.anywarp, "run", "--persona", "roce", "--", *MPIRUN, *OVER_UCX, *exported, "-np", "2", *test]
