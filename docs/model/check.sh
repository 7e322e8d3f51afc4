#!/usr/bin/env bash
# Checks the protocol of drainlock.pml, then that the checker finds what is wrong
# with each broken variant. `check.sh NAME` does one of them and tells what it found.
set -euo pipefail
cd "$(dirname "$0")"
model=drainlock.pml source=$PWD/drainlock.pml

# name | spin's defines | safe: every step and every end; live: under weak fairness | what is to be found
variants='
protocol      | -DTROUBLE=2                           | safe | nothing
drains-end    | -DTROUBLE=1                           | live | nothing
three-drains  | -DTROUBLE=0 -DND=3                    | safe | nothing
wedge         | -DTROUBLE=0 -DBREAK_MUTEX -DBREAK_ORDER -DBREAK_GIVEBACK | safe | invalid end state
no-mutex      | -DTROUBLE=0 -DBREAK_MUTEX -DBREAK_ORDER | live | acceptance cycle
give-up-hold  | -DTROUBLE=1 -DBREAK_HOLD              | safe | invalid end state
two-takers    | -DTROUBLE=1 -DBREAK_VERSION           | safe | a lock has one holder
no-confirm    | -DTROUBLE=1 -DBREAK_CONFIRM           | safe | no budget has more pods down than it allows
early-release | -DTROUBLE=0 -DBREAK_RELEASE           | safe | no budget has more pods down than it allows
backwards     | -DTROUBLE=1 -DBREAK_BACKWARDS         | safe | locks are taken in order
limit-report  | -DTROUBLE=0 -DLIMIT_REPORT            | safe | no budget has more pods down than it allows
limit-write   | -DTROUBLE=1 -DLIMIT_WRITE             | safe | who is Drained has every lock
limit-needs   | -DTROUBLE=0 -DLATE0=1 -DLATE1=2       | safe | invalid end state
return-sure   | -DTROUBLE=0 -DLATE0=1 -DLATE1=2 -DRETURN_SURE | safe | nothing
'
if ! command -v spin >/dev/null; then
	sudo=$([ "$(id -u)" = 0 ] || echo sudo)
	{ $sudo apt-get update && $sudo apt-get install -y spin; } >/dev/null ||
		{ echo "spin is missing and apt-get cannot install it: install Spin 6.5 from https://spinroot.com" >&2; exit 1; }
fi
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT && cd "$work" && cp "$source" .
failed=0
printf '%-14s %-5s %10s %5s %6s  %s\n' variant check states s MB found
while IFS='|' read -r name defines check want; do
	name=${name// /} check=${check// /} want=${want# }
	[ -n "$name" ] && [ "${1:-$name}" = "$name" ] || continue
	flags=(-DSAFETY -DNOCLAIM) search=()
	[ "$check" = safe ] || { flags=(-DNFAIR=3) search=(-a -f); }
	# shellcheck disable=SC2086
	spin $defines -a $model >/dev/null && gcc -w -O2 -DMEMLIM=3800 -DCOLLAPSE "${flags[@]}" -o pan pan.c
	rm -f ./*.trail && begun=$SECONDS && ./pan -m1000000 "${search[@]}" >out 2>&1 || true
	found=$(sed -n 's/^pan:[0-9]*: \(invalid end state\|acceptance cycle\).*/\1/p' out)
	[ ! -e $model.trail ] || spin $defines -t -T $model >story 2>&1 || true
	[ ! -e $model.trail ] || found=${found:-$(sed -n 's/^ *BROKEN: //p' story | head -n 1)}
	grep -q 'errors: 0' out && ! grep -q 'max search depth too small\|out of memory' out && found=nothing
	printf '%-14s %-5s %10s %5s %6s  %s\n' "$name" "$check" "$(awk '/states, stored/ {print $1}' out)" $((SECONDS - begun)) \
		"$(awk '/total actual memory/ {print int($1)}' out)" "${found:-no verdict}"
	[ "$found" = "$want" ] || { failed=1; echo "   expected: $want"; }
	[ -z "${1:-}" ] || [ ! -e story ] || grep -E '^ *(node|budget|the time|BROKEN|<<<)' story
done <<<"$variants"
exit $failed
