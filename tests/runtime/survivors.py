#!/usr/bin/env python3
"""Does things to the ranks of jobs, at random moments of random operations, and looks at what is left of them.

    survivors.py PROGRAM [--faults N] [--seed S] [--over shm,tcp,hosts,cluster] [--limit SECONDS]

PROGRAM is runtime_survivor (survivor.cpp). Jobs of 3 to 8 ranks, until N faults have been made (default 20): processes that are
killed, one or two at once, or while the others agree; stopped for longer than the time limit; rank 0, where the store is; with
`cluster` (root, network namespaces) also a cable that is cut. In every fourth job a lost rank is to be an error on all (on_failure =
report), otherwise the others go on (shrink). No result may be wrong, and no rank may hang. The ranks that are left all end with an
error that names a lost one, or all finish; then they name the same members for every operation, also those of them that were
stopped. No descriptor, no process and nothing in /dev/shm may be left. GAR_TEST_SEED gives other faults than usual.
"""
import argparse
import ctypes
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CLUSTER = [sys.executable, "-B", os.path.join(ROOT, "testbed", "cluster")]
sys.path.insert(0, os.path.join(ROOT, "tests", "runtime"))
from kills import make_private_memory  # noqa: E402

PATIENCE_S = 600  # more is a hang, however busy the machine
NO_LIMIT_S = 500  # no rank of these is silent
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Cluster:
    """Virtual hosts, one for each rank."""

    def __init__(self, num_hosts):
        self.name = "s%d" % os.getpid()
        self.call("up", "--hosts", str(num_hosts), "--rate", "200mbit", "--queue", "128kb", "--tcp", "cubic")

    def call(self, verb, *words):
        done = subprocess.run([*CLUSTER, verb, "--name", self.name, *words], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, "cluster %s: %s" % (verb, done.stderr)

    def words(self, rank):
        from gar_testbed import state

        return [os.path.join(state.directory(self.name), "enter"), "%s-h%d" % (self.name, rank)]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Job:
    def __init__(self, program, over, mode, size, limit_s, seed, cluster):
        self.size, self.over, self.mode, self.cluster = size, over, mode, cluster
        self.folder = tempfile.mkdtemp(prefix="gar-survivors-")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GAR_")}
        address = "10.77.0.1" if cluster else "127.0.0.1"
        environment.update(WORLD_SIZE=str(size), MASTER_ADDR=address, MASTER_PORT=str(29500 if cluster else free_port()),
                           GAR_SECRET=secrets.token_hex(32))
        if over == "hosts":
            environment["GAR_FAKE_HOSTS"] = "2"
        way = "shm:survivors-%d-%s" % (os.getpid(), secrets.token_hex(8)) if over == "shm" else "tcp" if cluster else over
        self.ranks = []
        for rank in range(size):
            words = (cluster.words(rank) if cluster else []) + [program, self.folder, str(seed), str(limit_s), mode, way]
            self.ranks.append(subprocess.Popen(words, env={**environment, "RANK": str(rank)}, stdin=subprocess.DEVNULL,
                                               stdout=subprocess.DEVNULL, preexec_fn=die_with_parent))

    def lines(self, rank):
        try:
            with open(os.path.join(self.folder, "rank-%d.log" % rank), encoding="utf-8") as file:
                return file.read().split("\n")[:-1]
        except FileNotFoundError:
            return []

    def wait_for(self, condition, what):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            last = [(rank, (self.lines(rank) or ["nothing"])[-1]) for rank in range(self.size)]
            assert time.monotonic() < end, "after %d s: %s; last lines: %s" % (PATIENCE_S, what, last)
            time.sleep(0.002)

    def has_ended(self, rank):
        return self.ranks[rank].poll() is not None

    def has_run(self, rank, number):
        return self.has_ended(rank) or len(self.lines(rank)) >= number

    def end(self):
        for process in self.ranks:
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def operations(lines):
    """Of a rank: generation and members, by operation."""
    found = [re.fullmatch(r"(\d+) (\d+) ([\d,]+)", line) for line in lines]
    return {int(match[1]): (int(match[2]), match[3]) for match in found if match}


class Trial:
    """One job, and what happens to it."""

    def __init__(self, program, over, dice, limit_s, cluster):
        kinds = ["kill", "kill", "kill two", "kill while agreeing", "kill the store", "stop"] + (["cut", "cut"] if cluster else [])
        self.kind = dice.choice(kinds)
        self.mode = "report" if dice.random() < 0.25 else "shrink"
        self.has_limit = self.kind in ("stop", "cut")
        size = dice.randint(3, 8)
        order = list(range(size))
        dice.shuffle(order)
        self.victims = [0] if self.kind == "kill the store" else order[:2] if self.kind in ("kill two", "kill while agreeing") else order[:1]
        self.survivors = [rank for rank in range(size) if rank not in self.victims]
        self.num_faults = len(self.victims)
        self.dice = dice
        self.pauses = [dice.random() * 0.02 for _ in range(3)]
        self.job = Job(program, over, self.mode, size, limit_s if self.has_limit else NO_LIMIT_S, dice.randrange(2**40), cluster)
        self.words = "%d ranks over %s, %s, %s %s" % (size, over, self.mode, self.kind, self.victims)
        self.was_busy = False

    def run(self):
        job = self.job
        begin = self.dice.randint(1, 12)
        job.wait_for(lambda: all(job.has_run(rank, begin) for rank in range(job.size)), "the job does not start")
        if self.has_limit and any(map(job.has_ended, range(job.size))):
            # A busy machine: they were silent for the limit before anything was done to them.
            self.num_faults, self.was_busy = 0, True
            self.stop()
            self.judge_results()
            return
        time.sleep(self.pauses[0])
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
        with open(os.path.join(self.job.folder, "stop"), "w", encoding="utf-8"):
            pass
        self.job.wait_for(lambda: all(map(self.job.has_ended, range(self.job.size))), "ranks do not end")

    def strike(self):
        job = self.job
        if self.kind == "cut":
            job.cluster.call("cut", "h%d" % self.victims[0])
        elif self.kind == "stop":
            job.ranks[self.victims[0]].send_signal(signal.SIGSTOP)
        else:
            for victim in self.victims:
                job.ranks[victim].kill()
                if self.kind == "kill while agreeing":
                    time.sleep(self.pauses[1])

    def make_up(self):
        if self.kind == "cut":
            self.job.wait_for(lambda: self.job.has_ended(self.victims[0]), "the rank behind the cable does not report it")
            self.job.cluster.call("heal", "h%d" % self.victims[0])
        if self.kind == "stop":
            self.job.ranks[self.victims[0]].send_signal(signal.SIGCONT)

    def judge_results(self):
        """All results are right, and all ranks name the same members for them."""
        job = self.job
        lines = [job.lines(rank) for rank in range(job.size)]
        between = {}
        for rank in range(job.size):
            last = lines[rank][-1] if lines[rank] else ""
            assert not last.startswith("wrong "), "rank %d: %s" % (rank, last)
            for operation, members in operations(lines[rank]).items():
                known = between.setdefault(operation, members)
                assert known == members, "operation %d: rank %d names %s, another one %s" % (operation, rank, members, known)
        return lines

    def judge(self):
        job = self.job
        lines = self.judge_results()
        ends = {rank: lines[rank][-1] for rank in self.survivors}
        finished = [rank for rank in self.survivors if ends[rank] == "finished"]
        if self.mode == "report":
            named = "|".join(map(str, self.victims))
            for rank in self.survivors:
                assert re.search(r"^error .*\b(%s)\b" % named, ends[rank]), "rank %d does not name the lost one: %s" % (rank, ends[rank])
        elif len(finished) < len(self.survivors):
            self.judge_errors(ends, finished)
        for rank in self.survivors:
            number = [int(line.split()[1]) for line in lines[rank] if line.startswith("descriptors ")]
            # Standard ones, the log, the folder of descriptors with two names of folders, a client of the store; and its server.
            most = 8 + (4 + job.size if rank == 0 and job.over != "shm" else 0)
            assert number and number[0] <= most, "rank %d has kept descriptors: %s, expected %d" % (rank, number, most)
        if self.mode == "shrink" and finished and not self.was_busy:
            members = operations(lines[finished[0]])[max(operations(lines[finished[0]]))][1]
            assert members == ",".join(map(str, self.survivors)), "at the end the members are %s" % members

    def judge_errors(self, ends, finished):
        """Survivors without a majority end, all of them. With a time limit a busy machine can make one look silent."""
        for rank, end in ends.items():
            assert end == "finished" or re.match(r"error .*(no majority|have gone on without it)", end), "rank %d: %s" % (rank, end)
        is_majority = self.job.over == "shm" or 2 * len(self.survivors) > self.job.size
        if self.has_limit:
            self.was_busy = True
        elif is_majority or finished:
            # Of two that die one after the other, the second may be one of two that are left.
            raise AssertionError("not all survivors go on: %s" % ends)


class Totals:
    def __init__(self, seed):
        self.seed, self.num_faults, self.num_jobs, self.num_busy, self.kinds = seed, 0, 0, 0, {}

    def add(self, trial):
        self.num_faults += trial.num_faults
        self.num_jobs += 1
        self.num_busy += trial.was_busy
        key = "%s, %s" % (trial.job.over, trial.kind)
        self.kinds[key] = self.kinds.get(key, 0) + trial.num_faults

    def first_seed(self):
        return self.seed * 1_000_000

    def print(self):
        kinds = "; ".join("%s: %d" % one for one in sorted(self.kinds.items()))
        print("%d faults in %d jobs, --seed %d, seeds of the jobs %d to %d: %s" % (
            self.num_faults, self.num_jobs, self.seed, self.first_seed(), self.first_seed() + self.num_jobs - 1, kinds))
        print("%d jobs with a time limit lost other ranks than those, or did not begin: the machine was busy" % self.num_busy, flush=True)


def make_faults(options, ways, cluster):
    totals = Totals(options.seed)
    try:
        while totals.num_faults < options.faults:
            over = ways[totals.num_jobs % len(ways)]
            dice = random.Random(totals.first_seed() + totals.num_jobs)
            trial = Trial(os.path.realpath(options.program), over, dice, options.limit, cluster)
            try:
                trial.run()
            except AssertionError as error:
                sys.exit("survivors.py: --seed %d, job %d (%s): %s" % (options.seed, totals.num_jobs, trial.words, error))
            finally:
                trial.job.end()
            totals.add(trial)
    finally:
        totals.print()


def check_memory(options):
    """What killed processes have left in /dev/shm is removed by the next job."""
    last = Trial(os.path.realpath(options.program), "shm", random.Random(1), NO_LIMIT_S, None)
    try:
        last.stop()
        ends = {last.job.lines(rank)[-1] for rank in range(last.job.size)}
    finally:
        last.job.end()
    assert ends == {"finished"}, "a job without faults: %s" % ends
    left = [name for name in os.listdir("/dev/shm") if name.startswith("gar")]
    assert not left, "left in /dev/shm: %s" % left


def open_cluster():
    """The lock on virtual clusters, and eight hosts. Ends with 77 where there can be none."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "testbed"))
    from alone import alone

    checked = subprocess.run([*CLUSTER, "check"], capture_output=True, text=True)
    if checked.returncode != 0:
        print("skipped: " + (checked.stderr or checked.stdout).strip())
        sys.exit(77)
    return alone(), Cluster(8)


def interrupt(_number, _frame):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--faults", type=int, default=200 if os.environ.get("GAR_TEST_FULL") == "1" else 20)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("GAR_TEST_SEED", "1")))
    parser.add_argument("--over", default="shm,tcp,hosts", help="shm, tcp and hosts, or cluster alone")
    parser.add_argument("--limit", type=float, default=4.0, help="seconds, of ranks that are stopped or cut off")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    if options.over == "cluster":
        lock, cluster = open_cluster()
        try:
            make_faults(options, ["cluster"], cluster)
        finally:
            cluster.call("down")
            os.close(lock)
        return
    is_private = make_private_memory()
    make_faults(options, options.over.split(","), None)
    if is_private:
        check_memory(options)


if __name__ == "__main__":
    main()
