"""gar diagnose on a virtual cluster: a network at 60% of its rate is never called normal: diagnose_test.py BUILD

A machine that is busy enough leaves a profile too rough to judge by, or lets something else look slow as well, and that a healthy network is normal cannot be asked
there at all. So this is what holds on any machine; bench/network/diagnose has the whole matrix, with who is to blame.
"""
import os
import re
import subprocess
import sys

from alone import alone

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MATRIX = ["--hosts", "3", "--rate", "10mbit", "--queue", "96kb", "--budget", "12", "--sizes", "100kB,400kB", "--repetitions", "2",
          "--healthy", "0", "--cases", "60%", "--attempts", "2"]
# By the profile and by the speed of the links, which a busy machine makes no faster.
VERDICT = re.compile(r"^60% +(NOT normal|not judged) +[\d.]+x +NOT normal +\d+%  \S", re.MULTILINE)


def main():
    build = sys.argv[1]
    checked = subprocess.run([os.path.join(ROOT, "testbed", "cluster"), "check"], capture_output=True, text=True)
    if checked.returncode != 0 or not os.path.exists(os.path.join(build, "bin", "gar-openmpi")):
        print("skipped: " + ((checked.stderr or checked.stdout).strip() or f"no gar-openmpi in {build}/bin"))
        sys.exit(77)
    lock = alone()  # noqa: F841
    done = subprocess.run([os.path.join(ROOT, "bench", "network", "diagnose"), "--build", build, *MATRIX],
                          capture_output=True, text=True, timeout=600)
    table = done.stdout[done.stdout.find("by the profile"):]
    if done.returncode not in (0, 1) or not VERDICT.search(table):
        print(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        sys.exit(1)


if __name__ == "__main__":
    main()
