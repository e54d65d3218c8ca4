"""Parameters of the network from measurements: latency, and incast as a hinge over the number of senders.

With w senders a float costs beta + max(w - w_t, 0) epsilon on a link. beta follows from the link's rate. What two hosts
take longer than that is the cost of starting and ending a mesh, since one sender is no incast; it is taken off
everywhere.

Times with many senders scatter far more than those with few, so squared errors are divided by the variance of the mean,
with 1% as the smallest standard error. Each candidate w_t has its best epsilon >= 0. The error hardly changes between
neighbouring candidates; of those that the data do not rule out (within two standard errors of the best) the lowest is
taken, since a plan that meets unforeseen incast loses more than one that avoids what would not have come.

One switch: the links are the receivers' cables, each with S floats from w = x - 1 senders.

Racks: a mesh takes what its slowest link takes. A rack with k of the x ranks receives k S (x - k) / (x - 1) floats from
w = x - k senders over its uplink. The cables keep the built-in parameters, since the uplinks hide what happens there.

R2 says what share of the variation the hinge explains that beta and a constant leave; where the times hardly vary at
all it says little.
"""
import os
import statistics
import tempfile

from . import launch, state, system, topology
from .errors import Error


def measure(layout, num_floats, repetitions, timeout_s):
    """Runs mesh.c on all hosts; returns {latency_s, times: {x: [seconds]}}."""
    if layout.num_hosts < 3:
        raise Error("incast needs at least 3 hosts; cluster '%s' has %d" % (layout.name, layout.num_hosts))
    source = os.path.join(launch.SOURCES, "mesh.c")
    program = os.path.join(state.directory(layout.name), "mesh")
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
        system.compile_program(launch.find_mpicc("openmpi"), source, program)
    with tempfile.TemporaryFile("w+", encoding="ascii") as output:
        job = launch.Job(layout, [program, str(num_floats), str(repetitions)], timeout_s=timeout_s)
        code = launch.run(job, output)
        if code:
            raise Error("mesh ended with code %d" % code)
        output.seek(0)
        return parse(output.read())


def parse(output):
    latency_s, times = None, {}
    for line in output.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == "latency":
            latency_s = float(words[1])
        elif len(words) == 3 and words[0] == "mesh":
            times.setdefault(int(words[1]), []).append(float(words[2]))
    if latency_s is None or not times:
        raise Error("mesh printed no measurements")
    return {"latency_s": latency_s, "times": times}


def fit(layout, times, num_floats):
    """{link, epsilon, incast_threshold, offset_s, r2} from the means."""
    means = {x: statistics.mean(seconds) for x, seconds in sorted(times.items())}
    variances = {x: (0.01 * means[x]) ** 2 + (statistics.variance(seconds) / len(seconds) if len(seconds) > 1 else 0)
                 for x, seconds in times.items()}
    fitted = {"link": "uplink" if layout.num_racks else "cable",
              "offset_s": max(means[2] - ideal(layout, 2, num_floats), 0.0)}
    most_senders = max(means) - (layout.hosts_per_rack if layout.num_racks else 1)
    candidates = []
    for threshold in range(1, max(2, most_senders)):
        fitted["incast_threshold"] = threshold
        candidates.append((*_best_epsilon(layout, means, variances, num_floats, fitted), threshold))
    best = min(candidates)[0]
    limit = best + 4 * max(1.0, best / max(1, len(means) - 2))
    _, fitted["epsilon"], fitted["incast_threshold"] = next(c for c in candidates if c[0] <= limit)
    rest = [seconds - ideal(layout, x, num_floats) for x, seconds in means.items()]
    total = sum((value - statistics.mean(rest)) ** 2 for value in rest)
    error = sum((seconds - predict(layout, x, num_floats, fitted)) ** 2 for x, seconds in means.items())
    return {**fitted, "r2": 1 - error / total if total > 0 else 0.0}


def _best_epsilon(layout, means, variances, num_floats, fitted):
    """(squared error, epsilon) by a search that narrows around the best of a grid; the error has one minimum."""
    beta = layout.seconds_per_float(layout.uplink_rate if layout.num_racks else layout.rate)

    def error(epsilon):
        trial = {**fitted, "epsilon": epsilon}
        return sum((seconds - predict(layout, x, num_floats, trial)) ** 2 / variances[x]
                   for x, seconds in means.items())

    low, high = 0.0, 2 * beta
    while high - low > 1e-6 * beta:
        grid = [low + (high - low) * i / 10 for i in range(11)]
        best = min(range(11), key=lambda i: error(grid[i]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 10)]
    return error(low), low


def predict(layout, x, num_floats, fitted):
    """Seconds of a mesh of x hosts."""
    epsilon, threshold = fitted["epsilon"], fitted["incast_threshold"]
    if layout.num_racks:
        return fitted["offset_s"] + _slowest_link(layout, x, num_floats, epsilon, threshold)
    return fitted["offset_s"] + ideal(layout, x, num_floats) + num_floats * max(x - 1 - threshold, 0) * epsilon


def ideal(layout, x, num_floats):
    """Without any incast."""
    cable = num_floats * layout.seconds_per_float(layout.rate)
    if not layout.num_racks:
        return cable
    beta = layout.seconds_per_float(layout.uplink_rate)
    return max([cable] + [load * beta for load, _ in _uplink_loads(layout, x, num_floats)])


def _slowest_link(layout, x, num_floats, epsilon, threshold):
    cable = topology.default_parameters(layout)
    extra = max(x - 1 - cable["incast_threshold"], 0) * cable["epsilon"]
    beta = layout.seconds_per_float(layout.uplink_rate)
    uplinks = [load * (beta + max(senders - threshold, 0) * epsilon)
               for load, senders in _uplink_loads(layout, x, num_floats)]
    return max([num_floats * (layout.seconds_per_float(layout.rate) + extra)] + uplinks)


def _uplink_loads(layout, x, num_floats):
    """(floats, senders) of what every rack receives from the others."""
    for first in range(0, x, layout.hosts_per_rack):
        inside = min(layout.hosts_per_rack, x - first)
        yield inside * num_floats * (x - inside) / (x - 1), x - inside


def result(layout, measurement, num_floats):
    """What is stored with the cluster, and printed."""
    fitted = fit(layout, measurement["times"], num_floats)
    rows = [{"hosts": x, "mean_s": statistics.mean(seconds), "min_s": min(seconds), "max_s": max(seconds),
             "fitted_s": predict(layout, x, num_floats, fitted)} for x, seconds in sorted(measurement["times"].items())]
    rate = layout.uplink_rate if layout.num_racks else layout.rate
    return {"latency_s": measurement["latency_s"], "beta": layout.seconds_per_float(rate), **fitted,
            "num_floats": num_floats, "repetitions": min(len(seconds) for seconds in measurement["times"].values()),
            "rows": rows}


def table(data):
    lines = ["latency %.0f us one way, %d floats received by every host, %d repetitions"
             % (data["latency_s"] * 1e6, data["num_floats"], data["repetitions"]),
             "hosts    mean     min     max  fitted   (ms)"]
    for row in data["rows"]:
        lines.append("%5d %7.1f %7.1f %7.1f %7.1f" % (row["hosts"], *(row[key] * 1e3 for key in (
            "mean_s", "min_s", "max_s", "fitted_s"))))
    lines.append("%ss: beta %.3g s/float (from the rate), epsilon %.3g s/float, incast_threshold %d senders; "
                 "offset %.1f ms, R2 %.3f" % (data["link"], data["beta"], data["epsilon"], data["incast_threshold"],
                                              data["offset_s"] * 1e3, data["r2"]))
    return "\n".join(lines)
