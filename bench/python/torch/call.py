#!/usr/bin/env python3
"""What a call of torch.distributed.all_reduce costs beside the communication: a group of one rank, which sends nothing.

    PYTHONPATH=build/release/python /usr/bin/python3 bench/python/torch/call.py

Nanoseconds, the least of several rounds. Each line leaves out something of the one before.
"""

import tempfile
import timeit

import ranks
import torch
import torch.distributed as dist
from torch.autograd import _profiler_enabled

CALLS, ROUNDS = 2000, 15


class Nothing(dist.ProcessGroup):
    """What PyTorch itself takes: a group that does nothing."""

    class Done:
        def wait(self):
            return True

    done = Done()

    def allreduce(self, tensors, options=None):
        return self.done


def nanoseconds(function):
    return min(timeit.repeat(function, number=CALLS, repeat=ROUNDS)) / CALLS * 1e9


def main():
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gar", init_method=f"file://{folder}/store", rank=0, world_size=1)
        group, tensor = dist.group.WORLD, torch.zeros(256)
        core, place = group._core, tensor.data_ptr()
        empty, gloo = Nothing(0, 1), dist.new_group(backend="gloo")
        for known in ("_pg_names", "_pg_map", "_pg_group_ranks"):  # as new_group makes it known
            names = getattr(dist.distributed_c10d, known)
            names[empty] = names[group]
        lines = {
            "dist.all_reduce with Gloo": lambda: dist.all_reduce(tensor, group=gloo),
            "dist.all_reduce with gar": lambda: dist.all_reduce(tensor, group=group),
            "dist.all_reduce with a backend that does nothing": lambda: dist.all_reduce(tensor, group=empty),
            "the same call of the extension, with addresses": lambda: core.run(0, place, place, 256, 10, 0, 0),
            "asking whether PyTorch takes a profile": _profiler_enabled,
        }
        print(f"{ranks.machine()}, 1 rank, 1 KiB\n")
        for words, function in lines.items():
            print(f"{nanoseconds(function):8.0f} ns  {words}")
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
