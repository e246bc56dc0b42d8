# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A pipeline of filters, after DataCutter (bench/pipeline): read, transform, view; by sockets, by one-sided writes of extended
sockets, by verbs. Every block is compared by the program itself."""

import os

import application


def own_way(name, libraries):
    """A program that is made for anywarp, with nothing before it but where its libraries are."""
    env = {each: text for each, text in os.environ.items() if each != "LD_PRELOAD"}
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, (libraries, env.get("LD_LIBRARY_PATH"))))
    return application.Way(name, env, None)


class Pipeline(application.Application):
    def __init__(self, way, workers, kind):
        super().__init__(way)
        self.path = os.path.join(workers, f"bench-pipeline-{kind}")

    def missing(self):
        if not os.access(self.path, os.X_OK):
            return f"no program {self.path}: build it ('./dev build') or install anywarp again"
        return super().missing()

    def measure(self, scene, keys, seconds):
        (kind, number), = keys.items()
        port = scene.port()
        where = [scene.bed.address, str(port)]
        scene.server([self.path, "server", *where], port, ready="ready")
        test = {"bound": "bound", "block": "updates", "work": "balance"}[kind]
        # A search for the best block of five.
        seconds = 3 * seconds if kind == "bound" else seconds
        found = application.json_in(scene.load([self.path, "client", *where, test, str(seconds), str(number)]))
        return {**found, "checked": "every block"}
