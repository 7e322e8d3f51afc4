package scenario

import (
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// kubectl uncordon tells who cordons a node under maintenance again, and the
// command that it names ends that.
func TestKubectlUncordonTellsHowToEndTheMaintenance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.maintain("disk", v1alpha1.StageCordon, []string{node})
	w.maintain("kernel", v1alpha1.StageCordon, []string{node})
	w.awaitHolders(node, w.name("disk"), w.name("kernel"))

	said, err := w.cluster.Kubectl(t, "uncordon", node)
	w.must("uncordon", err)

	_, command, told := strings.Cut(said, "for NodeMaintenances "+w.name("disk")+", "+w.name("kernel")+"; to end them: kubectl ")
	command, _, ends := strings.Cut(command, "; ")
	if !told || !ends {
		t.Fatalf("kubectl said %q, want how to end both maintenances", said)
	}
	said, err = w.cluster.Kubectl(t, strings.Fields(strings.ReplaceAll(command, "'", ""))...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", command, err, said)
	}
	w.awaitHolders(node)
	w.assertUnschedulable(node, false)
}
