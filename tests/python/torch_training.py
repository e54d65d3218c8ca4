"""Training in torch_backend_test.py, and what it calls: functions of (rank, size, folder)."""

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as collectives
import torch_ranks
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch_scenarios import both, require_equal

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pytorch"
sys.path.insert(0, str(EXAMPLE))

import train  # noqa: E402


def sparse(rank, size, folder):
    """Sums of tensors of which every rank has other elements, beside Gloo's."""
    gar, gloo = both(rank, size, folder)
    compared = 0
    for shape, dims in (((7,), 1), ((6, 5), 2), ((40, 3), 1), ((4, 3, 2), 2)):
        # Rank 0 has nothing, and the others have some elements twice.
        number = 3 * rank
        generator = torch.Generator().manual_seed(rank)
        indices = torch.stack([torch.randint(0, length, (number,), generator=generator) for length in shape[:dims]])
        given = torch.randint(1, 9, (number, *shape[dims:]), generator=generator).float()
        tensors = [torch.sparse_coo_tensor(indices, given, shape) for _ in range(3)]
        dist.all_reduce(tensors[0], group=gar)
        work = dist.all_reduce(tensors[1], group=gar, async_op=True)
        work.wait()
        dist.all_reduce(tensors[2], group=gloo)
        for ours in tensors[:2]:
            require_equal(f"a sparse tensor of {shape}", ours.to_dense(), tensors[2].to_dense())
            compared += 1
    refused = ""
    try:
        dist.all_reduce(torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (3 + rank % 2,)), group=gar)
    except ValueError as error:
        refused = str(error)
    gradients = []
    for group in (gar, gloo):
        torch.manual_seed(3)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Embedding(20, 4, sparse=True), process_group=group)
        model(torch.tensor([rank, 7, 7])).sum().backward()
        gradients.append(model.module.weight.grad.to_dense())
    require_equal("gradients of an embedding", *gradients)
    return compared, refused


def training(rank, size, folder):
    gar, gloo = both(rank, size, folder)
    said = []
    for name in train.MODELS:
        ours, model = train.train(name, 12, gar)
        theirs, _ = train.train(name, 12, gloo)
        # Sums of four numbers in another order.
        for mine, other in zip(ours, theirs):
            if abs(mine - other) > 1e-4 * abs(other):
                raise AssertionError(f"{name}: losses {ours} instead of {theirs}")
        if not ours[-1] < 0.9 * ours[0]:
            raise AssertionError(f"{name} has learned nothing: {ours}")
        flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        every = [torch.zeros_like(flat) for _ in range(size)]
        dist.all_gather(every, flat)
        said.append(all(torch.equal(one, flat) for one in every))
    return said


def finds_unused(rank, size, folder):
    """DistributedDataParallel tells the others by an all_reduce of int32 what it has not used."""
    gar, gloo = both(rank, size, folder)
    results = []
    for group in (gar, gloo):
        torch.manual_seed(3)
        layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(3)])

        class Some(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = layers

            def forward(self, x):
                return self.layers[2](self.layers[0](x)) if rank == 0 else self.layers[2](x)

        model = torch.nn.parallel.DistributedDataParallel(Some(), process_group=group, find_unused_parameters=True)
        model(torch.full((2, 4), 1.0 + rank)).sum().backward()
        results.append([p.grad for p in layers.parameters()])
    for ours, theirs in zip(*results):
        if (ours is None) != (theirs is None) or (ours is not None and not torch.allclose(ours, theirs)):
            raise AssertionError(f"{ours} instead of {theirs}")
    return sum(grad is not None for grad in results[0])


def what_calls_groups(rank, size, folder):
    """Parts of PyTorch that make collectives of a group themselves, beside Gloo's: hooks of DistributedDataParallel, an optimizer
    whose state is spread over the ranks, collectives with gradients."""
    gar, gloo = both(rank, size, folder)

    def trained(group, prepare):
        torch.manual_seed(4)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(12, 40), torch.nn.Linear(40, 3)), process_group=group)
        optimizer = prepare(model, group)
        generator = torch.Generator().manual_seed(rank)
        for _ in range(5):
            model(torch.randn(8, 12, generator=generator)).pow(2).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return torch.cat([p.detach().reshape(-1) for p in model.parameters()])

    def plain(model):
        return torch.optim.SGD(model.parameters(), lr=1e-3)

    def half(model, group):
        model.register_comm_hook(group, default_hooks.fp16_compress_hook)
        return plain(model)

    def spread(model, group):
        return ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, process_group=group, lr=1e-3)

    for prepare in (half, spread):
        ours, theirs = trained(gar, prepare), trained(gloo, prepare)
        if not torch.allclose(ours, theirs, rtol=1e-3, atol=1e-5):
            raise AssertionError(f"{prepare.__name__}: {(ours - theirs).abs().max()} apart")
    for collective in (collectives.all_reduce, lambda t, group: torch.cat(collectives.all_gather(t, group=group))):
        gradients = []
        for group in (gar, gloo):
            given = torch.arange(6.0).mul(rank + 1).requires_grad_()
            collective(given * 2, group=group).pow(2).sum().backward()
            gradients.append(given.grad)
        require_equal("a gradient", *gradients)
    return True


def sharded(rank, size, folder):
    """What FullyShardedDataParallel does: gathers parameters, and scatters the mean of gradients."""
    torch_ranks.init("gar", rank, size, folder)
    torch.manual_seed(5)
    whole = torch.randn(4 * size, 3)
    mine = whole[4 * rank : 4 * rank + 4].clone().requires_grad_()
    gathered = torch.empty_like(whole)
    dist._all_gather_base(gathered, mine.detach())
    require_equal("gathered", gathered, whole)
    inplace = torch.zeros_like(whole)
    inplace[4 * rank : 4 * rank + 4] = mine.detach()
    dist.all_gather_into_tensor(inplace, inplace[4 * rank : 4 * rank + 4])
    require_equal("gathered in place", inplace, whole)
    gradient = torch.empty(4, 3)
    dist._reduce_scatter_base(gradient, gathered * (rank + 1), dist.ReduceOp.AVG)
    require_equal("scattered", gradient, whole.mul(sum(range(1, size + 1)))[4 * rank : 4 * rank + 4] / size)
    return True


def killed_in_training(rank, size, folder):
    torch_ranks.init("gar", rank, size, folder)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(300, 300))
    model(torch.randn(4, 300)).sum().backward()
    output = model(torch.randn(4, 300)).sum()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        output.backward()
    except Exception as error:
        return str(error)
    return "nothing was noticed"
