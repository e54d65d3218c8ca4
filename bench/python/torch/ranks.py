"""Ranks for the benchmarks: forked processes of this host with two process groups over the same ranks, gar and Gloo."""

import multiprocessing
import os
import tempfile

import torch
import torch.distributed as dist

import gar.torch  # noqa: F401


def _rank(function, rank, size, folder, pipe, arguments):
    torch.set_num_threads(1)
    dist.init_process_group("gar", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    groups = {"gar": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    result = function(groups, *arguments)
    if rank == 0:
        pipe.send(result)
    dist.barrier()
    dist.destroy_process_group()


def run(function, size, *arguments):
    """What function(groups, *arguments) returns on rank 0."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    fork = multiprocessing.get_context("fork")
    mine, theirs = fork.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        ranks = [fork.Process(target=_rank, args=(function, r, size, folder, theirs, arguments)) for r in range(size)]
        for process in ranks:
            process.start()
        theirs.close()
        try:
            result = mine.recv()
        except EOFError:
            raise SystemExit("a rank has failed") from None
        for process in ranks:
            process.join()
    return result


def machine():
    load = os.getloadavg()[0]
    return f"torch {torch.__version__}, {os.cpu_count()} cores, load {load:.1f} before"
