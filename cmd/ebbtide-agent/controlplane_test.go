//go:build linux

package main

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

func TestFlagsOfTheControlPlane(t *testing.T) {
	for args, want := range map[string]string{
		"--control-plane-pods=Terminate":                        "--control-plane-pods=Terminate needs --host: an agent in a pod does not start without an API server",
		"--control-plane-pods=terminate --host":                 `--control-plane-pods="terminate" is neither Retain nor Terminate`,
		"--control-plane-restore-after=59s":                     "--control-plane-restore-after=59s has to be from 1m0s to 24h0m0s",
		"--control-plane-restore-after=25h":                     "--control-plane-restore-after=25h0m0s has to be from 1m0s to 24h0m0s",
		"--control-plane-restore-after=0":                       "--control-plane-restore-after=0s has to be from 1m0s to 24h0m0s",
		"--namespace=Ebb":                                       `--namespace="Ebb" is the name of no namespace`,
		"--namespace=":                                          `--namespace="" is the name of no namespace`,
		"--host --node-name=" + strings.Repeat("n.", 120) + "n": "is too long for the name of a Lease, which --host needs",
	} {
		if f, err := parse(append([]string{"--node-name=n"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", args, f.controlPlane, err, want)
		}
	}
	f, err := parse("--node-name=n", "--host", "--control-plane-pods=Terminate", "--control-plane-restore-after=1m", "--namespace=tides")
	if want := (controlPlane{pods: "Terminate", namespace: "tides", restoreAfter: time.Minute, host: true}); err != nil || f.controlPlane != want {
		t.Errorf("they are %+v, %v; want %+v", f.controlPlane, err, want)
	}
}

// The agent knows by the address whether it asks the API server of its own node.
func TestTheAddressOfTheAPIServer(t *testing.T) {
	for server, want := range map[string]string{
		"https://api.example.com:6443/k8s": "api.example.com", "https://127.0.0.1:6443": "127.0.0.1", "https://[::1]:6443": "::1",
		"192.0.2.7:6443": "192.0.2.7", "localhost": "localhost", "https://%zz": "",
	} {
		c := controlPlane{pods: "Terminate"}
		if o := c.options(&rest.Config{Host: server}); o.Address != want || !o.Terminate || o.Hostname == "" {
			t.Errorf("of %s it is %+v, want address %s", server, o, want)
		}
	}
}

// A pod that says that it is a unit of its host would be believed.
func TestAPodIsNoUnitOfAHost(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
	if _, err := parse("--node-name=n", "--host"); err == nil || !strings.Contains(err.Error(), "--host is for a unit of a host, and this is a pod") {
		t.Errorf("in a pod: %v", err)
	}
	if _, err := parse("--node-name=n"); err != nil {
		t.Errorf("in a pod, without it: %v", err)
	}
}

// The unit of docs/host-agent.md starts an agent as the page has it.
func TestTheUnitOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/host-agent.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\nExecStart=")
	line, _, _ := strings.Cut(strings.ReplaceAll(rest, "\\\n", ""), "\n")
	words := strings.Fields(line)
	if !found || words[0] != "/usr/local/bin/ebbtide-agent" {
		t.Fatalf("the unit starts %q", line)
	}
	set := flag.NewFlagSet("ebbtide-agent", flag.ContinueOnError)
	config.RegisterFlags(set)
	f, err := parseFlags(set, words[1:])
	if err != nil || f.nodeName != "node-7" || !f.controlPlane.host || f.controlPlane.pods != terminate || set.Lookup("kubeconfig").Value.String() != "/etc/ebbtide/agent.kubeconfig" {
		t.Errorf("it is read as %+v, %v", f, err)
	}
}
