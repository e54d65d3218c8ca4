"""PyTorch's backend `gar`: a process group whose collectives run in shared memory and over TCP.

A call from torch.distributed that waits for its result runs in the caller's thread. One that does not (`async_op=True`, and
what DistributedDataParallel starts from C++) is started, runs in the communicator's thread in the order of the calls, and
completes a future. Contiguous tensors are used where they lie.
"""

import atexit
import datetime
import enum
import os
import socket
import sys
import time
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch._C._distributed_c10d import _create_work_from_future  # type: ignore[attr-defined]
from torch.autograd import _profiler_enabled  # type: ignore[attr-defined]
from torch.autograd.profiler import record_function

from . import _core
from ._torch_channels import Channels

# The numbers that gar._core.Collectives takes for what is done.
ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, SCATTER, GATHER, ALL_TO_ALL, TRANSFER, BARRIER = range(10)

_WORDS = "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "scatter", "gather", "all_to_all", "transfer", "barrier"

# And for types. Bool is a byte that is 0 or 1.
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

_OPERATORS = {"SUM": 0, "PRODUCT": 1, "MIN": 2, "MAX": 3, "BAND": 4, "BOR": 5, "BXOR": 6, "AVG": 0, "PREMUL_SUM": 0}
_OPERATORS_OF_BOOL = {"SUM": 8, "PRODUCT": 7, "MIN": 7, "MAX": 8, "BAND": 4, "BOR": 5, "BXOR": 6}
_NAMES = {int(getattr(dist.ReduceOp.RedOpType, name)): name for name in _OPERATORS}

_C10D = vars(c10d)
Call = Tuple[Any, ...]


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


def make_reduction(what: str, reduce_op: Any, dtype: torch.dtype) -> Reduction:
    name = _NAMES[int(reduce_op.op) if hasattr(reduce_op, "op") else hash(reduce_op)]
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


class _Meeting:
    """torch's store, as communicators use it. No call waits inside the store, which serves one thread at a time."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def set(self, key: str, value: bytes) -> None:
        self._store.set(key, value)
        self._store.add(key + "/set", 1)

    def look(self, key: str) -> Optional[bytes]:
        """None while nobody has set it."""
        return bytes(self._store.get(key)) if self._store.add(key + "/set", 0) else None

    def server(self) -> str:
        """An address that leads to the other hosts: MASTER_ADDR is where all can reach rank 0."""
        host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT", "")
        if not host or not port.isdigit():
            return ""
        try:
            family, _, _, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        except OSError:
            return ""
        return f"[{address[0]}]:{port}" if family == socket.AF_INET6 else f"{address[0]}:{port}"

    def join(self, name: str, rank: int, size: int, timeout: float) -> _core.Collectives:
        options = _core.CommunicatorOptions("", None, None, False, timeout, None)
        return _core.Collectives.meet(self.set, self.look, self.server(), name, rank, size, options)


def _fails(future: "torch.futures.Future[Any]") -> Any:
    value = future.value()
    if isinstance(value, Exception):
        raise value
    return value


def failure_of(words: Tuple[str, str]) -> Exception:
    """The exception that the extension describes."""
    return getattr(_core, words[0])(words[1])  # type: ignore[no-any-return]


class Pending:
    """Calls that are under way, and a future that gets `result`, or the exception that they failed with, as its value."""

    def __init__(self, result: Any, after: Optional[Callable[[], None]] = None) -> None:
        self._result = result
        self._after = after
        self.future: "torch.futures.Future[Any]" = torch.futures.Future()

    def complete(self, failure: Optional[Tuple[str, str]]) -> None:
        """Called once, by whatever thread has completed the last of its calls."""
        value: Any = self._result if failure is None else failure_of(failure)
        if failure is None and self._after is not None:
            try:
                self._after()
            except Exception as error:
                value = error
        self.future.set_result(value)

    def throwing(self) -> "torch.futures.Future[Any]":
        """A Future of Python takes no exceptions; one that follows another has what that one's function raises."""
        return self.future.then(_fails)


class Work(dist.Work):  # type: ignore[misc]
    """What a call from Python with async_op=True gives."""

    def __init__(self, pending: Pending) -> None:
        super().__init__()
        self._pending = pending

    def wait(self, timeout: Optional[datetime.timedelta] = None) -> bool:
        """Returns when the call is complete, and raises what it failed with, also when this takes longer than `timeout`."""
        future = self._pending.future
        if timeout is not None and timeout.total_seconds() > 0:
            end = time.monotonic() + timeout.total_seconds()
            while not future.done():
                if time.monotonic() > end:
                    raise _core.TransportError(f"the call is not complete after {timeout.total_seconds()} s")
                time.sleep(0.0005)
        value = future.wait()
        if isinstance(value, Exception):
            raise value
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        return self._pending.future.done()

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> Optional[Exception]:
        value = self._pending.future.value() if self.is_completed() else None
        return value if isinstance(value, Exception) else None

    def result(self) -> Any:
        self.wait()
        return self._pending.future.value()

    def get_future(self) -> "torch.futures.Future[Any]":
        return self._pending.throwing()


class Caller(enum.Enum):
    """Who calls a group's method."""

    WAITS = 1  # a function of torch.distributed that waits for the work right away
    GOES_ON = 2  # one that hands the work to its caller
    OTHER = 3  # torch's C++, such as DistributedDataParallel, or a program's own code


def _caller() -> Caller:
    try:
        frame = sys._getframe(2)
    except ValueError:  # a thread of C++
        return Caller.OTHER
    if frame.f_globals is not _C10D:
        return Caller.OTHER
    return Caller.GOES_ON if frame.f_locals.get("async_op", True) else Caller.WAITS


_groups: "weakref.WeakSet[Group]" = weakref.WeakSet()


class Group(dist.ProcessGroup):  # type: ignore[misc]
    """A process group of the backend `gar`."""

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta) -> None:
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        self._timeout = timeout.total_seconds()
        self._meeting = _Meeting(store)
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
            span._call_end_callbacks_on_future(pending.future)
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
        return self._all_reduce(_caller(), tensors, options)

    def allreduce_coalesced(self, tensors: List[torch.Tensor], options: Any = None) -> Any:
        return self._all_reduce(_caller(), tensors, options)

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
                later.append(_finisher(tensor, memory, self._size if reduction.divides else 1))
        return self._run(caller, calls, tensors, _all_of(later))

    def reduce(self, tensors: List[torch.Tensor], options: Any) -> Any:
        what = "reduce"
        caller = _caller()
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
                later.append(_finisher(tensor, memory, self._size if reduction.divides else 1))
        return self._run(caller, calls, tensors, _all_of(later, kept))

    def reduce_scatter(
        self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], options: Any = None
    ) -> Any:
        caller = _caller()
        wholes = []
        for output, parts in zip(outputs, inputs):
            same_dtype("reduce_scatter", [output, *parts])
            same_shape("reduce_scatter", parts, output.numel(), self._size)
            wholes.append(gathered_in(parts))
        return self._reduce_scatter(caller, outputs, wholes, options)

    def _reduce_scatter_base(self, output: torch.Tensor, whole: torch.Tensor, options: Any = None) -> Any:
        return self._reduce_scatter(_caller(), [output], [whole], options)

    def reduce_scatter_single(self, output: torch.Tensor, whole: torch.Tensor, options: Any = None) -> Any:
        return self._reduce_scatter(_caller(), [output], [whole], options)

    def reduce_scatter_tensor_coalesced(
        self, outputs: List[torch.Tensor], wholes: List[torch.Tensor], options: Any = None
    ) -> Any:
        return self._reduce_scatter(_caller(), outputs, wholes, options)

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
                later.append(_finisher(output, memory, self._size if reduction.divides else 1))
        return self._run(caller, calls, list(outputs), _all_of(later, kept))

    # What is moved as it is.

    def broadcast(self, tensors: List[torch.Tensor], options: Any) -> Any:
        caller = _caller()
        calls: List[Call] = []
        later: List[Callable[[], None]] = []
        for tensor in tensors:
            checked("broadcast", tensor)
            memory = flat(tensor)
            place = memory.data_ptr()
            calls.append((BROADCAST, place, place, memory.numel(), TYPES[tensor.dtype], 0, options.rootRank))
            if memory is not tensor:
                later.append(_finisher(tensor, memory, 1))
        return self._run(caller, calls, tensors, _all_of(later))

    def allgather(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], options: Any = None) -> Any:
        return self._all_gather_lists(_caller(), list(zip(outputs, inputs)), outputs)

    def allgather_coalesced(
        self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], options: Any = None
    ) -> Any:
        """outputs[r] are what rank r gives."""
        pairs = [([parts[number] for parts in outputs], tensor) for number, tensor in enumerate(inputs)]
        return self._all_gather_lists(_caller(), pairs, outputs)

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
        return self._all_gather(_caller(), [whole], [tensor], [], whole)

    def all_gather_single(self, whole: torch.Tensor, tensor: torch.Tensor, options: Any = None) -> Any:
        return self._all_gather(_caller(), [whole], [tensor], [], whole)

    def allgather_into_tensor_coalesced(
        self, wholes: List[torch.Tensor], tensors: List[torch.Tensor], options: Any = None
    ) -> Any:
        return self._all_gather(_caller(), wholes, tensors, [], wholes)

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
                first.append(_finisher(whole, memory, 1))
        return self._run(caller, calls, result, _all_of(first + later, kept))

    def gather(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], options: Any) -> Any:
        caller = _caller()
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
        return self._run(caller, [call], outputs, _all_of(later, kept))

    def scatter(self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], options: Any) -> Any:
        caller = _caller()
        output, root = outputs[0], options.rootRank
        parts = inputs[0] if self._rank == root else []
        dtype = same_dtype("scatter", [output, *parts])
        memory = output if output.is_contiguous() else torch.empty_like(output).contiguous()
        kept, place = [memory], 0
        if self._rank == root:
            same_shape("scatter", parts, output.numel(), self._size)
            kept.append(gathered_in(parts))
            place = kept[-1].data_ptr()
        later = [] if memory is output else [_finisher(output, memory, 1)]
        call = (SCATTER, place, memory.data_ptr(), memory.numel(), dtype, 0, root)
        return self._run(caller, [call], outputs, _all_of(later, kept))

    def alltoall(self, outputs: List[torch.Tensor], inputs: List[torch.Tensor], options: Any = None) -> Any:
        caller = _caller()
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
        return self._run(caller, [call], outputs, _all_of([spread] if spread else [], [source, whole]))

    def alltoall_base(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        options: Any = None,
    ) -> Any:
        caller = _caller()
        what = "all_to_all"
        dtype = same_dtype(what, [output, tensor])
        counts = [self._blocks(what, t, splits) for t, splits in ((tensor, input_splits), (output, output_splits))]
        source, memory = flat(tensor), output if output.is_contiguous() else torch.empty_like(output).contiguous()
        later = [] if memory is output else [_finisher(output, memory, 1)]
        call = (source.data_ptr(), counts[0], memory.data_ptr(), counts[1], dtype)
        return self._run(caller, [call], output, _all_of(later, [source, memory]))

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
        return self._run(_caller(), [(BARRIER, 0, 0, 0, 0, 0, 0)], None)

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


def _finisher(tensor: torch.Tensor, memory: torch.Tensor, divisor: int) -> Callable[[], None]:
    def finish() -> None:
        if divisor > 1:
            memory.div_(divisor)
        if memory is not tensor:
            tensor.copy_(memory.view(tensor.shape))

    return finish


def _all_of(later: List[Callable[[], None]], kept: Sequence[torch.Tensor] = ()) -> Optional[Callable[[], None]]:
    """All of these, one after the other; `kept` lives until then."""
    if not later and not kept:
        return None

    def run_all(kept: Sequence[torch.Tensor] = kept) -> None:
        for function in later:
            function()

    return run_all


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
