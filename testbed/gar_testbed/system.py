"""Commands of the machine, and whether it has what a cluster needs."""
import contextlib
import os
import shutil
import signal
import subprocess
import time

from .errors import Error, Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_ALLOWED = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
_AVAILABLE = "/proc/sys/net/ipv4/tcp_available_congestion_control"


def raise_on_signals():
    def stop(number, _frame):
        raise Interrupted(number)

    for number in _SIGNALS:
        signal.signal(number, stop)


@contextlib.contextmanager
def no_interrupts():
    """Cleaning up is finished also when somebody is impatient."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def add_system_directories():
    """ip, tc and ethtool lie where only root's PATH leads."""
    path = os.environ.get("PATH", "/usr/bin:/bin").split(":")
    os.environ["PATH"] = ":".join(path + [d for d in ("/usr/local/sbin", "/usr/sbin", "/sbin") if d not in path])


def call(*words, text=None, allow_failure=False):
    """Runs a command, hands back its output; a failure is an error with the command's own last words."""
    result = subprocess.run([str(word) for word in words], input=text, capture_output=True, text=True, timeout=60,
                            env=plain_environment())
    if result.returncode and not allow_failure:
        said = (result.stderr.strip() or result.stdout.strip() or "no message").splitlines()
        raise Error("'%s' failed: %s" % (" ".join(str(word) for word in words), "; ".join(said[-4:])))
    return result.stdout


def plain_environment():
    """Without the libraries that a user preloads into the program: our own tools are not it."""
    return {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}


def namespaces():
    return [line.split()[0] for line in call("ip", "netns", "list").splitlines() if line.strip()]


def processes_in(names):
    """Process ids by namespace inode, for all namespaces in one pass over /proc."""
    inodes = set()
    for name in names:
        try:
            inodes.add(os.stat("/run/netns/" + name).st_ino)
        except OSError:
            continue
    found = set()
    for entry in os.listdir("/proc") if inodes else []:
        if not entry.isdigit():
            continue
        try:
            if os.stat("/proc/%s/ns/net" % entry).st_ino in inodes:
                found.add(int(entry))
        except OSError:
            continue
    return found


def end_processes(names, spare=frozenset(), grace_s=0.5):
    """Ends what runs inside the namespaces, politely first; returns how many there were."""
    ended = set()
    for number, limit_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + limit_s
        is_told = set()
        while True:
            alive = {pid for pid in processes_in(names) - set(spare) if not _is_zombie(pid)}
            if not alive:
                return len(ended)
            for pid in alive - is_told:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            is_told |= alive
            ended |= alive
            if time.monotonic() >= deadline:
                break
            time.sleep(0.02)
    raise Error("processes that do not end: %s" % " ".join(str(pid) for pid in sorted(alive)))


def _is_zombie(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def read_words(path):
    with open(path, encoding="ascii") as file:
        return file.read().split()


def allowed_tcp():
    return read_words(_ALLOWED)


def allow_tcp(flavours):
    with open(_ALLOWED, "w", encoding="ascii") as file:
        file.write(" ".join(flavours))


def available_tcp():
    return read_words(_AVAILABLE)


def require_tcp(flavour):
    available = available_tcp()
    if flavour not in available:
        raise Error("this kernel has no TCP flavour '%s'; it has: %s ('modprobe tcp_%s' may load it)"
                    % (flavour, " ".join(available), flavour))


def require_root():
    if os.geteuid() != 0:
        raise Error("this needs root: network namespaces are made and entered with 'ip netns' (try sudo)")


def require_tools():
    for tool, package in (("ip", "iproute2"), ("tc", "iproute2"), ("ethtool", "ethtool"), ("unshare", "util-linux")):
        if not shutil.which(tool):
            raise Error("'%s' is not installed; on Debian: apt-get install %s (or scripts/setup.sh testbed)"
                        % (tool, package))


def require_network(name):
    """Makes one cable and one switch, and removes them again."""
    probe = "%s-probe%d" % (name, os.getpid())
    steps = (
        ("network namespaces", ("ip", "netns", "add", probe)),
        ("veth cables", ("ip", "-n", probe, "link", "add", "p0", "type", "veth", "peer", "name", "p1")),
        ("bridges", ("ip", "-n", probe, "link", "add", "br0", "type", "bridge")),
        ("the tbf queue (sch_tbf)",
         ("tc", "-n", probe, "qdisc", "replace", "dev", "p0", "root", "tbf", "rate", "1mbit", "burst", "3000", "limit",
          "30000")),
        ("hosts with a name and mounts of their own",
         ("ip", "netns", "exec", probe, "unshare", "-u", "sh", "-c",
          "echo probe >/proc/sys/kernel/hostname && mount -t tmpfs tmpfs /dev/shm")),
    )
    try:
        for what, words in steps:
            try:
                call(*words)
            except Error as error:
                raise Error("this machine does not allow %s: %s" % (what, error)) from None
    finally:
        call("ip", "netns", "del", probe, allow_failure=True)


def compile_program(compiler, source, target, *options):
    if not shutil.which(compiler):
        raise Error("'%s' is not installed, which compiles %s" % (compiler, os.path.basename(source)))
    part = "%s.%d" % (target, os.getpid())
    call(compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-o", part, source, *options)
    os.replace(part, target)
