"""The preload library between hosts: preload_test.py GAR openmpi|mpich PROGRAM...

Plain MPI programs on three virtual hosts, two ranks on each (one with MPICH, which spins; GAR_TEST_FULL=1: one and two), over TCP
with admission (the topology file of the cluster knows incast), every call compared.
"""
import os
import re
import subprocess
import sys

from alone import alone

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLUSTER = [sys.executable, "-B", os.path.join(ROOT, "testbed", "cluster")]
NAME = "p%d" % os.getpid()


def cluster(verb, *words, environment=None):
    return subprocess.run([*CLUSTER, verb, "--name", NAME, *words], capture_output=True, text=True, timeout=600,
                          env={**os.environ, **(environment or {})})


def main():
    gar, mpi, programs = sys.argv[1], sys.argv[2], sys.argv[3:]
    checked = subprocess.run([*CLUSTER, "check"], capture_output=True, text=True)
    if checked.returncode != 0:
        print("skipped: " + (checked.stderr or checked.stdout).strip())
        return 77
    library = os.path.join(os.path.dirname(os.path.dirname(gar)), "lib", "gar", "libgar-preload-%s.so" % mpi)
    lock = alone()  # noqa: F841
    failed = 0
    up = cluster("up", "--hosts", "3", "--rate", "200mbit", "--queue", "64kb", "--tcp", "cubic")
    if up.returncode != 0:
        print(up.stderr)
        return 1
    try:
        for program in programs:
            for ranks in ("1", "2") if os.environ.get("GAR_TEST_FULL") else ("2",) if mpi == "openmpi" else ("1",):
                run = cluster("run", "--mpi", mpi, "--ranks-per-host", ranks, "--timeout", "500", "--", program, "3",
                              environment={"LD_PRELOAD": library, "GAR_CHECK": "1", "GAR_MIN_BYTES": "0"})
                found = re.search(r"GAR_CHECK: (\d+) calls compared on (\d+) ranks, 0 differences", run.stderr)
                if run.returncode != 0 or found is None or found[1] == "0" or int(found[2]) != 3 * int(ranks):
                    print("%s, %s per host: exit code %d\n%s%s" % (program, ranks, run.returncode, run.stdout[-1500:],
                                                                  run.stderr[-3000:]))
                    failed += 1
                else:
                    print("%s, %s per host: %s calls" % (os.path.basename(program), ranks, found[1]))
    finally:
        cluster("down")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
