"""What is moved as it is: broadcast, gather, scatter, all_gather, all_to_all of the backend `gar`."""

from typing import Any, Callable, List, Sequence, Tuple

import torch

from . import _core
from ._torch_calls import ALL_GATHER, BROADCAST, GATHER, SCATTER, Call, Calls
from ._torch_tensors import TYPES, all_of, checked, finisher, flat, gathered_in, gathered_out, same_dtype, same_shape
from ._torch_work import Caller, caller_of_method


class Moves(Calls):
    def broadcast(self, tensors: List[torch.Tensor], options: Any) -> Any:
        caller = caller_of_method()
        calls: List[Call] = []
        later: List[Callable[[], None]] = []
        for tensor in tensors:
            checked("broadcast", tensor)
            memory = flat(tensor)
            place = memory.data_ptr()
            calls.append((BROADCAST, place, place, memory.numel(), TYPES[tensor.dtype], 0, options.rootRank))
            if memory is not tensor:
                later.append(finisher(tensor, memory, 1))
        return self._run(caller, calls, tensors, all_of(later))

    def allgather(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], options: Any = None) -> Any:
        return self._all_gather_lists(caller_of_method(), list(zip(outputs, inputs)), outputs)

    def allgather_coalesced(
        self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], options: Any = None
    ) -> Any:
        """outputs[r] are what rank r gives."""
        pairs = [([parts[number] for parts in outputs], tensor) for number, tensor in enumerate(inputs)]
        return self._all_gather_lists(caller_of_method(), pairs, outputs)

    def _all_gather_lists(self, caller: Caller, pairs: Sequence[Tuple[Sequence[torch.Tensor], torch.Tensor]], result: Any) -> Any:
        wholes, sources, later = [], [], []
        for parts, tensor in pairs:
            same_dtype("all_gather", [tensor, *parts])
            same_shape("all_gather", parts, tensor.numel(), self._size)
            whole, spread = gathered_out(parts)
            wholes.append(whole)
            sources.append(tensor)
            if spread is not None:
                later.append(spread)
        return self._all_gather(caller, wholes, sources, later, result)

    def _allgather_base(self, whole: torch.Tensor, tensor: torch.Tensor, options: Any = None) -> Any:
        return self._all_gather(caller_of_method(), [whole], [tensor], [], whole)

    def all_gather_single(self, whole: torch.Tensor, tensor: torch.Tensor, options: Any = None) -> Any:
        return self._all_gather(caller_of_method(), [whole], [tensor], [], whole)

    def allgather_into_tensor_coalesced(
        self, wholes: List[torch.Tensor], tensors: List[torch.Tensor], options: Any = None
    ) -> Any:
        return self._all_gather(caller_of_method(), wholes, tensors, [], wholes)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def _all_gather(
        self,
        caller: Caller,
        wholes: Sequence[torch.Tensor],
        tensors: Sequence[torch.Tensor],
        later: List[Callable[[], None]],
        result: Any,
    ) -> Any:
        what = "all_gather"
        calls: List[Call] = []
        first: List[Callable[[], None]] = []
        kept: List[torch.Tensor] = []
        for whole, tensor in zip(wholes, tensors):
            dtype = same_dtype(what, [tensor, whole])
            if whole.numel() != self._size * tensor.numel():
                raise _core.InvalidArgument(
                    f"{what}: an input of {tensor.numel()} elements and an output of {whole.numel()}; expected "
                    f"{self._size} times as many in the output"
                )
            source, memory = flat(tensor), whole if whole.is_contiguous() else torch.empty_like(whole).contiguous()
            calls.append((ALL_GATHER, source.data_ptr(), memory.data_ptr(), source.numel(), dtype, 0, 0))
            kept += [source, memory]
            if memory is not whole:
                first.append(finisher(whole, memory, 1))
        return self._run(caller, calls, result, all_of(first + later, kept))

    def gather(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], options: Any) -> Any:
        caller = caller_of_method()
        tensor, root = inputs[0], options.rootRank
        parts = outputs[0] if self._rank == root else []
        dtype = same_dtype("gather", [tensor, *parts])
        source, later, place = flat(tensor), [], 0
        kept = [source]
        if self._rank == root:
            same_shape("gather", parts, tensor.numel(), self._size)
            whole, spread = gathered_out(parts)
            kept.append(whole)
            place = whole.data_ptr()
            if spread is not None:
                later.append(spread)
        call = (GATHER, source.data_ptr(), place, source.numel(), dtype, 0, root)
        return self._run(caller, [call], outputs, all_of(later, kept))

    def scatter(self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], options: Any) -> Any:
        caller = caller_of_method()
        output, root = outputs[0], options.rootRank
        parts = inputs[0] if self._rank == root else []
        dtype = same_dtype("scatter", [output, *parts])
        memory = output if output.is_contiguous() else torch.empty_like(output).contiguous()
        kept, place = [memory], 0
        if self._rank == root:
            same_shape("scatter", parts, output.numel(), self._size)
            kept.append(gathered_in(parts))
            place = kept[-1].data_ptr()
        later = [] if memory is output else [finisher(output, memory, 1)]
        call = (SCATTER, place, memory.data_ptr(), memory.numel(), dtype, 0, root)
        return self._run(caller, [call], outputs, all_of(later, kept))

    def alltoall(self, outputs: List[torch.Tensor], inputs: List[torch.Tensor], options: Any = None) -> Any:
        caller = caller_of_method()
        what = "all_to_all"
        dtype = same_dtype(what, [*outputs, *inputs])
        if len(outputs) != self._size or len(inputs) != self._size:
            raise _core.InvalidArgument(
                f"{what}: {len(inputs)} input and {len(outputs)} output tensors; expected one for each of the {self._size} ranks"
            )
        source = gathered_in(inputs)
        whole, spread = gathered_out(outputs)
        counts = [t.numel() for t in inputs], [t.numel() for t in outputs]
        call = (source.data_ptr(), counts[0], whole.data_ptr(), counts[1], dtype)
        return self._run(caller, [call], outputs, all_of([spread] if spread else [], [source, whole]))

    def alltoall_base(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        options: Any = None,
    ) -> Any:
        caller = caller_of_method()
        what = "all_to_all"
        dtype = same_dtype(what, [output, tensor])
        counts = [self._blocks(what, t, splits) for t, splits in ((tensor, input_splits), (output, output_splits))]
        source, memory = flat(tensor), output if output.is_contiguous() else torch.empty_like(output).contiguous()
        later = [] if memory is output else [finisher(output, memory, 1)]
        call = (source.data_ptr(), counts[0], memory.data_ptr(), counts[1], dtype)
        return self._run(caller, [call], output, all_of(later, [source, memory]))

    all_to_all_single = alltoall_base

    def _blocks(self, what: str, tensor: torch.Tensor, splits: Sequence[int]) -> List[int]:
        """Elements of each rank's block; splits are along the first dimension."""
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % self._size:
                raise _core.InvalidArgument(
                    f"{what}: {rows} rows cannot be split between {self._size} ranks; expected a multiple, or split sizes"
                )
            splits = [rows // self._size] * self._size
        if len(splits) != self._size or sum(splits) != rows:
            raise _core.InvalidArgument(
                f"{what}: splits {list(splits)} of {rows} rows; expected {self._size} numbers that add up to the rows"
            )
        width = tensor.numel() // rows if rows else 0
        return [split * width for split in splits]
