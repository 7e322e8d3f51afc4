package main

import (
	"flag"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/internal/core/nodeshutdown"
	"ebbtide.dev/ebbtide/internal/workload"
)

func TestLongestLock(t *testing.T) {
	t.Parallel()
	const short = "must be at least 1m: shorter locks expire before drains can confirm or renew them"
	for text, test := range map[string]struct {
		want  time.Duration
		fault string
	}{
		"4h":   {want: 4 * time.Hour},
		"1m":   {want: time.Minute},
		"59s":  {fault: short},
		"90s":  {want: 90 * time.Second},
		"0":    {fault: short},
		"-1h":  {fault: short},
		"soon": {fault: `time: invalid duration "soon"`},
		"4":    {fault: `time: missing unit in duration "4"`},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, err := parseLongestLock(text)
			if fault := words(err); got != test.want || fault != test.fault {
				t.Errorf("got %s and %q, want %s and %q", got, fault, test.want, test.fault)
			}
		})
	}
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Nothing but a flag keeps those who evict from being told of NodeMaintenances.
func TestEvictionNotice(t *testing.T) {
	t.Parallel()
	for want, args := range map[bool][]string{true: nil, false: {"--eviction-notice=false"}} {
		f, err := parseFlags(flag.NewFlagSet("ebbtide", flag.ContinueOnError), args)
		if got := f.webhookOptions().EvictionNotice; err != nil || got != want {
			t.Errorf("with %v they are told: %v (%v), want %v", args, got, err, want)
		}
	}
}

func TestMemoryOfRemoteClusters(t *testing.T) {
	t.Parallel()
	const little = "must be at least 16Mi"
	for text, test := range map[string]struct {
		want  int64
		fault string
	}{
		"256Mi": {want: 256 << 20},
		"16Mi":  {want: 16 << 20},
		"15Mi":  {fault: little},
		"-1Gi":  {fault: little},
		"much":  {fault: "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, err := parseMemory(text)
			if fault := words(err); got != test.want || fault != test.fault {
				t.Errorf("got %d and %q, want %d and %q", got, fault, test.want, test.fault)
			}
		})
	}
}

// Nothing of a kubeconfig that leads elsewhere is allowed unless it is named; what runs
// commands or reads files cannot be.
func TestFieldsOfKubeconfigsThatAreAllowed(t *testing.T) {
	t.Parallel()
	for text, test := range map[string]struct {
		want  int
		fault string
	}{
		"":                                   {},
		"proxy-url":                          {want: 1},
		"proxy-url,insecure-skip-tls-verify": {want: 2},
		"exec":                               {fault: `"exec" cannot be allowed, only proxy-url and insecure-skip-tls-verify`},
		"proxy-url,tokenFile":                {fault: `"tokenFile" cannot be allowed, only proxy-url and insecure-skip-tls-verify`},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, err := workload.ParseAllowances(text)
			if fault := words(err); len(got) != test.want || fault != test.fault {
				t.Errorf("got %v and %q, want %d fields and %q", got, fault, test.want, test.fault)
			}
		})
	}
	f, err := parseFlags(flag.NewFlagSet("ebbtide", flag.ContinueOnError), nil)
	if len(f.kubeconfigFields) > 0 || f.remoteMemory != workload.DefaultRemoteMemory || f.remotesMemory != 1<<30 || err != nil {
		t.Errorf("without flags: %v, %d and %d bytes, %v", f.kubeconfigFields, f.remoteMemory, f.remotesMemory, err)
	}
	f, err = parseFlags(flag.NewFlagSet("ebbtide", flag.ContinueOnError), []string{"--remote-cluster-memory=32Mi", "--remote-clusters-memory=64Mi"})
	if f.remoteMemory != 32<<20 || f.remotesMemory != 64<<20 || err != nil {
		t.Errorf("with flags: %d and %d bytes, %v", f.remoteMemory, f.remotesMemory, err)
	}
}

// What is asked for nodes that shut down is what the manager does, and a mistake is told
// with the name of the flag.
func TestFlagsOfShutdowns(t *testing.T) {
	t.Parallel()
	parse := func(args ...string) (flags, error) {
		set := flag.NewFlagSet("ebbtide", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		return parseFlags(set, args)
	}
	all := cmp.AllowUnexported(nodeshutdown.DeleteBefore{})
	if f, err := parse(); err != nil || !cmp.Equal(f.shutdowns, nodeshutdown.Options{}, all) {
		t.Errorf("without flags: %+v, %v, want the defaults", f.shutdowns, err)
	}
	f, err := parse("--shutdown-depth=Static", "--shutdown-delete-before=45s", "--shutdown-priorities=0,1000", "--complete-after-boot=false")
	before, _ := nodeshutdown.ParseDeleteBefore("45s")
	if want := (nodeshutdown.Options{StayCordoned: true, Depth: "Static", DeleteBefore: before, Priorities: []int32{0, 1000}}); err != nil || !cmp.Equal(f.shutdowns, want, all) {
		t.Errorf("with flags: %+v, %v, want %+v", f.shutdowns, err, want)
	}
	if f, err := parse("--complete-after-boot"); err != nil || f.shutdowns.StayCordoned {
		t.Errorf("nodes stay cordoned: %v, %v", f.shutdowns.StayCordoned, err)
	}
	for arg, want := range map[string]string{
		"--shutdown-depth=all": `invalid value "all" for flag -shutdown-depth: must be Default, DaemonSet or Static`,
		"--shutdown-delete-before=5s": `invalid value "5s" for flag -shutdown-delete-before: ` +
			"must be from 1% to 100% of the time until the node goes down, or from 10s to 24h, such as 30% or 45s",
		"--shutdown-priorities=5,5":  `invalid value "5,5" for flag -shutdown-priorities: must be priorities of pods, each once, such as 0,1000,100000`,
		"--complete-after-boot=soon": `invalid boolean value "soon" for -complete-after-boot: strconv.ParseBool: parsing "soon": invalid syntax`,
	} {
		if _, err := parse(arg); words(err) != want {
			t.Errorf("%s: error %v, want %s", arg, err, want)
		}
	}
}
