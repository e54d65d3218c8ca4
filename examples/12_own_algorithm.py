#!/usr/bin/env python3
"""Recursive doubling as a plan of its own: in step s every rank swaps all that it has with the rank whose bit s differs."""
import json
import sys

ranks = int(sys.argv[1])  # a power of two
programs = []
for rank in range(ranks):
    steps = []
    for s in range(ranks.bit_length() - 1):
        peer = rank ^ (1 << s)
        steps.append([s, [peer, 0, 1], [peer, 0, 1, 1]])  # send unit 0, receive unit 0 and add it
    programs.append(steps)
json.dump({"schema": "gar.plan/2", "algorithm": "doubling", "num_ranks": ranks, "num_units": 1,
           "programs": programs}, sys.stdout)
