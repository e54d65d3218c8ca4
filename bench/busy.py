#!/usr/bin/env python3
"""AllReduce beside programs that compute: bench/busy.py [--build DIR] [--busy 2] [--ranks 2,4] [--sizes 1KiB,256KiB]

Measures our choice and Open MPI's own AllReduce in turns, between processes of this host: alone, then next to as many
processes that do nothing but compute. Medians, and how many times as long everything takes beside them. Nothing is
asserted about times; exit code 1 when a sum is wrong.
"""
import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
PATIENCE_S = 600


def measure(options, ranks):
    words = [os.path.join(options.build, "bin", "gar"), "bench", "--local", str(ranks), "--sizes", options.sizes, "-n", str(options.repetitions),
             "-w", "10", "--algo", "auto,native", "--mpi", "openmpi", "--timeout", "120", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, env={**os.environ, "GAR_EXPLORE": "0"})
    if done.returncode:
        sys.exit("busy.py: %s: exit code %d\n%s" % (" ".join(words), done.returncode, done.stderr))
    rows = json.loads(done.stdout)["results"]
    if any(row["wrong"] for row in rows):
        print("busy.py: wrong elements", file=sys.stderr)
        sys.exit(1)
    return {(row["bytes"], row["algorithm"]): row["seconds"] * 1e6 for row in rows}


def beside_busy_ones(options, ranks):
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)]
    try:
        return measure(options, ranks)
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--busy", type=int, default=2, metavar="N", help="processes that compute")
    parser.add_argument("--ranks", default="2,4", metavar="N[,N...]")
    parser.add_argument("--sizes", default="1KiB,256KiB", metavar="SIZE[,SIZE...]")
    parser.add_argument("--repetitions", type=int, default=200)
    options = parser.parse_args()
    print("# medians in us on %d cores; times: beside %d busy processes over alone" % (len(os.sched_getaffinity(0)), options.busy))
    print("%5s %10s %12s %12s %7s %14s %14s %7s" % ("ranks", "bytes", "gar", "gar, busy", "times", "Open MPI", "same, busy", "times"))
    for ranks in (int(word) for word in options.ranks.split(",")):
        alone = measure(options, ranks)
        busy = beside_busy_ones(options, ranks)
        for size in sorted({size for size, _ in alone}):
            row = [ranks, size]
            for algorithm in ("auto", "native"):
                a, b = alone[(size, algorithm)], busy[(size, algorithm)]
                row += [a, b, b / a]
            print("%5d %10d %12.1f %12.1f %7.1f %14.1f %14.1f %7.1f" % tuple(row), flush=True)


if __name__ == "__main__":
    main()
