# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A cluster's monitor: Ganglia's gmond, which tells whoever connects what it knows, and gmetad, which asks it and tells others.
Clients connect, read to the end, and connect again (ask_peer.py); every answer is read as XML and its metrics compared."""

import json
import os
import pathlib
import sys

import application

HERE = pathlib.Path(__file__).resolve()
ASK_PEER, METRICS_PEER = (str(HERE.with_name(name)) for name in ("ask_peer.py", "metrics_peer.py"))
METRICS = 150  # an answer is some 50 KB
GMOND = """
globals {{ daemonize = no setuid = no debug_level = 0 mute = no deaf = no host_dmax = 0 send_metadata_interval = 1 }}
cluster {{ name = "here" }}
udp_send_channel {{ host = {address} port = {udp} }}
udp_recv_channel {{ bind = {address} port = {udp} }}
tcp_accept_channel {{ bind = {address} port = {port} }}
modules {{ module {{ name = "core_metrics" }} }}
collection_group {{ collect_once = yes time_threshold = 1 metric {{ name = "heartbeat" }} }}
"""
GMETAD = """
data_source "here" 1 {address}:{gmond}
setuid off
xml_port {port}
interactive_port {second}
rrd_rootdir {folder}/rrds
"""
def wanted():
    return {f"metric{number}": str(number * number) for number in range(METRICS)}


class Monitor(application.Application):
    packages = {"gmond": "ganglia-monitor"}
    asked_by_gmetad = False

    def measure(self, scene, keys, seconds):
        ports = [scene.port() for _ in range(4)]
        conf = scene.write("gmond.conf", GMOND.format(address=scene.bed.address, port=ports[0], udp=ports[1]))
        scene.server([application.program_path("gmond"), "-f", "-c", conf], ports[0])
        metrics = scene.write("metrics.json", json.dumps(wanted()))
        scene.client([sys.executable, METRICS_PEER, scene.bed.address, str(ports[1]), metrics])
        self.ask(scene, (ports[0], metrics), 1, "until")
        asked = ports[0]
        if self.asked_by_gmetad:
            self.start_gmetad(scene, ports)
            asked = ports[2]
            self.ask(scene, (asked, metrics), 1, "until")
        return self.ask(scene, (asked, metrics), keys["clients"], str(seconds))

    @staticmethod
    def ask(scene, of_whom, clients, how):
        port, metrics = of_whom
        line = [sys.executable, ASK_PEER, scene.bed.address, str(port), metrics, str(clients), how]
        return application.json_in(scene.client(line) if how == "until" else scene.load(line))

    def start_gmetad(self, scene, ports):
        os.mkdir(scene.path("rrds"))
        conf = scene.write("gmetad.conf", GMETAD.format(address=scene.bed.address, gmond=ports[0], port=ports[2],
                                                        second=ports[3], folder=scene.folder))
        # It takes from whom it does not know no question: the bed's addresses are ours.
        with open(conf, "a", encoding="ascii") as file:
            file.write("all_trusted on\n")
        scene.server([application.program_path("gmetad"), "-d", "1", "-c", conf], ports[2])


class Gmetad(Monitor):
    packages = {"gmond": "ganglia-monitor", "gmetad": "gmetad"}
    asked_by_gmetad = True
