"""Runs programs on the hosts, with either MPI or none, within a time limit, and leaves nothing running."""
import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import time

from . import network, private, state, system, topology
from .errors import Error, UsageError

SOURCES = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

# With Open MPI's usual rendezvous, replies wait behind bulk data in the queues, and a mesh without any loss looks like
# incast. So messages leave at once, up to 4 MiB, and receive buffers are small.
_OPENMPI = {
    "plm": "rsh",
    "plm_rsh_no_tree_spawn": "1",
    "oob_tcp_if_include": "ctl0",
    "pml": "ob1",
    "btl_tcp_if_include": "eth0",
    "mpi_yield_when_idle": "1",
    "opal_event_include": "epoll",
    "orte_tmpdir_base": "/dev/shm",  # the host's own, which goes when the run ends
    "btl_tcp_eager_limit": "4194304",
    "btl_tcp_max_send_size": "4194304",
    "btl_tcp_rndv_eager_limit": "4194304",
    "btl_tcp_free_list_num": "1",
    "btl_tcp_free_list_inc": "1",
    "btl_tcp_rcvbuf": "16384",
}

# The same for MPICH; its rendezvous sends one direction after the other when two ranks exchange large messages.
_UCX = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "UCX_RNDV_THRESH": "4m", "UCX_TCP_RCVBUF": "16384"}

_PROGRAMS = {
    "openmpi": (("mpirun.openmpi", "mpirun"), ("Open MPI", "OpenRTE"), ("mpicc.openmpi", "mpicc"), "openmpi-bin"),
    "mpich": (("mpirun.mpich", "mpiexec.hydra", "mpirun"), ("HYDRA",), ("mpicc.mpich", "mpicc"), "mpich"),
}


# Without MPI: the ranks of a host in one shell, so that they share its memory; the worst exit code is the host's.
_NO_MPI = "none"
_STORE_PORT = 29500
_START_RANKS = """
ranks=$1; shift
pids=
for rank in $ranks; do
  RANK=$rank LOCAL_RANK=$((rank - ${ranks%% *})) "$@" &
  pids="$pids $!"
done
code=0
for pid in $pids; do wait "$pid" || { ended=$?; [ "$ended" -gt "$code" ] && code=$ended; }; done
exit $code
"""


def find_mpirun(flavour):
    """The launcher of this MPI; a plain mpirun is asked which one it is."""
    names, signatures, _, package = _PROGRAMS[flavour]
    for name in names:
        said = system.call(name, "--version", allow_failure=True) if shutil.which(name) else ""
        if any(signature in said for signature in signatures):
            return name
    raise Error("no %s found (looked for %s); on Debian: apt-get install %s" % (flavour, ", ".join(names), package))


def find_mpicc(flavour):
    names = _PROGRAMS[flavour][2]
    return next((name for name in names if shutil.which(name)), names[0])


class Job:
    """What to run, and where."""

    def __init__(self, layout, command, flavour="openmpi", num_ranks=0, ranks_per_host=1, timeout_s=300.0,
                 is_blocking=True, mca=()):
        self.layout = layout
        self.command = list(command)
        self.flavour = flavour
        self.ranks_per_host = ranks_per_host
        most = layout.num_hosts * ranks_per_host
        self.num_ranks = num_ranks or most
        self.timeout_s = timeout_s
        self.is_blocking = is_blocking
        self.mca = dict(mca)
        if not self.command:
            raise UsageError("no program; testbed/cluster run [options] -- program arguments")
        if not 1 <= self.num_ranks <= most:
            raise UsageError("-n %d; expected 1 to %d (%d hosts, %d rank(s) per host)"
                             % (self.num_ranks, most, layout.num_hosts, ranks_per_host))
        if self.mca and flavour != "openmpi":
            raise UsageError("--mca is for Open MPI; MPICH takes environment variables (MPIR_CVAR_...)")

    def host_ranks(self):
        """(host, its ranks) for the hosts that have any."""
        ranks = [range(first, min(first + self.ranks_per_host, self.num_ranks))
                 for first in range(0, self.num_ranks, self.ranks_per_host)]
        return list(zip(self.layout.hosts, ranks))

    @property
    def hosts(self):
        num_hosts = -(-self.num_ranks // self.ranks_per_host)
        return ",".join("%s:%d" % (host, self.ranks_per_host) for host in self.layout.hosts[:num_hosts])

    def words(self, mpirun, environment):
        """The command line; `environment` is what only the program gets, not the launcher."""
        agent = os.path.join(state.directory(self.layout.name), "agent")
        if self.flavour == "openmpi":
            btl = "self,vader,tcp" if self.ranks_per_host > 1 else "self,tcp"
            settings = {**_OPENMPI, "plm_rsh_agent": agent, "btl": btl, **self.mca}
            words = [mpirun, "-np", str(self.num_ranks), "--host", self.hosts, "--map-by", "slot", "--bind-to", "none"]
            words += [word for key, value in settings.items() for word in ("--mca", key, value)]
            words += [word for key, value in environment.items() for word in ("-x", key + "=" + value)]
        else:
            words = [mpirun, "-n", str(self.num_ranks), "-hosts", self.hosts, "-localhost",
                     self.layout.control_address(0),
                     "-launcher", "ssh", "-launcher-exec", agent]
            transports = {"UCX_TLS": "tcp,sm,self"} if self.ranks_per_host > 1 else {}
            settings = {key: os.environ.get(key, value) for key, value in {**_UCX, **transports}.items()}
            for key, value in {**settings, **environment}.items():
                words += ["-genv", key, value]
        return words + self.command


def run(job, output=None):
    """Runs the job and returns its exit code; `output` is where its standard output goes."""
    if job.flavour == _NO_MPI:
        return _run_alone(job, _run_without_mpi, output)
    return _run_alone(job, _run_with_mpi, output)


def _run_alone(job, start, output):
    with state.run_lock(job.layout.name) as was_killed:
        if was_killed:
            ended = system.end_processes(job.layout.namespaces)
            if ended:
                print("cluster: ended %d processes of a run that was killed" % ended, file=sys.stderr)
        return start(job, output)


def _run_with_mpi(job, output):
    mpirun = find_mpirun(job.flavour)
    for_program = {}
    preloads = [os.environ["LD_PRELOAD"]] if os.environ.get("LD_PRELOAD") else []
    if job.is_blocking:
        preloads.insert(0, blocking_library(job.layout.name))
        for_program["GAR_TESTBED_BLOCK"] = "yield" if job.flavour == "openmpi" else "epoll"
    if preloads:
        for_program["LD_PRELOAD"] = ":".join(preloads)
    environment = system.plain_environment()
    if job.is_blocking:
        environment["LD_PRELOAD"] = blocking_library(job.layout.name)  # keeps mpirun from a false alarm, see block.c
    environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return _run_bounded(job, [(job.layout.host(0), job.words(mpirun, for_program))], environment, output)


def _run_without_mpi(job, output):
    environment = {**system.plain_environment(), "WORLD_SIZE": str(job.num_ranks),
                   "MASTER_ADDR": job.layout.address(0), "MASTER_PORT": str(_STORE_PORT),
                   "GAR_SECRET": secrets.token_hex(32)}
    commands = [(host, ["/bin/sh", "-c", _START_RANKS, "sh", " ".join(str(rank) for rank in ranks), *job.command])
                for host, ranks in job.host_ranks()]
    return _run_bounded(job, commands, environment, output)


def _run_bounded(job, commands, environment, output):
    """Runs (host, words) at once; the worst of their exit codes."""
    names = job.layout.namespaces
    before = system.processes_in(names)
    enter = os.path.join(state.directory(job.layout.name), "enter")
    processes = []
    try:
        for host, words in commands:
            processes.append(subprocess.Popen([enter, host, *words], env=environment, stdout=output))
        deadline = time.monotonic() + job.timeout_s if job.timeout_s else None
        codes = []
        for process in processes:
            try:
                codes.append(process.wait(timeout=max(deadline - time.monotonic(), 0) if deadline else None))
            except subprocess.TimeoutExpired:
                raise Error("the program ran longer than --timeout %g s and was ended" % job.timeout_s) from None
        return max(code if code >= 0 else 128 - code for code in codes)
    finally:
        with system.no_interrupts():
            _end_leftovers(names, before, processes)


def _end_leftovers(names, before, processes):
    running = [process for process in processes if process.poll() is None]
    # The daemons of a job that ended by itself need a moment to follow.
    if not running:
        deadline = time.monotonic() + 1.0
        while system.processes_in(names) - before and time.monotonic() < deadline:
            time.sleep(0.01)
    for process in running:
        process.terminate()
    for process in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1.0)
    system.end_processes(names, spare=before)
    for process in running:
        if process.poll() is None:
            process.kill()
            process.wait()


def blocking_library(name):
    """testbed/block.c, compiled when it is needed first."""
    target = os.path.join(state.directory(name), "block.so")
    source = os.path.join(SOURCES, "block.c")
    if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(source):
        system.compile_program("cc", source, target, "-shared", "-fPIC", "-ldl")
    return target


def export_topology(layout, measured, num_ranks, ranks_per_host):
    """GAR_TOPOLOGY for the program, unless the user has set one."""
    if os.environ.get("GAR_TOPOLOGY"):
        return
    name = "topology-%d-%d.json" % (num_ranks, ranks_per_host)
    with state.opened(layout.name) as fd:
        private.write_file(fd, name, topology.text(layout, measured, num_ranks, ranks_per_host))
    os.environ["GAR_TOPOLOGY"] = os.path.join(state.directory(layout.name), name)


def run_counted(job):
    before = network.counters(job.layout)
    try:
        return run(job)
    finally:
        after = network.counters(job.layout)
        print("counters: " + ", ".join("%s %d" % (key, after[key] - before[key]) for key in after), file=sys.stderr)
