"""What a cluster looks like: names, addresses, cables. Pure data, nothing here touches the machine."""
import dataclasses
import re

from .errors import UsageError
from .units import format_rate, format_size

DEFAULT_NAME = "garvc"
MAX_HOSTS = 250
SUBNET = "10.77.0.0/16"  # the cables
CONTROL_PREFIX = "10.78.0"  # a second network, for launchers only
HOST_QUEUE_BYTES = 4 * 2**20  # a network card that never drops: TCP itself stops when so much is waiting
ETHERNET_BYTES = 14  # what tbf counts besides the IP packet
TCP_IP_BYTES = 52  # headers in a full segment: IP 20, TCP 20, timestamps 12


@dataclasses.dataclass
class Layout:
    """One switch with all hosts, or num_racks switches below a root switch."""

    name: str = DEFAULT_NAME
    num_hosts: int = 0
    num_racks: int = 0  # 0: one switch
    rate: int = 25_000_000  # bit/s
    queue: int = 32 * 1024  # bytes, at a switch port towards a host
    uplink_rate: int = 0
    uplink_queue: int = 0
    tcp: str = "bbr"
    rto_min_s: float = 0.010
    mtu: int = 1500
    cables: list = dataclasses.field(default_factory=list)  # [number of a host, bit/s]: not as fast as the others

    def check(self):
        check_name(self.name)
        if not 1 <= self.num_hosts <= MAX_HOSTS:
            raise UsageError("%d hosts; expected 1 to %d" % (self.num_hosts, MAX_HOSTS))
        if not 576 <= self.mtu <= 9000:
            raise UsageError("--mtu %d; expected 576 to 9000" % self.mtu)
        if not 0.001 <= self.rto_min_s <= 1:
            raise UsageError("--rto-min %gms; expected 1ms to 1s" % (self.rto_min_s * 1e3))
        queues = [("--queue", self.queue)] + ([("--uplink-queue", self.uplink_queue)] if self.num_racks else [])
        for option, queue in queues:
            if queue < self.frame_bytes:
                raise UsageError("%s of %d bytes holds no packet; expected at least %d bytes"
                                 % (option, queue, self.frame_bytes))

    @property
    def frame_bytes(self):
        return self.mtu + ETHERNET_BYTES

    @property
    def hosts_per_rack(self):
        return self.num_hosts // self.num_racks if self.num_racks else self.num_hosts

    @property
    def switch(self):
        return self.name + "-sw"

    @property
    def hosts(self):
        return [self.host(i) for i in range(self.num_hosts)]

    @property
    def namespaces(self):
        return [self.switch] + self.hosts

    def host(self, index):
        return "%s-h%d" % (self.name, index)

    def host_index(self, text):
        """Of `3`, `h3` or `garvc-h3`."""
        match = re.fullmatch(r"(?:(?:%s-)?h)?([0-9]{1,4})" % re.escape(self.name), text)
        if not match or int(match.group(1)) >= self.num_hosts:
            raise UsageError("no host '%s'; expected %s to %s" % (text, self.host(0), self.host(self.num_hosts - 1)))
        return int(match.group(1))

    def address(self, index):
        return "10.77.0.%d" % (index + 1)

    def control_address(self, index):
        return "%s.%d" % (CONTROL_PREFIX, index + 1)

    def mac(self, index):
        return "02:67:61:72:00:%02x" % (index + 1)

    def cable_rate(self, index):
        return dict(self.cables).get(index, self.rate)

    def burst(self, rate):
        """Bytes that tbf lets pass at once: small beside the queue, yet enough for the timers of fast links."""
        return max(16000, 2 * self.frame_bytes, round(rate / 8 * 0.32e-3))

    def seconds_per_float(self, rate):
        """beta: four bytes of payload, with their share of the headers of full packets."""
        return 32 / rate * self.frame_bytes / (self.mtu - TCP_IP_BYTES)

    def describe(self):
        others = "".join(", %s %s" % (self.host(i), format_rate(rate)) for i, rate in self.cables)
        cables = "%s cables%s, queue %s" % (format_rate(self.rate), others, format_size(self.queue))
        if not self.num_racks:
            return "%d hosts on one switch, %s, %s" % (self.num_hosts, cables, self.tcp)
        return "%d racks of %d hosts, %s, uplinks %s, queue %s, %s" % (
            self.num_racks, self.hosts_per_rack, cables, format_rate(self.uplink_rate), format_size(self.uplink_queue),
            self.tcp)


def check_name(name):
    if not re.fullmatch(r"[a-z][a-z0-9]{0,23}", name):
        raise UsageError("'%s' is no name for a cluster; expected a small letter, then up to 23 small letters and "
                         "digits" % name)


def is_namespace_of(name, namespace):
    """Whether down of this cluster may remove the namespace; other clusters' never match, as names have no hyphen."""
    return re.fullmatch(r"%s-(h[0-9]+|sw|probe[0-9]+)" % re.escape(name), namespace) is not None
