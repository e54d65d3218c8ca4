#!/usr/bin/env python3
"""all_reduce of float32 through torch.distributed: gar beside Gloo, in the same processes, in turns.

    PYTHONPATH=build/release/python /usr/bin/python3 bench/python/torch/all_reduce.py [--ranks 2,4] [--json]

A number is the median of the slowest rank's times of a call; calls wait for their result. The two backends take turns in
blocks, so both meet the same machine. The aims are for 16 cores.
"""

import argparse
import json
import statistics
import time

import ranks
import torch
import torch.distributed as dist

AIMS = ((64 << 10, 20), (512 << 10, 5), (4 << 20, 3), (256 << 20, 2))


def words_of(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def seconds_of(group, tensor, repetitions):
    times = []
    for _ in range(repetitions):
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(tensor, group=group)
        times.append(time.perf_counter() - begin)
    return times


def measure(groups, size, seconds):
    tensor = torch.zeros(size // 4)
    times = {"gar": [], "gloo": []}
    for name, group in groups.items():  # connections, plans
        seconds_of(group, tensor, 2)
    end = time.perf_counter() + seconds
    more = torch.ones(1)
    while more.item():
        for name, group in groups.items():
            times[name] += seconds_of(group, tensor, 5)
        more = torch.tensor([float(time.perf_counter() < end)])
        dist.broadcast(more, 0)
    slowest = torch.tensor([times["gar"], times["gloo"]])
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    gar, gloo = (statistics.median(row) for row in slowest.tolist())
    return {"bytes": size, "ranks": dist.get_world_size(), "calls": len(times["gar"]), "gar_seconds": gar, "gloo_seconds": gloo}


def measure_all(groups, sizes, seconds):
    return [measure(groups, size, seconds) for size in sizes]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--from", dest="least", type=int, default=1 << 10, metavar="BYTES")
    parser.add_argument("--to", dest="most", type=int, default=256 << 20, metavar="BYTES")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each size")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    sizes = []
    size = arguments.least
    while size <= arguments.most:
        sizes.append(size)
        size *= 4
    if arguments.most not in sizes:
        sizes.append(arguments.most)
    rows = []
    about = ranks.machine()
    for number in map(int, arguments.ranks.split(",")):
        rows += ranks.run(measure_all, number, sizes, arguments.seconds)
    if arguments.json:
        print(json.dumps({"about": about, "results": rows}, indent=2))
        return
    print(f"{about}\n\n{'ranks':>5} {'size':>8} {'calls':>6} {'gar':>12} {'Gloo':>12} {'ratio':>8}   aim with 16 cores")
    for row in rows:
        ratio = row["gloo_seconds"] / row["gar_seconds"]
        aim = next(aim for most, aim in AIMS if row["bytes"] <= most)
        times = [f"{row[name] * 1e6:9.1f} us" for name in ("gar_seconds", "gloo_seconds")]
        print(f"{row['ranks']:>5} {words_of(row['bytes']):>8} {row['calls']:>6} {times[0]} {times[1]} {ratio:7.1f}x   {aim}x")


if __name__ == "__main__":
    main()
