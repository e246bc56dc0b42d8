# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""ganglia: gmond, which tells who connects what it knows and closes, and gmetad, which asks it again and again and tells
others."""

import shutil
import xml.etree.ElementTree as xml

import program
import pytest
import scene as scenes

pytestmark = pytest.mark.skipif(not shutil.which("gmond"), reason="ganglia-monitor is not installed: Debian 13 has none")

GMOND = """
globals {{ daemonize = no setuid = no debug_level = 1 mute = no deaf = no host_dmax = 0 send_metadata_interval = 1 }}
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
METRICS = 150  # an answer is some 50 KB


def metrics(scene, port):
    """What is told to a client that says nothing, if it is all there already."""
    got = scene.client(f"socat -t 30 -u TCP4:{scenes.ADDRESS}:{port} -")
    found = {metric.get("NAME"): metric.get("VAL") for metric in xml.fromstring(got).iter("METRIC")}
    return {name: value for name, value in found.items() if name.startswith("metric")}


def test_gmond_and_gmetad(scene):
    ports = [scene.port() for _ in range(3)]
    scene.directory("rrds")
    conf = scene.write("gmond.conf", GMOND.format(address=scenes.ADDRESS, port=ports[0], udp=program.free_port()))
    path = scene.write("gmetad.conf", GMETAD.format(
        address=scenes.ADDRESS, gmond=ports[0], port=ports[1], second=ports[2], folder=scene.folder))
    gmond = scene.server(f"gmond -f -c {conf}", ports[0])
    wanted = {f"metric{number}": str(number * number) for number in range(METRICS)}
    for name, value in wanted.items():
        scene.client(f"gmetric -c {conf} -n {name} -v {value} -t uint32", rule=None)
    gmond.wait_until(lambda: metrics(scene, ports[0]) == wanted, "all metrics")
    gmetad = scene.server(f"gmetad -d 1 -c {path}", ports[1], rule=scene.mode.client)
    gmetad.wait_until(lambda: metrics(scene, ports[1]) == wanted, "all metrics")
    scene.stop(gmetad)
    scene.judge(ports[1], iwarp=scene.mode.client == "on")
    scene.judged.add(ports[2])  # nobody has a question
