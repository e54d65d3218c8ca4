#!/usr/bin/env python3
"""Runs random operations for a long time, and looks whether the ranks hold more and more.

    steady.py PROGRAM [--minutes M | --rounds N] [--jobs tcp:3,both:4] [--seed S]

PROGRAM is runtime_steady (steady.cpp). The jobs run side by side, each with as many ranks as it says, over TCP alone (tcp), with shared
memory inside of two pretended hosts (hosts), or with communicators of both kinds (both): operations, sizes, types and ways of calling are random, communicators come and go, and
every result is checked. With --minutes all ranks say every second or so how much memory, how many bytes of the heap, descriptors and
threads they have when nothing is under way. After a fifth of the time, in which caches fill, the most of the first half of the samples
is compared with the most of the second half: descriptors and threads may not grow at all, memory and heap by 1 MiB or 2% at most.
--rounds (default 40): a short run, which checks results, descriptors and threads. GAR_TEST_SEED gives other operations than usual.
"""
import argparse
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from survivor_jobs import PATIENCE_S, Log, describe_process, die_with_parent, free_port  # noqa: E402

FIELDS = ("seconds", "operations", "memory in KiB", "heap in bytes", "descriptors", "threads")
WARM = 0.2  # of the samples
SLACK = {"memory in KiB": 1 << 10, "heap in bytes": 1 << 20}


class Job:
    def __init__(self, program, words, seed, interval_s):
        self.way, number = words.split(":")
        self.size, self.seed = int(number), seed
        self.folder = tempfile.mkdtemp(prefix="gar-steady-")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GAR_")}
        environment.update(WORLD_SIZE=number, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), GAR_SECRET=secrets.token_hex(32))
        if self.way != "tcp":
            environment["GAR_FAKE_HOSTS"] = "2"
        self.logs = [Log(os.path.join(self.folder, "rank-%d.log" % rank)) for rank in range(self.size)]
        self.ranks = [subprocess.Popen([program, self.folder, str(seed), str(interval_s), self.way],
                                       env={**environment, "RANK": str(rank)}, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
                      for rank in range(self.size)]

    def samples(self, rank):
        """One list of numbers for each."""
        return [list(map(float, line.split()[1:])) for line in self.logs[rank].lines() if line.startswith("sample ")]

    def has_ended(self):
        return all(rank.poll() is not None for rank in self.ranks)

    def check_alive(self):
        for rank, process in enumerate(self.ranks):
            assert process.poll() is None, "%s: rank %d has ended: %s" % (self.words(), rank, self.logs[rank].lines()[-1:])

    def words(self):
        return "%d ranks over %s, seed %d" % (self.size, self.way, self.seed)

    def ask_to_stop(self):
        with open(os.path.join(self.folder, "stop"), "w", encoding="utf-8"):
            pass

    def describe(self):
        out = [self.words()]
        for rank, process in enumerate(self.ranks):
            out += ["rank %d: %s" % (rank, self.logs[rank].lines()[-1:])] + describe_process(process.pid)
        return "\n".join(out)

    def end(self):
        for process in self.ranks:
            process.kill()
            process.wait()
        for log in self.logs:
            log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def await_jobs(jobs, condition, limit_s, what):
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "%s\n%s" % (what, "\n".join(job.describe() for job in jobs))
        time.sleep(0.1)


def halves(samples, field):
    """The most of each half, after the caches have filled."""
    values = [sample[FIELDS.index(field)] for sample in samples[int(len(samples) * WARM):]]
    return max(values[:len(values) // 2]), max(values[len(values) // 2:])


def judge(job, is_long):
    for rank in range(job.size):
        last = job.logs[rank].lines()[-1]
        assert last == "finished", "%s: rank %d: %s" % (job.words(), rank, last)
    grown = []
    for field in ("descriptors", "threads") + (("memory in KiB", "heap in bytes") if is_long else ()):
        most = [halves(job.samples(rank), field) for rank in range(job.size)]
        print("%s: %s at most: %s" % (job.words(), field, ", ".join("%d then %d" % pair for pair in most)), flush=True)
        for rank, (first, second) in enumerate(most):
            slack = max(SLACK[field], 0.02 * first) if field in SLACK else 0
            if second > first + slack:
                grown.append("rank %d holds more and more: %s: %d then %d" % (rank, field, first, second))
    numbers = [len(job.samples(rank)) for rank in range(job.size)]
    operations = int(job.samples(0)[-1][FIELDS.index("operations")])
    print("%s: %d operations of each rank, %d samples or more of each" % (job.words(), operations, min(numbers)), flush=True)
    assert not grown, "%s: %s" % (job.words(), "; ".join(grown))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--rounds", type=int, default=40, help="of 20 operations")
    parser.add_argument("--jobs", default="tcp:3,both:4")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("GAR_TEST_SEED", "1")))
    options = parser.parse_args()
    is_long = options.minutes > 0
    program = os.path.realpath(options.program)
    dice = random.Random(options.seed)
    jobs = []
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit("steady.py: interrupted"))
    try:
        for words in options.jobs.split(","):
            jobs.append(Job(program, words, dice.randrange(2**40), 1 if is_long else 0))
        begin = time.monotonic()

        def is_enough():
            for job in jobs:
                job.check_alive()
            has_samples = all(len(job.samples(0)) >= (10 if is_long else options.rounds) for job in jobs)
            return has_samples and time.monotonic() - begin >= 60 * options.minutes

        await_jobs(jobs, is_enough, 60 * options.minutes + PATIENCE_S, "the ranks do not go on")
        for job in jobs:
            job.ask_to_stop()
        await_jobs(jobs, lambda: all(job.has_ended() for job in jobs), PATIENCE_S, "the ranks do not end")
        for job in jobs:
            judge(job, is_long)
        print("steady.py: %d jobs, %.1f minutes, --seed %d" % (len(jobs), (time.monotonic() - begin) / 60, options.seed))
    except AssertionError as error:
        sys.exit("steady.py: --seed %d: %s" % (options.seed, error))
    finally:
        for job in jobs:
            job.end()


if __name__ == "__main__":
    main()
