"""PyTorch through gar: a backend for torch.distributed, and a hook for programs that keep the backend that they have.

    import gar.torch
    torch.distributed.init_process_group("gar")

With the hook, gradients of DistributedDataParallel alone go through gar; all ranks must be processes of this host:

    model = torch.nn.parallel.DistributedDataParallel(model)
    model.register_comm_hook(gar.torch.communicator(), gar.torch.ddp_hook)

Tensors are in the memory of the CPU. PyTorch 1.13 or later; docs/pytorch.md has it all.
"""

import datetime
import os
import queue
import socket
import threading
import uuid
from typing import Any, List, Optional, Tuple, Union

import torch
import torch.distributed as dist

from . import _core
from ._communicator import Communicator
from ._torch_group import Group, register

__all__ = ["DdpState", "Group", "communicator", "ddp_hook", "monitored_barrier"]

register()


class DdpState:
    """A communicator, and the thread that runs its operations one after the other while backward() goes on."""

    def __init__(self, made: Communicator) -> None:
        self.communicator = made
        self._work: "queue.SimpleQueue[Optional[Tuple[torch.Tensor, torch.futures.Future[torch.Tensor]]]]" = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="gar.torch", daemon=True)
        self._thread.start()

    def average(self, gradients: torch.Tensor) -> "torch.futures.Future[torch.Tensor]":
        """Starts the mean over all ranks, in place."""
        future: "torch.futures.Future[torch.Tensor]" = torch.futures.Future()
        self._work.put((gradients, future))
        return future

    def close(self) -> None:
        """Ends this rank's part, when everything that was started is complete."""
        if self._thread.is_alive():
            self._work.put(None)
            self._thread.join()
        if not self.communicator.closed:
            self.communicator.close()

    def _run(self) -> None:
        while True:
            item = self._work.get()
            if item is None:
                return
            # Where the program ends meanwhile, it waits for this.
            _core.enter_python()
            try:
                self._average(*item)
            finally:
                _core.leave_python()
            del item

    def _average(self, gradients: torch.Tensor, future: "torch.futures.Future[torch.Tensor]") -> None:
        try:
            gradients.div_(self.communicator.size)
            self.communicator.all_reduce(gradients)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(gradients)


def communicator(group: Optional[Any] = None, **options: Any) -> DdpState:
    """A communicator of the ranks of a process group, for `register_comm_hook`. All of them call this. `options` are those of
    gar.Communicator."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    # Rank 0 makes the name up; each tells on which host it is.
    mine = (f"torch-{os.getpid()}-{uuid.uuid4().hex[:12]}", socket.gethostname())
    told: List[Any] = [None] * size
    dist.all_gather_object(told, mine, group=group)
    hosts = sorted({host for _, host in told})
    if len(hosts) > 1:
        raise _core.InvalidArgument(
            f"gar.torch: the ranks are on {len(hosts)} hosts ({', '.join(hosts)}); expected all of them on one"
        )
    return DdpState(Communicator(told[0][0], rank, size, **options))


def monitored_barrier(
    group: Optional[Any] = None,
    timeout: Union[None, float, datetime.timedelta] = None,
    wait_all_ranks: bool = False,
) -> None:
    """As torch.distributed.monitored_barrier, which refuses every backend but Gloo: a barrier that names the ranks that do not come
    within `timeout`."""
    made = dist.distributed_c10d._get_default_group() if group is None else group
    if dist.get_rank(group) < 0:  # not a member
        return
    if not isinstance(made, Group):
        raise _core.InvalidArgument(f"monitored_barrier: a group of the backend {dist.get_backend(group)}; expected one of gar")
    made.monitored_barrier(timeout, wait_all_ranks)


# PyTorch looks at the annotations themselves, so they are no strings.
def ddp_hook(state: DdpState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """For `DistributedDataParallel.register_comm_hook`: the mean of a bucket of gradients over all ranks."""
    gradients: torch.Tensor = bucket.buffer()
    if gradients.device.type != "cpu":
        raise _core.InvalidArgument(f"gar.torch: gradients are on {gradients.device}; expected the memory of the CPU")
    return state.average(gradients)
