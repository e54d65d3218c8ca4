"""The command line of testbed/cluster."""
import argparse
import json
import os
import re
import subprocess
import sys

from . import launch, measure, network, state, system, topology, units
from .errors import EXIT_CHECK_FAILED, EXIT_FAILURE, EXIT_USAGE, Error, UsageError
from .layout import DEFAULT_NAME, Layout, check_name

_EXAMPLES = {
    "": """examples:
  # fifteen hosts on one switch; run a program on twelve of them; remove everything
  testbed/cluster up --hosts 15 --rate 25mbit --queue 32kb --tcp bbr
  testbed/cluster run -n 12 -- ./program
  testbed/cluster down
exit codes: 0 done, 1 a check failed, 2 usage, 3 bad input, 4 run-time failure; run: the program's own""",
    "up": """examples:
  testbed/cluster up --hosts 15 --rate 25mbit --queue 32kb --tcp bbr
  # three racks of four hosts with slow uplinks
  testbed/cluster up --tree 3x4 --rate 25mbit --uplink 50mbit --uplink-queue 64kb
  # a second cluster beside the first
  testbed/cluster up --name other --hosts 4""",
    "status": """examples:
  testbed/cluster status
  testbed/cluster status --json""",
    "run": """examples:
  testbed/cluster run -n 8 -- ./program
  testbed/cluster run --mpi mpich -n 8 -- ./program
  # without MPI, over TCP of our own
  testbed/cluster run --mpi none -n 8 -- gar bench --transport tcp
  # two ranks per host: shared memory inside, TCP between
  testbed/cluster run --ranks-per-host 2 -- ./program
  # another algorithm of Open MPI, and what the switches dropped
  testbed/cluster run --counters --mca coll_tuned_use_dynamic_rules=1 \\
    --mca coll_tuned_allreduce_algorithm=4 -- ./program""",
    "exec": """examples:
  testbed/cluster exec h3 -- ip address""",
    "cut": """examples:
  testbed/cluster cut h3""",
    "heal": """examples:
  testbed/cluster heal h3""",
    "topology": """examples:
  testbed/cluster topology -n 8 -o network.json && gar topo show network.json""",
    "counters": """examples:
  testbed/cluster counters --json""",
    "measure": """examples:
  testbed/cluster measure
  testbed/cluster measure --floats 250000 --repetitions 20 --json""",
    "check": """examples:
  testbed/cluster check && make test""",
    "down": """examples:
  testbed/cluster down
  testbed/cluster down --name other""",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UsageError(message)


def make_parser():
    # Prefixes of options would change their meaning whenever an option is added.
    common = dict(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser = _Parser(prog="testbed/cluster", description="A cluster of network namespaces on this machine.",
                     epilog=_EXAMPLES[""], **common)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)

    def verb(name, text):
        sub = verbs.add_parser(name, help=text, description=text, epilog=_EXAMPLES[name], **common)
        sub.add_argument("--name", default=DEFAULT_NAME, metavar="PREFIX",
                         help="name of the cluster; everything it makes begins with it (default: %(default)s)")
        return sub

    _add_up(verb("up", "make a cluster"))
    status = verb("status", "say what is up")
    _add_run(verb("run", "run a program on the hosts, under MPI or without"))
    inside = verb("exec", "run a command on one host")
    inside.add_argument("host", metavar="HOST", help="such as h3")
    for name, text in (("cut", "pull the cable of a host"), ("heal", "plug it in again")):
        verb(name, text).add_argument("host", metavar="HOST", help="such as h3")
    file = verb("topology", "write the topology file")
    _add_ranks(file)
    file.add_argument("-o", dest="output", metavar="FILE", help="default: standard output")
    counters = verb("counters", "packets dropped at switch ports and segments that TCP sent again, since up")
    measured = verb("measure", "measure latency and incast; topology and run then use the result")
    measured.add_argument("--floats", type=_positive, default=100000,
                          help="received by every host (default: %(default)s)")
    measured.add_argument("--repetitions", type=_positive, default=10, help="default: %(default)s")
    measured.add_argument("--timeout", type=_seconds, default=600.0, metavar="S", help="default: %(default)g s")
    verb("check", "say whether this machine can run a cluster; exit 0 or 4")
    verb("down", "remove a cluster, also half of one, and end what runs in it")
    for sub in (status, counters, measured):
        sub.add_argument("--json", action="store_true", help="for scripts")
    return parser


def _add_up(sub):
    shape = sub.add_mutually_exclusive_group(required=True)
    shape.add_argument("--hosts", type=_positive, metavar="N", help="N hosts on one switch")
    shape.add_argument("--tree", metavar="RxH", help="R racks of H hosts below a root switch")
    sub.add_argument("--rate", default="25mbit", help="of every cable, both directions (default: %(default)s)")
    sub.add_argument("--cable", action="append", default=[], metavar="HOST=RATE",
                     help="another rate for one host's cable, such as h3=5mbit; may be repeated")
    sub.add_argument("--queue", default="32kb", help="buffer of a switch port towards a host (default: %(default)s)")
    sub.add_argument("--uplink", metavar="RATE", help="of the racks' uplinks (default: twice --rate)")
    sub.add_argument("--uplink-queue", metavar="SIZE", help="buffer at both ends of an uplink (default: twice --queue)")
    sub.add_argument("--tcp", default="bbr", help="congestion control (default: %(default)s)")
    sub.add_argument("--rto-min", default="10ms", metavar="TIME", help="TCP's shortest time-out (default: %(default)s)")
    sub.add_argument("--mtu", type=_positive, default=1500, metavar="BYTES", help="default: %(default)s")


def _add_ranks(sub):
    sub.add_argument("-n", dest="num_ranks", type=_positive, default=0, metavar="N",
                     help="ranks (default: all hosts full)")
    sub.add_argument("--ranks-per-host", type=_positive, default=1, metavar="K", help="default: %(default)s")


def _add_run(sub):
    sub.usage = "testbed/cluster run [options] -- program [arguments]"
    _add_ranks(sub)
    sub.add_argument("--mpi", choices=("openmpi", "mpich", "none"), default="openmpi",
                     help="what starts the ranks; none: no MPI, they are told by RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT "
                          "and GAR_SECRET (default: %(default)s)")
    sub.add_argument("--timeout", type=_seconds, default=300.0, metavar="S",
                     help="end the program after S seconds, exit 4; 0: never (default: %(default)g)")
    sub.add_argument("--no-topology", action="store_true", help="do not set GAR_TOPOLOGY")
    sub.add_argument("--shim", choices=("on", "off"), default="on",
                     help="let ranks sleep while they wait (testbed/block.c; default: %(default)s)")
    sub.add_argument("--mca", action="append", default=[], metavar="KEY=VALUE",
                     help="a setting of Open MPI; may be repeated")
    sub.add_argument("--counters", action="store_true",
                     help="print drops and retransmits of this run on standard error")


def _positive(text):
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError("'%s'; expected a number from 1 on" % text)
    return int(text)


def _seconds(text):
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]+)?", text):
        raise argparse.ArgumentTypeError("'%s'; expected seconds, such as 60" % text)
    return float(text)


def layout_of(args):
    """The cluster that `up` was asked for."""
    layout = Layout(name=args.name, rate=units.parse_rate(args.rate), queue=units.parse_size(args.queue), tcp=args.tcp,
                    rto_min_s=units.parse_time(args.rto_min), mtu=args.mtu)
    if args.hosts:
        if args.uplink or args.uplink_queue:
            raise UsageError("--uplink and --uplink-queue belong to --tree")
        layout.num_hosts = args.hosts
    else:
        match = re.fullmatch(r"([0-9]{1,3})x([0-9]{1,3})", args.tree)
        if not match or "0" in match.groups():
            raise UsageError("--tree '%s'; expected racks x hosts per rack, such as 3x4" % args.tree)
        layout.num_racks = int(match.group(1))
        layout.num_hosts = layout.num_racks * int(match.group(2))
        layout.uplink_rate = units.parse_rate(args.uplink) if args.uplink else 2 * layout.rate
        layout.uplink_queue = units.parse_size(args.uplink_queue) if args.uplink_queue else 2 * layout.queue
    layout.cables = _cables(layout, args.cable)
    layout.check()
    return layout


def _cables(layout, words):
    rates = {}
    for word in words:
        host, is_pair, rate = word.partition("=")
        if not is_pair:
            raise UsageError("--cable '%s'; expected a host and its rate, such as h3=5mbit" % word)
        index = layout.host_index(host)
        if index in rates:
            raise UsageError("--cable '%s': %s has a rate already" % (word, layout.host(index)))
        rates[index] = units.parse_rate(rate)
    return [[index, rate] for index, rate in sorted(rates.items())]


def _up(args, _command):
    layout = layout_of(args)
    network.up(layout)
    print("cluster '%s' is up: %s" % (layout.name, layout.describe()))
    return 0


def _status(args, _command):
    if not state.exists(args.name):
        print("{}" if args.json else "no cluster '%s' is up" % args.name)
        return EXIT_CHECK_FAILED
    layout, measured = state.load(args.name)
    missing = network.missing_namespaces(layout)
    cut = [] if layout.switch in missing else network.cut_hosts(layout)
    processes = len(system.processes_in(layout.hosts))
    if args.json:
        hosts = [{"name": layout.host(i), "address": layout.address(i), "is_cut": i in cut,
                  "is_missing": layout.host(i) in missing} for i in range(layout.num_hosts)]
        print(json.dumps({"schema": state.SCHEMA, "layout": vars(layout), "hosts": hosts, "processes": processes,
                          "missing": missing, "measured": measured}, indent=2))
    else:
        print("cluster '%s': %s" % (layout.name, layout.describe()))
        print("hosts %s (%s) to %s (%s), %d processes" % (layout.host(0), layout.address(0), layout.hosts[-1],
                                                          layout.address(layout.num_hosts - 1), processes))
        origin = "measured, R2 %.3f" % measured["r2"] if measured else "built-in (measure was not run)"
        print("parameters: %s" % origin)
        for i in cut:
            print("cut: %s" % layout.host(i))
        if missing:
            print("missing: %s; 'down' removes the rest" % " ".join(missing))
    return EXIT_CHECK_FAILED if missing else 0


def _run(args, command):
    layout, measured = _whole(args.name)
    settings = [setting.partition("=") for setting in args.mca]
    for key, equals, _ in settings:
        if not key or not equals:
            raise UsageError("--mca '%s'; expected KEY=VALUE" % key)
    job = launch.Job(layout, command, args.mpi, args.num_ranks, args.ranks_per_host, args.timeout, args.shim == "on",
                     [(key, value) for key, _, value in settings])
    if not args.no_topology:
        launch.export_topology(layout, measured, job.num_ranks, job.ranks_per_host)
    return launch.run_counted(job) if args.counters else launch.run(job)


def _exec(args, command):
    layout, _ = _whole(args.name)
    if not command:
        raise UsageError("no command; testbed/cluster exec HOST -- command")
    host = layout.host(layout.host_index(args.host))
    code = subprocess.call([os.path.join(state.directory(layout.name), "enter"), host, *command])
    return code if code >= 0 else 128 - code


def _set_cable(is_up):
    def act(args, _command):
        layout, _ = _whole(args.name)
        network.set_cable(layout, layout.host_index(args.host), is_up)
        return 0
    return act


def _topology(args, _command):
    layout, measured = state.load(args.name)
    if args.output:
        topology.write(args.output, layout, measured, args.num_ranks, args.ranks_per_host)
    else:
        sys.stdout.write(topology.text(layout, measured, args.num_ranks, args.ranks_per_host))
    return 0


def _counters(args, _command):
    layout, _ = _whole(args.name)
    values = network.counters(layout)
    print(json.dumps(values) if args.json else "\n".join("%-17s %d" % item for item in values.items()))
    return 0


def _measure(args, _command):
    layout, _ = _whole(args.name)
    before = network.counters(layout)
    data = measure.result(layout, measure.measure(layout, args.floats, args.repetitions, args.timeout), args.floats)
    after = network.counters(layout)
    data["counters"] = {key: after[key] - before[key] for key in after}
    state.save(layout, "up", data)
    print(json.dumps(data, indent=2) if args.json else measure.table(data))
    return 0


def _check(args, _command):
    _require_machine()
    system.require_network(args.name)
    print("this machine can run a cluster; TCP: %s" % " ".join(system.available_tcp()))
    for flavour in ("openmpi", "mpich"):
        try:
            print("%s: %s" % (flavour, launch.find_mpirun(flavour)))
        except Error as error:
            print("%s: %s" % (flavour, error))
    return 0


def _down(args, _command):
    num_namespaces, num_processes = network.down(args.name)
    if num_processes:
        print("ended %d processes" % num_processes)
    print("cluster '%s' is down" % args.name if num_namespaces else "no cluster '%s' was up" % args.name)
    return 0


_VERBS = {"up": _up, "status": _status, "run": _run, "exec": _exec, "cut": _set_cable(False), "heal": _set_cable(True),
          "topology": _topology, "counters": _counters, "measure": _measure, "check": _check, "down": _down}


def _require_machine():
    system.require_root()
    system.require_tools()


def _whole(name):
    """The cluster, all of it."""
    layout, measured = state.load(name)
    missing = network.missing_namespaces(layout)
    if missing:
        raise Error("cluster '%s' lacks %s; testbed/cluster down --name %s removes the rest"
                    % (name, " ".join(missing), name))
    return layout, measured


def main(arguments):
    command = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, command = arguments[:cut], arguments[cut + 1:]
    try:
        args = make_parser().parse_args(arguments)
        if not args.verb:
            raise UsageError("no verb; expected %s (--help explains them)" % " ".join(_VERBS))
        if command and args.verb not in ("run", "exec"):
            raise UsageError("'%s' takes no command after --" % args.verb)
        check_name(args.name)
        if args.verb == "up":
            layout_of(args)
        system.raise_on_signals()
        system.add_system_directories()
        _require_machine()
        return _VERBS[args.verb](args, command)
    except UsageError as error:
        print("cluster: %s" % error, file=sys.stderr)
        return EXIT_USAGE
    except Error as error:
        print("cluster: %s" % error, file=sys.stderr)
        return error.exit_code
    except subprocess.TimeoutExpired as error:
        print("cluster: '%s' did not end within %g s" % (" ".join(error.cmd), error.timeout), file=sys.stderr)
        return EXIT_FAILURE
