package scenario

import (
	"ebbtide.dev/ebbtide/test/cluster"
)

const (
	myApp   = "myapp"
	yourApp = "yourapp"
)

// drain is kubectl drain of a node.
func (w *world) drain(node, timeout string) *cluster.Kubectl {
	w.t.Helper()
	return w.cluster.StartKubectl(w.t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout="+timeout)
}

// awaitSaid waits until kubectl has printed the words.
func (w *world) awaitSaid(k *cluster.Kubectl, words string) {
	w.t.Helper()
	w.eventually("kubectl to say "+words, func() (bool, any) { return contains(k.Output(), words), k.Output() })
}
