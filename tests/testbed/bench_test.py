"""The network benchmarks run, on a cluster of three hosts: bench_test.py BUILD

What they measure is not judged here; aims may be missed on a busy machine (exit code 1).
"""
import os
import subprocess
import sys

from alone import alone

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCH = os.path.join(ROOT, "bench", "network")
COMMON = ["--repetitions", "2", "--rate", "100mbit"]
SHORT = ["--to", "32", "--launches", "1", "--limit", "240"]
RUNS = [
    (["compare", "--networks", "3", "--skip", "1,2,3,5,6"], ["gar over Open MPI", "MPICH default", "forced ring", "3    2e4"]),
    (["admission", "--hosts", "3", "--algo", "ring,cps", "--launches", "1"], ["two at a time", "cps", "drops_to_hosts"]),
    (["hierarchy", "--hosts", "2"], ["our choice, hierarchical", "flat ring", "1e5 floats:"]),
]
FULL = [
    (["network/sizes", "--shape", "3", "--rate", "100mbit", "--skip", "1,2,5,6", *SHORT], ["ours/own", "32 B", "geometric mean"]),
    (["host", "--ranks", "2", "--skip", "all", *SHORT], ["2 ranks of one host", "32 B", "geometric mean"]),
]


def main():
    build = sys.argv[1]
    checked = subprocess.run([os.path.join(ROOT, "testbed", "cluster"), "check"], capture_output=True, text=True)
    missing = [p for p in ("gar-openmpi", "gar-mpich") if not os.path.exists(os.path.join(build, "bin", p))]
    if checked.returncode != 0 or missing:
        print("skipped: " + ((checked.stderr or checked.stdout).strip() or f"no {', '.join(missing)} in {build}/bin"))
        sys.exit(77)
    lock = alone()  # noqa: F841
    failed = 0
    runs = [([os.path.join(BENCH, program), *COMMON, *rest], words) for (program, *rest), words in RUNS]
    if os.environ.get("GAR_TEST_FULL") == "1":
        runs += [([os.path.join(ROOT, "bench", program), *rest], words) for (program, *rest), words in FULL]
    for (program, *arguments), words in runs:
        done = subprocess.run([program, "--build", build, *arguments], capture_output=True, text=True, timeout=600)
        absent = [word for word in words if word not in done.stdout]
        if done.returncode not in (0, 1) or absent or "Traceback" in done.stderr:
            print(f"{program}: exit code {done.returncode}, not printed: {absent}\n{done.stdout}\n{done.stderr}")
            failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
