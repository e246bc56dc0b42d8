# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs that read memory which a work request has not defined yet, under `anywarp check`: valgrind's memcheck names the line, and so does
MemorySanitizer. The comment UNDEFINED stands on it, ORIGIN on the line from which on it is undefined."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
CHECK = [BUILD / "bin" / "anywarp", "check"]
SUPPRESSIONS = HERE.parents[1] / "src" / "cli" / "valgrind.supp"
NAMES = sorted(path.stem for path in (HERE / "marks").glob("*.c"))
SECONDS_MAX = 120 * int(os.environ.get("ANYWARP_SLOWNESS", "1"))
ERROR = 9

each_program = pytest.mark.parametrize("name", NAMES)
each_persona = pytest.mark.parametrize("persona", ["iwarp", "roce"])


def run(command, **variables):
    return subprocess.run([str(word) for word in command], env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def line_of(name, comment):
    lines = (HERE / "marks" / f"{name}.c").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if f"/* {comment} */" in line)


def under_memcheck(program, side):
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    if os.environ["ANYWARP_HAVE_MEMCHECK"] != "ON":
        pytest.skip("the build lacks <valgrind/memcheck.h>")
    return run([*CHECK, "--", "valgrind", f"--error-exitcode={ERROR}", "--track-origins=yes",
                f"--suppressions={SUPPRESSIONS}", BUILD / "tests" / "check" / program, side])


@each_program
def test_memcheck_names_the_line(name):
    end = under_memcheck(f"marks/{name}", "wrong")
    assert end.returncode == ERROR, end.stderr
    places = re.findall(r"==    at 0x[0-9A-F]+: (.*)", end.stderr)
    assert places[0] == f"main ({name}.c:{line_of(name, 'UNDEFINED')})", end.stderr
    origin = end.stderr.split("Uninitialised value was created by a client request")[1]
    assert f": main ({name}.c:{line_of(name, 'ORIGIN')})" in origin, end.stderr
    assert "ERROR SUMMARY: 1 errors" in end.stderr


@pytest.mark.parametrize("program", [f"marks/{name}" for name in NAMES] +
                         ["sink_written", "overlap_fence", "source_changed_extended", "mr_deregistered_srq", "status_ignored"])
def test_memcheck_finds_no_fault_where_there_is_none(program):
    end = under_memcheck(program, "right")
    assert end.returncode == 0, end.stderr
    assert "ERROR SUMMARY: 0 errors" in end.stderr


def test_memcheck_names_the_free():
    lines = (HERE / "memory_freed.c").read_text().splitlines()
    freed = next(number for number, line in enumerate(lines, 1) if "REPORT memory-freed" in line)
    end = under_memcheck("memory_freed", "wrong")
    assert end.returncode == ERROR, end.stderr
    assert "Invalid read" in end.stderr
    assert re.search(rf"free'd\n==\d+==    at \S+: free .*\n==\d+==    by \S+: main \(memory_freed\.c:{freed}\)", end.stderr), end.stderr


@pytest.fixture(scope="module")
def instrumented(tmp_path_factory):
    """A function that compiles a program of the directory with MemorySanitizer."""
    folder = tmp_path_factory.mktemp("msan")

    def compile_with(output, *sources):
        return run(["clang", "-g", "-O1", "-fsanitize=memory", "-o", folder / output, *sources, "-Wl,--as-needed", "-libverbs",
                    "-lrdmacm"])

    if not shutil.which("clang"):
        pytest.skip("clang is not installed")
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    (folder / "wrong.c").write_text("int main(int n, char **words) { int a[9]; return a[n] && words; }\n")
    for end in [compile_with("empty", folder / "empty.c"), run([folder / "empty"]), compile_with("wrong", folder / "wrong.c")]:
        if end.returncode != 0:
            pytest.skip(f"no MemorySanitizer: {end.stderr}")
    if " in main " not in run([folder / "wrong"]).stderr:
        pytest.skip("MemorySanitizer finds no llvm-symbolizer (package llvm-14), and names no line")

    def program(name):
        end = compile_with(name, HERE / "marks" / f"{name}.c", HERE / "pair.c")
        assert end.returncode == 0, end.stderr
        return folder / name

    return program


def under_msan(program, persona, side):
    options = f"exit_code={ERROR}:poison_in_malloc=0:poison_in_free=0:intercept_send=0:intercept_tls_get_addr=0"
    return run([*CHECK, "--persona", persona, "--", program, side], ANYWARP_PERSONA=persona, MSAN_OPTIONS=options)


@each_program
@each_persona
def test_msan_names_the_line(instrumented, name, persona):
    end = under_msan(instrumented(name), persona, "wrong")
    assert end.returncode == ERROR, end.stderr
    assert re.search(rf"#0 \S+ in main \S*/{name}\.c:{line_of(name, 'UNDEFINED')}:", end.stderr), end.stderr


@each_program
@each_persona
def test_msan_finds_no_fault_where_there_is_none(instrumented, name, persona):
    end = under_msan(instrumented(name), persona, "right")
    assert end.returncode == 0, end.stderr
