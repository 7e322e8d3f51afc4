package main

import (
	"flag"
	"io"
	"testing"
)

// What is no verb and what no verb knows runs nothing, least of all the manager.
func TestVerbsThatAreNotUnderstood(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	for name, args := range map[string][]string{
		"no verb":                 {"uninstal"},
		"no such flag":            {"uninstall", "--on-maintenance=Complete"},
		"no such mode":            {"uninstall", "--on-maintenances=complete"},
		"no duration":             {"uninstall", "--timeout=2"},
		"a flag of another verb":  {"check", "--on-maintenances=Complete"},
		"a flag of the manager's": {"check", "--leader-elect=false"},
	} {
		if code := runVerb(t.Context(), args[0], args[1:]); code != 2 {
			t.Errorf("%s: exit code %d, want 2", name, code)
		}
	}
	set := flag.NewFlagSet("check", flag.ContinueOnError)
	if err := runCheck(t.Context(), set, []string{"now"}, io.Discard); err == nil || err.Error() != `"now" is no flag` {
		t.Errorf("got %v", err)
	}
}
