#!/usr/bin/env bash
# --plot on a terminal: it draws there, in lines that fit, and nowhere else: plot_test.sh GAR
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "python3 is needed for a terminal"
gar=$(realpath "$1")
cd "$work"

# on_terminal COLUMNS ARGUMENT...: what gar prints on a terminal of that width, without colours.
on_terminal() {
  python3 - "$gar" "$@" <<'END'
import fcntl, os, pty, re, struct, sys, termios
gar, columns, arguments = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    os.execv(gar, [gar, *arguments])
text = b""
while True:
    try:
        part = os.read(terminal, 65536)
    except OSError:
        break
    if not part:
        break
    text += part
os.waitpid(pid, 0)
text = re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).replace("\r\n", "\n")
wide = [line for line in text.splitlines() if len(line) > columns]
if wide:
    sys.exit(f"lines are wider than {columns} columns: {wide}")
sys.stdout.write(text)
END
}

for columns in 40 60 120; do
  on_terminal "$columns" predict -t ss24 --size 1kB..1GB -f 10 --plot >chart
  grep -q '│' chart && grep -q '^a ' chart || fail "no chart on a terminal of $columns columns: $(cat chart)"
  on_terminal "$columns" predict -t ss24 --count 1e8 --plot >bars
  grep -q '█' bars || fail "no bars on a terminal of $columns columns"
done
for columns in 80 120; do
  on_terminal "$columns" bench --local 2 -b 4KiB -e 64KiB -n 2 -w 1 --algo ring,cps --plot >bench
  grep -q '^# .*│' bench || fail "gar bench draws nothing on a terminal of $columns columns: $(cat bench)"
done
on_terminal 60 predict -t ss24 --size 1kB..1GB -f 10 >plain
! grep -q '│' plain || fail "a picture without --plot"
"$gar" predict -t ss24 --size 1kB..1GB -f 10 --plot | cmp - <("$gar" predict -t ss24 --size 1kB..1GB -f 10) ||
  fail "a pipe gets another text with --plot"
