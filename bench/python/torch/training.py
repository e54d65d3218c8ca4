#!/usr/bin/env python3
"""Step times of DistributedDataParallel with gar and with Gloo, and the share of communication.

    PYTHONPATH=build/release/python /usr/bin/python3 bench/python/torch/training.py [--ranks 4] [--steps 50]

The models of examples/pytorch/train.py. Every step is made three times in turns: with gar, with Gloo, and without any
communication (no_sync), which is what a share is compared with. The last columns say how far the losses of the two are
apart after all steps.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import ranks
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "pytorch"))
import train  # noqa: E402


class Run:
    """A model of one backend, and how long its steps have taken."""

    def __init__(self, name, width, group, is_synchronised=True):
        torch.manual_seed(7)
        self.name = name
        self.model = DistributedDataParallel(train.MODELS[name](width), process_group=group, bucket_cap_mb=1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9)
        self.generator = torch.Generator().manual_seed(100 + dist.get_rank())
        self.is_synchronised = is_synchronised
        self.times = []
        self.loss = 0.0

    def step(self):
        inputs, wanted = train.batch_of(self.name, self.generator)
        dist.barrier()
        begin = time.perf_counter()
        if self.is_synchronised:
            self.forward_and_back(inputs, wanted)
        else:
            with self.model.no_sync():
                self.forward_and_back(inputs, wanted)
        self.optimizer.step()
        self.times.append(time.perf_counter() - begin)

    def forward_and_back(self, inputs, wanted):
        loss = nn.functional.cross_entropy(self.model(inputs), wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.loss = loss.item()


def measure(groups, name, width, steps):
    runs = [Run(name, width, groups["gar"]), Run(name, width, groups["gloo"]), Run(name, width, groups["gar"], False)]
    for _ in range(steps):
        for run in runs:
            run.step()
    slowest = torch.tensor([run.times for run in runs])
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    gar, gloo, alone = (statistics.median(row[2:]) for row in slowest.tolist())
    parameters = sum(p.numel() for p in runs[0].model.parameters())
    return parameters, gar, gloo, alone, runs[0].loss, runs[1].loss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=50)
    arguments = parser.parse_args()
    print(f"{ranks.machine()}, {arguments.ranks} ranks, {arguments.steps} steps\n")
    print(f"{'model':<14} {'parameters':>10} {'gar':>10} {'share':>6} {'Gloo':>11} {'share':>6} {'alone':>10}   last loss: gar, Gloo")
    for name, width in (("transformer", 64), ("transformer", 256), ("convolutional", 16), ("convolutional", 64)):
        parameters, gar, gloo, alone, ours, theirs = ranks.run(measure, arguments.ranks, name, width, arguments.steps)
        share = [f"{max(0.0, 1 - alone / step):6.0%}" for step in (gar, gloo)]
        print(
            f"{name:<14} {parameters:>10,} {gar * 1e3:7.1f} ms {share[0]} {gloo * 1e3:8.1f} ms {share[1]} {alone * 1e3:7.1f} ms"
            f"   {ours:.6f} {theirs:.6f}"
        )


if __name__ == "__main__":
    main()
