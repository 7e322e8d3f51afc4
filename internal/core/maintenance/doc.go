// Package maintenance decides, over all NodeMaintenances at once, what happens
// to every node under maintenance and what every status says (KEP-4212).
//
// Its words: an intent is a NodeMaintenance in a pass, a site is a node in a
// pass, and a share is what one intent has to do with one site. An intent counts
// the pods that it waits for: those down to its own drainDepth that are neither
// done nor retained. A site evacuates the pods that its target covers and some
// intent counts; so intents of different depths share a node, each is drained
// when its own pods are gone, and a finished one holds nobody back. An intent in
// place leaves pods on its sites and is drained when, besides, their budgets are
// locked; no plan waits for locks.
//
// Invariants: a target never shrinks, also over restarts; a node is restored
// once, by its last holder; nothing unknown (pods that were not read, a ledger
// that cannot be parsed, a selector that is not understood) counts as a yes; the
// order of the snapshot makes no difference, and the snapshot is not changed.
package maintenance
