package bridge

import "ebbtide.dev/ebbtide/api/v1alpha1"

// Progress holds the fields of a NodeMaintenance that a decision depends on.
type Progress struct {
	bridge                Name
	namespace, name, node string
	uids                  string
	stage                 v1alpha1.NodeMaintenanceStage
	ending, counts, done  bool
	paused                bool
}

// ReadProgress reads a NodeMaintenance.
func ReadProgress(m *v1alpha1.NodeMaintenance) Progress {
	p := Progress{
		node: NodeUnder(m), uids: m.Annotations[v1alpha1.BridgeUIDsAnnotation], stage: m.Spec.Stage,
		ending: m.DeletionTimestamp != nil, done: drained(m), paused: Paused(m),
	}
	p.bridge, p.namespace, p.name = MachineOf(m)
	_, p.counts = left(m)
	return p
}
