"""The topology file of a cluster, with the parameters of its network (docs/formats-topology.md)."""
import json
import os
import stat

from . import private
from .errors import Error, UsageError

# Used until the cluster itself is measured; from `testbed/cluster measure` on 15 hosts with 25 Mbit/s and queues of
# 32 kB (docs/testbed.md). epsilon as a share of beta, and the threshold; both are scaled with the queue.
DEFAULT_LATENCY_S = 3e-5
DEFAULT_INCAST = {"bbr": (0.07, 1.0), "cubic": (0.05, 1.0)}
REFERENCE_QUEUE = 32 * 1024

# A CPU's additions and memory accesses as in gar's generated networks (`gar topo convert star:4`), per float.
GAMMA = 6e-10
DELTA = 1.87e-10
# Between ranks of one host: a copy through shared memory.
MEMORY_BETA = 1e-9
MEMORY_ALPHA = 1e-6


def default_parameters(layout):
    """Of the cables."""
    share, threshold = DEFAULT_INCAST.get(layout.tcp, DEFAULT_INCAST["cubic"])
    scale = layout.queue / REFERENCE_QUEUE
    return {"latency_s": DEFAULT_LATENCY_S, "epsilon": share / scale * layout.seconds_per_float(layout.rate),
            "incast_threshold": threshold * scale}


def parameters(layout, measured):
    """(of the cables, of the uplinks or None)"""
    cable = default_parameters(layout)
    measured = measured or {}
    cable["latency_s"] = measured.get("latency_s", cable["latency_s"])
    found = {key: measured[key] for key in ("epsilon", "incast_threshold") if key in measured}
    if not layout.num_racks:
        return {**cable, **found}, None
    return cable, {**_assumed_uplink(layout, cable), **found}


def _assumed_uplink(layout, cable):
    """Until it is measured: a queue bears senders in proportion to its size, and beyond that each costs the same share
    of the link's own time per float, divided by that proportion."""
    scale = layout.uplink_queue / layout.queue
    share = cable["epsilon"] / layout.seconds_per_float(layout.rate)
    return {"epsilon": share / scale * layout.seconds_per_float(layout.uplink_rate),
            "incast_threshold": cable["incast_threshold"] * scale}


def make(layout, measured, num_ranks=0, ranks_per_host=1):
    """For the first num_ranks ranks (0: all), which fill the hosts one after the other."""
    most = layout.num_hosts * ranks_per_host
    num_ranks = num_ranks or most
    if not 1 <= num_ranks <= most:
        raise UsageError("-n %d; expected 1 to %d" % (num_ranks, most))
    cable, uplink = parameters(layout, measured)
    alpha = cable.pop("latency_s") / 3  # a path inside a rack passes a host, a switch and a host
    share = max(1.0, num_ranks / (os.cpu_count() or 1))  # all hosts live on the cores of this machine
    cpu = {"gamma": GAMMA * share, "delta": DELTA * share}
    hosts = []
    for i in range(-(-num_ranks // ranks_per_host)):
        node = {"name": layout.host(i), "class": ["cable", "cpu"]}
        if ranks_per_host > 1:
            ranks = min(ranks_per_host, num_ranks - i * ranks_per_host)
            node = {"name": layout.host(i), "class": "cable",
                    "children": [{"name": "rank%d" % r, "class": ["memory", "cpu"]} for r in range(ranks)]}
        slower = layout.rate / layout.cable_rate(i)
        if slower != 1:
            node["beta"] = layout.seconds_per_float(layout.cable_rate(i))
            node["epsilon"] = cable["epsilon"] * slower
        hosts.append(node)
    classes = {"cable": {"alpha": alpha, "beta": layout.seconds_per_float(layout.rate), **cable}, "cpu": cpu}
    if ranks_per_host > 1:
        classes["memory"] = {"alpha": MEMORY_ALPHA, "beta": MEMORY_BETA * share, "epsilon": 0, "incast_threshold": 1}
    top = {"name": "switch", "alpha": alpha, "children": hosts}
    if layout.num_racks:
        classes["uplink"] = {"alpha": alpha, "beta": layout.seconds_per_float(layout.uplink_rate), **uplink}
        racks = [hosts[i:i + layout.hosts_per_rack] for i in range(0, len(hosts), layout.hosts_per_rack)]
        top["children"] = [{"name": "rack%d" % i, "class": "uplink", "children": rack} for i, rack in enumerate(racks)]
    origin = "measured" if measured else "built-in"
    return {"schema": "gar.topology/1", "name": layout.name,
            "description": "virtual cluster: %s; %s parameters" % (layout.describe(), origin),
            "classes": classes, "tree": top}


def text(layout, measured, num_ranks=0, ranks_per_host=1):
    return json.dumps(make(layout, measured, num_ranks, ranks_per_host), indent=2) + "\n"


def write(path, layout, measured, num_ranks=0, ranks_per_host=1):
    content = text(layout, measured, num_ranks, ranks_per_host)
    try:
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            name = _replaced(folder, path)
            mask = os.umask(0)
            os.umask(mask)
            private.write_file(folder, name, content, 0o666 & ~mask)
        finally:
            os.close(folder)
    except OSError as error:
        raise Error("cannot write %s: %s" % (path, error.strerror)) from None


def _replaced(folder, path):
    """The name of the file that is replaced. What stands under it is never opened: we are root, and in a directory
    where all can write it may be somebody's link, pipe, or other name of a file."""
    name = os.path.basename(path)
    try:
        kind = os.stat(name or ".", dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return name
    if not stat.S_ISREG(kind):
        what = "a directory" if stat.S_ISDIR(kind) else "a link" if stat.S_ISLNK(kind) else "no file"
        raise Error("cannot write %s: it is %s; expected a new name or a file, which is replaced" % (path, what))
    return name
