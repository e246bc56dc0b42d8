# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tomcat: Java's channels in a poller's and in an asynchronous group's threads, transferTo (sendfile), and the threads that close
what has been idle."""

import pathlib
import shutil

import pytest
import scene as scenes

HOME = pathlib.Path("/usr/share/tomcat10")
pytestmark = pytest.mark.skipif(not HOME.exists() or not shutil.which("java"), reason="tomcat10 is not installed")
CONFIGURATION = """
<Server port="-1">
  <Service name="Catalina">
    <Connector address="{address}" port="{port}" protocol="org.apache.coyote.http11.Http11{kind}Protocol"
               keepAliveTimeout="100" maxKeepAliveRequests="50" minSpareThreads="4"/>
    <Engine name="Catalina" defaultHost="localhost">
      <Host name="localhost" appBase="webapps"/>
    </Engine>
  </Service>
</Server>
"""
SERVLETS = """
<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="5.0">
  <servlet>
    <servlet-name>default</servlet-name>
    <servlet-class>org.apache.catalina.servlets.DefaultServlet</servlet-class>
  </servlet>
  <servlet-mapping>
    <servlet-name>default</servlet-name>
    <url-pattern>/</url-pattern>
  </servlet-mapping>
</web-app>
"""
START = (f"java -Xshare:auto -cp {HOME}/bin/bootstrap.jar:{HOME}/bin/tomcat-juli.jar -Dcatalina.home={HOME} "
         "-Dcatalina.base={folder} -Djava.io.tmpdir={folder}/temp org.apache.catalina.startup.Bootstrap start")
LOADS = [(4096, 400), (3_000_017, 16)]  # octets, requests


@pytest.fixture(params=["Nio", "Nio2"])
def site(scene, request):
    """The scene with Tomcat in it: the URL of its files."""
    scene.port_of_site = port = scene.port()
    for name in ("conf", "temp", "webapps"):
        scene.directory(name)
    files = scene.directory("webapps/ROOT")
    for octets, _ in LOADS:
        scenes.random_file(files / f"file{octets}", octets)
    scene.write("conf/server.xml", CONFIGURATION.format(address=scenes.ADDRESS, port=port, kind=request.param))
    scene.write("conf/web.xml", SERVLETS)
    # It listens before it accepts: a connection from before that is no pair.
    scene.server(START.format(folder=scene.folder), port).wait_output("Server startup in", scenes.SECONDS_MAX)
    return f"http://{scenes.ADDRESS}:{port}"


def test_files(scene, site):
    """By curl, and by ab with a connection for each request and with kept ones."""
    for octets, requests in LOADS:
        scene.client(f"curl -sSf -o got {site}/file{octets}")
        assert scenes.same_file(scene.folder / "webapps" / "ROOT" / f"file{octets}", scene.folder / "got")
        for keep in ("", "-k"):
            scenes.ask_by_ab(scene, keep, requests, f"{site}/file{octets}", octets)
    # ab opens some more at its end, and closes them.
    scene.judge(scene.port_of_site, silent=True)
