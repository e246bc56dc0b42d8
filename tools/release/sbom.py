#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""sbom.py DIST VERSION: writes DIST/anywarp-VERSION.spdx.json, a document of SPDX 2.3 about the files in DIST: what they are
and what they need, the C library."""

import datetime
import hashlib
import json
import os
import pathlib
import sys
import uuid

LICENCE = "BSD-2-Clause OR GPL-2.0-only"


def package(name, version, licence, copyright_text):
    return {"SPDXID": f"SPDXRef-Package-{name}", "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": copyright_text}


def file(number, path):
    data = path.read_bytes()
    return {"SPDXID": f"SPDXRef-File-{number}", "fileName": f"./{path.name}", "licenseConcluded": LICENCE,
            "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "2026 anywarp contributors",
            "checksums": [{"algorithm": name.upper(), "checksumValue": hashlib.new(name, data).hexdigest()} for name in ("sha1", "sha256")]}


def relation(left, kind, right):
    return {"spdxElementId": left, "relationshipType": kind, "relatedSpdxElement": right}


def document(dist, version):
    paths = sorted(path for path in dist.iterdir() if path.suffix in (".gz", ".whl", ".deb"))
    files = [file(number, path) for number, path in enumerate(paths, 1)]
    packages = [package("anywarp", version, LICENCE, "2026 anywarp contributors"),
                package("glibc", "NOASSERTION", "NOASSERTION", "NOASSERTION")]
    own, libc = (each["SPDXID"] for each in packages)
    sums = "".join(each["checksums"][1]["checksumValue"] for each in files)
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", own), relation(own, "DEPENDS_ON", libc)]
    relations += [relation(each["SPDXID"], "GENERATED_FROM", own) for each in files]
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"anywarp-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/anywarp-{version}-{uuid.uuid5(uuid.NAMESPACE_OID, sums)}",
            "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: anywarp-dev-release"]},
            "packages": packages, "files": files, "relationships": relations}


def main(dist, version):
    dist = pathlib.Path(dist)
    told = document(dist, version)
    (dist / f"anywarp-{version}.spdx.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
