"""gar diagnose on a virtual cluster: a network at 60% of its rate is not normal, and beta is to blame: diagnose_test.py BUILD

That a healthy network is normal cannot be asked on a busy machine, where it is not. bench/network/diagnose has the whole matrix.
"""
import os
import subprocess
import sys

from alone import alone

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MATRIX = ["--hosts", "3", "--rate", "10mbit", "--queue", "96kb", "--budget", "12", "--sizes", "100kB,400kB", "--repetitions", "2",
          "--healthy", "0", "--cases", "60%", "--attempts", "4"]


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
    if done.returncode != 0 or "60%            NOT normal" not in table or "beta x" not in table or "0 wrong" not in table:
        print(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        sys.exit(1)


if __name__ == "__main__":
    main()
