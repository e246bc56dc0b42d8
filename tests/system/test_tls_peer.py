# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A program learns who its peer is (anywarp_cm(3)), by a program of tests/cm whose two ends prove themselves to each other."""

import os
import subprocess

import pytest

import conftest
from certificates import ADDRESSES, openssl, variables

PROGRAM = conftest.BUILD / "tests" / "cm_peer"


@pytest.fixture(scope="module")
def files(authority):
    return authority.issue("both", f"DNS:node.cluster.example,DNS:other,{ADDRESSES}")


@pytest.fixture(scope="module")
def certificate(files, tmp_path_factory):
    der = tmp_path_factory.mktemp("der") / "certificate"
    openssl("x509", "-in", files.cert, "-outform", "DER", "-out", der)
    return der


@pytest.mark.parametrize("persona", ["iwarp", "roce"])
@pytest.mark.parametrize("rule, asked, found", [
    (None, None, "/CN=both"),
    (None, "node.cluster.example", "node.cluster.example"),
    ("require name=elsewhere,other", None, "other"),
    ("offer name=*.cluster.example", "other", "node.cluster.example"),
], ids=["any", "name", "rule", "wildcard"])
def test_both_ends_learn_certificate_and_name(files, certificate, tmp_path, persona, rule, asked, found):
    env = {**os.environ, **variables(files, asked), "ANYWARP_PERSONA": persona, "PEER_CERTIFICATE": str(certificate), "PEER_NAME": found}
    if rule:
        (tmp_path / "rules").write_text(rule + "\n")
        env.update(ANYWARP_TLS="off", ANYWARP_TLS_RULES=str(tmp_path / "rules"))
    done = subprocess.run([str(PROGRAM)], env=env, capture_output=True, text=True, timeout=conftest.program.SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
