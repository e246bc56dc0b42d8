# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""anywarp bench: measures anywarp beside raw TCP, libfabric and UCX, in turn in one run, and leaves
a table, results.json and index.html. 'anywarp bench' and 'man anywarp-bench' tell how to use it."""

import argparse
import contextlib
import datetime
import os
import pathlib
import resource
import shlex
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
# In the sources, what the bench shares with the demo and the tests; installed, it lies beside us.
sys.path.insert(0, str(HERE.parents[1] / "tools" / "lib"))

import cputree  # noqa: E402
import earlier  # noqa: E402
import machine  # noqa: E402
import others  # noqa: E402
import others_perftest  # noqa: E402
import points  # noqa: E402
import progress  # noqa: E402
import record  # noqa: E402
import results  # noqa: E402
import runner  # noqa: E402
import sockets  # noqa: E402
import study  # noqa: E402
import table  # noqa: E402
import tls  # noqa: E402
import workers  # noqa: E402

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
FILES_WANTED = 65536


def fail(text):
    print(f"anywarp bench: {text}", file=sys.stderr)
    sys.exit(USAGE)


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def parse(argv):
    parser = argparse.ArgumentParser(prog="anywarp bench", allow_abbrev=False, description=(
        "Measures anywarp beside raw TCP, libfabric and UCX on this machine."))
    form = parser.add_mutually_exclusive_group()
    for name, text in (("short", "what the targets need, 3 rounds; at most 2 minutes"),
                       ("full", "every size and count, 7 rounds; about 40 minutes")):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=text)
    parser.add_argument("--apps", action="store_true", help=(
        "the application study: programs that people know, over TCP and over iWARP; at most an hour, with --short 10 minutes"))
    parser.add_argument("--out", metavar="DIR", default="bench-results",
                        help="where results.json and index.html go (default: %(default)s)")
    parser.add_argument("--only", metavar="NAME", action="append", default=[],
                        help="only the points whose name, or a part of it, begins with NAME; "
                        "may be given again")
    parser.add_argument("--rounds", metavar="N", type=positive, help="rounds of every point")
    parser.add_argument("--continue", dest="proceed", action="store_true",
                        help="measure what results.json of DIR does not have yet of this run")
    parser.add_argument("--list", action="store_true", help="name the points and end")
    for name, text in (("table", "print the table of an earlier run"),
                       ("html", "make index.html anew, beside the file"),
                       ("markdown", "print the targets as markdown")):
        parser.add_argument(f"--{name}", metavar="results.json", help=text)
    # anywarp bench, the C program, gives these.
    for name in ("workers", "libraries", "anywarp-version"):
        parser.add_argument(f"--{name}", default="", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def show(options):
    """Reads an earlier run; true when that was what was asked for."""
    path = options.table or options.html or options.markdown
    if not path:
        return False
    try:
        found = results.load(path)
    except results.Unreadable as error:
        fail(error)
    if options.table:
        print(table.text(found))
    elif options.markdown:
        print(table.markdown(found))
    else:
        write_page(found, pathlib.Path(path).parent)
    return True


def write_page(found, folder):
    """The page is made of matplotlib's plots: without it there is the rest."""
    try:
        import page
    except ImportError as error:
        print(f"anywarp bench: no index.html: {error} (Debian package python3-matplotlib; then "
              f"'anywarp bench --html {folder / 'results.json'}')", file=sys.stderr)
        return
    path = folder / "index.html"
    path.write_text(page.html(found), encoding="utf-8")
    print(f"page: {path}")


def allow_files():
    """10,000 connections are as many files: as many as we may, and more where we are root."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES_WANTED:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, FILES_WANTED))
            hard = FILES_WANTED
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, FILES_WANTED)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def programs(options):
    """By the name that a series has for them; ours have to be there."""
    ours = {name: workers.Worker(name, options.workers, options.libraries)
            for name in workers.PROGRAMS}
    for each in ours.values():
        if each.missing():
            fail(each.missing())
    if options.apps:
        return study.programs(options.workers, options.libraries)
    return {**ours, **sockets.programs(options.workers, options.libraries), **tls.programs(options.workers, options.libraries),
            **others.programs(), "perftest": others_perftest.Perftest(options.libraries, workers.OVER_TCP),
            "perftest-host": others_perftest.Perftest(options.libraries, {"ANYWARP_HOST_PATH": "auto"})}


def interrupt(*_):
    raise KeyboardInterrupt


def beginning(options, settings):
    """What results.json holds before anything is measured. Until the end it is an interrupted run."""
    return {
        "schema": results.SCHEMA,
        "machine": machine.machine(),
        "versions": {**machine.versions(options.anywarp_version, options.workers, options.libraries),
                     **(machine.application_versions() if options.apps else {})},
        "settings": {"form": settings.form, "rounds": settings.rounds,
                     "seconds": settings.seconds, "only": options.only,
                     "command": shlex.join(["anywarp", "bench", *options.shown]),
                     "started": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
                     "took_seconds": 0, "interrupted": True},
        "points": [],
        "skipped": [{"what": what, "why": why} for what, why in (study.NOT_IN_IT if options.apps else ())],
    }


def measure(options, settings, wanted, found, path):
    """Measures what found does not have yet; after each point the file has what there is."""
    began, before = time.monotonic(), found["settings"]["took_seconds"]
    wanted = earlier.missing(wanted, found)
    how = progress.Progress(sys.stderr, *runner.guess(wanted, settings))

    def save():
        found["settings"]["took_seconds"] = round(before + time.monotonic() - began, 1)
        results.save(results.finish(found), path)

    run = runner.Runner(settings, programs(options), how,
                        lambda: workers.handover_ns(options.workers), save)
    run.records, run.skipped = found["points"], found["skipped"]
    cputree.adopt_orphans()
    signal.signal(signal.SIGTERM, interrupt)
    with contextlib.suppress(KeyboardInterrupt):
        run.run(wanted)
        found["settings"]["interrupted"] = False
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    how.clear()
    save()


def command_line(argv):
    """What the user typed of it."""
    return [each for each in argv
            if not each.startswith(("--workers=", "--libraries=", "--anywarp-version="))]


def make_folder(path):
    try:
        os.makedirs(path, exist_ok=True)
        probe = pathlib.Path(path) / "results.json.part"
        probe.touch()
        probe.unlink()
    except OSError as error:
        fail(f"cannot write to {path}: {error.strerror}: name another place with --out")
    return pathlib.Path(path)


def main(argv):
    options = parse(argv)
    options.shown = command_line(argv)
    if show(options):
        return OK
    form, known = form_of(options)
    wanted = known.all_points(form, options.only)
    if not wanted:
        fail(f"no point is named {' or '.join(options.only)}: 'anywarp bench --list' names them")
    if options.list:
        print("\n".join(points.key(point) for point in wanted))
        return OK
    return run_all(options, (form, known.FORMS[form]), wanted)


def form_of(options):
    """The form's name, and the module that has its points."""
    if options.apps:
        return "apps-short" if options.form == "short" else "apps", study
    return options.form or "default", points


def run_all(options, form, wanted):
    folder = make_folder(options.out)
    allow_files()
    name, defaults = form
    settings = runner.Settings(name, options.rounds or defaults.rounds, defaults.seconds,
                               None if options.rounds else defaults.limit, options.workers)
    found, path = beginning(options, settings), folder / "results.json"
    if options.proceed:
        try:
            earlier.proceed(path, found)
        except results.Unreadable as error:
            fail(error)
    else:
        earlier.put_aside(folder)
    measure(options, settings, wanted, found, path)
    print(table.text(found))
    print(f"\nresults: {path}")
    write_page(found, folder)
    if found["settings"]["interrupted"]:
        return INTERRUPTED
    return FAILED if record.failures(found) else OK


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # Who read the table has seen enough of it; the files are written before it is printed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = OK
    sys.exit(status)
