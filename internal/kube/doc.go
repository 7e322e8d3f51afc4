// Package kube is the I/O that all shells share: what the cache keeps of each object, the
// indexes, and the few writes that need care. It decides nothing. A write carries the resource
// version that the decision was made on wherever others may write the same field, so a stale
// decision is refused and made again. No function changes its arguments.
package kube
