"""testbed/cluster on this machine, as root: cluster_test.py [GAR]. Exit 77 with a reason where it cannot run."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from alone import alone

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CLUSTER = [sys.executable, "-B", os.path.join(ROOT, "testbed", "cluster")]
GAR = None
NAME = "t%d" % os.getpid()  # a user's own clusters stay alone
ALLOWED = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
BASE = tempfile.mkdtemp(prefix="gar-testbed-")
ENVIRONMENT = {**os.environ, "GAR_TESTBED_DIR": os.path.join(BASE, "state")}
for variable in ("GAR_TOPOLOGY", "LD_PRELOAD"):
    ENVIRONMENT.pop(variable, None)

# Sends bytes from one host to another. The sender prints when it begins, the receiver when the last byte is there, both by
# the one clock of this machine.
TRANSFER = """
import socket, sys, time
address, size = sys.argv[2], int(sys.argv[3])
if sys.argv[1] == "receive":
    with socket.create_server((address, 5001)) as server:
        server.settimeout(300)
        print("ready", flush=True)
        peer, _ = server.accept()
        left = size
        while left:
            left -= len(peer.recv(min(left, 65536)) or sys.exit("cut off"))
        print(time.monotonic())
else:
    print(time.monotonic())
    with socket.create_connection((address, 5001), timeout=float(sys.argv[4])) as peer:
        peer.settimeout(None)
        peer.sendall(bytes(size))
"""


# Standard input that is open and silent. MPICH's mpirun tells the first rank when its own input ends, and dies of SIGPIPE when a
# program that is no MPI program, such as hostname, is over before that.
SILENT = os.pipe()


def cluster(verb, *words, name=NAME, code=0, environment=None, timeout=300):
    command = [*CLUSTER, verb, "--name", name, *[str(word) for word in words]]
    result = subprocess.run(command, stdin=SILENT[0], capture_output=True, text=True, timeout=timeout,
                            env={**ENVIRONMENT, **(environment or {})})
    if code is not None and result.returncode != code:
        raise AssertionError("%s: exit %d, expected %d\n%s%s" % (" ".join(command), result.returncode, code,
                                                                 result.stdout, result.stderr))
    return result


def start(verb, *words):
    return subprocess.Popen([*CLUSTER, verb, "--name", NAME, *words], stdin=SILENT[0], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def namespaces():
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.startswith(NAME)]


def processes():
    """How many run inside."""
    listed = [subprocess.run(["ip", "netns", "pids", n], capture_output=True, text=True, check=True).stdout
              for n in namespaces()]
    return sum(len(text.split()) for text in listed)


def allowed():
    with open(ALLOWED, encoding="ascii") as file:
        return file.read()


def wait_for(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("did not happen within %d s" % seconds)
        time.sleep(0.01)


def transfer(source, target, size, limit_s=60):
    """Seconds from before the connection is made until the last byte is there; the connection gets limit_s."""
    receiver = start("exec", target, "--", sys.executable, "-c", TRANSFER, "receive", address(target), str(size))
    try:
        if receiver.stdout.readline() != "ready\n":
            raise AssertionError("no receiver: " + receiver.stderr.read())
        sender = cluster("exec", source, "--", sys.executable, "-c", TRANSFER, "send", address(target), size, limit_s,
                         code=None)
        if sender.returncode:
            raise ConnectionError(sender.stderr)
        return float(receiver.communicate(timeout=300)[0]) - float(sender.stdout)
    finally:
        receiver.terminate()
        receiver.communicate()


def address(host):
    return "10.77.0.%d" % (int(host[1:]) + 1)


def flavours():
    """The MPI libraries that are installed."""
    return [f for f in ("openmpi", "mpich") if re.search(r"^%s: mpi\S+$" % f, CHECK.stdout, re.MULTILINE)]


class Case(unittest.TestCase):
    def setUp(self):
        self.addCleanup(self.leave)
        self.before = allowed()

    def leave(self):
        cluster("down")
        self.assertEqual(namespaces(), [])
        self.assertEqual(allowed(), self.before)

    def check_topology(self, *words):
        path = os.path.join(BASE, "topology.json")
        cluster("topology", *words, "-o", path)
        if GAR:
            said = subprocess.run([GAR, "topo", "check", path], capture_output=True, text=True, timeout=300)
            self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
            return said.stdout
        return ""


class Star(Case):
    def test_three_hosts(self):
        self.assertIn("3 hosts on one switch", cluster("up", "--hosts", 3).stdout)
        status = json.loads(cluster("status", "--json").stdout)
        self.assertEqual([host["name"] for host in status["hosts"]], ["%s-h%d" % (NAME, i) for i in range(3)])
        again = cluster("up", "--hosts", 3, code=4).stderr
        self.assertIn("there is a cluster '%s' already" % NAME, again)

        for flavour in flavours():
            with self.subTest(mpi=flavour):
                self.check_runs(flavour)
        with self.subTest("rate"):
            ideal = 1e6 * 8 / 25e6
            self.assertGreater(transfer("h0", "h1", 1000000), 0.9 * ideal)
        with self.subTest("topology"):
            said = self.check_topology()
            self.assertIn("3 servers" if GAR else "", said)
            said = self.check_topology("-n", 3, "--ranks-per-host", 2)
            self.assertIn("3 servers, 3 switches" if GAR else "", said)
        with self.subTest("cut and heal"):
            cluster("cut", "h1")
            self.assertIn("cut: %s-h1" % NAME, cluster("status").stdout)
            with self.assertRaises(ConnectionError):
                transfer("h0", "h1", 1000, limit_s=0.5)
            transfer("h0", "h2", 1000)
            cluster("heal", "h1")
            transfer("h0", "h1", 1000)
            self.assertNotIn("cut", cluster("status").stdout)

    def test_a_slow_cable(self):
        self.assertIn("%s-h1 5mbit" % NAME, cluster("up", "--hosts", 2, "--cable", "h1=5mbit").stdout)
        self.assertIn("h1 5mbit", cluster("status").stdout)
        for source, target in (("h0", "h1"), ("h1", "h0")):
            self.assertGreater(transfer(source, target, 500000), 0.9 * 500000 * 8 / 5e6)
        self.check_topology()

    def check_runs(self, flavour):
        result = cluster("run", "--mpi", flavour, "--", "sh", "-c", "hostname")
        self.assertEqual(sorted(result.stdout.split()), ["%s-h%d" % (NAME, i) for i in range(3)])
        script = 'echo "$GAR_MARK $(basename "$GAR_TOPOLOGY") ${LD_PRELOAD##*/}"; echo complaint >&2; exit 7'
        library = self.a_library()
        result = cluster("run", "--mpi", flavour, "-n", 4, "--ranks-per-host", 2, "--counters", "--",
                         "sh", "-c", script, code=7, environment={"GAR_MARK": "two words", "LD_PRELOAD": library})
        line = "two words topology-4-2.json %s\n" % os.path.basename(library)
        self.assertIn(line, result.stdout)
        self.assertIn("complaint", result.stderr)
        self.assertRegex(result.stderr, r"counters: drops_to_hosts \d+, drops_at_uplinks 0, retransmits \d+")
        result = cluster("run", "--mpi", flavour, "-n", 1, "--no-topology", "--shim", "off", "--", "sh", "-c",
                         'echo "<$GAR_TOPOLOGY$LD_PRELOAD>"')
        self.assertEqual(result.stdout, "<>\n")
        result = cluster("run", "--mpi", flavour, "-n", 1, "--", "sh", "-c", 'echo "$GAR_TOPOLOGY"',
                         environment={"GAR_TOPOLOGY": "star:1"})
        self.assertEqual(result.stdout, "star:1\n")

    def a_library(self):
        """Any that a program can be preloaded with: here our own, under another name."""
        copy = os.path.join(BASE, "mine.so")
        shutil.copy(os.path.join(ENVIRONMENT["GAR_TESTBED_DIR"], NAME + ".cluster", "block.so"), copy)
        return copy

    def test_measure(self):
        if "openmpi" not in flavours() or not shutil.which("mpicc.openmpi"):
            self.skipTest("no Open MPI")
        cluster("up", "--hosts", 3)
        data = json.loads(cluster("measure", "--floats", 20000, "--repetitions", 3, "--json").stdout)
        self.assertGreater(data["latency_s"], 1e-6)
        for row in data["rows"]:
            # tbf lets 16 kB pass at once, and so does the other end
            self.assertGreater(row["min_s"], (20000 * 4 - 32000) * 8 / 25e6)
        self.assertIn("measured, R2", cluster("status").stdout)
        made = json.loads(cluster("topology").stdout)
        self.assertEqual(made["classes"]["cable"]["epsilon"], data["epsilon"])
        self.assertIn("measured parameters", made["description"])


class Tree(Case):
    def test_two_racks(self):
        cluster("up", "--tree", "2x2", "--rate", "25mbit", "--uplink", "10mbit", "--uplink-queue", "64kb")
        said = self.check_topology()
        self.assertIn("4 servers, 3 switches" if GAR else "", said)
        self.assertGreater(transfer("h0", "h1", 500000), 0.9 * (500000 - 32000) * 8 / 25e6)
        self.assertGreater(transfer("h1", "h2", 500000), 0.9 * 500000 * 8 / 10e6)
        if "openmpi" in flavours():
            names = cluster("run", "-n", 4, "--", "hostname").stdout.split()
            self.assertEqual(len(set(names)), 4)
        values = json.loads(cluster("counters", "--json").stdout)
        self.assertEqual(sorted(values), ["drops_at_uplinks", "drops_to_hosts", "retransmits"])


class CleanUp(Case):
    def test_interrupted_up(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            making = start("up", "--hosts", "60", "--tcp", "cubic" if "cubic" in CHECK.stdout else "reno")
            wait_for(lambda: len(namespaces()) > 20)
            making.send_signal(number)
            _, err = making.communicate(timeout=300)
            self.assertEqual(making.returncode, 128 + number, err)
            self.assertEqual(namespaces(), [])
            self.assertEqual(allowed(), self.before)
            self.assertFalse(os.path.exists(os.path.join(ENVIRONMENT["GAR_TESTBED_DIR"], NAME + ".cluster")))

    def test_failed_up(self):
        self.assertIn("no TCP flavour 'nosuch'; it has:", cluster("up", "--hosts", 2, "--tcp", "nosuch", code=4).stderr)
        self.assertEqual(namespaces(), [])

    def test_runs_that_do_not_end(self):
        cluster("up", "--hosts", 2)
        for flavour in flavours():
            with self.subTest(mpi=flavour):
                result = cluster("run", "--mpi", flavour, "--timeout", 1, "--", "sleep", 600, code=4)
                self.assertIn("--timeout 1 s", result.stderr)
                self.assertEqual(processes(), 0)
                running = start("run", "--mpi", flavour, "--", "sh", "-c", "echo here; exec sleep 600")
                self.assertEqual(running.stdout.readline(), "here\n")
                self.assertIn("another run is under way", cluster("run", "--", "true", code=4).stderr)
                running.send_signal(signal.SIGINT)
                running.communicate(timeout=300)
                self.assertEqual(running.returncode, 130)
                self.assertEqual(processes(), 0)

    def test_down_ends_processes(self):
        cluster("up", "--hosts", 2)
        running = start("exec", "h1", "--", "sleep", "600")
        wait_for(lambda: processes() > 0)
        self.assertIn("ended", cluster("down").stdout)
        running.communicate(timeout=300)
        self.assertNotEqual(running.returncode, 0)
        self.assertEqual(namespaces(), [])
        cluster("up", "--hosts", 2)

    def test_half_a_cluster(self):
        cluster("up", "--hosts", 3)
        subprocess.run(["ip", "netns", "del", NAME + "-h1"], check=True)
        self.assertIn("missing: %s-h1" % NAME, cluster("status", code=1).stdout)
        self.assertIn("lacks %s-h1" % NAME, cluster("run", "--", "true", code=4).stderr)
        shutil.rmtree(os.path.join(ENVIRONMENT["GAR_TESTBED_DIR"], NAME + ".cluster"))
        self.assertIn("already", cluster("up", "--hosts", 3, code=4).stderr)
        self.assertIn("is down", cluster("down").stdout)
        self.assertIn("no cluster '%s' was up" % NAME, cluster("down").stdout)
        self.assertIn("no cluster", cluster("status", code=1).stdout)

    def test_two_clusters(self):
        tcp = "cubic" if "cubic" in CHECK.stdout else "reno"
        other = NAME + "b"
        self.addCleanup(cluster, "down", name=other)
        cluster("up", "--hosts", 2, "--tcp", tcp)
        cluster("up", "--hosts", 2, "--tcp", tcp, name=other)
        self.assertIn(tcp, allowed())
        cluster("down")
        self.assertIn(tcp, allowed())
        self.assertEqual(len(namespaces()), 3)
        files = ["/proc/sys/net/ipv4/tcp_congestion_control", "/proc/sys/kernel/hostname"]
        self.assertEqual(cluster("exec", "h0", "--", "cat", *files, name=other).stdout.split(), [tcp, other + "-h0"])
        cluster("down", name=other)
        self.assertEqual(allowed(), self.before)


class NotRoot(unittest.TestCase):
    def test_says_so(self):
        if not shutil.which("setpriv") or not os.path.exists("/usr/bin/python3"):
            self.skipTest("no setpriv, or no python3 that everybody may run")
        become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-B"]
        if subprocess.run([*become, CLUSTER[-1], "--help"], capture_output=True).returncode:
            self.skipTest("others cannot read the source directory")
        result = subprocess.run([*become, CLUSTER[-1], "up", "--hosts", "3"], capture_output=True, text=True,
                                timeout=300)
        self.assertEqual(result.returncode, 4)
        self.assertIn("needs root", result.stderr)


if __name__ == "__main__":
    CHECK = cluster("check", code=None)
    if CHECK.returncode:
        print("skipped: " + CHECK.stderr.strip())
        shutil.rmtree(BASE)
        sys.exit(77)
    if len(sys.argv) > 1 and "/" in sys.argv[1]:
        GAR = sys.argv.pop(1)
    LOCK = alone()
    try:
        unittest.main(verbosity=2)
    finally:
        left = os.listdir(BASE)
        shutil.rmtree(BASE)
        if "state" in left:
            print("left behind: the state directory")
            os._exit(1)
