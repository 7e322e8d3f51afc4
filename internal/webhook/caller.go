package webhook

import (
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// callers remembers for a moment which pods those who call the eviction API are
// waiting for. They call by name, and a pod of a StatefulSet that has moved comes
// back under its name. Whoever loses this memory asks for that pod, too.
type callers = memory[caller, types.UID]

// caller is a user who wants pods of a name gone.
type caller struct {
	user string
	pod  types.NamespacedName
}

func newCallers() *callers { return newMemory[caller, types.UID](evacuation.CallerPatience) }
