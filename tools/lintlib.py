# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Shared by the check-* tools: which files the repository has, and how a check ends."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CODE_SUFFIXES = (".c", ".h", ".py", ".sh", ".cmake")


def repository_files(root=ROOT):
    """Paths relative to the root: what git tracks or would track; without git, all but build/."""
    git = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                         capture_output=True, text=True)
    if git.returncode == 0:
        listed = git.stdout.splitlines()
    else:
        listed = walk(root)
    return sorted({path for path in listed if os.path.isfile(os.path.join(root, path))})


def walk(root):
    paths = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in ("build", ".git", "__pycache__")]
        paths += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return paths


def lines_of(root, path):
    """The lines of a text file; nothing for a binary one."""
    with open(os.path.join(root, path), "rb") as file:
        content = file.read()
    if b"\0" in content:
        return []
    return content.decode("utf-8", "replace").splitlines()


def is_code(root, path):
    if path.endswith(CODE_SUFFIXES) or os.path.basename(path) == "CMakeLists.txt":
        return True
    first = lines_of(root, path)[:1]
    return bool(first) and first[0].startswith("#!")


def write_tree(root, files):
    """Lays out a tree for a self-test: {path: text}."""
    for path, text in files.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


def expect(problems, wanted):
    """A self-test's verdict: one problem for each wanted text, in order, and no other."""
    if len(problems) == len(wanted) and all(w in p for w, p in zip(wanted, problems)):
        return
    sys.exit(f"self-test: wanted {wanted}, got {problems}")


def main(check, self_test):
    """Runs check(root) -> [problem], or the self-test when asked for."""
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    if sys.argv[1:]:
        sys.exit(f"{sys.argv[0]}: unknown argument '{sys.argv[1]}'; the only one is --self-test")
    problems = check(ROOT)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)
