package maintenance

import (
	"crypto/sha256"
	"fmt"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
)

const (
	shutdownPrefix = "node-shutdown-"
	// longestName is how long the name of an object may be.
	longestName = 253
	// hashLength is how many digits of a hash end a name that would be longer.
	hashLength = 32
)

// ShutdownName is the name of the NodeMaintenance for the shutdown of a node. One that would be
// too long has a dot after "node-shutdown", as that of no other node has, and ends in a hash.
func ShutdownName(node string) string {
	if len(shutdownPrefix+node) <= longestName {
		return shutdownPrefix + node
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(node)))[:hashLength]
	return ("node-shutdown." + node)[:longestName-hashLength] + sum
}

// OfShutdown is the node for whose shutdown the manager has made a maintenance: it has the
// label and the name, and selects that node by its name. It is empty for all others.
func OfShutdown(m *v1alpha1.NodeMaintenance) string {
	if m.Labels[v1alpha1.CreatedByLabel] != v1alpha1.CreatedByNodeAgent {
		return ""
	}
	if node := bridge.NodeUnder(m); node != "" && m.Name == ShutdownName(node) {
		return node
	}
	return ""
}

// leavesPodsToTheKubelet returns true if the node goes down with a kubelet that ends all
// of its pods itself: nobody is asked to leave, but those of DaemonSets must not be made
// again meanwhile (KEP-4212, "kubelet: Graceful Node Shutdown").
func (m *maintenance) leavesPodsToTheKubelet() bool {
	return m.stage == v1alpha1.StageCordon && OfShutdown(m.object) != ""
}
