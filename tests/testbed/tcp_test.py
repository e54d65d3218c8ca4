"""Our own TCP between virtual hosts: tcp_test.py GAR ENDLESS

A benchmark whose sums are checked runs on eight hosts without MPI, and one with two ranks on each; then a cable is pulled in the
middle of an AllReduce, and every rank that is left names the one that is silent.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

from alone import alone

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLUSTER = [sys.executable, "-B", os.path.join(ROOT, "testbed", "cluster")]
NAME = "t%d" % os.getpid()
NUM_HOSTS = 8
LIMIT_S = 3.0  # of the program: silence for longer is an error
PATIENCE_S = 300  # of this test: more is a hang


def cluster(verb, *words, code=0):
    done = subprocess.run([*CLUSTER, verb, "--name", NAME, *words], capture_output=True, text=True, timeout=PATIENCE_S)
    if code is not None and done.returncode != code:
        raise AssertionError("%s: exit %d\n%s%s" % (verb, done.returncode, done.stdout, done.stderr))
    return done


class Tcp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cluster("up", "--hosts", str(NUM_HOSTS), "--rate", "100mbit", "--queue", "64kb", "--tcp", "cubic")

    @classmethod
    def tearDownClass(cls):
        cluster("down", code=None)

    def bench(self, *options, transport):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.json")
            cluster("run", "--mpi", "none", "--timeout", str(PATIENCE_S), *options, "--", GAR, "bench", "--transport", transport,
                    "--sizes", "8,40KiB", "-n", "3", "-w", "1", "-J", out)
            with open(out, encoding="utf-8") as file:
                return json.load(file)

    def test_bench(self):
        done = self.bench(transport="tcp")
        self.assertEqual(done["ranks"], NUM_HOSTS)
        self.assertEqual({row["transport"] for row in done["results"]}, {"tcp"})
        self.assertEqual(sum(row["wrong"] for row in done["results"]), 0)

    def test_several_ranks_on_a_host(self):
        done = self.bench("-n", "6", "--ranks-per-host", "2", transport="shm+tcp")
        self.assertEqual(done["ranks"], 6)
        self.assertEqual({row["transport"] for row in done["results"]}, {"shm+tcp"})
        self.assertEqual(sum(row["wrong"] for row in done["results"]), 0)

    def test_cut(self):
        with tempfile.TemporaryDirectory() as notes:
            run = subprocess.Popen([*CLUSTER, "run", "--name", NAME, "--mpi", "none", "--timeout", str(PATIENCE_S), "--", ENDLESS, notes,
                                    str(LIMIT_S)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                self.wait_for(notes + "/*.running", NUM_HOSTS)
                cluster("cut", "h2")
                self.wait_for(notes + "/*.failed", NUM_HOSTS)
                for rank in range(NUM_HOSTS):
                    with open("%s/rank-%d.failed" % (notes, rank), encoding="utf-8") as file:
                        text = file.read()
                    named = r"rank 2 (has been silent for 3 s|cannot be reached)" if rank != 2 else r"silent for 3 s"
                    self.assertRegex(text, named, "rank %d: %s" % (rank, text))
            finally:
                run.terminate()
                run.wait(timeout=PATIENCE_S)
                cluster("heal", "h2")

    def wait_for(self, pattern, number):
        deadline = time.monotonic() + PATIENCE_S
        while len(glob.glob(pattern)) < number:
            self.assertLess(time.monotonic(), deadline, "%d of %d %s" % (len(glob.glob(pattern)), number, pattern))
            time.sleep(0.02)


if __name__ == "__main__":
    GAR, ENDLESS = sys.argv.pop(1), sys.argv.pop(1)
    checked = subprocess.run([*CLUSTER, "check"], capture_output=True, text=True)
    if checked.returncode != 0:
        print("skipped: " + (checked.stderr or checked.stdout).strip())
        sys.exit(77)
    lock = alone()
    unittest.main()
