# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What is measured under TLS: bench-verbs where anywarp requires it, and bench-tls, which has plain TLS over TCP by the same
library. Both ends of both have the same certificate, made for this run in a folder that is gone after it."""

import os
import shutil
import subprocess
import tempfile

import pair
import workers

OPENSSL, OPENSSL_SECONDS_MAX = "openssl", 20
NAME = "bench"
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
DAYS = 2
# As workers.PROGRAMS.
PROGRAMS = {"tls": ("bench-tls", {}),
            "verbs-tls": ("bench-verbs", {**workers.OVER_TCP, "ANYWARP_TLS": "require", "ANYWARP_TLS_NAME": NAME})}


class Certificates:
    """A CA and one certificate for both ends, made when they are first asked for."""

    def __init__(self):
        self.folder = None

    def variables(self):
        """By which both programs find the files."""
        if self.folder is None:
            self.folder = tempfile.TemporaryDirectory(prefix="anywarp-bench-tls-")
            self.make()
        return {f"ANYWARP_TLS_{kind.upper()}": self.path(f"{kind}.pem") for kind in ("cert", "key", "ca")}

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def make(self):
        with open(self.path("extensions"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName=DNS:{NAME}\nextendedKeyUsage=serverAuth,clientAuth\n")
        self.openssl("req", "-x509", *KEY, "-days", DAYS, "-subj", "/CN=anywarp bench", "-keyout", self.path("ca.key"),
                     "-out", self.path("ca.pem"))
        self.openssl("req", "-new", *KEY, "-subj", f"/CN={NAME}", "-keyout", self.path("key.pem"), "-out", self.path("request"))
        self.openssl("x509", "-req", "-in", self.path("request"), "-CA", self.path("ca.pem"), "-CAkey", self.path("ca.key"),
                     "-CAcreateserial", "-days", DAYS, "-extfile", self.path("extensions"), "-out", self.path("cert.pem"))

    def openssl(self, *words):
        try:
            subprocess.run([OPENSSL, *map(str, words)], check=True, capture_output=True, text=True, timeout=OPENSSL_SECONDS_MAX,
                           stdin=subprocess.DEVNULL)
        except subprocess.CalledProcessError as error:
            raise pair.Failure(f"openssl {words[0]} made no certificate: {error.stderr.strip()[-200:]}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise pair.Failure(f"openssl {words[0]} made no certificate: {error}") from error


class Secured(workers.Worker):
    """A worker whose two ends get the certificates."""

    def __init__(self, name, certificates, folder, libraries):
        super().__init__(name, folder, libraries, PROGRAMS)
        self.certificates = certificates

    def missing(self):
        if not os.access(self.path, os.X_OK):
            return f"no program {self.path}: it is built where OpenSSL's headers are (Debian package libssl-dev)"
        if not shutil.which(OPENSSL):
            return "the command openssl is not installed (Debian package openssl), and makes the certificates"
        return None

    def run(self, bed, series, seconds):
        self.env.update(self.certificates.variables())
        return super().run(bed, series, seconds)


def programs(folder, libraries):
    """By the name that a series has for them."""
    certificates = Certificates()
    return {name: Secured(name, certificates, folder, libraries) for name in PROGRAMS}
