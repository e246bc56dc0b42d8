# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The time left, how it is told, and what a run does that has too little of it."""

import io

import driver_path  # noqa: F401
import points
import progress
import runner


class Clock:
    """A time that goes on when it is told to."""

    def __init__(self):
        self.time = 0

    def __call__(self):
        return self.time


class Program:
    """Takes the time it is told, and knows what ran."""

    def __init__(self, clock, seconds):
        self.clock, self.seconds, self.ran = clock, seconds, []

    def missing(self):
        return None

    def run(self, _, series, __):
        self.clock.time += self.seconds
        self.ran.append(series.name)
        return {}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(points_wanted, each_seconds, settings):
    clock, out = Clock(), io.StringIO()
    how = progress.Progress(out, *runner.guess(points_wanted, settings), now=clock)
    program = Program(clock, each_seconds)
    runner.Runner(settings, {"tcp": program}, how).run(points_wanted)
    return clock, program, out.getvalue()


def some_points(count):
    series = (points.tcp("a", "latency"), points.tcp("b", "latency"))
    return [points.Point("latency", "loopback", x, series, 0) for x in range(count)]


def test_every_round_is_run_where_time_allows():
    _, program, _ = run(some_points(10), 1, runner.Settings("short", 3, 1, 70))
    assert program.ran == ["a", "b"] * 30


def test_a_slow_machine_gets_fewer_rounds_but_every_point():
    clock, program, said = run(some_points(10), 3, runner.Settings("short", 3, 1, 120))
    assert 20 <= len(program.ran) < 60
    assert program.ran == ["a", "b"] * (len(program.ran) // 2)
    assert clock.time <= 130
    assert "fewer than 3 rounds" in said


def test_without_a_limit_a_slow_machine_takes_its_time():
    clock, program, _ = run(some_points(10), 3, runner.Settings("full", 3, 1, None))
    assert len(program.ran) == 60 and clock.time == 180


def test_time_left_follows_the_pace_so_far():
    clock = Clock()
    how = progress.Progress(io.StringIO(), 10, 100, now=clock)
    assert how.left() == 100
    clock.time = 40
    how.done(2, 20)
    assert how.left() == 160


def test_a_file_gets_a_line_every_30_seconds():
    clock, out = Clock(), io.StringIO()
    how = progress.Progress(out, 100, 100, now=clock)
    for clock.time in range(0, 91):
        how.running("x")
    assert out.getvalue().count("\n") == 3


def test_a_terminal_gets_one_line_written_over():
    out = Terminal()
    how = progress.Progress(out, 2, 100)
    how.running("first")
    how.running("second")
    assert out.getvalue().count("\r") == 2 and "\n" not in out.getvalue()
    assert "[1/2] 1:40 left: first" in out.getvalue()
