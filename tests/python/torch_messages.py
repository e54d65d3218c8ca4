"""Messages between ranks, and the barrier that names who is missing, in torch_backend_test.py: functions of (rank, size, folder)."""

import datetime
import os
import signal

import gar
import torch
import torch.distributed as dist
import torch_ranks
from torch_scenarios import require_equal


def between_two(rank, size, folder):
    torch_ranks.init("gar", rank, size, folder)
    right, left = (rank + 1) % size, (rank - 1) % size
    got = torch.zeros(50_000)
    requests = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((50_000,), float(rank)), right), dist.P2POp(dist.irecv, got, left)])  # fmt: skip
    for request in requests:
        request.wait()
    require_equal("a ring", got, torch.full((50_000,), float(left)))
    # Messages of one tag keep their order; those of another may be taken first.
    if rank == 0:
        works = [dist.isend(torch.tensor([i]), 1, tag=i % 2) for i in range(6)]
        for work in works:
            work.wait()
    elif rank == 1:
        odd, even = [torch.zeros(1, dtype=torch.int64) for _ in range(3)], [torch.zeros(1, dtype=torch.int64) for _ in range(3)]
        for tensor in odd:
            dist.recv(tensor, 0, tag=1)
        for tensor in even:
            dist.recv(tensor, 0, tag=0)
        require_equal("tags", torch.cat(odd + even), torch.tensor([1, 3, 5, 0, 2, 4]))
    dist.barrier()
    failure = ""
    if rank == 0:
        dist.send(torch.ones(3), 1)
    elif rank == 1:
        try:
            dist.recv(torch.zeros(2), 0)
        except gar.TransportError as error:
            failure = str(error)
    dist.barrier()
    return failure


def from_anyone(rank, size, folder):
    """Rank 0 takes what comes, whoever sends it; works say who that was."""
    torch_ranks.init("gar", rank, size, folder)
    if rank == 0:
        sources = []
        for number in range(3 * (size - 1)):
            got = torch.zeros(5)
            if number % 2:
                source = dist.recv(got, tag=4)
            else:
                work = dist.irecv(got, tag=4)
                work.wait()
                source = work._source_rank()
            # A rank's messages keep their order.
            require_equal("from anyone", got, torch.full((5,), 10.0 * source + sources.count(source)))
            sources.append(source)
        require_equal("sources", torch.tensor(sorted(sources)), torch.arange(1, size).repeat_interleave(3))
        # One that waits for anyone leaves alone what is another's, and what has another tag.
        anyone, last = torch.zeros(2), torch.zeros(1)
        waits = dist.irecv(anyone, tag=6)
        dist.recv(last, size - 1, tag=5)
        require_equal("from the last", last, torch.tensor([5.0]))
        dist.barrier()
        waits.wait()
        require_equal("from anyone", anyone, torch.full((2,), 6.0))
        return waits._source_rank()
    for number in range(3):
        dist.send(torch.full((5,), 10.0 * rank + number), 0, tag=4)
    if rank == size - 1:
        dist.send(torch.tensor([5.0]), 0, tag=5)
    dist.barrier()
    if rank == 1:
        dist.send(torch.full((2,), 6.0), 0, tag=6)
    return rank


def others_leave(rank, size, folder):
    """Rank 1 sends and leaves, rank 2 sends afterwards; when it has left, too, nobody can send."""
    torch_ranks.init("gar", rank, size, folder)
    group = dist.new_group()
    if rank == 0:
        sources = [dist.recv(torch.zeros(1), group=group) for _ in range(2)]
        waits = dist.irecv(torch.zeros(1), group=group)
        dist.barrier()
        sources.append(dist.recv(torch.zeros(1), group=group, tag=1))
        try:
            waits.wait()
        except gar.TransportError as error:
            return sorted(sources), str(error)
        return sources, "nothing was noticed"
    dist.send(torch.zeros(1), 0, group=group)
    if rank == 1:
        dist.destroy_process_group(group)
        del group
    dist.barrier()
    if rank == 2:
        dist.send(torch.zeros(1), 0, group=group, tag=1)
        dist.destroy_process_group(group)
    return [], ""


def sender_dies(rank, size, folder):
    torch_ranks.init("gar", rank, size, folder)
    if rank == 2:
        dist.send(torch.ones(1), 0)
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 1:
        return ""
    dist.recv(torch.zeros(1))
    failures = []
    for source in (None, 2):
        try:
            dist.recv(torch.zeros(1), source)
        except RuntimeError as error:
            failures.append(str(error))
    return failures


def monitored(rank, size, folder):
    """A barrier that says who is missing, and after which the group goes on."""
    torch_ranks.init("gar", rank, size, folder)
    gar.torch.monitored_barrier()
    gar.torch.monitored_barrier(timeout=datetime.timedelta(seconds=200), wait_all_ranks=True)
    said = []

    def call(*arguments):
        try:
            gar.torch.monitored_barrier(*arguments)
        except RuntimeError as error:
            said.append(str(error))

    if rank != 1:
        call(None, 0.5)
    dist.barrier()
    if rank == 0:
        call(None, 0.5, True)
        call(None, 0)
    dist.barrier()
    pair = dist.new_group([0, 1])
    gar.torch.monitored_barrier(pair, 200)  # nothing for those who are not in it
    one = torch.ones(1)
    dist.all_reduce(one)
    return said, one.item()
