package cordon

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// protects is the value that keeps an autoscaler from removing a node.
	protects = "true"
	maxWas   = 64
)

// protections are the annotations of autoscalers. Others in a ledger are ignored.
var protections = []string{v1alpha1.KarpenterDoNotDisruptAnnotation, v1alpha1.ScaleDownDisabledAnnotation}

// Protection records one of these annotations before its first maintenance.
type Protection struct {
	// Was is nil if the node did not have it.
	Was *string `json:"was,omitempty"`
	// Answered is true if a user changed our annotation: it is then left alone.
	Answered bool `json:"answered,omitempty"`
}

// protected holds what is done to these annotations on a node.
type protected struct {
	recorded map[string]Protection // in the ledger
	changes  map[string]*string    // nil removes one
	answered []string              // just now
	// differs is true if the ledger or the node has to be written.
	differs bool
}

// protect decides about the annotations. They are written in one update with the ledger.
func protect(n *Node) protected {
	p := protected{recorded: map[string]Protection{}}
	held := len(n.Holders) > 0
	// What an invalid maintenance wants is unknown, and removing a node is final.
	stays := n.Unclear || slices.ContainsFunc(n.HeldBy, func(m *v1alpha1.NodeMaintenance) bool {
		return m.Annotations[v1alpha1.AllowScaleDownAnnotation] != "true"
	})
	var ledger Ledger
	if n.Ledger != nil {
		ledger = *n.Ledger
	}
	for _, key := range protections {
		wanted := held && stays && slices.Contains(n.Protect, key)
		before, recorded := ledger.Protected[key]
		switch {
		case !recorded:
			if wanted {
				p.begin(key, n.Object.Annotations)
			}
		case !before.Answered && n.Object.Annotations[key] != protects:
			before.Answered = true
			p.answered = append(p.answered, key)
			p.recorded[key], p.differs = before, true
		case wanted, before.Answered && held:
			p.recorded[key] = before
		default:
			p.differs = true
			if !before.Answered {
				p.change(key, before.Was)
			}
		}
	}
	return p
}

// begin records an annotation and sets it.
func (p *protected) begin(key string, annotations map[string]string) {
	var before Protection
	value, present := annotations[key]
	if len(value) > maxWas {
		return
	}
	if present {
		before.Was = &value
	}
	p.recorded[key], p.differs = before, true
	if value != protects {
		p.change(key, new(protects))
	}
}

func (p *protected) change(key string, value *string) {
	if p.changes == nil {
		p.changes = map[string]*string{}
	}
	p.changes[key] = value
}

// Protections returns the annotations of a node that autoscalers read.
func Protections(node *corev1.Node) map[string]string {
	shown := map[string]string{}
	for _, key := range protections {
		if value, present := node.Annotations[key]; present {
			shown[key] = value
		}
	}
	return shown
}

// Unprotected returns the changes that restore these annotations; nil removes one.
func Unprotected(node *corev1.Node) map[string]*string {
	back, held := map[string]*string{}, Of(node)
	if held == nil {
		return back
	}
	for key, was := range held.Protected {
		if !was.Answered && node.Annotations[key] == protects {
			back[key] = was.Was
		}
	}
	return back
}
