# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The command and the libraries where every user may reach them, for tests that are several users."""

import atexit
import functools
import pathlib
import shutil
import tempfile

from program import is_open_to_others


@functools.cache
def open_build(build):
    """The build directory; a copy of its bin and lib, if it lies in a private home directory."""
    if is_open_to_others(build):
        return build
    folder = pathlib.Path(tempfile.mkdtemp(prefix="anywarp-test-"))
    atexit.register(shutil.rmtree, folder)
    for name in ("bin", "lib"):
        shutil.copytree(build / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("static"))
    folder.chmod(0o755)
    return folder
