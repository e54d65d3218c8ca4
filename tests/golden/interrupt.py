"""Interrupts a program like Ctrl-C on a terminal, in the middle of its work: interrupt.py PATTERN NUMBER COMMAND...

The command runs with its standard error on a terminal, where it shows its progress. The regular expression PATTERN finds
what it is doing there (its first group); after NUMBER different things the whole group of processes gets SIGINT. Ends with
the command's exit code, and with 1 when the command ended by itself or has left shared memory behind.
"""
import glob
import os
import pty
import re
import signal
import subprocess
import sys


def watch(program, ours, pattern, number):
    shown = ""
    is_interrupted = False
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # the last process has closed its end
            break
        if not more:
            break
        shown += more.decode(errors="replace")
        if not is_interrupted and len(set(pattern.findall(shown))) >= number:
            is_interrupted = True
            os.killpg(program.pid, signal.SIGINT)
    code = program.wait()
    sys.stderr.write(shown.replace("\r\x1b[K", "\n"))
    left = glob.glob("/dev/shm/*gar-%d-*" % program.pid)
    if left:
        sys.stderr.write("left behind: %s\n" % " ".join(left))
    if not is_interrupted:
        sys.stderr.write("it ended with code %d before it could be interrupted\n" % code)
    return 1 if left or not is_interrupted else code


def main():
    pattern, number, command = re.compile(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    ours, theirs = pty.openpty()
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=theirs, start_new_session=True)
    os.close(theirs)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        return watch(program, ours, pattern, number)
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
