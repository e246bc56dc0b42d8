# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The wheel of a release, of pyproject.toml and a build: as the one of scikit-build-core, but for another machine, too, and the same
bytes each time."""

import base64
import csv
import fnmatch
import hashlib
import io
import pathlib
import time
import tomllib
import zipfile

import stage as stages


def sources(project):
    for folder in project["tool"]["scikit-build"]["wheel"]["packages"]:
        for path in sorted((stages.ROOT / folder).rglob("*.py")):
            yield f"{pathlib.PurePath(folder).name}/{path.relative_to(stages.ROOT / folder).as_posix()}", 0o644, path.read_bytes()


def installed(stage, project):
    """Manual pages go where man(1) finds them beside a venv's commands. A wheel has no links."""
    chosen = project["tool"]["scikit-build"]
    for entry in stage.entries():
        name = f"{chosen['wheel']['install-dir']}/{entry.name}"
        if entry.name.startswith("share/man/"):
            yield f"anywarp-{stage.version}.data/data/{entry.name}", entry.mode, entry.data
        elif not any(fnmatch.fnmatch(name, pattern) for pattern in chosen["wheel"]["exclude"]):
            assert entry.link is None, f"{name} is a link"
            yield name, entry.mode, entry.data


def metadata(stage, project):
    told = project["project"]
    lines = ["Metadata-Version: 2.1", f"Name: {told['name']}", f"Version: {stage.version}", f"Summary: {told['description']}",
             f"License: {told['license']}", f"Requires-Python: {told['requires-python']}", "Description-Content-Type: text/markdown",
             *(f"License-File: {pathlib.PurePath(name).name}" for name in told["license-files"])]
    return "\n".join(lines) + "\n\n" + (stages.ROOT / told["readme"]).read_text()


def entry_points(project):
    groups = {"console_scripts": project["project"]["scripts"], **project["project"].get("entry-points", {})}
    return "\n".join(f"[{group}]\n" + "".join(f"{name} = {what}\n" for name, what in rows.items()) for group, rows in groups.items())


def described(stage, project, tag):
    folder = f"anywarp-{stage.version}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: anywarp ({stage.version})\nRoot-Is-Purelib: false\nTag: {tag}\n"
    for name, text in (("METADATA", metadata(stage, project)), ("WHEEL", wheel), ("entry_points.txt", entry_points(project))):
        yield f"{folder}/{name}", 0o644, text.encode()
    for name in project["project"]["license-files"]:
        yield f"{folder}/licenses/{pathlib.PurePath(name).name}", 0o644, (stages.ROOT / name).read_bytes()


def record(stage, files):
    name, out = f"anywarp-{stage.version}.dist-info/RECORD", io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for path, _, data in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        writer.writerow([path, f"sha256={digest}", len(data)])
    writer.writerow([name, "", ""])
    return name, 0o644, out.getvalue().encode()


def make(stage, out):
    project = tomllib.loads((stages.ROOT / "pyproject.toml").read_text())
    tag = f"py3-none-manylinux_{'_'.join(map(str, stage.glibc()))}_{stages.MACHINES[stage.machine]}"
    files = [*sources(project), *installed(stage, project), *described(stage, project, tag)]
    path = out / f"anywarp-{stage.version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, mode, data in [*files, record(stage, files)]:
            info = zipfile.ZipInfo(name, time.gmtime(stage.epoch)[:6])
            info.external_attr, info.compress_type, info.create_system = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED, 3
            wheel.writestr(info, data)
    return path
