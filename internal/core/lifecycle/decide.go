// Package lifecycle decides the life of one Machine: what is made before its
// Node can run, and in which order everything goes when it is deleted
// (machine-deletion-process, machine-deletion-hooks).
package lifecycle

// Decide returns what happens next to the Machine.
func Decide(s Snapshot) Decision {
	return Decision{Status: *s.Machine.Status.DeepCopy()}
}
