#!/usr/bin/env bash
# Pages: gar explore puts a network into the page that make web builds, gar report and --html write pages without scripts:
# report_test.sh GAR SOURCE_DIRECTORY. What is on them is looked at by `make web-test`; here it is what goes in and what fails.
# shellcheck source=tests/golden/lib.sh
source "$(dirname "$0")/lib.sh"
gar=$(realpath "$1") root=$(realpath "$2")
cd "$work"

# A page with a place for a network, as web/src/page.html has it.
grep -q '<script type="application/json" id="gar-start">{}</script>' "$root/web/src/page.html" ||
  fail "web/src/page.html has no place for a network"
printf '<p><script type="application/json" id="gar-start">{}</script></p>\n' >empty.html

"$gar" explore -t tree:4x6 --size 4MB --page empty.html -o a.html >said
grep -q '^written to a.html' said || fail "explore says nothing: $(cat said)"
[[ $(cat a.html) == '<p><script type="application/json" id="gar-start">{"topology":"tree:4x6","bytes":4000000}</script></p>' ]] ||
  fail "another page: $(cat a.html)"
"$gar" explore --page empty.html -o - | cmp - empty.html || fail "without a network the page is the empty one"
"$gar" explore -t tree:4x6 --page empty.html -o a.html --json | grep -q '"schema": "gar.page/1"' || fail "no document"

# Names cannot end the element that they stand in.
cat >'x<b>.json' <<'JSON'
{"schema": "gar.topology/1", "name": "</script><script>evil()</script>", "tree": {"name": "r", "alpha": 0, "children": [
  {"name": "<img src=x onerror=evil()>", "repeat": 2, "alpha": 1e-6, "beta": 1e-9, "epsilon": 0, "incast_threshold": 9, "gamma": 0, "delta": 0}]}}
JSON
"$gar" explore -t 'x<b>.json' --page empty.html -o b.html >/dev/null
[[ $(grep -o '<' b.html | wc -l) == 4 ]] || fail "a name has become markup: $(cat b.html)"

# What is missing is said, with the way to get it.
code=0
"$gar" explore --page nowhere.html 2>err || code=$?
[[ $code == 4 ]] && grep -q 'make web.*emscripten' err || fail "exit code $code: $(cat err)"
code=0
printf 'no page' >none.html
"$gar" explore --page none.html -o c.html 2>err || code=$?
[[ $code == 3 && ! -e c.html ]] || fail "exit code $code: $(cat err)"

# --open calls what opens files here, and says so when that fails.
mkdir bin
printf '#!/bin/sh\necho "$1" >opened\n' >bin/xdg-open
chmod +x bin/xdg-open
PATH=$work/bin:$PATH "$gar" explore --page empty.html -o 'd e.html' --open >/dev/null
[[ $(cat opened) == "$work/d e.html" ]] || fail "opened: $(cat opened)"
printf '#!/bin/sh\nexit 3\n' >bin/xdg-open
code=0
PATH=$work/bin:$PATH "$gar" explore --page empty.html -o a.html --open 2>err >/dev/null || code=$?
[[ $code == 4 ]] && grep -q 'open a.html by hand' err || fail "exit code $code: $(cat err)"

# Reports: no script, no address of a server, and what is hostile stays text.
harmless() {
  grep -q "default-src 'none'" "$1" || fail "$1 has no policy"
  ! grep -nE '<script|<img|https?:|onerror=[^a]|javascript:' "$1" || fail "$1 could run or load something"
}
"$gar" report "$root/tests/golden/data/profile.json" "$root/tests/golden/data/nccl.txt" -o report.html --title '<script>evil()' >/dev/null
harmless report.html
grep -q '&lt;script&gt;evil()' report.html && grep -q '6 of 6 results are more than 10% slower' report.html || fail "another report"
"$gar" simulate -t 'x<b>.json' --algo gentree+,ring --count 1e5 --html sim.html >/dev/null
grep -q 'Where the time of the critical path goes' sim.html || fail "no bars"
! grep -q '<script\|<img' sim.html || fail "a name has become markup"
"$gar" reproduce fig:costmodel --html paper.html >/dev/null
harmless paper.html
grep -q 'within its tolerances' paper.html || fail "no verdict"
"$gar" fit --from "$root/data/measurements/15-cubic.json" --validate --html fit.html >/dev/null
harmless fit.html
for what in 'TCP segments sent again' 'Measured and predicted, on what was not fitted' 'What was not fitted is predicted within'; do
  grep -q "$what" fit.html || fail "the page of a fit does not say: $what"
done
# Measurements of which nothing was held out have a page, too.
sed 's/"fitted": false/"fitted": true/' "$root/data/measurements/15-cubic.json" >whole.json
"$gar" report whole.json -o whole.html >/dev/null && harmless whole.html
"$gar" bench --local 2 -b 4KiB -e 8KiB -f 2 -n 2 -w 1 --algo ring,auto --html bench.html >/dev/null
harmless bench.html
grep -q '<polyline' bench.html && grep -q 'gar bench --local 2' bench.html || fail "no curve, or no command"
# The commands behind the numbers of a report, also of results that were measured before.
"$gar" bench --local 2 -b 4KiB -e 8KiB -n 2 -w 1 --algo ring --json >today.json
"$gar" report today.json -o today.html >/dev/null
harmless today.html
# One size has bars.
for what in 'gar bench --local 2 -b 4KiB' 'kernel: Linux' 'ranks: 2 processes' 'rect class="part"'; do
  grep -q "$what" today.html || fail "the page of a benchmark does not say: $what"
done
[[ $(grep -c 'Where these numbers come from' bench.html) == 1 ]] || fail "the origin does not stand on the page once"
# Logs of NCCL: problems are the verdict.
"$gar" report "$root/data/nccl/two-hosts.log" "$root/tests/golden/data/nccl_mixed.txt" "$root/tests/golden/data/nccl_hostile.log" -o nccl.html >/dev/null
harmless nccl.html
grep -q 'class="bad">two-hosts.log: between hosts it uses TCP sockets' nccl.html || fail "a log has no verdict"
"$gar" demo --on simulator --html demo.html | tail -n 1 | grep -q 'times as fast as ring' || fail "another last line"
harmless demo.html
grep -q 'in the simulator' demo.html || fail "no simulation"
code=0
"$gar" report "$root/data/topologies/sym384.json" -o d.html 2>err || code=$?
[[ $code == 3 && ! -e d.html ]] && grep -q 'expected profiles and measurements' err || fail "exit code $code: $(cat err)"
