//go:build linux

package main

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"
)

func parse(args ...string) (flags, error) {
	set := flag.NewFlagSet("ebbtide-agent", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return parseFlags(set, args)
}

func TestFlags(t *testing.T) {
	t.Setenv("NODE_NAME", "node-7")
	f, err := parse()
	want := flags{nodeName: "node-7", manifestDir: "/etc/kubernetes/manifests", stateDir: "/var/lib/ebbtide", healthAddress: "127.0.0.1:9473", shutdown: "drain"}
	want.controlPlane = controlPlane{pods: "Retain", namespace: "ebbtide-system", restoreAfter: 10 * time.Minute}
	if err != nil || f != want {
		t.Errorf("without flags they are %+v, %v; want %+v", f, err, want)
	}
	if f, err = parse("--node-name=node-8", "--health-address=0"); err != nil || f.nodeName != "node-8" {
		t.Errorf("the flag does not win: %+v, %v", f, err)
	}
}

func TestBadFlags(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	for args, want := range map[string]string{
		"":                                    "set --node-name, or NODE_NAME from the downward API",
		"--node-name=Node_7":                  `invalid --node-name="Node_7": `,
		"--node-name=n --manifest-dir=etc":    `--manifest-dir="etc" must be an absolute path`,
		"--node-name=n --manifest-dir=":       `--manifest-dir="" must be an absolute path`,
		"--node-name=n --state-dir=state":     `--state-dir="state" must be an absolute path`,
		"--node-name=n --health-address=9473": `--health-address must be HOST:PORT such as 127.0.0.1:9473, or 0, not "9473"`,
		"--node-name=n --manifest-dir=/m --state-dir=/m/state": "--state-dir=/m/state must not be inside --manifest-dir=/m",
		"--node-name=n --manifest-dir=/m --state-dir=/m":       "--state-dir=/m must not be inside --manifest-dir=/m",
		"--node-name=n --shutdown=Drain":                       `--shutdown must be drain, report or off, not "Drain"`,
		"--node-name=n --shutdown-delay=-1s":                   "--shutdown-delay=-1s must be between 0 and 24h0m0s",
		"--node-name=n --shutdown-delay=25h":                   "--shutdown-delay=25h0m0s must be between 0 and 24h0m0s",
		"--node-name=n --shutdown-delay=60":                    `invalid value "60" for flag -shutdown-delay`,
		"--node-name=n drain":                                  `unknown command "drain"; the only one is restore, which must come first`,
	} {
		if f, err := parse(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", args, f, err, want)
		}
	}
	if _, err := parse("--node-name=n", "--manifest-dir=/m", "--state-dir=/mm"); err != nil {
		t.Errorf("a folder beside it is refused: %v", err)
	}
	if err := restore([]string{"--manifest-dir=m"}); err == nil || !strings.Contains(err.Error(), "must be an absolute path") {
		t.Errorf("restore takes a path that is relative: %v", err)
	}
}
