package main

import (
	"flag"
	"testing"
	"time"
)

func TestLongestLock(t *testing.T) {
	t.Parallel()
	const short = "must be at least 1m, such as 4h: shorter locks end before drains can confirm or renew them"
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
