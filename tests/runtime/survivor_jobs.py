"""Jobs that survivors.py does things to: their processes, what these have written, and the virtual hosts that they run on."""
import ctypes
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CLUSTER = [sys.executable, "-B", os.path.join(ROOT, "testbed", "cluster")]
sys.path.insert(0, os.path.join(ROOT, "testbed"))
from gar_testbed import network, state, system  # noqa: E402

PATIENCE_S = 600  # more is a hang, however busy the machine
FIRST_LOOK_S, LONGEST_LOOK_S = 0.002, 0.02
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(number=signal.SIGKILL):
    libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


class Cluster:
    """Virtual hosts, one for each rank."""

    def __init__(self, name, num_hosts):
        self.name = name
        system.add_system_directories()
        try:
            done = subprocess.run([*CLUSTER, "up", "--name", name, "--hosts", str(num_hosts), "--rate", "200mbit", "--queue", "128kb",
                                   "--tcp", "cubic"], capture_output=True, text=True, timeout=PATIENCE_S)
            assert done.returncode == 0, "cluster up: %s" % done.stderr
            self.layout, _ = state.load(name)
        except BaseException:
            network.down(name)
            raise

    def set_cable(self, host, is_up):
        network.set_cable(self.layout, host, is_up)

    def enter(self, rank):
        """The words before a command that make it run on a host."""
        return [os.path.join(state.directory(self.name), "enter"), self.layout.host(rank)]

    def down(self):
        """How many processes were still there."""
        _, num_ended = network.down(self.name)
        left = [name for name in system.namespaces() if name.startswith(self.name + "-")]
        assert not left, "namespaces are left: %s" % left
        return num_ended


def free_port():
    """None of those that the kernel gives to whoever asks for any: on a busy machine somebody would have it before rank 0."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first, last = map(int, file.read().split())
    while True:
        port = 10000 + secrets.randbelow(55536)
        if first <= port <= last:
            continue
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Log:
    """What a rank has written, read as it grows."""

    def __init__(self, path):
        self.path, self.file, self.rest, self.whole = path, None, "", []

    def lines(self):
        if self.file is None:
            try:
                self.file = open(self.path, encoding="utf-8")
            except FileNotFoundError:
                return self.whole
        *more, self.rest = (self.rest + self.file.read()).split("\n")
        self.whole += more
        return self.whole

    def close(self):
        if self.file is not None:
            self.file.close()


class Job:
    def __init__(self, program, over, mode, size, limit_s, seed, cluster, number):
        self.size, self.over, self.mode, self.cluster = size, over, mode, cluster
        self.folder = tempfile.mkdtemp(prefix="gar-survivors-")
        self.logs = [Log(os.path.join(self.folder, "rank-%d.log" % rank)) for rank in range(size)]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GAR_")}
        address, port = ("10.77.0.1", 20000 + number % 10000) if cluster else ("127.0.0.1", free_port())
        environment.update(WORLD_SIZE=str(size), MASTER_ADDR=address, MASTER_PORT=str(port), GAR_SECRET=secrets.token_hex(32))
        if over == "hosts":
            environment["GAR_FAKE_HOSTS"] = "2"
        way = "shm:survivors-%d-%s" % (os.getpid(), secrets.token_hex(8)) if over == "shm" else "tcp" if cluster else over
        self.ranks = []
        for rank in range(size):
            words = (cluster.enter(rank) if cluster else []) + [program, self.folder, str(seed), str(limit_s), mode, way]
            self.ranks.append(subprocess.Popen(words, env={**environment, "RANK": str(rank)}, stdin=subprocess.DEVNULL,
                                               stdout=subprocess.DEVNULL, preexec_fn=die_with_parent))

    def lines(self, rank):
        return self.logs[rank].lines()

    def last_line(self, rank):
        return (self.lines(rank) or ["nothing"])[-1]

    def wait_for(self, condition, what):
        end = time.monotonic() + PATIENCE_S
        pause = FIRST_LOOK_S
        while not condition():
            assert time.monotonic() < end, "after %d s: %s\n%s" % (PATIENCE_S, what, self.describe())
            time.sleep(pause)
            pause = min(1.2 * pause, LONGEST_LOOK_S)

    def has_ended(self, rank):
        return self.ranks[rank].poll() is not None

    def has_run(self, rank, number):
        return self.has_ended(rank) or len(self.lines(rank)) >= number

    def ask_to_stop(self):
        with open(os.path.join(self.folder, "stop"), "w", encoding="utf-8"):
            pass

    def describe(self):
        """What each rank has said last, and where those are that have not ended."""
        out = []
        for rank, process in enumerate(self.ranks):
            out.append("rank %d: %s" % (rank, self.last_line(rank)))
            if process.poll() is None:
                out += ["  " + line for line in describe_process(process.pid)]
        return "\n".join(out)

    def end(self, keeps_logs=False):
        for process in self.ranks:
            if process.poll() is None:
                process.kill()
            process.wait()
        for log in self.logs:
            log.close()
        if not keeps_logs:
            shutil.rmtree(self.folder, ignore_errors=True)


def read_file(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def describe_process(process):
    """Lines: what each of its threads waits in, and its sockets with what waits in their queues."""
    folder = "/proc/%d" % process
    out = []
    for thread in sorted(os.listdir(folder + "/task")) if os.path.isdir(folder + "/task") else []:
        at = "%s/task/%s/" % (folder, thread)
        status = re.search(r"^State:\s*(.*)$", read_file(at + "status"), re.MULTILINE)
        out.append("thread %s: %s, in %s, system call %s" % (
            thread, status[1] if status else "gone", read_file(at + "wchan") or "?", read_file(at + "syscall").split(" ")[0]))
    inodes = set()
    try:
        for fd in os.listdir(folder + "/fd"):
            match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink("%s/fd/%s" % (folder, fd)))
            inodes.update(match.groups() if match else [])
    except OSError:
        pass
    for line in read_file(folder + "/net/tcp").split("\n")[1:]:
        words = line.split()
        if len(words) > 9 and words[9] in inodes:
            out.append("socket %s -> %s, state %s, queues %s" % (words[1], words[2], words[3], words[4]))
    return out
