"""What combines the values of all ranks: all_reduce, reduce, reduce_scatter of the backend `gar`."""

from typing import Any, Callable, List, Sequence

import torch
import torch.distributed as dist

from . import _core
from ._torch_calls import ALL_GATHER, ALL_REDUCE, REDUCE, REDUCE_SCATTER, Call, Calls, span_of, work_with
from ._torch_sparse import sum_of_sparse
from ._torch_tensors import TYPES, all_of, checked, finisher, flat, gathered_in, operator_name, reduction_of, same_dtype, same_shape
from ._torch_work import FINISHED, Caller, caller_of_method


class Reductions(Calls):
    def allreduce(self, tensors: List[torch.Tensor], options: Any = None) -> Any:
        if self._together is None and self._core.try_all_reduce(tensors):
            return FINISHED
        return self._all_reduce(caller_of_method(), tensors, options)

    def allreduce_coalesced(self, tensors: List[torch.Tensor], options: Any = None) -> Any:
        return self._all_reduce(caller_of_method(), tensors, options)

    def _all_reduce(self, caller: Caller, tensors: List[torch.Tensor], options: Any) -> Any:
        what = "all_reduce"
        reduce_op = dist.ReduceOp.SUM if options is None else options.reduceOp
        if any(tensor.layout == torch.sparse_coo for tensor in tensors):
            return self._all_reduce_sparse(caller, tensors, operator_name(reduce_op))
        calls: List[Call] = []
        later: List[Callable[[], None]] = []
        for tensor in tensors:
            checked(what, tensor)
            reduction = reduction_of(what, reduce_op, tensor.dtype)
            memory = flat(tensor)
            if reduction.factor is not None:
                memory.mul_(reduction.factor)
            place = memory.data_ptr()
            calls.append((ALL_REDUCE, place, place, memory.numel(), TYPES[tensor.dtype], reduction.op, 0))
            if reduction.divides or memory is not tensor:
                later.append(finisher(tensor, memory, self._size if reduction.divides else 1))
        return self._run(caller, calls, tensors, all_of(later))

    def _all_reduce_sparse(self, caller: Caller, tensors: List[torch.Tensor], operator: str) -> Any:
        """Complete when this returns, whoever calls: what is gathered second depends on what was gathered first."""

        def gather(block: torch.Tensor) -> torch.Tensor:
            blocks = torch.empty((self._size, *block.shape), dtype=block.dtype)
            self._core.run(ALL_GATHER, block.data_ptr(), blocks.data_ptr(), block.numel(), TYPES[block.dtype], 0, 0)
            return blocks

        span = span_of("all_reduce")
        try:
            for tensor in tensors:
                sum_of_sparse(tensor, operator, gather)
        finally:
            if span is not None:
                span.__exit__(None, None, None)
        return self._note(FINISHED if caller is Caller.WAITS else work_with(tensors))

    def reduce(self, tensors: List[torch.Tensor], options: Any) -> Any:
        what = "reduce"
        caller = caller_of_method()
        calls: List[Call] = []
        later: List[Callable[[], None]] = []
        kept: List[torch.Tensor] = []
        root = options.rootRank
        for tensor in tensors:
            checked(what, tensor)
            reduction = reduction_of(what, options.reduceOp, tensor.dtype)
            memory = flat(tensor)
            if reduction.factor is not None:
                memory = memory * reduction.factor
            place = memory.data_ptr()
            is_root = self._rank == root
            calls.append((REDUCE, place, place if is_root else 0, memory.numel(), TYPES[tensor.dtype], reduction.op, root))
            kept.append(memory)
            if is_root and (reduction.divides or memory is not tensor):
                later.append(finisher(tensor, memory, self._size if reduction.divides else 1))
        return self._run(caller, calls, tensors, all_of(later, kept))

    def reduce_scatter(
        self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], options: Any = None
    ) -> Any:
        caller = caller_of_method()
        wholes = []
        for output, parts in zip(outputs, inputs):
            same_dtype("reduce_scatter", [output, *parts])
            same_shape("reduce_scatter", parts, output.numel(), self._size)
            wholes.append(gathered_in(parts))
        return self._reduce_scatter(caller, outputs, wholes, options)

    def _reduce_scatter_base(self, output: torch.Tensor, whole: torch.Tensor, options: Any = None) -> Any:
        return self._reduce_scatter(caller_of_method(), [output], [whole], options)

    def reduce_scatter_single(self, output: torch.Tensor, whole: torch.Tensor, options: Any = None) -> Any:
        return self._reduce_scatter(caller_of_method(), [output], [whole], options)

    def reduce_scatter_tensor_coalesced(
        self, outputs: List[torch.Tensor], wholes: List[torch.Tensor], options: Any = None
    ) -> Any:
        return self._reduce_scatter(caller_of_method(), outputs, wholes, options)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def _reduce_scatter(self, caller: Caller, outputs: Sequence[torch.Tensor], wholes: Sequence[torch.Tensor], options: Any) -> Any:
        what = "reduce_scatter"
        reduce_op = dist.ReduceOp.SUM if options is None else options.reduceOp
        calls: List[Call] = []
        later: List[Callable[[], None]] = []
        kept: List[torch.Tensor] = []
        for output, whole in zip(outputs, wholes):
            dtype = same_dtype(what, [output, whole])
            if whole.numel() != self._size * output.numel():
                raise _core.InvalidArgument(
                    f"{what}: an input of {whole.numel()} elements and an output of {output.numel()}; expected "
                    f"{self._size} times as many in the input"
                )
            reduction = reduction_of(what, reduce_op, output.dtype)
            source, memory = flat(whole), output if output.is_contiguous() else torch.empty_like(output).contiguous()
            if reduction.factor is not None:
                source = source * reduction.factor
            calls.append((REDUCE_SCATTER, source.data_ptr(), memory.data_ptr(), memory.numel(), dtype, reduction.op, 0))
            kept.append(source)
            if reduction.divides or memory is not output:
                later.append(finisher(output, memory, self._size if reduction.divides else 1))
        return self._run(caller, calls, list(outputs), all_of(later, kept))
