"""One test at a time, of all that run on this machine, may make virtual clusters: they change settings of the kernel."""
import fcntl
import os
import tempfile


def alone():
    """Waits for the others; the lock goes away with the process. Keep what it returns."""
    file = open(os.path.join(tempfile.gettempdir(), "gar-testbed-tests.lock"), "a", encoding="ascii")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file
