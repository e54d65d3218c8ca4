"""What all calls of the backend `gar` share: how a group is made, how its calls run, and how it ends.

A call from torch.distributed that waits for its result runs in the caller's thread. One that does not (`async_op=True`, and
what DistributedDataParallel starts from C++) is started, runs in the communicator's thread in the order of the calls, and
completes a future. Contiguous tensors are used where they lie.
"""

import datetime
import weakref
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future  # type: ignore[attr-defined]
from torch.autograd import _profiler_enabled  # type: ignore[attr-defined]
from torch.autograd.profiler import record_function

from ._torch_channels import Channels
from ._torch_work import FINISHED, Caller, Meeting, Pending, Work

# The numbers that gar._core.Collectives takes for what is done.
ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, SCATTER, GATHER, ALL_TO_ALL, TRANSFER, BARRIER = range(10)

_WORDS = "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "scatter", "gather", "all_to_all", "transfer", "barrier"

Call = Tuple[Any, ...]

groups: "weakref.WeakSet[Calls]" = weakref.WeakSet()


def work_with(result: Any) -> Any:
    """A work of C++ that is complete."""
    done: "torch.futures.Future[Any]" = torch.futures.Future()
    done.set_result(result)
    return _create_work_from_future(done)


def span_of(word: str) -> Any:
    """A range of PyTorch's profiler that has begun, where it is on."""
    return record_function(f"gar:{word}").__enter__() if _profiler_enabled() else None


class Calls(dist.ProcessGroup):  # type: ignore[misc]
    """A process group that has no collectives yet."""

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta) -> None:
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        self._timeout = timeout.total_seconds()
        self._meeting = Meeting(store)
        # The ranks of a group make the same groups, so each counts to the same number.
        self._name = f"torch-{store.add(f'gar/groups/{rank}', 1)}"
        self._core = self._meeting.join(self._name, rank, size, self._timeout)
        self._channels: Optional[Channels] = None
        self._done = work_with(None)
        self._together: Optional[List[Any]] = None
        groups.add(self)

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
        span = span_of(_WORDS[what])
        if caller is Caller.WAITS or (caller is Caller.OTHER and what != ALL_REDUCE):
            self._run_here(calls, span, after)
            return self._note(FINISHED if caller is Caller.WAITS else self._done)
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

    def _run_here(self, calls: Sequence[Call], span: Any, after: Optional[Callable[[], None]]) -> None:
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

    def _note(self, work: Any) -> Any:
        if self._together is not None:
            self._together.append(work)
        return work

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
