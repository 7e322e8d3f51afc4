// Package placement estimates where the scheduler would place a pod, or why it fits nowhere. It
// has the filters of the default scheduler and one of its scores: the least filled node. Pods of
// another scheduler, with device claims or with unread volumes get no node and a reason that
// IsUnknown recognizes; Ignores lists what else is left out. Equal pods share one search, which
// keeps 20,000 pods on 1,000 nodes affordable.
package placement
