# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a reader has to know of the machine and of the programs, to judge the numbers."""

import glob
import hashlib
import os
import platform
import re
import shutil
import subprocess

BUILD_DIGITS = 12


def first_match(path, pattern):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(pattern, file.read(), re.M)
    except OSError:
        return None
    return found[1].strip() if found else None


def output_of(*argv):
    if not shutil.which(argv[0]):
        return None
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout


def version_in(text, pattern):
    found = re.search(pattern, text or "", re.M)
    return found[1] if found else None


def memory_octets():
    kib = first_match("/proc/meminfo", r"^MemTotal:\s+(\d+)")
    return int(kib) * 1024 if kib else None


def machine():
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "cpu": first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_octets": memory_octets(),
        "governor": first_match("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", r"(\S+)"),
        "congestion_control": first_match("/proc/sys/net/ipv4/tcp_congestion_control", r"(\S+)"),
        "virtual": "yes" if first_match("/proc/cpuinfo", r"^flags.*\b(hypervisor)\b") else None,
    }


def anywarp_version(given):
    """What the sources are at, where they are under git; else what the command says."""
    here = os.path.dirname(os.path.realpath(__file__))
    described = output_of("git", "-C", here, "describe", "--always", "--dirty", "--tags")
    return f"{given} ({described.strip()})" if described and described.strip() else given


def build(workers, libraries):
    """What tells one build from another, of all that is measured here and of what measures it."""
    here = os.path.dirname(os.path.realpath(__file__))
    octets = hashlib.sha256()
    for pattern in (f"{workers}/bench-*", f"{workers}/anywarp-*", f"{libraries}/*.so*",
                    f"{libraries}/anywarp-*", f"{here}/*.py"):
        for path in sorted(glob.glob(pattern)):
            with open(path, "rb") as file:
                octets.update(file.read())
    return octets.hexdigest()[:BUILD_DIGITS]


def versions(anywarp, workers, libraries):
    return {
        "anywarp": anywarp_version(anywarp),
        "build": build(workers, libraries),
        "libfabric": version_in(output_of("fi_info", "--version"), r"^libfabric: (\S+)"),
        "ucx": version_in(output_of("ucx_info", "-v"), r"[Vv]ersion (\S+)"),
        "openssl": version_in(output_of("openssl", "version"), r"^OpenSSL (\S+)"),
        "python": platform.python_version(),
    }


# Debian's packages of the application study, by the name that the page has for them.
APPLICATIONS = {"vsftpd": "vsftpd", "tnftp": "tnftp", "libtirpc": "libtirpc3", "gRPC": "python3-grpcio",
                "ganglia": "ganglia-monitor", "redis": "redis-server", "nginx": "nginx", "wrk": "wrk", "memcached": "memcached",
                "memcaslap": "libmemcached-tools", "PostgreSQL": "postgresql-15 postgresql-17", "Open MPI": "openmpi-bin", "Ceph": "ceph-osd"}


def application_versions():
    """Of Debian's packages, and of NIXL in an activated venv; of others nothing is known."""
    found = {}
    for name, packages in APPLICATIONS.items():
        for package in packages.split():
            said = output_of("dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package)
            if said and said.startswith("installed "):
                found[name] = said.split()[1]
    nixl = output_of(os.path.join(os.environ.get("VIRTUAL_ENV", ""), "bin/python"), "-c",
                     "import importlib.metadata; print(importlib.metadata.version('nixl'))")
    return {**found, **({"NIXL": nixl.strip()} if nixl else {})}
