#!/usr/bin/env bash
# Checks what variants.txt asks of the model, two at a time: that the protocol is
# right, and that Spin finds what is wrong with each broken variant. `check.sh NAME`
# checks one of them and tells its counterexample step by step.
set -euo pipefail
cd "$(dirname "$0")"
row() { printf '%-14s %-5s %10s %5s %6s  %s\n' "$@"; }

../../test/node/packages spin gcc libc6-dev >&2 || { echo "Outside Debian: gcc, and Spin 6.5 from https://spinroot.com" >&2; exit 1; }
if [ $# = 0 ]; then
	row variant check states s MB found
	grep -v '^#' variants.txt | awk '{print $1}' | xargs -n 1 -P 2 ./check.sh --brief && exit
	echo "At least one variant is not what variants.txt expects." >&2 && exit 1
fi
name=${*: -1}
IFS='|' read -r _ defines check want < <(grep "^$name " variants.txt) || { echo "There is no variant $name." >&2; exit 1; }
check=${check// /} want=${want# }

work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT && cp drainlock.pml "$work" && cd "$work"
flags=(-DSAFETY -DNOCLAIM) search=()
[ "$check" = safe ] || { flags=(-DNFAIR=3) search=(-a -f); }
# shellcheck disable=SC2086
spin $defines -a drainlock.pml >/dev/null
gcc -w -O1 -DMEMLIM=4500 "${flags[@]}" -o pan pan.c
TIMEFORMAT=%0U && { time ./pan -m1000000 -w24 "${search[@]}" >out 2>&1 || true; } 2>used
states=$(awk '/states, stored/ {print int($1)}' out) found="no verdict" # also for nothing in next to no states
if [ -e drainlock.pml.trail ]; then
	# shellcheck disable=SC2086
	spin $defines -t -T drainlock.pml >story 2>&1 || true
	found=$({ grep -oP '^pan:\d+: \K(invalid end state|acceptance cycle)' out || sed -n 's/^ *BROKEN: //p' story; } | head -n 1)
elif grep -q 'errors: 0' out && [ "${states:-0}" -gt 1000 ] && ! grep -q 'depth too small\|MEMLIM\|out of memory' out; then
	found=nothing
fi
row "$name" "$check" "$states" "$(cat used)" "$(awk '/total actual memory/ {print int($1)}' out)" "$found"
[ "$1" = --brief ] || [ ! -e story ] || grep -E '^ *(node|budget|the time|BROKEN|<<<)' story || true
[ "$found" = "$want" ] || { echo "$name: expected $want" >&2; exit 1; }
