"""Measurements of 4 hosts at 25 Mbit/s, and results of the same hosts at 15 Mbit/s, made from the formulas of docs/model.md.

The collectives follow the model exactly. So do the reductions in caches, which are most of them; those of longer vectors take 60%
and 280% longer. cached_reductions.py [ROUGH] writes measured.json, for gar fit --from, and slow.txt, for gar diagnose. Every fifth
collective takes longer by the share ROUGH.
"""
import json
import sys

rough = float(sys.argv[1]) if len(sys.argv) > 1 else 0
ALPHA, BETA, GAMMA, DELTA = 200e-6, 32 / 25e6, 6e-10, 2e-10
cells = []


def add(seconds, **cell):
    cells.append({**cell, "seconds": [seconds]})


def all_reduce(ranks, size, beta):
    sent = (ranks - 1) / ranks * size
    return 2 * ALPHA + 2 * sent * beta + sent * GAMMA + (ranks + 1) / ranks * size * DELTA


for ranks in (2, 3, 4):
    for size in (2000, 20000, 200000):
        sent = (ranks - 1) / ranks * size * BETA
        add(all_reduce(ranks, size, BETA), algorithm="cps", servers=ranks, size_floats=size)
        add(ALPHA + sent, collective="allgather", algorithm="cps", servers=ranks, size_floats=size)
        if ranks > 2:
            shift = (ranks - 1) * ALPHA + sent
            add(shift, collective="allgather", algorithm="ring", servers=ranks, size_floats=size)
for i, cell in enumerate(cells):
    if i % 5 == 0:
        cell["seconds"][0] *= 1 + rough
for size, slower in ((16384, 1), (65536, 1), (262144, 1), (1000000, 1.6), (4000000, 3.8)):
    for fan_in in (2, 3, 4, 6, 8, 12, 16):
        seconds = size * ((fan_in - 1) * GAMMA + (fan_in + 1) * DELTA) * slower
        add(seconds, kind="reduction", servers=4, fan_in=fan_in, size_floats=size)
with open("measured.json", "w") as file:
    json.dump({"schema": "gar.measurements/2", "topology": "star:4", "observations": cells}, file)
with open("slow.txt", "w") as file:
    print("# OSU MPI Allreduce Latency Test v7.3\n# Size       Avg Latency(us)", file=file)
    for size in (8192, 65536, 524288, 4194304):
        print(f"{size} {1e6 * all_reduce(4, size / 4, BETA / 0.6):.2f}", file=file)
