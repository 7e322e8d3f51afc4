// Package nodeagent decides how the node agent stops and restarts static pods, by renaming
// their manifests (KEP-4212, "kubelet: Static Pods"). A pod stops when its Evacuation is at the
// agent and the Node, freshly read, lists it. It starts again when the Node no longer does.
// Unknown moves nothing. No file is ever deleted, and the name of a renamed file alone is
// enough to restore it. Control plane pods stop only if another API server stays up.
package nodeagent
