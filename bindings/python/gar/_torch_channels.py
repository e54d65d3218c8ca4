"""send and recv of the backend `gar`: messages in the memory of tensors, and their works. Channels are the extension's."""

from typing import Any, Callable, List, Optional, Tuple

import torch

from . import _core
from ._torch_tensors import all_of, finisher, flat
from ._torch_work import Pending, Work

ANY_SOURCE = _core.ANY_SOURCE


class Message(Work):
    """A message that is under way."""

    def __init__(self, pending: Pending, peer: int) -> None:
        super().__init__(pending)
        self.peer = peer

    def _source_rank(self) -> int:
        return self.peer

    source_rank = _source_rank


class Channels:
    """Of one rank of a process group."""

    def __init__(self, meeting: Any, name: str, rank: int, size: int, timeout: float) -> None:
        self._core = _core.Channels(meeting, name, rank, size, timeout)
        self.close = self._core.close
        self.abandon = self._core.abandon

    def send(self, tensor: torch.Tensor, tag: int, destination: int, span: Any) -> Message:
        return self._start(self._core.send, tensor, flat(tensor), [], tag, destination, span)

    def receive(self, tensor: torch.Tensor, tag: int, source: int, span: Any) -> Message:
        """`source` may be ANY_SOURCE."""
        memory = tensor if tensor.is_contiguous() else torch.empty_like(tensor).contiguous()
        later = [] if memory is tensor else [finisher(tensor, memory, 1)]
        return self._start(self._core.receive, tensor, memory, later, tag, source, span)

    def _start(
        self,
        start: Callable[..., None],
        tensor: torch.Tensor,
        memory: torch.Tensor,
        later: List[Callable[[], None]],
        tag: int,
        peer: int,
        span: Any,
    ) -> Message:
        pending = Pending([tensor], all_of(later, [memory]))
        if span is not None:
            pending.in_span(span)
        message = Message(pending, peer)

        def complete(failure: Optional[Tuple[str, str]], other: int) -> None:
            message.peer = other
            pending.complete(failure)

        start(memory.data_ptr(), memory.numel() * memory.element_size(), tag, peer, complete)
        return message
