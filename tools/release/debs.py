# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The Debian packages of a release, of debian/control, debian/*.install and a build. They need the C library alone, so that they
install on each Debian and Ubuntu that has it; those of './dev package' follow Debian's own rules for one release."""

import fnmatch
import gzip
import hashlib
import os
import re
import shutil
import subprocess

import stage as stages

NAMES = ("libanywarp", "anywarp", "anywarp-dev")
# Of fields that Debian's tools fill in: what holds for these packages.
FILLED = {r"\$\{binary:Version\}": "{version}", r"\$\{shlibs:Depends\}": "libc6 (>= {glibc})", r"(, )?\$\{misc:Depends\}": ""}


def paragraphs():
    """{package: {field: text}}; the source's is that of None."""
    found = {}
    for text in (stages.ROOT / "debian/control").read_text().strip().split("\n\n"):
        fields = dict(re.findall(r"(?ms)^([A-Z][\w-]*): *(.*?)(?=\n[A-Z]|\Z)", text))
        found[fields.get("Package")] = fields
    return found


def control(name, stage, size):
    every = paragraphs()
    fields, values = every[name], {"version": stage.version, "glibc": ".".join(map(str, stage.glibc()))}
    lines = [f"Package: {name}", f"Version: {stage.version}", f"Architecture: {stage.machine}", f"Section: {fields.get('Section', 'net')}",
             f"Priority: {every[None]['Priority']}", f"Maintainer: {every[None]['Maintainer']}", f"Installed-Size: {size}"]
    for field in ("Depends", "Recommends", "Suggests"):
        text = fields.get(field, "")
        for pattern, value in FILLED.items():
            text = re.sub(pattern, value.format(**values), text)
        # The bench's RPC, which alone needs libtirpc, is in no release.
        words = [word for word in re.split(r",\s*", text) if word and word != "libtirpc3"]
        if words:
            lines.append(f"{field}: {', '.join(words)}")
    return "\n".join([*lines, f"Description: {fields['Description']}"]) + "\n"


def rules(name):
    """[(pattern, new folder or None)] of debian/NAME.install. The libraries lie in /usr/lib/anywarp."""
    lines = [line.split() for line in (stages.ROOT / f"debian/{name}.install").read_text().split("\n") if line.strip()]
    return [(words[0].replace("usr/lib/*/", "usr/lib/"), words[1] if len(words) > 1 else None) for words in lines]


def target(path, name):
    """Where the package has the file; None where it has not."""
    for pattern, folder in rules(name):
        if fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(path, f"{pattern}/*"):
            return f"{folder}/{os.path.basename(path)}" if folder else path
    return None


def contents(name, stage):
    """Each (path, mode, link, data)."""
    for entry in stage.entries():
        path = target(f"usr/{entry.name}", name)
        if path and path.startswith("usr/share/man/"):
            yield f"{path}.gz", entry.mode, entry.link, gzip.compress(entry.data, 9, mtime=0)
        elif path:
            yield path, entry.mode, entry.link, entry.data
    folder = f"usr/share/doc/{name}"
    yield f"{folder}/copyright", 0o644, None, (stages.ROOT / "debian/copyright").read_bytes()
    yield f"{folder}/changelog.gz", 0o644, None, gzip.compress((stages.ROOT / "debian/changelog").read_bytes(), 9, mtime=0)


def place(root, path, mode, link, data):
    at = root / path
    at.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if link is not None:
        at.symlink_to(link)
    else:
        at.write_bytes(data)
        at.chmod(mode)


def make_one(name, stage, out):
    root = stage.usr.parent.parent / f"deb-{name}"
    shutil.rmtree(root, ignore_errors=True)
    files = list(contents(name, stage))
    for each in files:
        place(root, *each)
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {path}\n" for path, _, link, data in sorted(files) if link is None)
    size = sum(len(data) for _, _, _, data in files) // 1024 + 1
    for path, text in (("control", control(name, stage, size)), ("md5sums", sums)):
        place(root, f"DEBIAN/{path}", 0o644, None, text.encode())
    for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)
    for path in [root, *root.rglob("*")]:
        os.utime(path, (stage.epoch, stage.epoch), follow_symlinks=False)
    path = out / f"{name}_{stage.version}_{stage.machine}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", root, path], check=True,
                   stdout=subprocess.DEVNULL)
    return path


def make(stage, out):
    return [make_one(name, stage, out) for name in NAMES]
