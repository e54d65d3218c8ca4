#!/usr/bin/env python3
"""Does things to the ranks of jobs, at random moments of random operations, and looks at what is left of them.

    survivors.py PROGRAM [--faults N] [--seed S] [--over shm,tcp,hosts,cluster] [--limit SECONDS] [--lanes N] [--job N]

PROGRAM is runtime_survivor (survivor.cpp). Jobs of 3 to 8 ranks, until N faults have been made (default 20): processes that are
killed, one or two at once, or while the others agree; stopped for longer than the time limit, also two, or one while another one is
killed; rank 0, where the store is; with `cluster` (root, network namespaces) also cables that are cut, that of the store's host
among them. In every fourth job a lost rank is to be an error on all (on_failure = report), otherwise the others go on (shrink). No
result may be wrong, and no rank may hang. The ranks that are left all end with an error that names a lost one, or all finish; then
they name the same members for every operation, also those of them that were stopped. Ranks that the others have gone on without end
with an error. No descriptor, no process, no namespace and nothing in /dev/shm may be left. GAR_TEST_SEED gives other faults than usual.

--lanes: so many jobs side by side (default 2), each with virtual hosts of its own. --job: that job of the seed alone, to see it again.
"""
import argparse
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time
import typing
from multiprocessing import connection

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from kills import make_private_memory  # noqa: E402
from survivor_jobs import CLUSTER, ROOT, Cluster, Job, die_with_parent  # noqa: E402

NO_LIMIT_S = 500  # no rank of these is silent
MOST_RANKS = 8


class Kind(typing.NamedTuple):
    """What happens to ranks, one after the other."""
    name: str
    acts: tuple
    is_store: bool = False  # the first of them is rank 0
    is_later: bool = False  # the second one while the others agree about the first


KINDS = [Kind("kill", ("kill",)), Kind("kill two", ("kill", "kill")), Kind("kill while agreeing", ("kill", "kill"), is_later=True),
         Kind("kill while agreeing", ("kill", "kill"), is_later=True), Kind("kill the store", ("kill",), is_store=True),
         Kind("stop", ("stop",)), Kind("stop two", ("stop", "stop")), Kind("stop, kill while agreeing", ("stop", "kill"), is_later=True)]
CABLES = [Kind("cut", ("cut",)), Kind("cut two", ("cut", "cut")), Kind("cut the store", ("cut",), is_store=True),
          Kind("cut, kill while agreeing", ("cut", "kill"), is_later=True)]


def operations(lines):
    """Of a rank: generation and members, by operation."""
    found = [re.fullmatch(r"(\d+) (\d+) ([\d,]+)", line) for line in lines]
    return {int(match[1]): (int(match[2]), match[3]) for match in found if match}


class Trial:
    """One job, and what happens to it."""

    def __init__(self, options, number, over, cluster):
        seed = options.seed * 1_000_000 + number
        dice = random.Random(seed)
        self.kind = dice.choice(KINDS + (CABLES if cluster else []))
        self.mode = "report" if dice.random() < 0.25 else "shrink"
        self.has_limit = "stop" in self.kind.acts or "cut" in self.kind.acts
        size = dice.randint(3, MOST_RANKS)
        order = list(range(1 if self.kind.is_store else 0, size))
        dice.shuffle(order)
        self.victims = ([0] if self.kind.is_store else order)[:len(self.kind.acts)]
        self.survivors = [rank for rank in range(size) if rank not in self.victims]
        self.silent = [rank for rank, act in zip(self.victims, self.kind.acts) if act != "kill"]
        self.begin = dice.randint(1, 12)
        self.pauses = [dice.random() * 0.02, self.draw_pause(dice, options.limit)]
        limit_s = options.limit if self.has_limit else NO_LIMIT_S
        self.words = "job %d, seed %d: %d ranks over %s, %s, %s %s" % (number, seed, size, over, self.mode, self.kind.name, self.victims)
        self.num_faults, self.was_busy = len(self.victims), False
        self.job = Job(os.path.realpath(options.program), over, self.mode, size, limit_s, dice.randrange(2**40), cluster, number)

    def draw_pause(self, dice, limit_s):
        """Between two faults. What has ended is noticed at once, and others ask why for a tenth of a second."""
        if not self.kind.is_later:
            return 0
        if self.kind.acts[0] == "kill":
            return dice.choice([dice.uniform(0, 0.3), dice.uniform(0.09, 0.15)])
        return limit_s * dice.uniform(0.95, 1.3)

    def run(self):
        job = self.job
        everybody = range(job.size)
        job.wait_for(lambda: any(map(job.has_ended, everybody)) or all(job.has_run(rank, self.begin) for rank in everybody),
                     "the job does not start")
        if any(map(job.has_ended, everybody)):
            assert self.has_limit, "a rank has ended before anything was done to it\n%s" % job.describe()
            # A busy machine: it was silent for the limit before anything was done.
            self.num_faults, self.was_busy = 0, True
            self.stop()
            self.judge_results()
            return
        self.strike()
        if self.mode == "report":
            job.wait_for(lambda: all(map(job.has_ended, self.survivors)), "not all ranks report it")
        else:
            seen = {rank: len(job.lines(rank)) for rank in self.survivors}
            job.wait_for(lambda: all(job.has_run(rank, seen[rank] + 8) for rank in self.survivors), "the others do not go on")
        self.make_up()
        self.stop()
        self.judge()

    def stop(self):
        self.job.ask_to_stop()
        self.job.wait_for(lambda: all(map(self.job.has_ended, range(self.job.size))), "ranks do not end")

    def strike(self):
        for victim, act, pause in zip(self.victims, self.kind.acts, self.pauses):
            time.sleep(pause)
            if act == "cut":
                self.job.cluster.set_cable(victim, False)
            else:
                self.job.ranks[victim].send_signal(signal.SIGSTOP if act == "stop" else signal.SIGKILL)

    def make_up(self):
        for victim, act in zip(self.victims, self.kind.acts):
            if act == "cut":
                self.job.wait_for(lambda rank=victim: self.job.has_ended(rank), "the rank behind the cable does not report it")
                self.job.cluster.set_cable(victim, True)
            if act == "stop":
                self.job.ranks[victim].send_signal(signal.SIGCONT)

    def judge_results(self):
        """All results are right, and all ranks name the same members for them."""
        between = {}
        for rank in range(self.job.size):
            lines = self.job.lines(rank)
            assert not self.job.last_line(rank).startswith("wrong "), "rank %d: %s" % (rank, lines[-1])
            for operation, members in operations(lines).items():
                known = between.setdefault(operation, members)
                assert known == members, "operation %d: rank %d names %s, another one %s" % (operation, rank, members, known)

    def judge(self):
        self.judge_results()
        ends = {rank: self.job.last_line(rank) for rank in self.survivors}
        finished = [rank for rank in self.survivors if ends[rank] == "finished"]
        if self.mode == "report":
            self.judge_report(ends)
        elif len(finished) < len(self.survivors):
            self.judge_errors(ends, finished)
        for rank in self.survivors:
            self.judge_descriptors(rank)
        for rank in self.silent if finished and not self.was_busy else []:
            end = self.job.last_line(rank)
            assert end.startswith("error "), "rank %d was cut off, or stopped, for longer than the limit: %s" % (rank, end)
        if self.mode == "shrink" and finished and not self.was_busy:
            made = operations(self.job.lines(finished[0]))
            members = made[max(made)][1]
            assert members == ",".join(map(str, self.survivors)), "at the end the members are %s" % members

    def judge_report(self, ends):
        """All name a lost rank. With a time limit a busy machine can make others silent first."""
        named = r"^error .*\branks? (\d+, )*(%s)\b" % "|".join(map(str, self.victims))
        for rank, end in ends.items():
            is_named = re.search(named, end) is not None
            self.was_busy = self.was_busy or (self.has_limit and not is_named and end.startswith("error "))
            assert is_named or self.was_busy, "rank %d does not name a lost one: %s" % (rank, end)

    def judge_errors(self, ends, finished):
        """Survivors without a majority end, all of them. With a time limit a busy machine can make one look silent."""
        for rank, end in ends.items():
            assert end == "finished" or re.match(r"error .*(no majority|have gone on without it)", end), "rank %d: %s" % (rank, end)
        is_certain = self.job.over == "shm" and not self.has_limit  # these have ended, and are not only out of reach
        is_majority = is_certain or 2 * len(self.survivors) > self.job.size
        if not is_majority and not finished:
            return
        # Of two that die one after the other, the second may be one of two that are left.
        assert self.has_limit, "not all survivors go on: %s" % ends
        self.was_busy = True

    def judge_descriptors(self, rank):
        number = [int(line.split()[1]) for line in self.job.lines(rank) if line.startswith("descriptors ")]
        # Standard ones, the log, the folder of descriptors with two names of folders, a client of the store; and its server.
        most = 8 + (4 + self.job.size if rank == 0 and self.job.over != "shm" else 0)
        assert number and number[0] <= most, "rank %d has kept descriptors: %s, expected %d" % (rank, number, most)


class Totals:
    """Of jobs that have ended."""

    def __init__(self, seed):
        self.seed, self.num_faults, self.numbers, self.num_limited, self.num_busy, self.kinds = seed, 0, [], 0, 0, {}
        self.begin_s = time.monotonic()

    def add(self, number, over, kind, num_faults, has_limit, was_busy):
        self.num_faults += num_faults
        self.numbers.append(number)
        self.num_limited += has_limit
        self.num_busy += was_busy
        key = "%s, %s" % (over, kind)
        self.kinds[key] = self.kinds.get(key, 0) + num_faults
        if len(self.numbers) % 100 == 0:
            print("%d faults in %d jobs, %.0f s" % (self.num_faults, len(self.numbers), time.monotonic() - self.begin_s), flush=True)

    def print(self):
        kinds = "; ".join("%s: %d" % one for one in sorted(self.kinds.items()))
        first = self.seed * 1_000_000
        print("%d faults in %d jobs, --seed %d, seeds of the jobs %d to %d, %.0f s: %s" % (
            self.num_faults, len(self.numbers), self.seed, first + min(self.numbers, default=0), first + max(self.numbers, default=0),
            time.monotonic() - self.begin_s, kinds))
        print("%d of %d jobs with a time limit lost other ranks than those, or did not begin: the machine was busy" % (
            self.num_busy, self.num_limited), flush=True)


class Lane:
    """A process that runs one job after the other."""

    def __init__(self, options, name, board):
        self.reader, self.writer = multiprocessing.Pipe(duplex=False)
        self.options, self.name, self.board = options, name, board
        self.process = multiprocessing.Process(target=self.run)
        self.process.start()
        self.writer.close()

    def run(self):
        die_with_parent(signal.SIGTERM)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent tells its lanes
        ways = self.options.over.split(",")
        cluster = Cluster(self.name, MOST_RANKS) if ways == ["cluster"] else None
        try:
            while (number := self.board.next_job()) is not None:
                if not self.run_job(number, ways[number % len(ways)], cluster):
                    break
        except KeyboardInterrupt:
            pass
        finally:
            num_ended = cluster.down() if cluster else 0
            if num_ended:
                self.writer.send("%d processes were left on virtual hosts" % num_ended)

    def run_job(self, number, over, cluster):
        trial = Trial(self.options, number, over, cluster)
        is_good = False
        try:
            trial.run()
            is_good = True
            self.board.count(trial.num_faults)
            self.writer.send((number, over, trial.kind.name, trial.num_faults, trial.has_limit, trial.was_busy))
        except AssertionError as error:
            self.writer.send("%s: %s\nits logs: %s" % (trial.words, error, trial.job.folder))
        finally:
            trial.job.end(keeps_logs=not is_good)
        return is_good


class Board:
    """What the lanes have in common: which job is next."""

    def __init__(self, options):
        self.only, self.wanted = options.job, options.faults
        self.next = multiprocessing.Value("q", options.job or 0)
        self.faults = multiprocessing.Value("q", 0)

    def next_job(self):
        with self.next.get_lock():
            number = self.next.value
            if self.faults.value >= self.wanted or (self.only is not None and number > self.only):
                return None
            self.next.value = number + 1
            return number

    def count(self, num_faults):
        with self.faults.get_lock():
            self.faults.value += num_faults


def make_faults(options, name):
    """Returns what went wrong."""
    totals, board, lanes, failures = Totals(options.seed), Board(options), [], []
    try:
        for number in range(options.lanes):
            lanes.append(Lane(options, "%sl%d" % (name, number), board))
        readers = [lane.reader for lane in lanes]
        while readers:
            for reader in connection.wait(readers):
                try:
                    heard = reader.recv()
                except EOFError:
                    readers.remove(reader)
                    continue
                if isinstance(heard, str):
                    failures.append(heard)
                    board.count(options.faults)  # nobody begins another one
                else:
                    totals.add(*heard)
    finally:
        for lane in lanes:
            if lane.process.is_alive():
                lane.process.terminate()
        for lane in lanes:
            lane.process.join()
        totals.print()
    failures += ["a lane has ended with %d" % lane.process.exitcode for lane in lanes if lane.process.exitcode != 0]
    return failures


def check_memory(program):
    """What killed processes have left in /dev/shm is removed by the next job."""
    job = Job(os.path.realpath(program), "shm", "shrink", 4, NO_LIMIT_S, 1, None, 0)
    try:
        job.ask_to_stop()
        job.wait_for(lambda: all(map(job.has_ended, range(job.size))), "a job without faults")
        ends = {job.last_line(rank) for rank in range(job.size)}
    finally:
        job.end()
    assert ends == {"finished"}, "a job without faults: %s" % ends
    left = [name for name in os.listdir("/dev/shm") if name.startswith("gar")]
    assert not left, "left in /dev/shm: %s" % left


def take_cluster_lock():
    """Ends with 77 where there can be no virtual clusters."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "testbed"))
    from alone import alone

    checked = subprocess.run([*CLUSTER, "check"], capture_output=True, text=True)
    if checked.returncode != 0:
        print("skipped: " + (checked.stderr or checked.stdout).strip())
        sys.exit(77)
    return alone()


def interrupt(_number, _frame):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--faults", type=int, default=200 if os.environ.get("GAR_TEST_FULL") == "1" else 20)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("GAR_TEST_SEED", "1")))
    parser.add_argument("--over", default="shm,tcp,hosts", help="shm, tcp and hosts, or cluster alone")
    parser.add_argument("--limit", type=float, default=4.0, help="seconds, of ranks that are stopped or cut off")
    parser.add_argument("--lanes", type=int, default=2, help="jobs side by side")
    parser.add_argument("--job", type=int, help="this one alone")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    multiprocessing.set_start_method("fork")
    is_over_cluster = options.over == "cluster"
    lock = take_cluster_lock() if is_over_cluster else None
    is_private = not is_over_cluster and make_private_memory()
    failures = make_faults(options, "s%d" % os.getpid())
    if is_private and not failures:
        check_memory(options.program)
    if lock is not None:
        os.close(lock)
    if failures:
        sys.exit("survivors.py: --seed %d: %s" % (options.seed, "\n".join(failures)))


if __name__ == "__main__":
    main()
