#!/usr/bin/env python3
"""How many cases gar.sweep prices and simulates a second, on one thread, for a tree of 512 servers.

    PYTHONPATH=build/release/python /usr/bin/python3 bench/python/sweep.py [--json]

Every line is the best of three sweeps, from the call to the answer. The aims are 1e5 priced and 1e3
simulated cases a second.
"""

import argparse
import json

import gar

NETWORK = "tree:16x32"
AIMS = {"priced": 1e5, "simulated": 1e3}
# What is priced or simulated, with how many sizes and under which condition.
LINES = [
    ("priced", "ring,cps,rhd,hcps:8x8x8", 250_000, None, True),
    ("priced", "hcps", 2_000, None, False),
    ("priced", "gentree", 100, None, False),
    ("priced", "gentree+", 20, None, False),
    ("simulated", "cps", 1_000, None, True),
    ("simulated", "rhd", 1_000, None, True),
    ("simulated", "hcps:8x8x8", 1_000, None, True),
    ("simulated", "hcps:8x8x8", 1_000, "rack3.uplink=0.5", True),
    ("simulated", "ring", 200, None, True),
    ("simulated", "gentree+", 20, None, False),
]


def sizes(number):
    """Different numbers of elements between 1e3 and 1e9, evenly on a logarithmic scale."""
    return sorted({round(10 ** (3 + 6 * i / (number - 1))) for i in range(number)})


def measure(kind, algorithms, number, degrade):
    best = 0.0
    counts = sizes(number)
    for _ in range(3):
        what_ifs = None if degrade is None else gar.WhatIf(degrade=degrade)
        swept = gar.sweep(NETWORK, algorithms, counts, what_ifs, simulate=kind == "simulated", threads=1, progress=False)
        best = max(best, (swept.num_simulated if kind == "simulated" else swept.num_priced) / swept.elapsed_seconds)
    return best, swept.num_priced


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    rows = []
    if not arguments.json:
        print(f"{NETWORK}, one thread\n\n{'':<10} {'algorithms':<28} {'cases':>9} {'a second':>12}   aim")
    for kind, algorithms, number, degrade, has_aim in LINES:
        rate, cases = measure(kind, algorithms, number, degrade)
        aim = AIMS[kind] if has_aim else None
        rows.append({"kind": kind, "algorithms": algorithms, "degrade": degrade, "cases": cases, "per_second": rate, "aim": aim})
        if not arguments.json:
            words = "" if aim is None else f"{aim:.0e} {'reached' if rate >= aim else 'missed'}"
            what = algorithms if degrade is None else f"{algorithms}, {degrade}"
            print(f"{kind:<10} {what:<28} {cases:>9,} {rate:>12,.0f}   {words}", flush=True)
    if arguments.json:
        print(json.dumps({"gar_version": gar.__version__, "network": NETWORK, "threads": 1, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
