# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Debian's haproxy, nginx and socat between two ends. Each is tuned to pass a stream on in small
pieces of an odd size, so that hardly any of its segments begins where an FPDU does."""

import program

HAPROXY = """
global
    tune.bufsize 1031
    tune.maxrewrite 0
defaults
    mode tcp
    retries 1
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen box
    bind 127.0.0.1:{here}
    server end 127.0.0.1:{there}
"""
NGINX = """
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr error;
events {{ }}
stream {{
    server {{
        listen 127.0.0.1:{here};
        proxy_pass 127.0.0.1:{there};
        proxy_buffer_size {buffer};
        proxy_half_close {half_close};
    }}
}}
"""
# As many octets are read, and written, at once.
SOCAT = ("socat -b {buffer} -t 20 "
         "TCP-LISTEN:{here},bind=127.0.0.1,reuseaddr,fork,nodelay,backlog=64 "
         "TCP:127.0.0.1:{there},nodelay,retry=20,interval=0.05")


def haproxy(start, folder, here, there):
    config = folder / "haproxy.cfg"
    config.write_text(HAPROXY.format(here=here, there=there))
    return start(f"haproxy -db -q -f {config}", env={})


def nginx(start, folder, here, there, buffer=997, half_close="off"):
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, here=here, there=there, buffer=buffer,
                                   half_close=half_close))
    return start(f"nginx -e stderr -p {folder} -c {config}", env={})


def nginx13(start, folder, here, there):
    return nginx(start, folder, here, there, 13)


def nginx_half_close(start, folder, here, there):
    return nginx(start, folder, here, there, half_close="on")


def socat(start, _, here, there, buffer=1000):
    return start(SOCAT.format(buffer=buffer, here=here, there=there), env={})


def socat7(start, folder, here, there):
    return socat(start, folder, here, there, 7)


def socat1(start, folder, here, there):
    return socat(start, folder, here, there, 1)


class Middlebox:
    """A running one, from its port to that of a server on this machine."""

    def __init__(self, make, start, folder, there):
        self.make, self.start, self.folder, self.there = make, start, folder, there
        self.port = program.free_port()
        self.program = None
        self.run()

    def run(self):
        """Starts it, after kill() once more."""
        self.program = self.make(self.start, self.folder, self.port, self.there)
        self.program.wait_listening(self.port)

    def kill(self):
        """It has no time to say anything to anyone: the kernel closes its connections."""
        self.program.kill()
