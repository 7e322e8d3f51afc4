package main

import (
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// What is no verb and what no verb knows runs nothing, least of all the manager.
func TestVerbsThatAreNotUnderstood(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	for name, args := range map[string][]string{
		"no verb":                 {"uninstal"},
		"no such flag":            {"uninstall", "--on-maintenance=Complete"},
		"no such mode":            {"uninstall", "--on-maintenances=complete"},
		"no such phase":           {"certificate", "--phase=during"},
		"no duration":             {"uninstall", "--timeout=2"},
		"a flag of another verb":  {"check", "--on-maintenances=Complete"},
		"a flag of the manager's": {"check", "--leader-elect=false"},
	} {
		if code := runVerb(t.Context(), args[0], args[1:]); code != 2 {
			t.Errorf("%s: exit code %d, want 2", name, code)
		}
	}
	set := flag.NewFlagSet("check", flag.ContinueOnError)
	if err := runCheck(t.Context(), set, []string{"now"}, io.Discard); err == nil || err.Error() != `unexpected argument "now"` {
		t.Errorf("got %v", err)
	}
}

// A job that is evicted is tried again, and one that refuses is not: they end with
// different codes.
func TestAVerbThatIsInterrupted(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts: [{name: here, context: {cluster: here}}]\n" +
		"clusters: [{name: here, cluster: {server: 'http://127.0.0.1:1'}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	ctx, cancel := context.WithCancel(t.Context())
	if code := runVerb(ctx, "uninstall", nil); code != 1 {
		t.Errorf("without an API server: exit code %d, want 1", code)
	}
	cancel()
	for name := range verbs {
		if code := runVerb(ctx, name, nil); code != 3 {
			t.Errorf("%s, interrupted: exit code %d, want 3", name, code)
		}
	}
}
