# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs that were compiled with a sanitizer, in each way in which the command runs a program: one without a fault has no report, and
one with a fault the report with the function that has it. The same for a program under valgrind. Then programs with other preloaded
libraries. ANYWARP_TEST_WHOLE=1 runs each row of the table, ./dev test a choice."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT

HERE = pathlib.Path(__file__).resolve().parent / "sanitized"
ANYWARP = BUILD / "bin" / "anywarp"
SUPPRESSIONS = ROOT / "src" / "cli" / "valgrind.supp"
SECONDS_MAX = 120 * int(os.environ.get("ANYWARP_SLOWNESS", "1"))
WHOLE = os.environ.get("ANYWARP_TEST_WHOLE") == "1"
ERROR = 99
SOURCES = {"verbs": ["verbs.c", ROOT / "tests" / "check" / "pair.c"], "sockets": ["sockets.c"], "parent": ["parent.c"]}
LIBRARIES = {"verbs": ["-libverbs", "-lrdmacm"]}

OVERFLOW = ("overflow", r"AddressSanitizer: heap-buffer-overflow", r"#0 \S+ in fault_overflow \S*fault\.h:\d+")
READ = ("read", r"AddressSanitizer: heap-buffer-overflow", r"in fault_read \S*sockets\.c:\d+")
SEGV = ("segv", r"AddressSanitizer: SEGV on unknown address", r"#0 \S+ in fault_segv \S*fault\.h:\d+")
LEAK = ("leak", r"LeakSanitizer: detected memory leaks", r"in fault_leak \S*fault\.h:\d+")
SHIFT = ("shift", r"fault\.h:\d+:\d+: runtime error: (?:left )?shift", r"in fault_shift \S*fault\.h:\d+")
RACE = ("race", r"ThreadSanitizer: data race", r"fault_(?:race|write) \S*fault\.h:\d+")
UNDEFINED = ("undefined", r"MemorySanitizer: use-of-uninitialized-value", r"#0 \S+ in fault_undefined \S*fault\.h:\d+")
INVALID = ("overflow", r"Invalid write of size 1", r"at \S+: fault_overflow \(fault\.h:\d+\)")

# Compiler, its options, and the faults that have to be found. clang's runtimes are a part of the program, but for asan_shared.
BUILDS = {
    "gcc_asan": ("gcc", ["-fsanitize=address"], [OVERFLOW, LEAK, SEGV]),
    "gcc_asan_ubsan": ("gcc", ["-fsanitize=address,undefined", "-fno-sanitize-recover"], [OVERFLOW, SHIFT]),
    "gcc_asan_static": ("gcc", ["-fsanitize=address", "-static-libasan"], [OVERFLOW]),
    "clang_asan": ("clang", ["-fsanitize=address"], [OVERFLOW, LEAK, SEGV]),
    "clang_asan_shared": ("clang", ["-fsanitize=address", "-shared-libasan"], [OVERFLOW]),
    "gcc_ubsan": ("gcc", ["-fsanitize=undefined", "-fno-sanitize-recover"], [SHIFT]),
    "clang_ubsan": ("clang", ["-fsanitize=undefined", "-fno-sanitize-recover=all"], [SHIFT]),
    "gcc_tsan": ("gcc", ["-fsanitize=thread"], [RACE]),
    "clang_tsan": ("clang", ["-fsanitize=thread"], [RACE]),
    "clang_msan": ("clang", ["-fsanitize=memory"], [UNDEFINED]),
    "gcc_lsan": ("gcc", ["-fsanitize=leak"], [LEAK]),
    "clang_lsan": ("clang", ["-fsanitize=leak"], [LEAK]),
    "valgrind": ("gcc", [], [INVALID]),
    "plain": ("gcc", [], []),
}
# The command's words, and the program with its own.
WAYS = {
    "run": (["run"], "verbs"),
    "roce": (["run", "--persona", "roce"], "verbs"),
    "device_files": (["run", "--device-files"], "verbs"),
    "check": (["check"], "verbs"),
    "check_roce": (["check", "--persona", "roce"], "verbs"),
    "sockets_auto": (["sockets"], "sockets"),
    "sockets_on": (["sockets", "--rule", "on"], "sockets"),
}
# What ./dev test runs: each build, each way.
CHOICE = {("gcc_asan", way) for way in WAYS} | {
    ("gcc_asan_ubsan", "sockets_on"), ("gcc_asan_static", "check"), ("clang_asan", "roce"), ("clang_asan", "sockets_on"),
    ("clang_asan_shared", "sockets_auto"), ("clang_asan_shared", "device_files"), ("gcc_ubsan", "roce"), ("clang_ubsan", "sockets_auto"),
    ("gcc_tsan", "roce"), ("gcc_tsan", "sockets_on"), ("clang_tsan", "run"), ("clang_tsan", "sockets_auto"), ("clang_msan", "roce"),
    ("clang_msan", "sockets_on"), ("gcc_lsan", "run"), ("clang_lsan", "device_files"), ("valgrind", "device_files")}
TABLE = [(build, way) for build in BUILDS if build != "plain" for way in WAYS if WHOLE or (build, way) in CHOICE]
# Threads that take connections at the same time: what orders them meets a report once in eight runs where it is missing.
TURNS = {("gcc_tsan", "sockets_on"): 30}
OPTIONS = {f"{name}_OPTIONS": f"exitcode={ERROR}:print_stacktrace=1" for name in ("ASAN", "UBSAN", "TSAN", "LSAN")}
OPTIONS["MSAN_OPTIONS"] = f"exit_code={ERROR}"

pytestmark = pytest.mark.skipif(bool(os.environ.get("ANYWARP_SAN")), reason="the libraries have a sanitizer themselves")


def run(command, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANYWARP_") and name != "LD_PRELOAD"}
    env.update({**OPTIONS, "ANYWARP_SOCKETS_PAIR_MS": "20000", **variables})
    return subprocess.run([str(word) for word in command], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=SECONDS_MAX, check=False)


def clang_runtimes():
    named = subprocess.run(["clang", "-print-runtime-dir"], capture_output=True, text=True, check=True).stdout.strip()
    return named if os.path.isdir(named) else os.path.dirname(subprocess.run(
        ["clang", "-print-file-name=libclang_rt.asan-x86_64.so"], capture_output=True, text=True, check=True).stdout.strip())


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A function that compiles a program, once for each build."""
    folder = tmp_path_factory.mktemp("sanitized")
    missing = {}

    def compile_with(build, output, sources, libraries=()):
        compiler, options, _ = BUILDS[build]
        if not shutil.which(compiler):
            pytest.skip(f"{compiler} is not installed")
        if build == "valgrind" and not shutil.which("valgrind"):
            pytest.skip("valgrind is not installed")
        if "-shared-libasan" in options:
            options = [*options, f"-Wl,-rpath,{clang_runtimes()}"]
        return run([compiler, "-g", "-O1", "-fno-omit-frame-pointer", "-pthread", *options, "-o", output, *sources, "-Wl,--as-needed",
                    *libraries])

    def try_out(build):
        (folder / "empty.c").write_text("int main(void) { return 0; }\n")
        end = compile_with(build, folder / f"empty_{build}", [folder / "empty.c"])
        if end.returncode == 0:
            end = run([*prefix(build), folder / f"empty_{build}"])
        return end.stderr.strip() if end.returncode else ""

    def program(build, name):
        if build not in missing:
            missing[build] = try_out(build)
        if missing[build]:
            pytest.skip(f"{build} does not work here: {missing[build][-200:]}")
        output = folder / f"{name}_{build}"
        if not output.exists():
            sources = [HERE / source if isinstance(source, str) else source for source in SOURCES[name]]
            end = compile_with(build, output, sources, LIBRARIES.get(name, ()))
            assert end.returncode == 0, end.stderr
        return output

    return program


def prefix(build):
    """What goes before the command: the thread sanitizer of these compilers wants the usual layout of addresses."""
    if build.endswith("tsan") and subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False).returncode == 0:
        return ["setarch", "-R"]
    return []


def tool(build):
    """What goes between the command and the program."""
    return ["valgrind", "--quiet", f"--error-exitcode={ERROR}", f"--suppressions={SUPPRESSIONS}"] if build == "valgrind" else []


def words(way, program, fault):
    return [program, fault, *(["pair"] if way == "sockets_auto" else [])]


def start(compiled, build, way, fault, between=()):
    options, name = WAYS[way]
    # docs/sanitizers.md: behind a script.
    variables = {"TSAN_OPTIONS": f"{OPTIONS['TSAN_OPTIONS']}:ignore_noninstrumented_modules=1"} if between and "tsan" in build else {}
    return run([*prefix(build), ANYWARP, *options, "--", *tool(build), *between, *words(way, compiled(build, name), fault)], **variables)


def is_quiet(end):
    return not re.search(r"Sanitizer|runtime error|==\d+==|ld\.so|anywarp\[\d+\] error", end.stderr)


def assert_right(end):
    assert end.returncode == 0, end.stderr
    assert end.stdout.endswith("done\n"), end.stderr
    assert is_quiet(end), end.stderr


def assert_found(end, fault, build):
    _, what, where = fault
    assert re.search(what, end.stderr), f"{build}: status {end.returncode}\n{end.stderr}"
    assert re.search(where, end.stderr), end.stderr
    assert end.returncode in (1, ERROR, 66), end.stderr  # 66: the checker also reports what the program has left


@pytest.mark.parametrize("build, way", TABLE)
def test_no_report_without_a_fault(compiled, build, way):
    for _ in range(TURNS.get((build, way), 1)):
        assert_right(start(compiled, build, way, "right"))


@pytest.mark.parametrize("build, way", TABLE)
def test_each_fault_is_reported(compiled, build, way):
    for fault in [*BUILDS[build][2], *([READ] if "asan" in build and way.startswith("sockets") else [])]:
        assert_found(start(compiled, build, way, fault[0]), fault, build)


# A script that starts the program behind others that are not compiled with the sanitizer, and do not have its runtime.
SCRIPT = """#!/bin/sh
! grep -E 'lib(a|t|l)san|libclang_rt' /proc/self/maps || exit 3
"$@"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "script"
    path.write_text(SCRIPT)
    path.chmod(0o755)
    return path


SHARED = [build for build in ("gcc_asan", "clang_asan_shared", "gcc_tsan")]
SCRIPTS = [(build, way) for build in SHARED for way in WAYS
           if WHOLE or build == "gcc_asan" or (build, way) in {("gcc_tsan", "sockets_on"), ("clang_asan_shared", "roce")}]


@pytest.mark.parametrize("build, way", SCRIPTS)
def test_script_that_starts_the_program(compiled, script, build, way):
    """The command does not know the program: its runtime comes behind our libraries."""
    assert_right(start(compiled, build, way, "right", [script]))
    for fault in [BUILDS[build][2][0], *([READ] if "asan" in build and way.startswith("sockets") else [])]:
        assert_found(start(compiled, build, way, fault[0], [script]), fault, build)


OURS = {"roce": "libanywarp-paths.so", "check": "libanywarp-check.so", "sockets_on": "libanywarp-sockets.so"}


@pytest.mark.parametrize("way", OURS)
@pytest.mark.parametrize("build", ["gcc_asan", "clang_asan"])
def test_what_the_program_starts_has_our_library_and_not_the_runtime(compiled, build, way):
    end = run([ANYWARP, *WAYS[way][0], "--", compiled(build, "parent")])
    assert end.returncode == 0 and end.stdout.endswith("again\n"), end.stderr
    maps, listed = end.stdout.split("LD_PRELOAD=")
    assert OURS[way] in maps and OURS[way] in listed
    assert "libasan" not in maps + listed and is_quiet(end)


@pytest.mark.parametrize("way", OURS)
def test_runtime_that_the_user_preloads_comes_first_and_stays(compiled, way):
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
    runtime = os.path.realpath(runtime)
    end = run([ANYWARP, *WAYS[way][0], "--", "sh", "-c", "echo $LD_PRELOAD; cat /proc/self/maps"], LD_PRELOAD=f"{runtime} libutil.so.1",
              ASAN_OPTIONS="detect_leaks=0")
    assert end.returncode == 0 and is_quiet(end), end.stderr
    listed, maps = end.stdout.split("\n", 1)
    assert listed.split(":")[0] == runtime and listed.endswith(":libutil.so.1")
    assert OURS[way] in listed and "libasan" in maps and OURS[way] in maps
    del compiled


def test_order_that_the_user_verifies_is_verified(compiled, script):
    end = run([ANYWARP, "sockets", "--", script, compiled("gcc_asan", "sockets"), "right"],
              ASAN_OPTIONS="verify_asan_link_order=1:detect_leaks=0")
    assert end.returncode != 0 and "ASan runtime does not come first" in end.stderr


def library(name):
    """Of the directories that the loader searches; skips the test where there is none."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = re.search(rf"^\s*{re.escape(name)} .* => (\S+)$", listed, re.M)
    paths = [found[1]] if found else [str(path) for path in pathlib.Path("/usr/lib").glob(f"*/faketime/{name}")]
    if not paths:
        pytest.skip(f"{name} is not installed")
    return paths[0]


OTHERS = {"libjemalloc.so.2": {}, "libtcmalloc_minimal.so.4": {}, "libfaketime.so.1": {"FAKETIME": "-30d"}}


@pytest.mark.parametrize("way", ["roce", "check", "sockets_auto", "sockets_on"])
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("order", ["behind", "in_front"])
def test_other_preloaded_library(compiled, name, way, order):
    """The command puts its own library before the user's. A program that sets LD_PRELOAD itself may have it the other way round."""
    options, source = WAYS[way]
    path = library(name)
    between = ["sh", "-c", f'LD_PRELOAD="{path}:$LD_PRELOAD" exec "$@"', "sh"] if order == "in_front" else []
    variables = OTHERS[name] if between else {**OTHERS[name], "LD_PRELOAD": path}
    wanted = OURS.get(way, "libanywarp-sockets.so")
    assert_right(run([ANYWARP, *options, "--", *between, *words(way, compiled("plain", source), "right")],
                     EXPECT_LOADED=f"{name}:{wanted}", **variables))
