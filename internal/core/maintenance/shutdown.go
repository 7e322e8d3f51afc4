package maintenance

import (
	"crypto/sha256"
	"fmt"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
)

const (
	shutdownPrefix = "node-shutdown-"
	longestName    = 253 // of an object
	// hashLength is the length of the hash that ends a name that would be longer.
	hashLength = 32
)

// ShutdownName returns the name of the NodeMaintenance for the shutdown of a node. A name that
// would be too long has a dot after "node-shutdown", unlike all others, and ends in a hash.
func ShutdownName(node string) string {
	if len(shutdownPrefix+node) <= longestName {
		return shutdownPrefix + node
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(node)))[:hashLength]
	return ("node-shutdown." + node)[:longestName-hashLength] + sum
}

// OfShutdown returns the node if the manager created this maintenance for its shutdown; otherwise
// "".
func OfShutdown(m *v1alpha1.NodeMaintenance) string {
	if m.Labels[v1alpha1.CreatedByLabel] != v1alpha1.CreatedByNodeAgent {
		return ""
	}
	if node := bridge.NodeUnder(m); node != "" && m.Name == ShutdownName(node) {
		return node
	}
	return ""
}
