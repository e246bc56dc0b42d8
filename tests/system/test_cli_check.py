# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The command 'anywarp check' over a library that makes reports on request (check_reporter.c), in the place of
libanywarp-check.so: what it passes on, its summary, its files and its exit status."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
SOURCE = pathlib.Path(__file__).with_name("check_program.c")
PROGRAM = str(BUILD / "tests" / "check_program")
LINE = 1 + next(number for number, line in enumerate(SOURCE.read_text().splitlines()) if "the call that is reported" in line)
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ANYWARP_") and name != "LD_PRELOAD"}


@pytest.fixture(name="tree", scope="module")
def fixture_tree(tmp_path_factory):
    """The command finds its libraries beside itself."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in ("bin", "lib", "system"):
        tree.joinpath(folder).mkdir()
    shutil.copy(BUILD / "bin" / "anywarp", tree / "bin" / "anywarp")
    for library in BUILD.joinpath("lib").glob("*.so*"):
        tree.joinpath("lib", library.name).symlink_to(library)
    tree.joinpath("lib", "libanywarp-check.so").unlink(missing_ok=True)
    tree.joinpath("lib", "libanywarp-check.so").symlink_to(BUILD / "tests" / "libcheck_reporter.so")
    return tree


@pytest.fixture(name="check")
def fixture_check(tree, tmp_path):
    def check(*args, folder=tmp_path, **env):
        return subprocess.run([str(tree / "bin" / "anywarp"), "check", *args], cwd=folder, env={**ENVIRONMENT, **env},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return check


def test_no_report(check):
    done = check("--", PROGRAM, "exit=7")
    assert done.returncode == 7
    assert done.stderr == "anywarp check: no report\n" and done.stdout == ""


@pytest.mark.parametrize("acts", [("leak",), (f"raise={int(signal.SIGKILL)}",), ()])
def test_nothing_is_left(check, acts):
    folder = pathlib.Path(check(PROGRAM, "print=ANYWARP_CHECK_REPORTS", *acts).stdout.strip()).parent
    assert folder.name.startswith("anywarp-check-") and not folder.exists()


def test_a_report_and_its_summary(check):
    done = check("--", PROGRAM, "thrice=leak", "overlap", "cq-small", folder=SOURCE.parent)
    assert done.returncode == 66
    assert re.search(r"(?m)^==\d+== anywarp check: leak: the \"SGE\" at 0x1000 was changed\n  QP 0x12\n"
                     rf"    #0 break_rule check_program.c:{LINE}\n", done.stderr), done.stderr
    assert "\n  posted here:\n    #0 break_rule check_program.c" in done.stderr
    assert re.search(r"(?m)^==\d+== anywarp check: leak: 2 more at break_rule check_program.c:\d+$", done.stderr)
    summary = done.stderr[done.stderr.index("anywarp check: 2 reports\n"):]
    assert summary.splitlines() == [
        "anywarp check: 2 reports",
        "      1  overlap             a work request under way writes what another one uses",
        "      1  leak                an object was never destroyed (and 2 more at the same calls)",
        "anywarp check: 1 risk, by which the exit status does not change",
        "      1  cq-small            the QPs of a CQ can have more completions than it holds"]


def test_a_risk_leaves_the_exit_status(check):
    assert check(PROGRAM, "cq-small").returncode == 0
    assert check(PROGRAM, "cq-small", "exit=3").returncode == 3


@pytest.mark.parametrize("args, acts, status, told", [
    ((), ("leak", "exit=3"), 66, "the program's own exit status was 3"),
    (("--exit-code", "9"), ("leak", "exit=3"), 9, "the program's own exit status was 3"),
    (("--exit-code=0",), ("leak", "exit=3"), 3, None),
    ((), ("leak", f"raise={int(signal.SIGKILL)}"), 66, "the program was ended by signal 9 (Killed)"),
    ((), (f"raise={int(signal.SIGSEGV)}",), 128 + 11, "the program was ended by signal 11 (Segmentation fault)"),
    (("--halt",), ("leak", "overlap", "exit=3"), 66, "anywarp check: 1 report\n"),
    (("--halt", "--exit-code", "9"), ("cq-small", "leak", "overlap"), 9, "anywarp check: 1 report\n"),
    (("--rules", "leak+overlap"), ("source-changed",), 0, "no report"),
    (("--rules=none",), ("leak",), 0, "no report"),
])
def test_exit_status(check, args, acts, status, told):
    done = check(*args, "--", PROGRAM, *acts)
    assert done.returncode == status, done.stderr
    assert (told or "anywarp check: 1 report\n") in done.stderr
    assert told or "own exit status" not in done.stderr


def test_children_report_with_their_number(check):
    done = check(PROGRAM, "child=leak")
    number = re.search(r"child (\d+)", done.stdout)[1]
    assert done.returncode == 66 and f"=={number}== anywarp check: leak:" in done.stderr


def test_programs_that_the_program_starts_are_counted(check):
    done = check("sh", "-c", f"{PROGRAM} leak; {PROGRAM} leak; exit 4")
    assert done.returncode == 66
    assert "      2  leak  " in done.stderr and "own exit status was 4" in done.stderr


@pytest.mark.parametrize("name", ["nosuchprogram", "/no/such/program"])
def test_no_such_program(check, name):
    done = check(name)
    assert done.returncode == 127
    assert f"anywarp check: no program '{name}'" in done.stderr and "no report" not in done.stderr


def test_a_program_that_is_not_executable(check):
    done = check(str(SOURCE))
    assert done.returncode == 126 and "chmod +x" in done.stderr and "no report" not in done.stderr


def test_a_program_that_loads_no_library(check, tmp_path):
    """It must not look as if it were clean."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no compiler")
    tmp_path.joinpath("a.c").write_text("int main(void) { return 3; }\n")
    subprocess.run([compiler, "-static", "-o", "a", "a.c"], cwd=tmp_path, check=True)
    done = check("./a")
    assert done.returncode == 3
    assert "note: ./a is linked statically" in done.stderr and "nothing was checked: no process has loaded" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_signals_are_passed_on(tree, number):
    """And the summary is made."""
    with subprocess.Popen([str(tree / "bin" / "anywarp"), "check", PROGRAM, "leak", "wait"], env=ENVIRONMENT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout.readline() == "READY\n"
        started.send_signal(number)
        _, errors = started.communicate(timeout=60)
    assert started.returncode == 66
    assert "anywarp check: 1 report\n" in errors and f"was ended by signal {int(number)}" in errors


def test_the_program_ends_with_the_command(tree):
    with subprocess.Popen([str(tree / "bin" / "anywarp"), "check", PROGRAM, "wait"], env=ENVIRONMENT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as started:
        assert started.stdout.readline() == "READY\n"
        started.kill()
        assert started.stdout.read() == ""  # all that have it open are gone


def test_the_program_gets_the_signals_as_they_were(check):
    done = check("sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status")
    bare = subprocess.run(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"], capture_output=True, text=True, check=True)
    assert done.stdout == bare.stdout


def test_the_program_gets_no_fd_more(check, tmp_path):
    done = check("--json", "a", "--sarif", "b", "--", "sh", "-c", "ls /proc/self/fd | wc -l")
    bare = subprocess.run(["sh", "-c", "ls /proc/self/fd | wc -l"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=True)
    assert done.stdout == bare.stdout and tmp_path.joinpath("a").exists()


def test_json(check, tmp_path):
    check("--json", "out.json", "--", PROGRAM, "leak", "cq-small", "child=overlap", folder=tmp_path)
    reports = json.loads(tmp_path.joinpath("out.json").read_text())
    assert [(report["rule"], report["level"], report["class"]) for report in reports] == [
        ("leak", "error", 7), ("cq-small", "warning", 3), ("overlap", "error", 1)]
    report = reports[0]
    assert report["message"] == 'the "SGE" at 0x1000 was changed' and report["object"] == "QP 0x12"
    assert report["stack"][0]["function"] == "break_rule" and report["stack"][0]["line"] == LINE
    assert report["stack"][0]["file"] == str(SOURCE) and report["stack"][0]["module"] == PROGRAM
    assert [frame["function"] for frame in report["stack"]][-1] == "main"
    assert report["earlier"][0]["what"] == "posted here" and report["earlier"][0]["stack"]
    assert report["pid"] == reports[1]["pid"] != reports[2]["pid"]
    assert report["follows"] and report["remedy"]


def test_sarif(check, tmp_path):
    check("--sarif", str(tmp_path / "out.sarif"), "--", PROGRAM, "leak", "cq-small", folder=SOURCE.parents[1])
    document = json.loads(tmp_path.joinpath("out.sarif").read_text())
    assert document["version"] == "2.1.0" and document["$schema"].endswith("sarif-2.1.0.json")
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result, name, level in zip(run["results"], ("leak", "cq-small"), ("error", "warning"), strict=True):
        assert result["ruleId"] == rules[result["ruleIndex"]]["id"] == name
        assert result["level"] == rules[result["ruleIndex"]]["defaultConfiguration"]["level"] == level
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"] == {"uri": "system/check_program.c", "uriBaseId": "%SRCROOT%"}
        assert place["region"]["startLine"] == LINE
        related = result["relatedLocations"][0]
        assert related["message"]["text"] == "posted here" and related["physicalLocation"]
        assert 'QP 0x12: the "SGE" at 0x1000 was changed. Follows: ' in result["message"]["text"]


def test_files_without_a_report(check, tmp_path):
    check("--json=a", "--sarif=b", "true")
    assert json.loads(tmp_path.joinpath("a").read_text()) == []
    assert json.loads(tmp_path.joinpath("b").read_text())["runs"][0]["results"] == []


@pytest.mark.parametrize("option", ["--json", "--sarif"])
def test_a_file_that_cannot_be_written(check, option):
    done = check(option, "/no/such/file", PROGRAM, "print=HOME")
    assert done.returncode == 125 and done.stdout == ""
    assert f"{option}: cannot write '/no/such/file': No such file or directory" in done.stderr
    done = check(option, "/dev/full", PROGRAM)
    assert done.returncode == 125 and f"cannot write the file of {option}: No space left" in done.stderr


@pytest.mark.parametrize("lines, status", [
    ("leak\n", 0), ("leak:break_*\n", 0), ("leak:check_program.c", 0), ("# leak\n", 66), ("leak:other", 66)])
def test_suppressions(check, tmp_path, lines, status):
    tmp_path.joinpath("known").write_text(lines)
    done = check("--suppress", "known", PROGRAM, "leak")
    assert done.returncode == status, done.stderr


@pytest.mark.parametrize("args, words", [
    (("--suppress", "none"), "cannot read 'none': No such file or directory"),
    (("--suppress", "wrong"), "wrong, line 2: 'leek': no such rule: a line is RULE, RULE:GLOB"),
    (("--suppress", "a,b"), "has a comma"),
    (("--suppress=",), "--suppress needs a file"),
    (("--rules", "leak+leek"), "no rule 'leek' at 6: it must be all, none, or names with + between: source-changed "),
    (("--rules=",), "--rules needs one of: all none source-changed"),
    (("--device", "other"), "--device needs one of: anywarp system"),
    (("--exit-code", "256"), "--exit-code needs a number from 0 to 255"),
    (("--exit-code=",), "--exit-code needs a number from 0 to 255"),
    (("--vary", "x"), "--vary needs a number from 0 to 4294967295"),
    (("--seed", "-1"), "--seed needs a number from 0 to 18446744073709551615"),
    (("--seed", "1"), "--seed has an effect with --faults alone"),
    (("--like=",), "--like needs one of: mlx5 irdma bnxt efa siw rxe"),
    (("--like", "mlx6"), "--like: no adapter 'mlx6': it needs one of: mlx5 "),
    (("--faults=",), "--faults needs a plan"),
    (("--faults", "ibv_reg_mrr"), "--faults: no place 'ibv_reg_mrr': ibv_reg_mr is one"),
    (("--faults", "wire:reset", "--device", "system"), "the plan has a fault of the wire, which only anywarp's device has"),
    (("--sweep", "--json=a"), "--json is not for --sweep"),
    (("--faults", "ibv_reg_mr", "--sweep"), "--faults is not for --sweep"),
    (("--jobs", "2"), "--jobs has an effect with --sweep alone"),
    (("--sweep", "--timeout", "0"), "--timeout needs a number from 1 to 86400"),
    (("--json=",), "--json needs a file to write"),
    (("--explain", "--json=a"), "--json is about reports, and --explain makes none"),
    (("--halt", "--explain"), "--halt is about reports"),
    (("--device", "system", "--persona=roce"), "--persona is of anywarp's device: leave it out, or use --device anywarp"),
    (("--mpa", "crc=off", "--device=system"), "--mpa is of anywarp's device"),
    (("--halt=on",), "unknown option '--halt=on': see 'anywarp help check'"),
    (("--persona", "other"), "--persona needs one of: iwarp roce"),
])
def test_a_wrong_option_is_told(check, tmp_path, args, words):
    tmp_path.joinpath("wrong").write_text("leak\nleek\n")
    tmp_path.joinpath("a,b").write_text("leak\n")
    done = check(*args, "--", PROGRAM, "print=HOME")
    assert done.returncode == 125 and done.stdout == ""
    assert words in done.stderr and done.stderr.startswith("anywarp check: ")


def test_no_program(check):
    done = check("--halt")
    assert done.returncode == 125 and "no program to check: for example" in done.stderr


def test_no_library(tree, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(tree, bare, symlinks=True)
    bare.joinpath("lib", "libanywarp-check.so").unlink()
    done = subprocess.run([str(bare / "bin" / "anywarp"), "check", "true"], env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 125 and f"libanywarp-check.so is not in {bare}/lib" in done.stderr


@pytest.mark.parametrize("args, variable, value", [
    ((), "ANYWARP_CHECK", "rules=all,explain=on,halt=off,exit=66"),
    (("--rules", "leak", "--halt", "--exit-code", "5", "--vary", "7", "--like", "mlx5"), "ANYWARP_CHECK",
     "rules=leak,explain=on,halt=on,exit=5,vary=7,like=mlx5"),
    (("--explain",), "ANYWARP_CHECK", "rules=none,explain=on,halt=off,exit=66"),
    (("--explain",), "ANYWARP_CHECK_REPORTS", "(none)"),
    (("--faults", "ibv_reg_mr:nth=3", "--seed", "9"), "ANYWARP_FAULTS", "ibv_reg_mr:nth=3"),
    (("--faults=ibv_reg_mr", "--seed=18446744073709551615"), "ANYWARP_FAULTS_SEED", "18446744073709551615"),
    (("--persona", "roce"), "ANYWARP_PERSONA", "roce"),
    (("--like", "mlx5"), "ANYWARP_PERSONA", "roce"),
    (("--like", "mlx5", "--persona", "iwarp"), "ANYWARP_PERSONA", "iwarp"),
    (("--like", "irdma"), "ANYWARP_PERSONA", "(none)"),
    (("--like", "mlx5", "--device", "system"), "ANYWARP_PERSONA", "(none)"),
    (("--mpa", "crc=off"), "ANYWARP_MPA", "crc=off"),
    (("--log", "info", "--device", "system"), "ANYWARP_LOG", "info"),
    (("--host-path", "off"), "ANYWARP_HOST_PATH", "off"),
])
def test_options_become_variables(check, args, variable, value):
    done = check(*args, "--", PROGRAM, f"print={variable}")
    assert done.returncode == 0 and done.stdout == f"{value}\n", done.stderr


def test_the_path_of_suppressions_is_absolute(check, tmp_path):
    tmp_path.joinpath("known").write_text("leak\n")
    done = check("--suppress", "known", PROGRAM, "print=ANYWARP_CHECK")
    assert done.stdout == f"rules=all,explain=on,halt=off,exit=66,suppress={tmp_path}/known\n"


def test_libraries(check, tree):
    ours = check(PROGRAM, "print=LD_LIBRARY_PATH", LD_LIBRARY_PATH="/a")
    assert ours.stdout == f"{tree}/lib:/a\n"
    system = check("--device", "system", PROGRAM, "print=LD_LIBRARY_PATH", "print=LD_PRELOAD", LD_LIBRARY_PATH="/a")
    assert system.stdout == f"/a\n{tree}/lib/libanywarp-check.so\n"


def test_the_manual_lists_each_rule(check):
    page = SOURCE.parents[2].joinpath("man", "anywarp-check.1").read_text().split(".SH RULES")[1].split(".SH SUPPRESSIONS")[0]
    names = check("--rules=").stderr.split("needs one of: all none ")[1].split()
    assert [name.replace("\\-", "-") for name in re.findall(r"(?m)^\.TP\n\.B (.*)$", page)] == names
    assert re.search(r"(?m)^\.B cq\\-small\nis one", page)


def test_explain_becomes_the_program(tree):
    line = [str(tree / "bin" / "anywarp"), "check", "--explain", "sh", "-c", "echo $$"]
    with subprocess.Popen(line, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        output, errors = started.communicate(timeout=60)
    assert output == f"{started.pid}\n" and errors == ""
