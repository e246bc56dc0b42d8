# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Small CAs, and the certificates that they issue, by the openssl command as docs/tls.md has it."""

import collections
import subprocess

Files = collections.namedtuple("Files", "cert key ca")
ADDRESSES = "IP:127.0.0.1,IP:::1"
NAME = "cluster"  # of the certificate that most tests have at both ends


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


class Authority:
    """A CA in a directory of its own."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.cert, self.key = folder / "ca.pem", folder / "ca.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 30,
                "-subj", f"/CN={folder.name}", "-keyout", self.key, "-out", self.cert)

    def issue(self, name, alternatives=None, days=30, usage="serverAuth,clientAuth", by=None):
        """A certificate for the name, or for these subjectAltNames; days below zero: it has expired. by: signed with the key of
        these Files, which are no CA's."""
        issuer = by or self
        cert, key, request, extensions = (self.folder / f"{name}.{kind}" for kind in ("pem", "key", "csr", "ext"))
        extensions.write_text(f"subjectAltName={alternatives or f'DNS:{name}'}\nextendedKeyUsage={usage}\n")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", issuer.cert, "-CAkey", issuer.key, "-CAcreateserial", "-days", days,
                "-extfile", extensions, "-out", cert)
        return Files(cert, key, self.cert)


def variables(files, name=None):
    """The environment in which a program requires TLS with these files."""
    return {"ANYWARP_TLS": "require", "ANYWARP_TLS_CERT": str(files.cert), "ANYWARP_TLS_KEY": str(files.key),
            "ANYWARP_TLS_CA": str(files.ca), **({"ANYWARP_TLS_NAME": name} if name else {})}


def words(files, name=None):
    """The same as a prefix of a command line."""
    return ["env", *(f"{key}={value}" for key, value in variables(files, name).items())]
