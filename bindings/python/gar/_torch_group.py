"""PyTorch's backend `gar`: a process group whose collectives run in shared memory and over TCP.

A call from torch.distributed that waits for its result runs in the caller's thread. One that does not (`async_op=True`, and
what DistributedDataParallel starts from C++) is started, runs in the communicator's thread in the order of the calls, and
completes a future. Contiguous tensors are used where they lie.
"""

import atexit
import datetime
import weakref
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future  # type: ignore[attr-defined]
from torch.autograd import _profiler_enabled  # type: ignore[attr-defined]
from torch.autograd.profiler import record_function

from . import _core
from ._torch_channels import Channels
from ._torch_tensors import (
    TYPES,
    all_of,
    checked,
    finisher,
    flat,
    gathered_in,
    gathered_out,
    reduction_of,
    same_dtype,
    same_shape,
)
from ._torch_work import Caller, Meeting, Pending, Work, caller_of_method

# The numbers that gar._core.Collectives takes for what is done.
ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, SCATTER, GATHER, ALL_TO_ALL, TRANSFER, BARRIER = range(10)

_WORDS = "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "scatter", "gather", "all_to_all", "transfer", "barrier"

Call = Tuple[Any, ...]

_groups: "weakref.WeakSet[Group]" = weakref.WeakSet()


class Group(dist.ProcessGroup):  # type: ignore[misc]
    """A process group of the backend `gar`."""

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta) -> None:
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        self._timeout = timeout.total_seconds()
        self._meeting = Meeting(store)
        # The ranks of a group make the same groups, so each counts to the same number.
        self._name = f"torch-{store.add(f'gar/groups/{rank}', 1)}"
        self._core = self._meeting.join(self._name, rank, size, self._timeout)
        self._channels: Optional[Channels] = None
        done: "torch.futures.Future[Any]" = torch.futures.Future()
        done.set_result(None)
        self._done = _create_work_from_future(done)
        self._together: Optional[List[Any]] = None
        _groups.add(self)

    # What torch asks of a group.

    def getBackendName(self) -> str:
        return "gar"

    def name(self) -> str:
        return "gar"

    def getRank(self) -> int:
        return self._rank

    def getSize(self) -> int:
        return self._size

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    def shutdown(self) -> None:
        """Ends this rank's part. What was started is completed first."""
        if self._channels is not None:
            self._channels.close()
        self._core.close()

    def __del__(self) -> None:
        if hasattr(self, "_done"):  # it was made
            self.shutdown()

    def abandon(self) -> None:
        """The process ends."""
        self._core.abandon()
        if self._channels is not None:
            self._channels.abandon()

    # How calls run.

    def _run(self, caller: Caller, calls: Sequence[Call], result: Any, after: Optional[Callable[[], None]] = None) -> Any:
        """The calls one after the other, then `after`."""
        if not calls:
            return self._done
        # Works that C++ gets keep failures to themselves, unless it asks for their future, as it does after an AllReduce. All
        # others that it starts it also waits for.
        what = calls[0][0] if len(calls[0]) == 7 else ALL_TO_ALL
        span = record_function(f"gar:{_WORDS[what]}").__enter__() if _profiler_enabled() else None
        if caller is Caller.WAITS or (caller is Caller.OTHER and what != ALL_REDUCE):
            try:
                for call in calls:
                    if len(call) == 7:
                        self._core.run(*call)
                    else:
                        self._core.run_blocks(*call)
                if after is not None:
                    after()
            finally:
                if span is not None:
                    span.__exit__(None, None, None)
            return self._note(self._done)
        pending = Pending(result, after)
        if span is not None:
            pending.in_span(span)
        first_failure: List[Tuple[str, str]] = []

        def complete_one(failure: Optional[Tuple[str, str]]) -> None:
            if failure is not None and not first_failure:
                first_failure.append(failure)

        def complete(failure: Optional[Tuple[str, str]]) -> None:
            pending.complete(first_failure[0] if first_failure else failure)

        for number, call in enumerate(calls):
            ends = complete if number + 1 == len(calls) else complete_one
            if len(call) == 7:
                self._core.start(*call, ends)
            else:
                self._core.start_blocks(*call, ends)
        work = _create_work_from_future(pending.throwing()) if caller is Caller.OTHER else Work(pending)
        return self._note(work)

    def _note(self, work: Any) -> Any:
        if self._together is not None:
            self._together.append(work)
        return work

    # Reductions.

    def allreduce(self, tensors: List[torch.Tensor], options: Any = None) -> Any:
        return self._all_reduce(caller_of_method(), tensors, options)

    def allreduce_coalesced(self, tensors: List[torch.Tensor], options: Any = None) -> Any:
        return self._all_reduce(caller_of_method(), tensors, options)

    def _all_reduce(self, caller: Caller, tensors: List[torch.Tensor], options: Any) -> Any:
        what = "all_reduce"
        reduce_op = dist.ReduceOp.SUM if options is None else options.reduceOp
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

    # What is moved as it is.

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

    def barrier(self, options: Any = None, opts: Any = None) -> Any:
        return self._run(caller_of_method(), [(BARRIER, 0, 0, 0, 0, 0, 0)], None)

    # Between two ranks.

    def send(self, tensors: List[torch.Tensor], destination: int, tag: int) -> Any:
        return self._note(self._channel_to(destination).send(self._one("send", tensors), tag))

    def recv(self, tensors: List[torch.Tensor], source: int, tag: int) -> Any:
        return self._note(self._channel_to(source, receives=True).receive(self._one("recv", tensors), tag))

    def recv_anysource(self, tensors: List[torch.Tensor], tag: int) -> Any:
        raise _core.InvalidArgument("recv: from any source is not there; expected the rank that sends")

    def _one(self, what: str, tensors: List[torch.Tensor]) -> torch.Tensor:
        checked(what, tensors[0])
        return tensors[0]

    def _channel_to(self, peer: int, receives: bool = False) -> Any:
        if not 0 <= peer < self._size or peer == self._rank:
            raise _core.InvalidArgument(f"send or recv: rank {peer}; expected another rank of the {self._size}")
        if self._channels is None:
            self._channels = Channels(self._meeting, self._name, self._rank, self._timeout, Pending, Work)
        return self._channels.of(peer, receives)

    # Calls that torch bundles: they run in their order, and the bundle's work is complete when all are.

    def _start_coalescing(self, *_: Any) -> None:
        self._together = []

    def _end_coalescing(self, *_: Any) -> Any:
        works, self._together = self._together or [], None
        if not works:
            return self._done
        everything = torch.futures.collect_all([work.get_future() for work in works])
        return _create_work_from_future(everything)

    start_coalescing = _start_coalescing
    end_coalescing = _end_coalescing

    def _set_sequence_number_for_group(self) -> None:
        """Calls are counted by the communicator, which compares them."""

    def _get_sequence_number_for_group(self) -> int:
        return 0


def _end() -> None:
    _core.end_callbacks()
    for group in list(_groups):
        group.abandon()


def register() -> None:
    """Makes the backend known: torch.distributed.init_process_group("gar")."""
    if hasattr(dist.Backend, "GAR"):
        return
    try:
        dist.Backend.register_backend("gar", Group, devices=["cpu"])  # torch 2
    except TypeError:
        dist.Backend.register_backend("gar", Group)
    atexit.register(_end)
