#!/bin/sh
# Plays the go command. What it "builds" depends on what a real program depends on.
set -e
dir=${0%/*}
case $1 in
env) echo "$dir/goroot"; exit ;;
list) cat "$dir/modules"; exit ;;
build) shift ;;
*) echo "go $1 is not played" >&2; exit 2 ;;
esac
folder=$PWD commit="the commit of $PWD" flags=
while [ $# -gt 1 ]; do
	case $1 in
	-trimpath) folder= ;;
	-buildvcs=false) commit= ;;
	-ldflags) flags=$2; shift ;;
	-o) out=$2; shift ;;
	esac
	shift
done
[ -d "$1" ] || { echo "package $1 is not there" >&2; exit 1; }
mkdir -p "${out%/*}"
{
	cat "$dir/$GOARCH"
	echo "$GOOS $folder $commit $CGO_ENABLED$GOFLAGS$GOWORK$GOEXPERIMENT$GOAMD64$GOARM64"
	eval "set -- $flags"
	printf '%s\n' "$@"
	find . -name '*.go' -not -name '*_test.go' | sort | xargs cat
} >"$out"
