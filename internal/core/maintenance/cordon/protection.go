package cordon

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// protects is the value of an annotation by which an autoscaler leaves a node alone.
	protects = "true"
	// maxWas is how long a value of an annotation may be that is written down. Nobody reads
	// a longer one as a switch, so that it is left alone.
	maxWas = 64
)

// protections are the annotations by which autoscalers leave nodes alone. A ledger that names
// others is not followed.
var protections = []string{v1alpha1.KarpenterDoNotDisruptAnnotation, v1alpha1.ScaleDownDisabledAnnotation}

// Protection is what one of these annotations was before its first maintenance.
type Protection struct {
	// Was is its value; nil if the node did not have it.
	Was *string `json:"was,omitempty"`
	// Answered is true if somebody has changed or removed ours. That is their wish: it is
	// neither written again nor taken back.
	Answered bool `json:"answered,omitempty"`
}

// protected is what becomes of these annotations on a node.
type protected struct {
	// recorded is what the ledger has to say of them.
	recorded map[string]Protection
	// changes are the annotations to be written; nil removes one.
	changes map[string]*string
	// answered are those of which somebody has just said otherwise.
	answered []string
	// differs is true if that is not what the ledger and the node show.
	differs bool
}

// protect decides about the annotations. The ledger and the annotations are written in one
// update, so that what is recorded was ours.
func protect(n *Node) protected {
	p := protected{recorded: map[string]Protection{}}
	held, stays := len(n.Holders) > 0, mayNotGo(n)
	for _, key := range protections {
		wanted := held && stays && slices.Contains(n.Protect, key)
		before, recorded := n.recordedProtection(key)
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

// begin writes down what an annotation is, and has it be ours.
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

func (n *Node) recordedProtection(key string) (Protection, bool) {
	if n.Ledger == nil {
		return Protection{}, false
	}
	p, recorded := n.Ledger.Protected[key]
	return p, recorded
}

// mayNotGo returns true if some maintenance that holds the node wants it to stay when it is
// empty. What one that is not understood wants is unknown, and removing a node is for good.
func mayNotGo(n *Node) bool {
	return n.Unclear || slices.ContainsFunc(n.HeldBy, func(m *v1alpha1.NodeMaintenance) bool {
		return m.Annotations[v1alpha1.AllowScaleDownAnnotation] != "true"
	})
}

// Protections are those annotations of a node that autoscalers read.
func Protections(node *corev1.Node) map[string]string {
	shown := map[string]string{}
	for _, key := range protections {
		if value, present := node.Annotations[key]; present {
			shown[key] = value
		}
	}
	return shown
}

// Unprotected are the annotations of a node that autoscalers read, as they are to be once
// nobody holds it any more; nil removes one. What somebody has changed meanwhile stays.
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
