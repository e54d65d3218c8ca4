"""Ranks of torch.distributed as forked processes: each runs a function, and what it says or raises comes back."""

import datetime
import multiprocessing
import os
import socket
import tempfile
import traceback

import torch
import torch.distributed as dist

import gar.torch  # noqa: F401

LIMIT = datetime.timedelta(seconds=300)
FORK = multiprocessing.get_context("fork")


def init(backend, rank, size, folder, limit=LIMIT):
    """A job of this backend; each has a store of its own."""
    dist.init_process_group(backend, init_method=f"file://{folder}/{backend}", rank=rank, world_size=size, timeout=limit)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _rank(function, rank, size, folder, pipe):
    torch.set_num_threads(1)
    try:
        said = function(rank, size, folder)
        failure = None
    except Exception:
        said, failure = None, traceback.format_exc()
    pipe.send((said, failure))
    pipe.close()
    # As a program that ends without destroying its groups.
    if dist.is_initialized() and failure is None:
        dist.destroy_process_group()


def run(function, size):
    """What function(rank, size, folder) returned on each rank, and how it failed: lists of (said, failure). A rank that died has
    said None, and its failure is its exit status."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(size):
            mine, theirs = FORK.Pipe(duplex=False)
            process = FORK.Process(target=_rank, args=(function, rank, size, folder, theirs))
            process.start()
            theirs.close()
            ranks.append((process, mine))
        out = []
        for process, pipe in ranks:
            try:
                out.append(pipe.recv() if pipe.poll(300) else (None, "it has said nothing for 300 s"))
            except EOFError:
                process.join()
                out.append((None, f"it ended with {process.exitcode}"))
        for process, _ in ranks:
            process.join(60)
            if process.exitcode is None:
                process.kill()
                out.append((None, "a rank did not end"))
        return out


def said(function, size):
    """The same for ranks of which none may fail."""
    results = run(function, size)
    failures = [f"rank {rank}: {failure}" for rank, (_, failure) in enumerate(results) if failure]
    if failures:
        raise AssertionError("\n".join(failures))
    return [what for what, _ in results]
