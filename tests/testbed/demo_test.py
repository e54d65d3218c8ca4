"""gar demo on the virtual cluster: at most 25 lines, one number on the last, and nothing is left: demo_test.py GAR

How fast anything is, is not judged.
"""
import os
import re
import subprocess
import sys

from alone import alone

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    gar = os.path.abspath(sys.argv[1])
    checked = subprocess.run([os.path.join(ROOT, "testbed", "cluster"), "check"], capture_output=True, text=True)
    if checked.returncode != 0 or not os.path.exists(gar + "-openmpi"):
        print("skipped: " + ((checked.stderr or checked.stdout).strip() or "no gar-openmpi"))
        sys.exit(77)
    lock = alone()  # noqa: F841
    done = subprocess.run([gar, "demo", "--on", "cluster"], capture_output=True, text=True, timeout=500)
    lines = done.stdout.splitlines()
    problems = [] if done.returncode == 0 else [f"exit code {done.returncode}"]
    if len(lines) > 25 or any(len(line) > 80 for line in lines):
        problems.append("too long")
    if not lines or not re.fullmatch(r"[0-9]+\.[0-9]+ times as fast as Open MPI's own AllReduce", lines[-1]):
        problems.append("no number on the last line")
    if "proved correct" not in done.stdout:
        problems.append("no proof")
    spaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    if re.search(r"^gd[0-9]+-h", spaces, re.MULTILINE):
        problems.append("hosts are left: " + spaces)
    if problems:
        print(problems, done.stdout, done.stderr, sep="\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
