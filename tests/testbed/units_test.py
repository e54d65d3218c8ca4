"""Parts of testbed/cluster that need no root: units_test.py"""
import contextlib
import io
import json
import os
import signal
import stat
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "testbed"))

from gar_testbed import cli, launch, layout, measure, network, private, state, system, topology, units  # noqa: E402
from gar_testbed.errors import BadInput, Error, UsageError  # noqa: E402


def cluster(*arguments):
    """(exit code, standard output, standard error) of testbed/cluster as seen by somebody who is not root."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), mock.patch("os.geteuid", lambda: 1000), \
            mock.patch.object(system, "raise_on_signals"):
        try:
            code = cli.main(list(arguments))
        except SystemExit as end:  # --help
            code = end.code or 0
    return code, out.getvalue(), err.getvalue()


def star(num_hosts=4, **more):
    return layout.Layout(num_hosts=num_hosts, **more)


def tree(**more):
    return layout.Layout(num_hosts=12, num_racks=3, uplink_rate=50_000_000, uplink_queue=64 * 1024, **more)


class Units(unittest.TestCase):
    def test_values(self):
        self.assertEqual(units.parse_rate("25mbit"), 25_000_000)
        self.assertEqual(units.parse_rate("1.5gbit"), 1_500_000_000)
        self.assertEqual(units.parse_size("32kb"), 32768)
        self.assertEqual(units.parse_size("3000"), 3000)
        self.assertAlmostEqual(units.parse_time("10ms"), 0.01)

    def test_refused(self):
        for text in ("", "fast", "25", "25mb", "-1mbit", "0mbit", "1e3mbit", "nanmbit"):
            with self.assertRaises(UsageError, msg=text):
                units.parse_rate(text)

    def test_written_as_read(self):
        for text in ("25mbit", "1.5gbit", "640kbit", "7bit"):
            self.assertEqual(units.format_rate(units.parse_rate(text)), text)


class Names(unittest.TestCase):
    def test_hosts(self):
        cable = star(15)
        for text in ("3", "h3", "garvc-h3"):
            self.assertEqual(cable.host_index(text), 3)
        for text in ("15", "h15", "other-h3", "", "h", "-1"):
            with self.assertRaises(UsageError, msg=text):
                cable.host_index(text)
        self.assertEqual(cable.address(14), "10.77.0.15")

    def test_clusters_do_not_meet(self):
        for namespace in ("garvc-h0", "garvc-h12", "garvc-sw", "garvc-probe77"):
            self.assertTrue(layout.is_namespace_of("garvc", namespace))
        for namespace in ("garvc2-h0", "garvc", "xgarvc-h0", "garvc-h", "garvc-h1x", "garvc-sw-h0"):
            self.assertFalse(layout.is_namespace_of("garvc", namespace))


class Arguments(unittest.TestCase):
    def check(self, words, code, *texts):
        actual, _, err = cluster(*words.split())
        self.assertEqual(actual, code, err)
        for text in texts:
            self.assertIn(text, err)

    def test_usage(self):
        self.check("", 2, "no verb", "up status run")
        self.check("fly", 2, "fly")
        self.check("up", 2, "--hosts", "--tree")
        self.check("up --hosts 3 --tree 2x2", 2, "not allowed with")
        self.check("up --hosts 0", 2, "expected a number from 1 on")
        self.check("up --hosts 251", 2, "1 to 250")
        self.check("up --hosts 3 --rate fast", 2, "'fast' is no rate", "25mbit")
        self.check("up --hosts 3 --queue 1000b", 2, "--queue", "at least 1514")
        self.check("up --hosts 3 --uplink 1mbit", 2, "belong to --tree")
        self.check("up --hosts 3 --cable h1", 2, "--cable 'h1'", "h3=5mbit")
        self.check("up --hosts 3 --cable h3=5mbit", 2, "no host 'h3'", "garvc-h0 to garvc-h2")
        self.check("up --hosts 3 --cable h1=fast", 2, "'fast' is no rate")
        self.check("up --hosts 3 --cable h1=5mbit --cable 1=6mbit", 2, "garvc-h1 has a rate already")
        self.check("up --hosts 3 --mtu 100", 2, "576 to 9000")
        self.check("up --hosts 3 --rto-min 0.1ms", 2, "1ms to 1s")
        self.check("up --tree 3", 2, "such as 3x4")
        self.check("up --tree 0x4", 2, "such as 3x4")
        self.check("up --hosts 3 --name Big-One", 2, "no name for a cluster")
        self.check("down --name ../x", 2, "no name for a cluster")
        self.check("run -n 0 -- true", 2, "from 1 on")
        self.check("run --timeout soon -- true", 2, "seconds")
        self.check("run --mpi lam -- true", 2, "openmpi", "mpich")
        self.check("status -- true", 2, "takes no command")

    def test_root(self):
        for words in ("up --hosts 3", "status", "run -- true", "exec h0 -- true", "cut h0", "heal h0", "counters",
                      "measure", "topology", "check", "down"):
            self.check(words, 4, "needs root")

    def test_help_has_examples(self):
        for verb in cli._VERBS:
            code, out, _ = cluster(verb, "--help")
            self.assertEqual(code, 0)
            self.assertIn("testbed/cluster " + verb, out)
            self.assertIn("examples:", out)


class Machine(unittest.TestCase):
    def test_missing_tools_are_named(self):
        with mock.patch("shutil.which", lambda name: None if name == "tc" else "/bin/" + name):
            with self.assertRaisesRegex(Error, "'tc' is not installed.*iproute2"):
                system.require_tools()

    def test_missing_kernel_parts_are_named(self):
        def call(*words, **_):
            if words[0] == "tc":
                raise Error("'tc' failed: Specified qdisc kind is unknown.")
            return ""
        with mock.patch.object(system, "call", call):
            with self.assertRaisesRegex(Error, "does not allow the tbf queue.*qdisc kind is unknown"):
                system.require_network("x")

    def test_missing_flavour_names_the_others(self):
        with mock.patch.object(system, "available_tcp", lambda: ["reno", "cubic"]):
            with self.assertRaisesRegex(Error, "no TCP flavour 'bbr'; it has: reno cubic"):
                system.require_tcp("bbr")

    def test_missing_mpi_is_named(self):
        with mock.patch("shutil.which", lambda name: None):
            with self.assertRaisesRegex(Error, "no mpich found.*apt-get install mpich"):
                launch.find_mpirun("mpich")

    def test_a_plain_mpirun_is_asked(self):
        with mock.patch("shutil.which", lambda name: name if name == "mpirun" else None), \
                mock.patch.object(system, "call", lambda *words, **_: "mpirun (Open MPI) 4.1.4"):
            self.assertEqual(launch.find_mpirun("openmpi"), "mpirun")
            with self.assertRaises(Error):
                launch.find_mpirun("mpich")


class Jobs(unittest.TestCase):
    def words(self, **options):
        job = launch.Job(star(4), ["prog", "a b"], **options)
        return job.words("mpirun", {"LD_PRELOAD": "x.so:y.so"})

    def test_hosts_are_filled_in_turn(self):
        job = launch.Job(star(4), ["p"], num_ranks=5, ranks_per_host=2)
        self.assertEqual(job.hosts, "garvc-h0:2,garvc-h1:2,garvc-h2:2")
        self.assertEqual(launch.Job(star(4), ["p"]).num_ranks, 4)
        self.assertEqual(launch.Job(star(4), ["p"], ranks_per_host=3).num_ranks, 12)

    def test_refused(self):
        with self.assertRaisesRegex(UsageError, "1 to 4"):
            launch.Job(star(4), ["p"], num_ranks=5)
        with self.assertRaisesRegex(UsageError, "no program"):
            launch.Job(star(4), [])
        with self.assertRaisesRegex(UsageError, "for Open MPI"):
            launch.Job(star(4), ["p"], flavour="mpich", mca=[("a", "b")])

    def test_open_mpi(self):
        words = self.words(mca=[("btl_tcp_rcvbuf", "1")])
        self.assertEqual(words[-2:], ["prog", "a b"])
        self.assertEqual(words[words.index("-x") + 1], "LD_PRELOAD=x.so:y.so")
        self.assertEqual(words[words.index("btl") + 1], "self,tcp")
        self.assertEqual(words.count("btl_tcp_rcvbuf"), 1)
        self.assertEqual(words[words.index("btl_tcp_rcvbuf") + 1], "1")
        words = self.words(ranks_per_host=2)
        self.assertEqual(words[words.index("btl") + 1], "self,vader,tcp")

    def test_mpich(self):
        with mock.patch.dict(os.environ, {"UCX_RNDV_THRESH": "8k"}):
            words = self.words(flavour="mpich")
        self.assertEqual(words[words.index("LD_PRELOAD") + 1], "x.so:y.so")
        self.assertEqual(words[words.index("UCX_RNDV_THRESH") + 1], "8k")
        self.assertEqual(words[words.index("UCX_TLS") + 1], "tcp,self")


class Topologies(unittest.TestCase):
    def test_star(self):
        data = topology.make(star(4), None, num_ranks=3)
        self.assertEqual([node["name"] for node in data["tree"]["children"]], ["garvc-h0", "garvc-h1", "garvc-h2"])
        # 32 bits at 25 Mbit/s, 1514 bytes on the cable for 1448 of payload
        self.assertAlmostEqual(data["classes"]["cable"]["beta"], 32 / 25e6 * 1514 / 1448)

    def test_tree(self):
        data = topology.make(tree(), None, num_ranks=9)
        self.assertEqual([len(rack["children"]) for rack in data["tree"]["children"]], [4, 4, 1])
        cable, uplink = data["classes"]["cable"], data["classes"]["uplink"]
        self.assertAlmostEqual(uplink["beta"], cable["beta"] / 2)
        # twice the queue: twice the senders, and half the share of a link's time for each beyond
        self.assertAlmostEqual(uplink["incast_threshold"], 2 * cable["incast_threshold"])
        self.assertAlmostEqual(uplink["epsilon"], cable["epsilon"] / 4)

    def test_a_slow_cable(self):
        data = topology.make(star(3, cables=[[1, 5_000_000]]), None)
        cable, hosts = data["classes"]["cable"], data["tree"]["children"]
        self.assertAlmostEqual(hosts[1]["beta"], 5 * cable["beta"])
        self.assertAlmostEqual(hosts[1]["epsilon"], 5 * cable["epsilon"])
        self.assertNotIn("beta", hosts[0])
        self.assertIn("25mbit cables, garvc-h1 5mbit", data["description"])

    def test_several_ranks_per_host(self):
        data = topology.make(star(4), None, num_ranks=5, ranks_per_host=2)
        self.assertEqual([len(host["children"]) for host in data["tree"]["children"]], [2, 2, 1])
        self.assertLess(data["classes"]["memory"]["beta"], data["classes"]["cable"]["beta"] / 100)

    def test_measurements_win(self):
        measured = {"latency_s": 3e-4, "epsilon": 1e-7, "incast_threshold": 6}
        data = topology.make(star(4), measured)
        self.assertEqual(data["classes"]["cable"]["epsilon"], 1e-7)
        self.assertEqual(data["classes"]["cable"]["incast_threshold"], 6)
        self.assertAlmostEqual(data["tree"]["alpha"], 1e-4)

    def test_measurements_of_uplinks(self):
        measured = {"latency_s": 3e-4, "epsilon": 1e-7, "incast_threshold": 6}
        classes = topology.make(tree(), measured)["classes"]
        self.assertEqual(classes["uplink"]["epsilon"], 1e-7)
        self.assertEqual(classes["cable"]["epsilon"], topology.default_parameters(tree())["epsilon"])

    def test_refused(self):
        with self.assertRaisesRegex(UsageError, "1 to 4"):
            topology.make(star(4), None, num_ranks=5)


class Fits(unittest.TestCase):
    FLOATS = 100000

    def times(self, network, threshold, epsilon, offset=0.002, noise=0.0):
        truth = {"epsilon": epsilon, "incast_threshold": threshold, "offset_s": offset}
        return {x: [measure.predict(network, x, self.FLOATS, truth) + sign * noise for sign in (-1, 1)]
                for x in range(2, network.num_hosts + 1)}

    def test_a_hinge_is_found_again(self):
        fitted = measure.fit(star(15), self.times(star(15), 5, 8e-8, noise=0.001), self.FLOATS)
        self.assertEqual(fitted["incast_threshold"], 5)
        self.assertAlmostEqual(fitted["epsilon"], 8e-8, delta=1e-11)
        self.assertAlmostEqual(fitted["offset_s"], 0.002, delta=1e-9)
        self.assertGreater(fitted["r2"], 0.999)

    def test_the_hinge_of_uplinks_is_found_again(self):
        fitted = measure.fit(tree(), self.times(tree(), 4, 2e-7, noise=0.001), self.FLOATS)
        self.assertEqual((fitted["link"], fitted["incast_threshold"]), ("uplink", 4))
        self.assertAlmostEqual(fitted["epsilon"], 2e-7, delta=4e-9)
        self.assertGreater(fitted["r2"], 0.99)

    def test_times_without_incast(self):
        # One switch: what a cable takes. 12 hosts in racks of 4: these receive 8/11 of their floats over an uplink of
        # twice the rate.
        beta = 32 / 25e6 * 1514 / 1448
        self.assertAlmostEqual(measure.ideal(star(15), 15, self.FLOATS), beta * self.FLOATS)
        self.assertAlmostEqual(measure.ideal(tree(), 3, self.FLOATS), beta * self.FLOATS)
        self.assertAlmostEqual(measure.ideal(tree(), 12, self.FLOATS), 4 * 8 / 11 * beta / 2 * self.FLOATS)

    def test_no_incast(self):
        fitted = measure.fit(star(15), self.times(star(15), 5, 0.0), self.FLOATS)
        self.assertEqual(fitted["epsilon"], 0)

    def test_nothing_is_negative(self):
        fitted = measure.fit(star(15), self.times(star(15), 5, -1e-8, offset=-0.001), self.FLOATS)
        self.assertGreaterEqual(fitted["epsilon"], 0)
        self.assertGreaterEqual(fitted["offset_s"], 0)

    def test_output_of_the_program(self):
        data = measure.parse("latency 0.000100\nmesh 2 0.1\nnoise\nmesh 3 0.2\nmesh 2 0.3\n")
        self.assertEqual(data, {"latency_s": 1e-4, "times": {2: [0.1, 0.3], 3: [0.2]}})
        with self.assertRaises(Error):
            measure.parse("nothing")

    def test_table(self):
        data = measure.result(star(15), {"latency_s": 1e-4, "times": self.times(star(15), 5, 8e-8)}, self.FLOATS)
        self.assertIn("incast_threshold 5 senders", measure.table(data))
        self.assertEqual(len(data["rows"]), 14)


class States(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        patch = mock.patch.dict(os.environ, {"GAR_TESTBED_DIR": os.path.join(directory.name, "base")})
        patch.start()
        self.addCleanup(patch.stop)
        self.allowed = ["reno", "bbr"]
        for name, fake in (("allowed_tcp", lambda: list(self.allowed)),
                           ("allow_tcp", lambda words: setattr(self, "allowed", list(words)))):
            patch = mock.patch.object(system, name, fake)
            patch.start()
            self.addCleanup(patch.stop)

    def test_kept(self):
        state.save(tree(), "up", {"epsilon": 1e-7})
        self.assertEqual(state.load("garvc"), (tree(), {"epsilon": 1e-7}))

    def test_places_that_launchers_would_take_apart(self):
        with mock.patch.dict(os.environ, {"GAR_TESTBED_DIR": "/tmp/two words"}):
            with self.assertRaisesRegex(UsageError, "GAR_TESTBED_DIR"):
                state.base_directory()

    def test_half_made_absent_and_broken(self):
        with self.assertRaisesRegex(Error, "no cluster 'garvc' is up"):
            state.load("garvc")
        state.save(star(), "half made")
        with self.assertRaisesRegex(Error, "half made.*down --name garvc"):
            state.load("garvc")
        for text in ("{", json.dumps({"schema": "other"})):
            with open(os.path.join(state.directory("garvc"), "state.json"), "w", encoding="ascii") as file:
                file.write(text)
            with self.assertRaisesRegex(BadInput, "state.json"):
                state.load("garvc")

    def test_the_last_cluster_restores_the_flavours(self):
        with state.lock():
            state.allow_tcp("a", "cubic")
            state.allow_tcp("b", "cubic")
            state.release_tcp("a")
            self.assertEqual(self.allowed, ["reno", "bbr", "cubic"])
            state.release_tcp("a")
            self.assertEqual(self.allowed, ["reno", "bbr", "cubic"])
            state.release_tcp("b")
            self.assertEqual(self.allowed, ["reno", "bbr"])
        self.assertFalse(os.path.exists(state.base_directory()))

    def test_flavours_that_are_allowed_anyway_are_left_alone(self):
        with state.lock():
            state.allow_tcp("a", "bbr")
            self.allowed.append("vegas")
            state.release_tcp("a")
        self.assertEqual(self.allowed, ["reno", "bbr", "vegas"])


class Places(unittest.TestCase):
    """What other users of the machine may have prepared where we, as root, are about to work."""

    SOMEBODY = 65534

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.top = os.path.realpath(directory.name)
        self.base = os.path.join(self.top, "base")
        self.use(self.base)

    def use(self, path):
        patch = mock.patch.dict(os.environ, {"GAR_TESTBED_DIR": path})
        patch.start()
        self.addCleanup(patch.stop)

    def refuses(self, words):
        """Every way to the state of a cluster, whatever is done with it."""
        def locked():
            with state.lock():
                self.fail("the lock was given")

        def run_locked():
            with state.run_lock("garvc"):
                self.fail("the run was allowed")

        for act in (locked, run_locked, lambda: state.save(star(), "up"), lambda: state.load("garvc"),
                    lambda: state.exists("garvc"), lambda: network._write_scripts(star()),
                    lambda: launch.export_topology(star(), None, 4, 1)):
            with mock.patch.dict(os.environ, clear=False), self.assertRaisesRegex(Error, words):
                os.environ.pop("GAR_TOPOLOGY", None)
                act()

    def test_ours_is_ours_alone(self):
        with state.lock():
            state.save(star(), "up")
            network._write_scripts(star())
            for path in (self.base, state.directory("garvc")):
                self.assertEqual(stat.S_IMODE(os.lstat(path).st_mode), 0o700)
            modes = {name: stat.S_IMODE(os.lstat(os.path.join(state.directory("garvc"), name)).st_mode)
                     for name in os.listdir(state.directory("garvc"))}
            self.assertEqual(modes, {"state.json": 0o600, "hosts": 0o644, "enter": 0o700, "agent": 0o700})
            state.forget("garvc")
        self.assertFalse(os.path.exists(self.base))

    def test_a_place_without_programs_is_no_reason_to_use_one_that_is_open_to_all(self):
        real = os.statvfs

        def statvfs(path):
            return mock.Mock(f_flag=os.ST_NOEXEC) if path == noexec or noexec == "all" else real(path)

        with mock.patch.dict(os.environ), mock.patch("os.statvfs", statvfs):
            del os.environ["GAR_TESTBED_DIR"]
            noexec = "/run"
            parent = os.path.dirname(state.base_directory())
            self.assertNotEqual(parent, noexec)
            found = os.lstat(parent)
            self.assertTrue(stat.S_ISDIR(found.st_mode))
            self.assertEqual((found.st_uid, found.st_mode & 0o022), (0, 0), parent)
            noexec = "all"
            with self.assertRaisesRegex(Error, "/run or /var/lib; GAR_TESTBED_DIR"):
                state.base_directory()

    def test_planted_links(self):
        elsewhere = os.path.join(self.top, "elsewhere")
        os.mkdir(elsewhere, 0o700)
        os.mkdir(os.path.join(elsewhere, "garvc.cluster"), 0o700)
        for link in (self.base, os.path.join(self.top, "way")):
            os.symlink(elsewhere, link)
        self.refuses("base is a link")
        self.use(os.path.join(self.top, "way", "base"))
        self.refuses("way is a link")
        self.assertEqual(os.listdir(elsewhere), ["garvc.cluster"])
        self.assertEqual(os.listdir(os.path.join(elsewhere, "garvc.cluster")), [])

    def test_a_planted_link_to_a_cluster(self):
        elsewhere = os.path.join(self.top, "elsewhere")
        os.makedirs(elsewhere, 0o700)
        os.mkdir(self.base, 0o700)
        os.symlink(elsewhere, os.path.join(self.base, "garvc.cluster"))
        with self.assertRaisesRegex(Error, "garvc.cluster is a link"):
            state.save(star(), "up")
        state.forget("garvc")
        self.assertEqual(os.listdir(elsewhere), [])

    def test_planted_files(self):
        os.mkdir(self.base, 0o700)
        victim = os.path.join(self.top, "victim")
        with open(victim, "w", encoding="ascii") as file:
            file.write("precious")
        state.save(star(), "up")
        for name in ("lock", "tcp_allowed.json"):
            os.symlink(victim, os.path.join(self.base, name))
        for name in ("run.lock", "enter", "agent", "hosts"):
            os.symlink(victim, os.path.join(state.directory("garvc"), name))
        with self.assertRaisesRegex(Error, "lock is a link"), state.lock():
            pass
        with self.assertRaisesRegex(Error, "run.lock is a link"), state.run_lock("garvc"):
            pass
        with self.assertRaisesRegex(Error, "tcp_allowed.json is a link"):
            state.release_tcp("garvc")
        network._write_scripts(star())
        output = os.path.join(self.top, "network.json")
        os.symlink(victim, output)
        with self.assertRaisesRegex(Error, "network.json: it is a link"):
            topology.write(output, star(), None)
        os.remove(output)
        os.link(victim, output)
        topology.write(output, star(), None)
        with open(output, encoding="ascii") as file:
            self.assertEqual(file.read(), topology.text(star(), None))
        with open(victim, encoding="ascii") as file:
            self.assertEqual(file.read(), "precious")

    def test_topology_files(self):
        output = os.path.join(self.top, "network.json")
        mask = os.umask(0o027)
        try:
            topology.write(output, star(), None)
        finally:
            os.umask(mask)
        self.assertEqual(os.stat(output).st_mode & 0o777, 0o640)
        os.remove(output)
        os.mkfifo(output)
        # Nobody reads the pipe: an old version waits here, until the alarm ends it.
        signal.alarm(20)
        with self.assertRaisesRegex(Error, "network.json: it is no file; expected a new name or a file"):
            topology.write(output, star(), None)
        signal.alarm(0)
        with self.assertRaisesRegex(Error, "it is a directory"):
            topology.write(self.top, star(), None)
        with self.assertRaisesRegex(Error, "it is a directory"):
            topology.write(self.top + "/", star(), None)
        with self.assertRaisesRegex(Error, "missing/x: No such file"):
            topology.write(os.path.join(self.top, "missing/x"), star(), None)
        self.assertEqual(os.listdir(self.top), ["network.json"])

    def test_places_where_others_write(self):
        os.mkdir(self.base)
        os.chmod(self.base, 0o777)
        self.refuses("mode 0777|others can write to .*base")
        os.chmod(self.base, 0o1777)
        with self.assertRaisesRegex(Error, "mode 1777; expected 0755"), state.lock():
            pass
        self.use(os.path.join(self.base, "below"))
        os.chmod(self.base, 0o777)
        self.refuses("others can write to .*base")
        self.assertEqual(os.listdir(self.base), [])

    def test_a_cluster_that_others_read(self):
        os.mkdir(self.base, 0o700)
        state.save(star(), "up")
        os.chmod(state.directory("garvc"), 0o755)
        with self.assertRaisesRegex(Error, "mode 0755; expected 0700"):
            state.load("garvc")

    def test_what_belongs_to_somebody_else(self):
        os.mkdir(self.base, 0o700)
        state.save(star(), "up")
        with mock.patch("os.geteuid", lambda: os.lstat(self.base).st_uid + 1):
            self.refuses("belongs to user")

    def test_another_user_comes_first(self):
        """A user who is not root leaves a cluster of his own, with a script that root would run."""
        if os.geteuid() != 0:
            self.skipTest("needs root, to be two users")
        os.chmod(self.top, 0o1777)
        mark = os.path.join(self.top, "ran")
        planted = json.dumps({"schema": state.SCHEMA, "phase": "up", "layout": vars(star()), "measured": None})
        files = (("state.json", planted.encode()), ("enter", b"#!/bin/sh\ntouch " + mark.encode()))
        child = os.fork()
        if child == 0:
            try:  # with system calls alone: Python's own files may be closed to this user
                os.setgroups([])
                os.setgid(self.SOMEBODY)
                os.setuid(self.SOMEBODY)
                os.mkdir(self.base, 0o755)
                os.mkdir(self.base + "/garvc.cluster", 0o755)
                for name, text in files:
                    file = os.open(self.base + "/garvc.cluster/" + name, os.O_WRONLY | os.O_CREAT, 0o755)
                    os.write(file, text)
                    os.close(file)
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), \
                mock.patch.object(system, "raise_on_signals"), mock.patch.object(system, "require_tools"), \
                mock.patch.object(network, "missing_namespaces", lambda _: []):
            code = cli.main(["exec", "h0", "--", "true"])
        self.assertFalse(os.path.exists(mark), "root has run the script")
        self.assertEqual(code, 4)
        self.assertIn("belongs to user %d" % self.SOMEBODY, err.getvalue())
        self.refuses("base belongs to user %d" % self.SOMEBODY)

    def test_the_lock_of_the_tests(self):
        sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
        from alone import PLACE, alone
        found = os.lstat(os.path.dirname(PLACE))
        self.assertEqual((found.st_uid, found.st_mode & 0o022), (0, 0))  # nobody but root comes first
        place = os.path.join(self.top, "lock")
        victim = os.path.join(self.top, "victim")
        os.mkdir(victim, 0o700)
        os.symlink(victim, place)
        with self.assertRaisesRegex(Error, "is a link"):
            alone(place)
        os.remove(place)
        os.close(alone(place))
        self.assertEqual(stat.S_IMODE(os.lstat(place).st_mode), 0o700)
        os.chmod(place, 0o755)  # then another user can hold the lock for ever
        with self.assertRaisesRegex(Error, "mode 0755; expected 0700"):
            alone(place)

    def test_names_are_made_one_at_a_time(self):
        """A file that is being written has a name that nobody knows beforehand, and nothing stays when it fails."""
        os.mkdir(self.base, 0o700)
        fd = private.open_directory(self.base)
        self.addCleanup(os.close, fd)
        with self.assertRaises(UnicodeEncodeError):
            private.write_file(fd, "x", "\u20ac")
        self.assertEqual(os.listdir(self.base), [])


if __name__ == "__main__":
    unittest.main()
