#!/usr/bin/env python3
"""A rank of bench/network/tcp --gloo: all_reduce of torch.distributed with the backend gar and with Gloo, in turns, every sum
checked. RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say which job it belongs to. Rank 0 writes the medians of the slowest rank.
"""
import argparse
import json
import os
import statistics
import sys
import time


def seconds_of(dist, tensor, group, rank, size):
    """One call, which begins on all ranks at about the same time."""
    tensor.fill_(rank + 1)
    dist.barrier()
    begin = time.perf_counter()
    dist.all_reduce(tensor, group=group)
    taken = time.perf_counter() - begin
    if not bool((tensor == size * (size + 1) / 2).all()):
        sys.exit(f"torch_rank.py: rank {rank}: a wrong sum of {tensor.numel()} floats")
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", required=True, help="the folder that holds the package gar")
    parser.add_argument("--interface", required=True, help="for Gloo")
    parser.add_argument("--sizes", required=True, help="bytes, by commas")
    parser.add_argument("--repetitions", type=int, required=True)
    parser.add_argument("-o", dest="output", required=True)
    options = parser.parse_args()
    os.environ["GLOO_SOCKET_IFNAME"] = options.interface
    sys.path.insert(0, options.package)
    import torch
    import torch.distributed as dist

    import gar.torch  # noqa: F401

    torch.set_num_threads(1)
    dist.init_process_group("gar")
    groups = {"gar": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    rank, size = dist.get_rank(), dist.get_world_size()
    found = {}
    for length in map(int, options.sizes.split(",")):
        tensor = torch.empty(length // 4)
        times = {name: [] for name in groups}
        for number in range(options.repetitions + 1):
            for name, group in groups.items():
                taken = seconds_of(dist, tensor, group, rank, size)
                if number > 0:  # the first one connects and plans
                    times[name].append(taken)
        slowest = torch.tensor([times[name] for name in groups], dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        found[length] = {name: statistics.median(row) for name, row in zip(groups, slowest.tolist())}
    if rank == 0:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(found, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
