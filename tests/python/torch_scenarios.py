"""What ranks do in torch_backend_test.py: functions of (rank, size, folder). Inputs are such that every sum is exact, and results are
compared bit for bit."""

import datetime
import functools
import os
import time

import gar
import torch
import torch.distributed as dist
import torch_ranks
from torch.distributed import ReduceOp

SIZES = (0, 1, 7, 1000, 70_001)
INTEGERS = (torch.int8, torch.uint8, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
OPERATORS = (ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX)
BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def values(rank, count, dtype, seed=0):
    """Small numbers: sums and products of four ranks are exact in every type."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).to(dtype)
    return torch.randint(1, 4, (count,), generator=generator).to(dtype)


def combined(op, tensors):
    """One after the other."""
    combine = {
        ReduceOp.SUM: torch.add, ReduceOp.PRODUCT: torch.mul, ReduceOp.MIN: torch.minimum, ReduceOp.MAX: torch.maximum,
        ReduceOp.BAND: torch.bitwise_and, ReduceOp.BOR: torch.bitwise_or, ReduceOp.BXOR: torch.bitwise_xor,
    }[op]  # fmt: skip
    return functools.reduce(combine, tensors)


def require_equal(what, ours, theirs):
    if not (ours.dtype == theirs.dtype and ours.shape == theirs.shape and torch.equal(ours, theirs)):
        raise AssertionError(f"{what}: {ours} instead of {theirs}")


def both(rank, size, folder):
    """The groups of the two backends over the same ranks."""
    torch_ranks.init("gar", rank, size, folder)
    return dist.group.WORLD, dist.new_group(backend="gloo")


def every_reduction(rank, size, folder):
    gar, gloo = both(rank, size, folder)
    compared = 0
    for dtype in INTEGERS + FLOATS:
        for op in OPERATORS + (BITWISE if dtype in INTEGERS else ()):
            for count in SIZES:
                what = f"{op} of {count} {dtype}"
                mine = values(rank, count, dtype, count)
                # Gloo has no bfloat16: the numbers are exact in float32, too.
                theirs = mine.float() if dtype == torch.bfloat16 else mine.clone()
                ours = mine.clone()
                dist.all_reduce(ours, op, group=gar)
                if count:
                    dist.all_reduce(theirs, op, group=gloo)
                require_equal("all_reduce, " + what, ours, theirs.to(dtype))
                root = count % size
                reduced = mine.clone()
                dist.reduce(reduced, root, op, group=gar)
                require_equal("reduce, " + what, reduced, ours if rank == root else mine)
                scattered = torch.zeros(count, dtype=dtype)
                dist.reduce_scatter(scattered, [values(rank, count, dtype, 7 + block) for block in range(size)], op, group=gar)
                expected = combined(op, [values(other, count, dtype, 7 + rank) for other in range(size)])
                require_equal("reduce_scatter, " + what, scattered, expected)
                compared += 3
    return compared


def every_move(rank, size, folder):
    gar, gloo = both(rank, size, folder)
    compared = 0
    for number, dtype in enumerate(INTEGERS + FLOATS + (torch.bool,)):
        for count in SIZES:
            root = (count + number) % size
            what = f"{count} {dtype}"
            mine = values(rank, count, dtype, number)
            every = [values(other, count, dtype, number) for other in range(size)]

            told = mine.clone()
            dist.broadcast(told, root, group=gar)
            require_equal("broadcast of " + what, told, every[root])

            lists = [torch.zeros(count, dtype=dtype) for _ in range(size)]
            dist.all_gather(lists, mine, group=gar)
            whole = torch.zeros(size * count, dtype=dtype)
            dist.all_gather_into_tensor(whole, mine, group=gar)
            chunks = list(torch.zeros(size * count, dtype=dtype).split(count)) if count else lists
            dist.all_gather(chunks, mine, group=gar)
            for other in range(size):
                require_equal("all_gather of " + what, lists[other], every[other])
                require_equal("all_gather into views of " + what, chunks[other], every[other])
            require_equal("all_gather_into_tensor of " + what, whole, torch.cat(every))

            gathered = [torch.zeros(count, dtype=dtype) for _ in range(size)] if rank == root else None
            dist.gather(mine, gathered, root, group=gar)
            if rank == root:
                require_equal("gather of " + what, torch.cat(gathered), torch.cat(every))
            part = torch.zeros(count, dtype=dtype)
            given = [values(root, count, dtype, 90 + other) for other in range(size)]
            dist.scatter(part, given if rank == root else None, root, group=gar)
            require_equal("scatter of " + what, part, given[rank])

            # Blocks of rank r for rank s are longer where s is larger.
            send = [values(rank, count + other, dtype, 50 + other) for other in range(size)]
            receive = [torch.zeros(count + rank, dtype=dtype) for _ in range(size)]
            dist.all_to_all(receive, send, group=gar)
            for other in range(size):
                require_equal("all_to_all of " + what, receive[other], values(other, count + rank, dtype, 50 + rank))
            single = torch.zeros(size * (count + rank), dtype=dtype)
            splits = [count + other for other in range(size)]
            dist.all_to_all_single(single, torch.cat(send), [count + rank] * size, splits, group=gar)
            require_equal("all_to_all_single of " + what, single, torch.cat(receive))
            even = torch.zeros(size * count, dtype=dtype)
            dist.all_to_all_single(even, torch.cat(given), group=gar)
            compared += 9
        if dtype in (torch.float32, torch.int64):  # what Gloo has
            ours, theirs = values(rank, 12 * size, dtype, 5), values(rank, 12 * size, dtype, 5)
            a, b = torch.zeros_like(ours), torch.zeros_like(ours)
            dist.all_to_all_single(a, ours, group=gar)
            dist.all_to_all_single(b, theirs, group=gloo)
            require_equal("all_to_all_single beside Gloo", a, b)
    return compared


class WithFactor:
    """Options of a reduction whose operator is PREMUL_SUM."""

    class Operator:
        op = ReduceOp.RedOpType.PREMUL_SUM

        def __init__(self, factor):
            self.factor = factor

        def __getstate__(self):
            return self.op, self.factor

        def __hash__(self):
            return int(self.op)

    def __init__(self, factor):
        self.reduceOp = self.Operator(factor)


def special_operators(rank, size, folder):
    torch_ranks.init("gar", rank, size, folder)
    for count in (1, 5, 100_000):
        mean = values(rank, count, torch.float32)
        dist.all_reduce(mean, ReduceOp.AVG)
        expected = sum(values(other, count, torch.float32) for other in range(size)) / size
        require_equal("AVG", mean, expected)
        out = torch.zeros(count)
        dist.reduce_scatter_tensor(out, values(rank, count * size, torch.float32), ReduceOp.AVG)
        every = sum(values(other, count * size, torch.float32) for other in range(size)) / size
        require_equal("AVG of a reduce_scatter", out, every.split(count)[rank])
        for op, combine in ((ReduceOp.SUM, torch.any), (ReduceOp.MAX, torch.any), (ReduceOp.PRODUCT, torch.all), (ReduceOp.MIN, torch.all)):
            truth = values(rank, count, torch.bool)
            dist.all_reduce(truth, op)
            require_equal(f"{op} of bool", truth, combine(torch.stack([values(r, count, torch.bool) for r in range(size)]), 0))
    # As torch 2 tells the factor of PREMUL_SUM; 1.13 does not.
    for count in (3, 5000):
        scaled = values(rank, count, torch.float32)
        dist.group.WORLD.allreduce([scaled], WithFactor(0.5)).wait()
        require_equal("PREMUL_SUM", scaled, sum(values(other, count, torch.float32) for other in range(size)) * 0.5)
        given, part = values(rank, count * size, torch.float32), torch.zeros(count)
        before = given.clone()
        dist.group.WORLD.reduce_scatter_tensor_coalesced([part], [given], WithFactor(0.25))
        every = sum(values(other, count * size, torch.float32) for other in range(size)) * 0.25
        require_equal("PREMUL_SUM of a reduce_scatter", part, every.split(count)[rank])
        require_equal("its input", given, before)
    refused = []
    for tensor, op in ((torch.ones(3, dtype=torch.int32), ReduceOp.AVG), (torch.ones(3), ReduceOp.BXOR), (torch.ones(3, device="meta"), ReduceOp.SUM), (torch.ones(3).to_sparse(), ReduceOp.MAX)):  # fmt: skip
        try:
            dist.all_reduce(tensor, op)
        except ValueError as error:
            refused.append(str(error))
    dist.barrier()
    return refused


def strided(rank, size, folder):
    """Tensors whose elements do not lie one after the other, and what lies between them stays as it is."""
    torch_ranks.init("gar", rank, size, folder)
    base = torch.full((6, 8), -1.0)
    view = base[:, ::2]
    view.copy_(torch.arange(24.0).reshape(6, 4) + rank)
    dist.all_reduce(view)
    require_equal("all_reduce", view, torch.arange(24.0).reshape(6, 4) * size + sum(range(size)))
    require_equal("what lies between", base[:, 1::2], torch.full((6, 4), -1.0))
    turned = torch.arange(12.0).reshape(3, 4).t() if rank == 0 else torch.zeros(4, 3).t().contiguous().t()
    dist.broadcast(turned, 0)
    require_equal("broadcast", turned, torch.arange(12.0).reshape(3, 4).t())
    parts = [torch.zeros(4, 6).t() for _ in range(size)]
    work = dist.all_gather(parts, view.clone().t().contiguous().t(), async_op=True)
    work.wait()
    require_equal("all_gather", parts[1], view)
    out = torch.zeros(2, 3).t()
    dist.reduce_scatter(out, [torch.full((3, 2), float(rank + block)) for block in range(size)])
    require_equal("reduce_scatter", out, torch.full((3, 2), float(sum(range(size)) + size * rank)))
    got = torch.zeros(4, 3).t()
    if rank == 0:
        dist.send(torch.arange(12.0).reshape(4, 3).t(), 1)
    elif rank == 1:
        dist.recv(got, 0)
        require_equal("recv", got, torch.arange(12.0).reshape(4, 3).t())
    return True


def asynchronous(rank, size, folder):
    """Works and futures, in the order of the calls; several groups at the same time."""
    torch_ranks.init("gar", rank, size, folder)
    halves = [dist.new_group(list(range(0, size, 2))), dist.new_group(list(range(1, size, 2)))]
    mine = halves[rank % 2]
    tensors = [torch.full((1000 + i,), float(rank + i)) for i in range(20)]
    works = [dist.all_reduce(t, async_op=True, group=mine if i % 3 == 0 else None) for i, t in enumerate(tensors)]
    dist.barrier(group=mine)
    future = works[-1].get_future()
    first = future.then(lambda done: done.value()[0] * 2).wait()
    for work in reversed(works):
        work.wait()
    for i, tensor in enumerate(tensors):
        ranks = range(rank % 2, size, 2) if i % 3 == 0 else range(size)
        require_equal("async", tensor, torch.full((1000 + i,), float(sum(r + i for r in ranks))))
    require_equal("then", first, tensors[-1] * 2)
    if not all(work.is_completed() for work in works):
        raise AssertionError("a work is not complete")
    with torch.autograd.profiler.profile() as profile:
        dist.all_reduce(tensors[1])
        dist.all_gather(list(torch.zeros(size, 2).unbind()), torch.zeros(2), async_op=True).wait()
    ranges = [event.name for event in profile.function_events if event.name.startswith("gar:")]
    if sorted(ranges) != ["gar:all_gather", "gar:all_reduce"]:
        raise AssertionError(f"ranges {ranges}")
    many = [torch.full((3,), float(rank)), torch.full((5,), 1.0)]
    dist.all_reduce_coalesced(many)
    require_equal("coalesced", torch.cat(many), torch.tensor([float(sum(range(size)))] * 3 + [float(size)] * 5))
    outs = [[torch.zeros(2), torch.zeros(3)] for _ in range(size)]
    dist.all_gather_coalesced(outs, [torch.full((2,), float(rank)), torch.full((3,), float(-rank))])
    for other in range(size):
        require_equal("all_gather_coalesced", torch.cat(outs[other]), torch.tensor([float(other)] * 2 + [float(-other)] * 3))
    # A group that is not this rank's, a group of one, and one that comes after others have gone.
    alone = dist.new_group([0])
    if rank == 0:
        dist.all_reduce(tensors[0], group=alone)
    my_rank = dist.get_rank(mine)
    dist.destroy_process_group(mine)
    again = dist.new_group(list(range(size)))
    one = torch.ones(1)
    dist.all_reduce(one, group=again)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank}, group=again)
    dist.broadcast_object_list(listed := [rank], src=size - 1)
    return one.item(), objects[-1]["rank"], listed[0], dist.get_backend(), my_rank


def memory(what):
    """Bytes of this process: VmRSS, or VmHWM, the most that it was."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(what + ":"))


def without_copies(rank, size, folder):
    """Nothing touches new memory as long as a vector: the process never has a quarter of one more than before."""
    torch_ranks.init("gar", rank, size, folder)
    length = 4_000_000 * size
    whole, spare, block = torch.ones(length), torch.ones(length), torch.ones(length // size)
    blocks = list(whole.split(len(block)))
    dist.all_reduce(spare)  # what all calls share is there afterwards
    dist.barrier()
    before = memory("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the most from now on
    works = [dist.all_reduce(whole, async_op=True)]
    dist.reduce_scatter_tensor(block, whole)
    dist.reduce_scatter(block, blocks)
    dist.all_gather_into_tensor(whole, block)
    dist.all_gather(blocks, block)
    dist.broadcast(whole, 0)
    dist.reduce(whole, 1)
    dist.scatter(block, blocks if rank == 0 else None, 0)
    dist.gather(block, blocks if rank == 0 else None, 0)
    dist.all_to_all_single(whole, spare)
    works[0].wait()
    grown = memory("VmHWM") - before
    bound = length  # a quarter of what a vector has in bytes
    copy = whole.clone()
    return grown < bound, memory("VmHWM") - before > bound, len(copy)


def by_environment(rank, size, folder):
    """As torchrun and others start a program."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1")
    # Rank 0 finds a free port and tells the others.
    place = os.path.join(folder, "port")
    if rank == 0:
        with open(place + ".new", "w") as file:
            file.write(str(torch_ranks.free_port()))
        os.rename(place + ".new", place)
    while not os.path.exists(place):
        time.sleep(0.01)
    with open(place) as file:
        os.environ["MASTER_PORT"] = file.read()
    dist.init_process_group("gar")
    one = torch.ones(1)
    dist.all_reduce(one)
    first = one.item()
    dist.destroy_process_group()
    return first


def silent(rank, size, folder):
    """A rank that computes for long is an error after the group's time limit, not after that of the others."""
    torch_ranks.init("gar", rank, size, folder)
    group = dist.new_group(timeout=datetime.timedelta(seconds=12))
    dist.barrier(group=group)
    over = os.path.join(folder, "over")
    if rank == 1:
        while not os.path.exists(over):
            time.sleep(0.01)
        dist.barrier()
        return []
    works = [dist.all_reduce(torch.ones(1000), group=group, async_op=True)]
    if rank == 0:
        works += [dist.irecv(torch.zeros(1), group=group), dist.irecv(torch.zeros(1), 1, group=group)]
    failures = []
    for work in works:
        try:
            work.wait()
        except gar.TransportError as error:
            failures.append(str(error))
    open(over, "w").close()
    dist.barrier()
    return failures


def different_calls(rank, size, folder):
    torch_ranks.init("gar", rank, size, folder)
    try:
        if rank == 1:
            dist.all_reduce(torch.ones(100))
        else:
            dist.broadcast(torch.ones(100), 0)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was noticed"
