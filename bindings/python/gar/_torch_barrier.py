"""monitored_barrier of the backend `gar`: a barrier that says which ranks are missing.

It goes through the store in which the group has met, so it does not depend on what is under way in the group, and does not end
it. Ranks count their calls; rank 0 waits for all others, and says whether they are there. The words of its errors are those of
Gloo, since programs look for them.
"""

import time
from typing import Any, Set

from . import _core

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.02
#: Rank 0 may say why it fails for so long after the limit.
_GRACE = 1.0


class MonitoredBarrier:
    """Of one rank of a process group."""

    def __init__(self, meeting: Any, name: str, rank: int, size: int) -> None:
        self._meeting = meeting
        self._rank, self._size = rank, size
        self._place = f"gar/{name}/barrier"
        self._number = 0

    def wait(self, timeout: float, wait_all_ranks: bool) -> None:
        self._number += 1
        if self._rank == 0:
            self._lead(timeout, wait_all_ranks)
        else:
            self._follow(timeout)

    def _lead(self, timeout: float, wait_all_ranks: bool) -> None:
        failure = ""
        if timeout <= 0 and self._size > 1:
            failure = f"Rank 0 timed out in monitoredBarrier after {timeout * 1000:g} ms; expected a limit above 0"
        missing = set() if failure else self._await_others(timeout)
        if missing:
            named = sorted(missing)[: None if wait_all_ranks else 1]
            who = f"Rank{'s' if len(named) > 1 else ''} {', '.join(map(str, named))}"
            failure = f"{who} failed to pass monitoredBarrier in {timeout * 1000:g} ms; expected all ranks to call it within that time"
        self._meeting.set(f"{self._place}/said", f"{self._number} {failure}".encode())
        if failure:
            raise _core.TransportError(failure)

    def _await_others(self, timeout: float) -> Set[int]:
        """Who has not come in time."""
        end, pause = time.monotonic() + timeout, _FIRST_PAUSE
        missing = set(range(1, self._size))
        while True:
            missing = {rank for rank in missing if self._meeting.count(f"{self._place}/{rank}") < self._number}
            if not missing or time.monotonic() > end:
                return missing
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _follow(self, timeout: float) -> None:
        self._meeting.count_up(f"{self._place}/{self._rank}")
        end, pause = time.monotonic() + timeout + _GRACE, _FIRST_PAUSE
        while True:
            said = self._meeting.look(f"{self._place}/said")
            number, _, failure = (said or b"0 ").decode().partition(" ")
            is_told = int(number) >= self._number
            if is_told and not failure:
                return
            if is_told or time.monotonic() > end:
                why = failure or f"it has said nothing for {timeout:g} s"
                raise _core.TransportError(
                    f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv "
                    f"from rank 0: {why}"
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
