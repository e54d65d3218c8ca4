"""PyTorch's backend `gar`: a process group whose collectives run in shared memory and over TCP."""

import atexit
import datetime
import inspect
from typing import Any, List, Optional, Union

import torch
import torch.distributed as dist
from torch.autograd import _profiler_enabled  # type: ignore[attr-defined]

from . import _core
from ._torch_barrier import MonitoredBarrier
from ._torch_calls import BARRIER, groups, span_of
from ._torch_channels import ANY_SOURCE, Channels
from ._torch_moves import Moves
from ._torch_reductions import Reductions
from ._torch_tensors import PLAIN_OPERATORS, TYPES, checked
from ._torch_work import caller_of_method


class Group(Reductions, Moves):
    """A process group of the backend `gar`."""

    _monitored: Optional[MonitoredBarrier] = None

    def barrier(self, options: Any = None, opts: Any = None) -> Any:
        return self._run(caller_of_method(), [(BARRIER, 0, 0, 0, 0, 0, 0)], None)

    def monitored_barrier(
        self, timeout: Union[None, float, datetime.timedelta] = None, wait_all_ranks: bool = False
    ) -> None:
        """Returns when all ranks have called it. Otherwise, after `timeout`, rank 0 raises an exception that names the first rank that
        is missing, or with `wait_all_ranks` all of them, and the others one that says so. The group goes on."""
        if self._monitored is None:
            self._monitored = MonitoredBarrier(self._meeting, self._name, self._rank, self._size)
        seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
        self._monitored.wait(self._timeout if seconds is None else seconds, wait_all_ranks)

    # Between two ranks.

    def send(self, tensors: List[torch.Tensor], destination: int, tag: int = 0) -> Any:
        tensor, channels = self._one("send", tensors), self._channels_to(destination)
        return self._note(channels.send(tensor, tag, destination, span_of("send")))

    def recv(self, tensors: List[torch.Tensor], source: int, tag: int = 0) -> Any:
        tensor, channels = self._one("recv", tensors), self._channels_to(source)
        return self._note(channels.receive(tensor, tag, source, span_of("recv")))

    def recv_anysource(self, tensors: List[torch.Tensor], tag: int = 0) -> Any:
        """From whoever sends first something with this tag."""
        tensor, channels = self._one("recv", tensors), self._channels_to(ANY_SOURCE)
        return self._note(channels.receive(tensor, tag, ANY_SOURCE, span_of("recv_anysource")))

    def _one(self, what: str, tensors: List[torch.Tensor]) -> torch.Tensor:
        checked(what, tensors[0])
        return tensors[0]

    def _channels_to(self, peer: int) -> Channels:
        is_known = peer == ANY_SOURCE and self._size > 1
        if not is_known and (not 0 <= peer < self._size or peer == self._rank):
            raise _core.InvalidArgument(f"send or recv: rank {peer}; expected another rank of the {self._size}")
        if self._channels is None:
            self._channels = Channels(self._meeting, self._name, self._rank, self._size, self._timeout)
        return self._channels


def _end() -> None:
    _core.begin_ending()
    for group in list(groups):
        group.abandon()


def _tell_words() -> None:
    """So that the extension knows the calls of all_reduce that it can run by itself."""
    types = {dtype: number for dtype, number in TYPES.items() if dtype != torch.bool}
    operators = {getattr(dist.ReduceOp, name): number for name, number in PLAIN_OPERATORS.items()}
    # In torch 2 something is wrapped around it.
    _core.set_torch_words(inspect.unwrap(dist.all_reduce).__code__, _profiler_enabled, torch.strided, types, operators)


def register() -> None:
    """Makes the backend known: torch.distributed.init_process_group("gar")."""
    if hasattr(dist.Backend, "GAR"):
        return
    try:
        dist.Backend.register_backend("gar", Group, devices=["cpu"])  # torch 2
    except TypeError:
        dist.Backend.register_backend("gar", Group)
    _tell_words()
    atexit.register(_end)
