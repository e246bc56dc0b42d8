# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""How far a run is, on standard error: one line that is written over on a terminal, else a line
every 30 seconds."""

import time

QUIET_SECONDS = 30
WIDTH = 100


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Progress:
    """The time left is what the rest was guessed to take, by how wrong the guess was so far."""

    def __init__(self, out, total_runs, total_seconds, now=time.monotonic):
        self.out, self.now = out, now
        self.total_runs, self.total_seconds = total_runs, total_seconds
        self.done_runs = self.done_seconds = 0
        self.began = self.said = now()
        self.terminal = out.isatty()

    def elapsed(self):
        return self.now() - self.began

    def left(self):
        if not self.done_seconds:
            return self.total_seconds
        pace = self.elapsed() / self.done_seconds
        return max(0, self.total_seconds - self.done_seconds) * pace

    def running(self, what):
        """Says what runs now, if it is time to say something."""
        line = f"[{self.done_runs + 1}/{self.total_runs}] {clock(self.left())} left: {what}"
        if self.terminal:
            print(f"\r{line[:WIDTH]:{WIDTH}}", end="", file=self.out, flush=True)
        elif self.now() - self.said >= QUIET_SECONDS:
            self.said = self.now()
            print(f"bench: {line}", file=self.out, flush=True)

    def done(self, runs, guessed_seconds):
        self.done_runs += runs
        self.done_seconds += guessed_seconds

    def say(self, text):
        self.clear()
        print(f"bench: {text}", file=self.out, flush=True)

    def clear(self):
        if self.terminal:
            print(f"\r{'':{WIDTH}}\r", end="", file=self.out, flush=True)
