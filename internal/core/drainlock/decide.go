package drainlock

// Decide returns what happens next to the locks of the node.
func Decide(s Snapshot) Decision {
	return Decision{}
}
