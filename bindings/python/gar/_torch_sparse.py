"""The sum of sparse tensors, such as the gradients of torch.nn.Embedding(sparse=True): the values that are there go to all ranks,
and each adds them up by itself."""

from typing import Any, Callable, List

import torch

from . import _core
from ._torch_tensors import TYPES

#: Every rank's block of elements, one after the other: gather(block).
Gather = Callable[[torch.Tensor], torch.Tensor]


def sum_of_sparse(tensor: torch.Tensor, name: str, gather: Gather) -> None:
    """In place. `name` is that of the operator."""
    if name != "SUM" or tensor.dtype not in TYPES or tensor.dtype == torch.bool or not tensor.is_cpu:
        raise _core.InvalidArgument(
            f"all_reduce: {name} of a sparse tensor of {tensor.dtype} on {tensor.device}; expected SUM of numbers in the memory of "
            "the CPU, or a dense tensor"
        )
    mine = tensor.coalesce()
    indices, values = mine.indices(), mine.values()
    # The number of values, then what all ranks have in common.
    heads = gather(torch.tensor([values.shape[0], indices.shape[0], *tensor.shape])).tolist()
    _compare(heads)
    numbers = [head[0] for head in heads]
    all_indices = _gather_columns(indices.t(), numbers, gather).t()
    all_values = _gather_columns(values, numbers, gather)
    tensor.copy_(torch.sparse_coo_tensor(all_indices, all_values, tensor.shape).coalesce())


def _compare(heads: List[List[int]]) -> None:
    for rank, head in enumerate(heads):
        if head[1:] != heads[0][1:]:
            raise _core.InvalidArgument(
                f"all_reduce: rank {rank} has a sparse tensor of shape {head[2:]} with {head[1]} sparse dimensions, and rank 0 one "
                f"of shape {heads[0][2:]} with {heads[0][1]}; expected equal ones"
            )


def _gather_columns(rows: torch.Tensor, numbers: List[int], gather: Gather) -> torch.Tensor:
    """The rows of all ranks, one rank after the other; numbers[r] of rank r. Blocks are as long as the longest."""
    most = max(numbers)
    block: Any = torch.zeros((most, *rows.shape[1:]), dtype=rows.dtype)
    block[: rows.shape[0]] = rows
    blocks = gather(block)
    return torch.cat([blocks[rank, :number] for rank, number in enumerate(numbers)])
