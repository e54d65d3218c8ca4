"""One test at a time, of all that run on this machine, may make virtual clusters: they change settings of the kernel."""
import fcntl
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "testbed"))

from gar_testbed import private  # noqa: E402

PLACE = "/run/gar-testbed-tests"


def alone(place=PLACE):
    """Waits for the others; the lock goes away with the process. Keep what it returns.

    The lock is on a directory that root alone can open: nobody else can hold it, or put another file in its place.
    """
    fd = private.open_directory(place, is_made=True, is_closed=True)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd
