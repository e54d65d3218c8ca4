#!/usr/bin/env python3
"""Kills a process of a benchmark at a random moment, again and again.

    kills.py GAR [NUMBER [SEED]]

NUMBER jobs (default 8) of 4 ranks each: threads, shared memory, and every MPI library that the program was built with,
in turns. Every other job is hit while it starts. GAR_TEST_SEED gives other moments than usual. Whoever is killed, the
job has to end with an error in words, no process may be left of it, and after one more run that succeeds nothing may be
left in /dev/shm. As root the jobs have a /dev/shm of their own; otherwise what others do there is in the way, and that
last check is left out.
"""

import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

RANKS = 4
LIMIT_SECONDS = 600  # finds what hangs
WAYS = {
    "threads": ["--transport", "threads"],
    "shm": ["--transport", "shm"],
    "openmpi": ["--transport", "mpi", "--mpi", "openmpi"],
    "mpich": ["--transport", "mpi", "--mpi", "mpich"],
}
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS = 0x00020000
MS_REC_PRIVATE = 0x4000 | 0x40000

libc = ctypes.CDLL(None, use_errno=True)


def make_private_memory():
    """True when this process and its children have a /dev/shm of their own."""
    if os.geteuid() != 0 or libc.unshare(CLONE_NEWNS) != 0:
        return False
    return (
        libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None) == 0
        and libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"mode=1777") == 0
    )


def parents():
    """The parent of every process that is not a zombie."""
    out = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if fields[0] != "Z":
            out[int(entry)] = int(fields[1])
    return out


def descendants():
    """Processes below this one. It is a subreaper: whatever loses its parent becomes its child."""
    parent_of = parents()
    out, found = [], {os.getpid()}
    while found:
        found = {child for child, parent in parent_of.items() if parent in found}
        out += sorted(found)
    return out


def runs_program(process, program):
    """With an MPI library gar becomes gar-openmpi or gar-mpich, in the same folder."""
    try:
        path = os.readlink(f"/proc/{process}/exe")
    except OSError:
        return False
    return os.path.dirname(path) == os.path.dirname(program) and os.path.basename(path).startswith("gar")


def reap():
    """Takes leave of orphans that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def wait_for(condition, what):
    end = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"after {LIMIT_SECONDS} s: {what}")
        time.sleep(0.002)


class Job:
    def __init__(self, program, way, arguments):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [program, "bench", "--local", str(RANKS), *WAYS[way], "--algo", "ring", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
        )

    def words(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")


def kill_one(program, way, at_start, dice):
    """Runs a job for ever, kills one of its processes, and returns what was wrong with its end."""
    job = Job(program, way, ["--sizes", "256KiB", "-n", "1000000", "-w", "0", "-c", "0", "--timeout", "20"])
    alive = lambda: [p for p in descendants() if runs_program(p, program)]
    if not at_start and way != "threads":
        wait_for(lambda: job.process.poll() is not None or len(alive()) > RANKS, f"{way}: the ranks have not started")
    time.sleep(dice.random() * (0.3 if at_start else 1))
    victims = alive()
    assert victims, f"{way}: the job ended by itself: {job.words()}"
    victim = dice.choice(victims)
    was_launcher = victim == job.process.pid
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: job.process.poll() is not None, f"{way}: the job goes on without process {victim}")
    assert job.process.returncode != 0, f"{way}: the job lost a process and ended with 0"
    assert was_launcher or job.words().strip(), f"{way}: the job ended with {job.process.returncode}, without a word"

    def all_gone():
        reap()
        return not descendants()

    wait_for(all_gone, f"{way}: processes are left: {descendants()}")


def run_to_the_end(program, way):
    job = Job(program, way, ["--sizes", "8", "-n", "1", "-w", "0"])
    wait_for(lambda: job.process.poll() is not None, f"{way}: a plain run hangs")
    return job.process.returncode, job.words()


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(f"usage: {sys.argv[0]} GAR [NUMBER [SEED]]")
    program = os.path.realpath(sys.argv[1])
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(os.environ.get("GAR_TEST_SEED", "1"))
    for name in [name for name in os.environ if name.startswith("GAR_")]:
        del os.environ[name]
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    is_private = make_private_memory()
    ways = []
    for way in WAYS:
        code, words = run_to_the_end(program, way)
        if code == 0:
            ways.append(way)
        else:
            print(f"left out: {way}: {words.strip().splitlines()[0]}")
    assert "threads" in ways and "shm" in ways, "the runtime's own ways must be there"
    dice = random.Random(seed)
    kills = {}
    for trial in range(number):
        way, at_start = ways[trial % len(ways)], trial // len(ways) % 2 == 0
        try:
            kill_one(program, way, at_start, dice)
            code, words = run_to_the_end(program, "shm")
            assert code == 0, f"the run after it failed: {words}"
            left = [name for name in os.listdir("/dev/shm") if name.startswith("gar")]
            assert not is_private or not left, f"left in /dev/shm: {left}"
        except AssertionError as error:
            sys.exit(f"kills.py: seed {seed}, job {trial}: {error}")
        key = f"{way}, {'starting' if at_start else 'running'}"
        kills[key] = kills.get(key, 0) + 1
    print(f"{number} kills, seed {seed}: " + "; ".join(f"{key}: {count}" for key, count in sorted(kills.items())))
    if not is_private:
        print("not root: /dev/shm was not looked at")


if __name__ == "__main__":
    main()
