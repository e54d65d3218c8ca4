"""What the network benchmarks share: a virtual cluster of their own, and gar bench on it."""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLUSTER = os.path.join(ROOT, "testbed", "cluster")
NAME = "b%d" % os.getpid()  # several of these do not meet
SIZES = {"2e4": 80000, "1e5": 400000, "2.5e5": 1000000}
#: What Open MPI says when one of its own connections was not made. The job then waits for ever.
LOST_CONNECTION = "Open MPI failed to TCP connect to a peer MPI process"
ATTEMPTS = 3


def fail(text, code=4):
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)
    sys.exit(code)


def cluster(verb, *args, **kwargs):
    return subprocess.run([CLUSTER, verb, "--name", NAME, *args], text=True, **kwargs)


def parser(description):
    out = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    out.add_argument("--repetitions", type=int, default=10)
    out.add_argument("--rate", default="25mbit")
    out.add_argument("--uplink", default="50mbit")
    out.add_argument("--queue", default="32kb")
    out.add_argument("--tcp", default="bbr")
    out.add_argument("--measure", action="store_true", help="measure the parameters first (testbed/cluster measure)")
    return out


def prepare(options, mpis):
    """Ends the program where the machine cannot do it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the cluster goes with us
    options.build = os.path.abspath(options.build)
    for mpi in mpis:
        if not os.path.exists(os.path.join(options.build, "bin", f"gar-{mpi}")):
            fail(f"{options.build}/bin/gar-{mpi} is not there; 'make build' makes it where that MPI is installed", 3)
    done = cluster("check", capture_output=True)
    if done.returncode != 0:
        fail((done.stderr or done.stdout).strip())


class Network:
    """A virtual cluster, for a with statement."""

    extra = ()  # more words for testbed/cluster up

    def __init__(self, shape, options):
        self.shape = shape
        self.options = options

    def __enter__(self):
        options = self.options
        shape = ["--tree", self.shape, "--uplink", options.uplink] if "x" in self.shape else ["--hosts", self.shape]
        done = cluster("up", *shape, "--rate", options.rate, "--queue", options.queue, "--tcp", options.tcp,
                       *self.extra, capture_output=True)
        if done.returncode != 0:
            fail(done.stderr.strip() or done.stdout.strip(), done.returncode)
        try:
            if options.measure:
                self.measure()
        except BaseException:
            self.__exit__()
            raise
        return self

    def measure(self):
        print(f"# {self.shape}: measuring the network's parameters", file=sys.stderr)
        done = cluster("measure", capture_output=True)
        if done.returncode != 0:
            fail(done.stderr.strip(), done.returncode)
        print("\n".join("# " + line for line in done.stdout.strip().splitlines()))

    def __exit__(self, *_):
        cluster("down", capture_output=True)


def bench(options, mpi, algorithms, *, extra=(), sizes=None, transport="mpi", environment=None):
    """Rows of gar bench by (bytes, algorithm), and the counters of the network as text."""
    program = os.path.join(options.build, "bin", f"gar-{mpi}")
    sizes = ",".join(str(size) for size in (sizes or SIZES.values()))
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "results.json")
        for attempt in range(ATTEMPTS):
            done = cluster("run", "--mpi", mpi, "--timeout", "900", "--counters", *extra, "--", program, "bench", "--algo",
                           algorithms, "--sizes", sizes, "-n", str(options.repetitions), "-w", "1", "--batch", "1",
                           "--transport", transport, "--timeout", "60", "-J", out, capture_output=True,
                           env={**os.environ, **(environment or {})})
            if done.returncode == 0 or LOST_CONNECTION not in done.stderr:
                break
            print(f"# {mpi} {algorithms}: {LOST_CONNECTION}: attempt {attempt + 1} of {ATTEMPTS}", file=sys.stderr)
        if done.returncode != 0:
            fail(f"{mpi} {algorithms}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        with open(out, encoding="utf-8") as file:
            rows = json.load(file)["results"]
    wrong = sum(row["wrong"] for row in rows)
    if wrong:
        fail(f"{mpi} {algorithms}: {wrong} wrong elements", 1)
    counters = [line[len("counters:"):].strip() for line in done.stderr.splitlines() if line.startswith("counters:")]
    return {(row["bytes"], row["algorithm"]): row for row in rows}, counters[0] if counters else ""


def bound_seconds(shape):
    """{bytes: seconds}: every host sends 2 (N - 1) / N of the vector. No strict bound: tbf lets its burst pass at once."""
    if "x" in shape:
        return {}
    network = json.loads(cluster("topology", capture_output=True, check=True).stdout)
    beta = network["classes"]["cable"]["beta"]
    hosts = int(shape)
    return {bytes_: 2 * (hosts - 1) / hosts * bytes_ / 4 * beta for bytes_ in SIZES.values()}


def cell(row):
    """Median and spread in ms."""
    if row is None:
        return "-"
    return f"{row['seconds'] * 1e3:.1f} ({row['p10'] * 1e3:.1f} .. {row['p90'] * 1e3:.1f})"


def print_table(title, columns, sizes=None, notes=()):
    """columns: {name: {bytes: row}}"""
    sizes = sizes or SIZES
    print(f"\n{title}; median ms (10% .. 90%)")
    print(f"{'':30}" + "".join(f"{size + ' floats':>28}" for size in sizes))
    for column, rows in columns.items():
        print(f"{column:30}" + "".join(f"{cell(rows.get(bytes_)):>28}" for bytes_ in sizes.values()))
    for note in notes:
        print(f"# {note}")
    sys.stdout.flush()


def shape_words(shape, options):
    words = f"{shape} racks x hosts, {options.uplink} uplinks" if "x" in shape else f"{shape} hosts on one switch"
    return f"{words}, {options.rate} cables, queue {options.queue}, {options.tcp}, {options.repetitions} repetitions"
