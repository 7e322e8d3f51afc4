// Package maintenance decides what happens to every node that NodeMaintenances share, and what
// their statuses say (KEP-4212). It builds three values, each from the one before: what is seen,
// which pods have to leave each node, and the Decision. A target never shrinks, and the last
// holder of a node restores it. Unknown is never a yes, the order of the snapshot makes no
// difference, and the snapshot is not changed.
package maintenance
