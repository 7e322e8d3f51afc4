// Package nodeagent decides how the agent of a node takes static pods down and brings
// them back (KEP-4212, "kubelet: Static Pods"): by renaming their manifests in the folder
// of the kubelet.
//
// A pod leaves if its Evacuation is at the agent's turn and the Node names it among what
// has to leave. It comes back when the Node does not, and for no other reason: what is
// unknown (the Node, the folder, what the annotation says) moves nothing. Both are asked of
// a Node that was just read from the API server, never of a cache.
//
// It refuses to touch pods that come from elsewhere, such whose manifest it cannot tell for
// sure, and pods of the control plane unless an API server of another host goes on. These
// alone come back without an answer, when no API server has given one for long.
//
// Invariants: no file is ever deleted, or written over but by what somebody else has
// written in its place; the name of a file that is put aside tells all that is needed to
// put it back, and the journal only explains it.
package nodeagent
