"""Tensors as gar._core.Collectives takes them: types and operators as numbers, memory whose elements lie one after the other."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from . import _core

# Bool is a byte that is 0 or 1.
TYPES: Dict[torch.dtype, int] = {
    torch.int8: 0,
    torch.uint8: 1,
    torch.int16: 2,
    torch.int32: 4,
    torch.int64: 6,
    torch.float16: 8,
    torch.bfloat16: 9,
    torch.float32: 10,
    torch.float64: 11,
    torch.bool: 1,
}
for _name, _number in (("uint16", 3), ("uint32", 5), ("uint64", 7)):  # torch 2.3 and later
    if hasattr(torch, _name):
        TYPES[getattr(torch, _name)] = _number

#: Those that every number has, and that need nothing before or after.
PLAIN_OPERATORS = {"SUM": 0, "PRODUCT": 1, "MIN": 2, "MAX": 3}
_OPERATORS = {**PLAIN_OPERATORS, "BAND": 4, "BOR": 5, "BXOR": 6, "AVG": 0, "PREMUL_SUM": 0}
_OPERATORS_OF_BOOL = {"SUM": 8, "PRODUCT": 7, "MIN": 7, "MAX": 8, "BAND": 4, "BOR": 5, "BXOR": 6}
_NAMES = {int(getattr(dist.ReduceOp.RedOpType, name)): name for name in _OPERATORS}


class Reduction(NamedTuple):
    """An operator of torch, as what happens before, in and after a sum."""

    op: int
    factor: Any = None  # what a rank's values are multiplied by before
    divides: bool = False  # by the number of ranks, after


def checked(what: str, tensor: torch.Tensor) -> None:
    if not tensor.is_cpu:
        raise _core.InvalidArgument(
            f"{what}: a tensor on {tensor.device}; the backend gar has tensors in the memory of the CPU alone. Expected "
            "a .cpu() tensor, or another backend for this device"
        )
    if tensor.layout != torch.strided or tensor.dtype not in TYPES:
        kind = tensor.dtype if tensor.layout == torch.strided else tensor.layout
        raise _core.InvalidArgument(
            f"{what}: a tensor of {kind}; expected a dense one of an integer type, bool, float16, bfloat16, float32 or float64"
        )


_known: Dict[Tuple[int, torch.dtype], Reduction] = {}


def reduction_of(what: str, reduce_op: Any, dtype: torch.dtype) -> Reduction:
    key = hash(reduce_op), dtype
    found = _known.get(key)
    if found is None:
        found = make_reduction(what, reduce_op, dtype)
        if found.factor is None:
            _known[key] = found
    return found


def operator_name(reduce_op: Any) -> str:
    return _NAMES[int(reduce_op.op) if hasattr(reduce_op, "op") else hash(reduce_op)]


def make_reduction(what: str, reduce_op: Any, dtype: torch.dtype) -> Reduction:
    name = operator_name(reduce_op)
    if dtype == torch.bool:
        if name not in _OPERATORS_OF_BOOL:
            raise _core.InvalidArgument(f"{what}: {name} of bool; expected SUM, PRODUCT, MIN, MAX, BAND, BOR or BXOR")
        return Reduction(_OPERATORS_OF_BOOL[name])
    if not dtype.is_floating_point:
        if name in ("AVG", "PREMUL_SUM"):
            raise _core.InvalidArgument(f"{what}: {name} of {dtype}; expected a floating-point type")
    elif name in ("BAND", "BOR", "BXOR"):
        raise _core.InvalidArgument(f"{what}: {name} of {dtype}; expected an integer type or bool")
    if name != "PREMUL_SUM":
        return Reduction(_OPERATORS[name], None, name == "AVG")
    state = reduce_op.__getstate__()
    if not isinstance(state, tuple):
        raise _core.InvalidArgument(
            f"{what}: torch {torch.__version__} does not tell the factor of PREMUL_SUM; expected torch 2.0 or later, or SUM"
        )
    return Reduction(0, state[1])


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """The elements one after the other: the tensor itself, or a copy."""
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def one_vector(tensors: Sequence[torch.Tensor]) -> Optional[torch.Tensor]:
    """A tensor over all of these, if each begins where the one before ends."""
    first = tensors[0]
    place = first.data_ptr()
    for tensor in tensors:
        if tensor.data_ptr() != place or not tensor.is_contiguous():
            return None
        place += tensor.numel() * tensor.element_size()
    room = first.storage() if not hasattr(first, "untyped_storage") else first.untyped_storage()
    total = sum(tensor.numel() for tensor in tensors)
    # Tensors of several allocations may follow each other, too.
    if first.storage_offset() + total > len(room) // (first.element_size() if hasattr(first, "untyped_storage") else 1):
        return None
    return first.as_strided((total,), (1,))


def gathered_out(tensors: Sequence[torch.Tensor]) -> Tuple[torch.Tensor, Optional[Callable[[], None]]]:
    """Where what belongs to all of these can be put, and what brings it to them afterwards."""
    whole = one_vector(tensors)
    if whole is not None:
        return whole, None
    whole = torch.empty(sum(t.numel() for t in tensors), dtype=tensors[0].dtype)

    def spread() -> None:
        for tensor, part in zip(tensors, torch.split(whole, [t.numel() for t in tensors])):
            tensor.copy_(part.view(tensor.shape))

    return whole, spread


def gathered_in(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The elements of all of these, one tensor after the other."""
    whole = one_vector(tensors)
    return torch.cat([t.reshape(-1) for t in tensors]) if whole is None else whole


def same_shape(what: str, tensors: Sequence[torch.Tensor], count: int, number: int) -> None:
    if len(tensors) != number:
        raise _core.InvalidArgument(f"{what}: {len(tensors)} tensors; expected one for each of the {number} ranks")
    for tensor in tensors:
        if tensor.numel() != count:
            raise _core.InvalidArgument(
                f"{what}: tensors of {tensor.numel()} and {count} elements; expected equal numbers"
            )


def same_dtype(what: str, tensors: Sequence[torch.Tensor]) -> int:
    for tensor in tensors:
        checked(what, tensor)
        if tensor.dtype != tensors[0].dtype:
            raise _core.InvalidArgument(f"{what}: tensors of {tensors[0].dtype} and {tensor.dtype}; expected one type")
    return TYPES[tensors[0].dtype]


def finisher(tensor: torch.Tensor, memory: torch.Tensor, divisor: int) -> Callable[[], None]:
    def finish() -> None:
        if divisor > 1:
            memory.div_(divisor)
        if memory is not tensor:
            tensor.copy_(memory.view(tensor.shape))

    return finish


def all_of(later: List[Callable[[], None]], kept: Sequence[torch.Tensor] = ()) -> Optional[Callable[[], None]]:
    """All of these, one after the other; `kept` lives until then."""
    if not later and not kept:
        return None

    def run_all(kept: Sequence[torch.Tensor] = kept) -> None:
        for function in later:
            function()

    return run_all
