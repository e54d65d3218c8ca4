"""Makes and removes a cluster.

Hosts are network namespaces NAME-h0, NAME-h1, ... with one interface eth0. All switches are bridges in the namespace
NAME-sw: br0 with the ports p0, p1, ..., or the root switch core and a switch br0, br1, ... per rack, whose uplink is u0
at the rack's end and d0 at the root's. tbf at both ends of a cable is its speed; at a switch's end its small queue is
the switch buffer.

As in real clusters, launchers have a network of their own: ctl0 of every host, on the bridge ctl of NAME-sw, without
any limit. What they say is no part of what is measured, and a job whose cable is cut can still be ended.
"""
import json

from . import private, state, system
from .errors import Error
from .layout import HOST_QUEUE_BYTES, SUBNET, is_namespace_of

_OFFLOADS = ("tso", "off", "gso", "off", "gro", "off")

_ENTER = """#!/bin/sh
# enter HOST command...: runs a command on a host, with its name, the names of the others, and shared memory of its own.
host=$1
shift
exec ip netns exec "$host" unshare -u /bin/sh -c '
  echo "$0" >/proc/sys/kernel/hostname && mount --bind {directory}/hosts /etc/hosts &&
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec "$@"' "$host" "$@"
"""

_AGENT = """#!/bin/sh
# agent [-option...] HOST words...: what ssh is elsewhere.
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
case $host in 10.7[78].0.*) host={name}-h$((${{host##*.}} - 1)) ;; esac
exec {directory}/enter "$host" /bin/sh -c "$*"
"""


def up(layout):
    """Makes the cluster; when that fails or is interrupted, nothing stays behind."""
    with state.lock():
        if state.exists(layout.name) or _namespaces_of(layout.name):
            raise Error("there is a cluster '%s' already; testbed/cluster down --name %s removes it, --name gives "
                        "another one its own name" % (layout.name, layout.name))
        system.require_tcp(layout.tcp)
        system.require_network(layout.name)
        try:
            state.save(layout, "half made")
            _write_scripts(layout)
            state.allow_tcp(layout.name, layout.tcp)
            _make(layout)
            state.save(layout, "up")
        except BaseException:
            with system.no_interrupts():
                _remove(layout.name)
            raise


def down(name):
    """Removes what bears the name, also the half of a cluster; returns (namespaces removed, processes ended)."""
    with state.lock(), system.no_interrupts():
        return _remove(name)


def _remove(name):
    names = _namespaces_of(name)
    num_ended = system.end_processes(names)
    for namespace in names:
        system.call("ip", "netns", "del", namespace, allow_failure=True)
    state.release_tcp(name)
    state.forget(name)
    left = _namespaces_of(name)
    if left:
        raise Error("could not remove %s" % " ".join(left))
    return len(names), num_ended


def _namespaces_of(name):
    return [namespace for namespace in system.namespaces() if is_namespace_of(name, namespace)]


def _write_scripts(layout):
    names = "".join("%s %s\n" % (layout.address(i), host) for i, host in enumerate(layout.hosts))
    directory = state.directory(layout.name)
    with state.opened(layout.name) as fd:
        private.write_file(fd, "hosts", "127.0.0.1 localhost\n" + names, 0o644)  # every user of a host reads it
        for script, text in (("enter", _ENTER), ("agent", _AGENT)):
            private.write_file(fd, script, text.format(directory=directory, name=layout.name), 0o700)


def _make(layout):
    system.call("ip", "-batch", "-", text="".join("netns add %s\n" % name for name in layout.namespaces))
    _make_switches(layout)
    _make_cables(layout)
    for i in range(layout.num_hosts):
        _configure_host(layout, i)


def _make_switches(layout):
    bridges = ["br%d" % rack for rack in range(layout.num_racks)] + ["core"] if layout.num_racks else ["br0"]
    lines = ["link set lo up"]
    for bridge in bridges + ["ctl"]:
        # Switches that forget flood all cables; a day is longer than any measurement.
        lines.append("link add %s mtu %d type bridge ageing_time 8640000 mcast_snooping 0" % (bridge, layout.mtu))
        lines.append("link set %s up" % bridge)
    _quiet(layout.switch)
    _ip_batch(layout.switch, lines)
    if not layout.num_racks:
        return
    lines = []
    for rack in range(layout.num_racks):
        lines.append("link add u%d mtu %d type veth peer name d%d mtu %d" % (rack, layout.mtu, rack, layout.mtu))
        lines.append("link set u%d master br%d up" % (rack, rack))
        lines.append("link set d%d master core up" % rack)
    _ip_batch(layout.switch, lines)
    ports = ["%s%d" % (end, rack) for rack in range(layout.num_racks) for end in "ud"]
    _shape(layout, layout.switch, ports, layout.uplink_rate, layout.uplink_queue)


def _make_cables(layout):
    system.call("ip", "-batch", "-", text="".join(
        "link add p%d mtu %d netns %s type veth peer name eth0 mtu %d address %s netns %s\n"
        % (i, layout.mtu, layout.switch, layout.mtu, layout.mac(i), layout.host(i)) for i in range(layout.num_hosts)))
    system.call("ip", "-batch", "-", text="".join(
        "link add c%d netns %s type veth peer name ctl0 netns %s\n" % (i, layout.switch, layout.host(i))
        for i in range(layout.num_hosts)))
    lines = []
    for i in range(layout.num_hosts):
        lines += ["link set p%d master br%d up" % (i, i // layout.hosts_per_rack), "link set c%d master ctl up" % i]
    _ip_batch(layout.switch, lines)
    _shape(layout, layout.switch, ["p%d" % i for i in range(layout.num_hosts)], layout.rate, layout.queue)
    for i, rate in layout.cables:
        _shape(layout, layout.switch, ["p%d" % i], rate, layout.queue)


def _configure_host(layout, index):
    host = layout.host(index)
    _quiet(host)
    _shape(layout, host, ["eth0"], layout.cable_rate(index), HOST_QUEUE_BYTES)
    lines = ["link set lo mtu 1500 up", "addr add %s/%s dev eth0" % (layout.address(index), SUBNET.split("/")[1]),
             "addr add %s/16 dev ctl0" % layout.control_address(index), "link set eth0 up", "link set ctl0 up",
             "route replace %s dev eth0 src %s rto_min %gms" % (SUBNET, layout.address(index), layout.rto_min_s * 1e3)]
    # Neighbours that are known need no ARP, which could be lost in a full queue.
    lines += ["neigh replace %s lladdr %s dev eth0 nud permanent" % (layout.address(i), layout.mac(i))
              for i in range(layout.num_hosts) if i != index]
    _ip_batch(host, lines)
    settings = (("tcp_congestion_control", layout.tcp), ("tcp_no_metrics_save", 1), ("tcp_slow_start_after_idle", 1))
    script = ["echo %s >/proc/sys/net/ipv4/%s" % (value, key) for key, value in settings]
    system.call("ip", "netns", "exec", host, "sh", "-ec", "; ".join(script))


def _ip_batch(namespace, lines):
    system.call("ip", "-n", namespace, "-batch", "-", text="".join(line + "\n" for line in lines))


def _quiet(namespace):
    """No IPv6: its announcements would be traffic that nobody asked for. A kernel without it is quiet already."""
    system.call("ip", "netns", "exec", namespace, "sh", "-c",
                "for f in all default; do f=/proc/sys/net/ipv6/conf/$f/disable_ipv6; [ ! -e $f ] || echo 1 >$f; done")


def _shape(layout, namespace, devices, rate, queue):
    """Speed and queue, and packets as they are on a cable: not glued together by offloads."""
    lines = ["qdisc replace dev %s root tbf rate %dbit burst %d limit %d\n" % (device, rate, layout.burst(rate), queue)
             for device in devices]
    system.call("tc", "-n", namespace, "-batch", "-", text="".join(lines))
    script = "; ".join("ethtool -K %s %s" % (device, " ".join(_OFFLOADS)) for device in devices)
    system.call("ip", "netns", "exec", namespace, "sh", "-ec", script)


def set_cable(layout, index, is_up):
    system.call("ip", "-n", layout.switch, "link", "set", "p%d" % index, "up" if is_up else "down")


def cut_hosts(layout):
    links = json.loads(system.call("ip", "-n", layout.switch, "-j", "link", "show"))
    is_up = {link["ifname"]: "UP" in link["flags"] for link in links}
    return [i for i in range(layout.num_hosts) if not is_up.get("p%d" % i, False)]


def missing_namespaces(layout):
    there = set(system.namespaces())
    return [name for name in layout.namespaces if name not in there]


def counters(layout):
    """Since up: packets dropped at switch ports, and segments that TCP sent again, all hosts together."""
    queues = json.loads(system.call("tc", "-n", layout.switch, "-s", "-j", "qdisc", "show"))
    ports = [queue for queue in queues if queue["kind"] == "tbf"]
    drops = {kind: sum(queue["drops"] for queue in ports if queue["dev"][0] in kind) for kind in ("p", "ud")}
    return {"drops_to_hosts": drops["p"], "drops_at_uplinks": drops["ud"],
            "retransmits": sum(_tcp_retransmits(host) for host in layout.hosts)}


def _tcp_retransmits(host):
    lines = [line.split() for line in system.call("ip", "netns", "exec", host, "cat", "/proc/net/snmp").splitlines()
             if line.startswith("Tcp:")]
    return int(lines[1][lines[0].index("RetransSegs")])
