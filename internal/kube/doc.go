// Package kube is the only I/O that the shells share: what the cache keeps of
// every object, how it is indexed, and the few writes that need care.
//
// It decides nothing. A write takes the object that a decision was made on and
// carries its resource version wherever somebody else may write the same field,
// so that a decision on old state is refused with a conflict and made again.
// Objects that come from the cache are shared: nothing here changes its
// arguments, every write returns the object as the API server stored it.
package kube
