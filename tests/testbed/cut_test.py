"""A cable is pulled in the middle of an AllReduce: cut_test.py PROGRAM openmpi|mpich

Every rank says that others are silent, and the cluster can go and come again at once.
"""
import glob
import os
import subprocess
import sys
import tempfile
import time
import unittest

from alone import alone

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLUSTER = [sys.executable, "-B", os.path.join(ROOT, "testbed", "cluster")]
NAME = "c%d" % os.getpid()
NUM_HOSTS = 5
LIMIT_S = 3.0  # of the program: silence for longer is an error
PATIENCE_S = 300  # of this test: more is a hang
SILENT = os.pipe()  # standard input without an end, as in cluster_test.py


def cluster(verb, *words, code=0):
    done = subprocess.run([*CLUSTER, verb, "--name", NAME, *words], stdin=SILENT[0], capture_output=True, text=True,
                          timeout=PATIENCE_S)
    if code is not None and done.returncode != code:
        raise AssertionError("%s: exit %d\n%s%s" % (verb, done.returncode, done.stdout, done.stderr))
    return done


class Cut(unittest.TestCase):
    def setUp(self):
        cluster("up", "--hosts", str(NUM_HOSTS), "--rate", "25mbit", "--queue", "32kb", "--tcp", "cubic")

    def tearDown(self):
        cluster("down", code=None)

    def wait_for(self, pattern, number):
        deadline = time.monotonic() + PATIENCE_S
        while len(glob.glob(pattern)) < number:
            self.assertLess(time.monotonic(), deadline, "%d of %d %s" % (len(glob.glob(pattern)), number, pattern))
            time.sleep(0.02)

    def test_cut(self):
        with tempfile.TemporaryDirectory() as notes:
            run = subprocess.Popen([*CLUSTER, "run", "--name", NAME, "--mpi", MPI, "--timeout", str(PATIENCE_S), "--", PROGRAM,
                                    notes, str(LIMIT_S)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                self.wait_for(notes + "/*.running", NUM_HOSTS)
                cluster("cut", "h2")
                begin = time.monotonic()
                self.wait_for(notes + "/*.failed", NUM_HOSTS)
                print("all ranks reported %.1f s after the cut (limit %.0f s)" % (time.monotonic() - begin, LIMIT_S))
                for rank in range(NUM_HOSTS):
                    with open("%s/rank-%d.failed" % (notes, rank), encoding="utf-8") as file:
                        text = file.read()
                    self.assertRegex(text, r"nothing has come for 3 s .*noticed by rank \d", "rank %d: %s" % (rank, text))
            finally:
                cluster("down")  # while the program is still there
                run.wait(timeout=PATIENCE_S)
        cluster("up", "--hosts", "2", "--rate", "25mbit")
        done = cluster("run", "--mpi", MPI, "--", "hostname")
        self.assertEqual(sorted(done.stdout.split()), [NAME + "-h0", NAME + "-h1"])


if __name__ == "__main__":
    PROGRAM, MPI = sys.argv.pop(1), sys.argv.pop(1)
    checked = subprocess.run([*CLUSTER, "check"], capture_output=True, text=True)
    if checked.returncode != 0:
        print("skipped: " + (checked.stderr or checked.stdout).strip())
        sys.exit(77)
    lock = alone()
    unittest.main()
