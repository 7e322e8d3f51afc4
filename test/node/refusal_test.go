package node

import (
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox/machine"
)

// A node that does not boot says why, and where to look. Nothing is given to it then.
func TestLongANodeThatDoesNotBoot(t *testing.T) {
	dir := t.TempDir()
	rack, err := machine.Open(t.Context(), machine.Spec{Dir: dir, Programs: t.TempDir(), Nodes: []string{"node-1"}, Services: "10.0.0.0/16"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rack.Close(); err != nil {
			t.Error(err)
		}
	}()
	err = rack.BootNodes(t.Context(), func(string) (machine.Credentials, error) { return machine.Credentials{}, nil })
	want := "boot node-1: its init: start kubelet: containerd ended with status 127; see " + dir + "/node-1/init.log, and the logs in " + dir + "/node-1/disk/log"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if rack.IsOn("node-1") {
		t.Error("it is on")
	}
	const off = "import app.tar to node node-1: it is off"
	if err := rack.Import(t.Context(), "node-1", "app.tar"); err == nil || err.Error() != off {
		t.Errorf("got %v, want %s", err, off)
	}
}
