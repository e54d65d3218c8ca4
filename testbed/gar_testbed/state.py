"""What is remembered between calls: a directory per cluster, with state.json, and who had a TCP flavour allowed.

All of it lies where only root can write (private.py), since scripts and programs in it are run as root.
"""
import contextlib
import dataclasses
import fcntl
import json
import os
import re
import shutil

from . import private, system
from .errors import BadInput, Error, UsageError
from .layout import Layout

SCHEMA = "gar.testbed/1"
PLACES = ("/run", "/var/lib")  # root alone writes there, so nobody can be there before us


def base_directory():
    """GAR_TESTBED_DIR, or the first place that can be written and from which programs can be run."""
    if os.environ.get("GAR_TESTBED_DIR"):
        path = os.path.abspath(os.environ["GAR_TESTBED_DIR"])
        if not re.fullmatch(r"[A-Za-z0-9_./-]+", path):  # launchers take their arguments apart at blanks and colons
            raise UsageError("GAR_TESTBED_DIR '%s'; expected a path of letters, digits and _ . / -" % path)
        return path
    for parent in PLACES:
        if not os.statvfs(parent).f_flag & (os.ST_RDONLY | os.ST_NOEXEC):
            return parent + "/gar-testbed"
    raise Error("programs cannot be kept and run in %s; GAR_TESTBED_DIR names another place" % " or ".join(PLACES))


def directory(name):
    """Of a name that nobody else gives his directories: down removes it with everything inside."""
    return os.path.join(base_directory(), name + ".cluster")


@contextlib.contextmanager
def _open(path, **options):
    fd = private.open_directory(path, **options)
    try:
        yield fd
    finally:
        os.close(fd)


def opened(name, is_made=False):
    """The directory of a cluster, for a with statement; nobody else can look into it."""
    return _open(directory(name), is_made=is_made, is_closed=True)


@contextlib.contextmanager
def lock():
    """One up or down at a time on this machine. The directory goes when the last cluster has gone."""
    base = base_directory()
    fd, held = _take_lock(base)
    try:
        yield
    finally:
        if os.listdir(fd) == ["lock"]:
            os.remove("lock", dir_fd=fd)
            os.rmdir(base)
        os.close(held)
        os.close(fd)


def _take_lock(base):
    """Descriptors of the directory and of the lock in it."""
    while True:
        fd = held = None
        try:
            fd = private.open_directory(base, is_made=True)
            held = private.open_file(fd, "lock", os.O_RDWR | os.O_CREAT)
            fcntl.flock(held, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(held), os.stat("lock", dir_fd=fd, follow_symlinks=False)):
                taken, fd, held = (fd, held), None, None
                return taken
        except FileNotFoundError:
            pass  # whoever held the lock has removed it, and the directory
        finally:
            for left in (fd, held):
                if left is not None:
                    os.close(left)


@contextlib.contextmanager
def run_lock(name):
    """One run at a time in a cluster: two would measure each other, and ending one would end both.

    True when the run before was killed: then its program may still be there.
    """
    with opened(name) as fd, open(private.open_file(fd, "run.lock", os.O_RDWR | os.O_CREAT), "r+",
                                  encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Error("another run is under way in cluster '%s' (process %s)" % (name, file.read().strip())) from None
        was_killed = bool(file.read().strip())
        _rewrite(file, str(os.getpid()))
        try:
            yield was_killed
        finally:
            _rewrite(file, "")


def _rewrite(file, text):
    file.seek(0)
    file.truncate()
    file.write(text)
    file.flush()


def exists(name):
    try:
        with opened(name) as fd:
            os.stat("state.json", dir_fd=fd, follow_symlinks=False)
            return True
    except FileNotFoundError:
        return False


def save(layout, phase, measured=None):
    data = {"schema": SCHEMA, "phase": phase, "layout": dataclasses.asdict(layout), "measured": measured}
    with opened(layout.name, is_made=True) as fd:
        private.write_file(fd, "state.json", json.dumps(data, indent=2) + "\n")


def load(name):
    """(layout, measured parameters or None)"""
    path = os.path.join(directory(name), "state.json")
    try:
        with opened(name) as fd:
            data = json.loads(private.read_file(fd, "state.json"))
    except FileNotFoundError:
        raise Error("no cluster '%s' is up; testbed/cluster up makes one" % name) from None
    except ValueError as error:
        raise BadInput("%s: %s; testbed/cluster down --name %s removes the cluster" % (path, error, name)) from None
    if data.get("schema") != SCHEMA:
        raise BadInput("%s: schema '%s'; expected %s" % (path, data.get("schema"), SCHEMA))
    if data["phase"] != "up":
        raise Error("cluster '%s' is half made; testbed/cluster down --name %s removes it" % (name, name))
    return Layout(**data["layout"]), data["measured"]


def forget(name):
    shutil.rmtree(directory(name), ignore_errors=True)


_FLAVOURS = "tcp_allowed.json"


def _load_flavours(fd):
    try:
        return json.loads(private.read_file(fd, _FLAVOURS))
    except (FileNotFoundError, ValueError):
        return None


def allow_tcp(name, flavour):
    """Lets namespaces use the flavour; the first cluster that needs one remembers what was allowed before."""
    now = system.allowed_tcp()
    with _open(base_directory()) as fd:
        record = _load_flavours(fd)
        if flavour in now and record is None:
            return
        record = record or {"before": now, "clusters": []}
        record["clusters"] = sorted({*record["clusters"], name})
        private.write_file(fd, _FLAVOURS, json.dumps(record))
    if flavour not in now:
        system.allow_tcp(now + [flavour])


def release_tcp(name):
    """The last cluster that goes puts the kernel's setting back."""
    with _open(base_directory()) as fd:
        record = _load_flavours(fd)
        if record is None:
            return
        record["clusters"] = [other for other in record["clusters"] if other != name]
        if record["clusters"]:
            private.write_file(fd, _FLAVOURS, json.dumps(record))
            return
        system.allow_tcp(record["before"])
        os.remove(_FLAVOURS, dir_fd=fd)
