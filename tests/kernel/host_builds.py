# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The module is built, and warns of nothing, for each kernel of Debian whose headers apt has, and by DKMS."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"])
SECONDS_MAX = 900


def run(argv, **more):
    done = subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
                          **more)
    assert done.returncode == 0, f"{argv}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def headers():
    """The build directories of this Debian's kernels, and the newer ones that fetch-headers fetched."""
    roots = [pathlib.Path("/"), *(ROOT / "build" / "kernel").glob("headers-*/root")]
    return [kdir for root in roots for kdir in sorted(root.glob("usr/src/linux-headers-*-amd64"))
            if kdir.joinpath("Makefile").exists()]


def compiler_arguments():
    """This machine's compiler in place of the one that Debian built the kernel with, without what it does not know."""
    known = subprocess.run(["gcc", "-fmin-function-alignment=16", "-E", "-x", "c", "/dev/null"], capture_output=True,
                           check=False).returncode == 0
    return ["CC=gcc"] + ([] if known else ["CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT="])


@pytest.mark.parametrize("kdir", headers() or [None], ids=lambda kdir: kdir and kernel_release(kdir))
def test_for_a_kernel_of_debian(kdir, tmp_path):
    assert kdir, "no headers: install linux-headers-amd64"
    run([ROOT / "tools" / "build-kmod", kdir, tmp_path, f"-j{os.cpu_count()}", *compiler_arguments()])
    told = run(["/sbin/modinfo", tmp_path / "src" / "kmod" / "anywarp.ko"])
    assert re.search(r"(?m)^license: +Dual BSD/GPL$", told)
    assert re.search(r"(?m)^alias: +rdma-link-anywarp$", told)
    assert re.search(rf"(?m)^vermagic: +{re.escape(kernel_release(kdir))} ", told)


def test_for_a_kernel_that_siw_is_part_of(tmp_path):
    """Where siw is no module, /sys/module does not have it, so that a module that was built could not refuse to load."""
    done = subprocess.run([ROOT / "tools" / "build-kmod", headers()[0], tmp_path, "CONFIG_RDMA_SIW=y", *compiler_arguments()],
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode != 0 and "siw is part of this kernel" in done.stderr


def kernel_release(kdir):
    text = kdir.joinpath("include/generated/utsrelease.h").read_text(encoding="ascii")
    return re.search(r'"(.+)"', text)[1]


def test_by_dkms(tmp_path):
    """What `cmake --install` puts under /usr/src, as dkms finds it there."""
    if not shutil.which("dkms"):
        pytest.skip("no dkms here")
    run(["cmake", "--install", BUILD, "--component", "kmod"], env={**os.environ, "DESTDIR": str(tmp_path)})
    source, = (tmp_path / "usr" / "src").iterdir()
    version = source.name.removeprefix("anywarp-")
    kdir = headers()[0]
    tree = ["--dkmstree", tmp_path / "tree", "--sourcetree", source.parent, "--installtree", tmp_path / "modules"]
    tree[1].mkdir()
    kernel = ["-k", kernel_release(kdir), "--kernelsourcedir", kdir]
    run(["dkms", "add", f"anywarp/{version}", *tree])
    run(["dkms", "build", f"anywarp/{version}", *kernel, *tree])
    built, = tree[1].glob(f"anywarp/{version}/*/*/module/anywarp.ko*")
    assert built.stat().st_size > 0
