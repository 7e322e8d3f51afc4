// Package drainlock decides how the disruption budgets of the pods that stay on a
// node are locked while the node is away, and given free again
// (skip-drain-on-upgrade).
//
// It goes by what is in the API alone: the DrainRecord of the node says what is
// needed, the annotation of each budget who has it, and the mutex who may take
// locks now. One decision is at most one write besides the status, and each can
// be the last one of a manager: the next goes on from there.
//
// Invariants: a lock is taken only under the mutex, or while its holder asks for none
// of the same budgets, in the order of namespace and name, and only while the budget
// allows every ready pod that stays under it to go down; the mutex is held only while
// locks are being taken; whoever cannot take all gives back what it took; a lock that
// was confirmed stays until its pods are gone, or known to be ready since the node was
// away; of those that can go the one that has waited longest goes first; nothing is
// locked for ever.
package drainlock
