// Package maintenance decides, over NodeMaintenances that share nodes, what
// happens to every node and what every status says (KEP-4212).
//
// Three values follow one another, each built from the one before and not changed
// after: what is seen (objects parsed, pods classified), what is targeted (how far
// each drain plan has come, which pods have to leave each node and whose turn it
// is), and the Decision, what is done and said. A selection is a node that a
// maintenance selects. A maintenance counts the pods that it waits for: those down
// to its own drainDepth that are neither finished nor retained. A node loses the
// pods that its target covers and some maintenance counts, so maintenances of
// different depths share a node, and one that is through holds nobody back.
//
// Invariants: a target never shrinks, also over restarts; a node is restored once,
// by its last holder; nothing unknown (pods that were not read, a ledger that cannot
// be parsed, a spec that is not understood) counts as a yes; the order of the
// snapshot makes no difference, and the snapshot is not changed.
package maintenance
