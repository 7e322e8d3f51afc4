// Package agent runs beside the kubelet of a node and takes static pods down, as the
// evacuator of class kubelet.k8s.io: one loop that observes the node, has core/nodeagent
// decide, writes down what it is going to do, renames manifests, and reports.
//
// It watches the folder of the kubelet and, of the API, what belongs to its node. Without
// an API server it changes nothing. What others have put into the folder, however large or
// odd, neither stops it nor fills its memory; only regular files are opened.
//
// Invariants: a rename is written down, and that is on disk, before it is made; it may be
// killed behind any system call and goes on from what the folder says.
package agent
