"""What is remembered between calls: a directory per cluster, with state.json, and who had a TCP flavour allowed."""
import contextlib
import dataclasses
import fcntl
import json
import os
import re
import shutil

from . import system
from .errors import BadInput, Error, UsageError
from .layout import Layout

SCHEMA = "gar.testbed/1"


def base_directory():
    """GAR_TESTBED_DIR, or the first place that can be written and from which programs can be run."""
    if os.environ.get("GAR_TESTBED_DIR"):
        path = os.path.abspath(os.environ["GAR_TESTBED_DIR"])
        if not re.fullmatch(r"[A-Za-z0-9_./-]+", path):  # launchers take their arguments apart at blanks and colons
            raise UsageError("GAR_TESTBED_DIR '%s'; accepted: a path of letters, digits and _ . / -" % path)
        return path
    for parent in ("/run", "/tmp"):
        if os.access(parent, os.W_OK) and not os.statvfs(parent).f_flag & os.ST_NOEXEC:
            return parent + "/gar-testbed"
    return "/tmp/gar-testbed"


def directory(name):
    """Of a name that nobody else gives his directories: down removes it with everything inside."""
    return os.path.join(base_directory(), name + ".cluster")


@contextlib.contextmanager
def lock():
    """One up or down at a time on this machine. The directory goes when the last cluster has gone."""
    base = base_directory()
    path = os.path.join(base, "lock")
    while True:
        try:
            os.makedirs(base, mode=0o755, exist_ok=True)
            if os.stat(base).st_uid != os.geteuid():
                raise Error("%s belongs to somebody else; GAR_TESTBED_DIR names another place" % base)
            file = open(path, "w", encoding="ascii")
        except FileNotFoundError:
            continue  # removed between two steps
        except OSError as error:
            raise Error("cannot use %s: %s; GAR_TESTBED_DIR names another place" % (base, error.strerror)) from None
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_same_file(file, path):
                continue  # whoever held the lock has removed it
            try:
                yield
            finally:
                if os.listdir(base) == ["lock"]:
                    os.remove(path)
                    os.rmdir(base)
            return


def _is_same_file(file, path):
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def run_lock(name):
    """One run at a time in a cluster: two would measure each other, and ending one would end both.

    True when the run before was killed: then its program may still be there.
    """
    with open(os.path.join(directory(name), "run.lock"), "a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise Error("another run is under way in cluster '%s' (process %s)" % (name, file.read().strip())) from None
        file.seek(0)
        was_killed = bool(file.read().strip())
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield was_killed
        finally:
            file.truncate(0)


def exists(name):
    return os.path.exists(os.path.join(directory(name), "state.json"))


def save(layout, phase, measured=None):
    os.makedirs(directory(layout.name), mode=0o755, exist_ok=True)
    data = {"schema": SCHEMA, "phase": phase, "layout": dataclasses.asdict(layout), "measured": measured}
    path = os.path.join(directory(layout.name), "state.json")
    with open(path + ".new", "w", encoding="ascii") as file:
        json.dump(data, file, indent=2)
        file.write("\n")
    os.replace(path + ".new", path)


def load(name):
    """(layout, measured parameters or None)"""
    path = os.path.join(directory(name), "state.json")
    try:
        with open(path, encoding="ascii") as file:
            data = json.load(file)
    except FileNotFoundError:
        raise Error("no cluster '%s' is up; testbed/cluster up makes one" % name) from None
    except ValueError as error:
        raise BadInput("%s: %s; testbed/cluster down --name %s removes the cluster" % (path, error, name)) from None
    if data.get("schema") != SCHEMA:
        raise BadInput("%s: schema '%s'; accepted: %s" % (path, data.get("schema"), SCHEMA))
    if data["phase"] != "up":
        raise Error("cluster '%s' is half made; testbed/cluster down --name %s removes it" % (name, name))
    return Layout(**data["layout"]), data["measured"]


def forget(name):
    shutil.rmtree(directory(name), ignore_errors=True)


def _flavours_path():
    return os.path.join(base_directory(), "tcp_allowed.json")


def _load_flavours():
    try:
        with open(_flavours_path(), encoding="ascii") as file:
            return json.load(file)
    except (FileNotFoundError, ValueError):
        return None


def allow_tcp(name, flavour):
    """Lets namespaces use the flavour; the first cluster that needs one remembers what was allowed before."""
    now = system.allowed_tcp()
    record = _load_flavours()
    if flavour in now and record is None:
        return
    record = record or {"before": now, "clusters": []}
    record["clusters"] = sorted({*record["clusters"], name})
    with open(_flavours_path(), "w", encoding="ascii") as file:
        json.dump(record, file)
    if flavour not in now:
        system.allow_tcp(now + [flavour])


def release_tcp(name):
    """The last cluster that goes puts the kernel's setting back."""
    record = _load_flavours()
    if record is None:
        return
    record["clusters"] = [other for other in record["clusters"] if other != name]
    if record["clusters"]:
        with open(_flavours_path(), "w", encoding="ascii") as file:
            json.dump(record, file)
        return
    system.allow_tcp(record["before"])
    os.remove(_flavours_path())
