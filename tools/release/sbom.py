#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""sbom.py DIST VERSION ISAL_VERSION: writes DIST/anywarp-VERSION.spdx.json, a document of SPDX 2.3 about the files in DIST: what is in them
that others made, ISA-L, and what they need, the C library."""

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


def document(dist, version, isal):
    paths = sorted(path for path in dist.iterdir() if path.suffix in (".gz", ".whl", ".deb"))
    files = [file(number, path) for number, path in enumerate(paths, 1)]
    packages = [package("anywarp", version, LICENCE, "2026 anywarp contributors"),
                package("isa-l", isal, "BSD-3-Clause", "2011-2019 Intel Corporation"),
                package("glibc", "NOASSERTION", "NOASSERTION", "NOASSERTION")]
    own, crc, libc = (each["SPDXID"] for each in packages)
    sums = "".join(each["checksums"][1]["checksumValue"] for each in files)
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", own), relation(own, "DEPENDS_ON", crc), relation(own, "DEPENDS_ON", libc)]
    for each, path in zip(files, paths):
        relations.append(relation(each["SPDXID"], "GENERATED_FROM", own))
        # The wheels, the archives and the package of the libraries hold ISA-L as Debian builds it.
        if path.suffix == ".whl" or "-linux-" in path.name or path.name.startswith("libanywarp_"):
            relations.append(relation(each["SPDXID"], "CONTAINS", crc))
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"anywarp-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/anywarp-{version}-{uuid.uuid5(uuid.NAMESPACE_OID, sums)}",
            "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: anywarp-dev-release"]},
            "packages": packages, "files": files, "relationships": relations}


def main(dist, version, isal):
    dist = pathlib.Path(dist)
    told = document(dist, version, isal)
    (dist / f"anywarp-{version}.spdx.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
