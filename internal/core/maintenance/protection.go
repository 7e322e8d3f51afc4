package maintenance

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
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

// protection is what one of these annotations was before its first maintenance.
type protection struct {
	// Was is its value; nil if the node did not have it.
	Was *string `json:"was,omitempty"`
	// Answered is true if somebody has changed or removed ours. That is their wish: it is
	// neither written again nor taken back.
	Answered bool `json:"answered,omitempty"`
}

// shield is what becomes of the annotations of a node.
type shield struct {
	// recorded is what the ledger has to say of them.
	recorded map[string]protection
	// changes are the annotations to be written; nil removes one.
	changes map[string]*string
	// answered are those of which somebody has just said otherwise.
	answered []string
	// differs is true if that is not what the ledger and the node show.
	differs bool
}

// shieldOf decides about the annotations of a node that somebody holds, or nobody any more. The
// ledger and the annotations are written in one update, so that what is recorded was ours.
func (t *targeted) shieldOf(n *node) shield {
	s := shield{}
	for _, key := range protections {
		wanted := len(n.holders) > 0 && slices.Contains(t.Protect, key) && n.mayNotGo()
		if before, recorded := n.recordedProtection(key); recorded {
			s.keep(n, key, before, wanted)
		} else if wanted {
			s.begin(n, key)
		}
	}
	return s
}

// begin writes down what an annotation is, and has it be ours.
func (s *shield) begin(n *node, key string) {
	var before protection
	value, present := n.object.Annotations[key]
	if len(value) > maxWas {
		return
	}
	if present {
		before.Was = &value
	}
	s.differs = true
	s.record(key, before, true)
	if value != protects {
		s.change(key, new(protects))
	}
}

// keep decides about an annotation that was written before.
func (s *shield) keep(n *node, key string, before protection, wanted bool) {
	held := len(n.holders) > 0
	switch {
	case !before.Answered && n.object.Annotations[key] != protects:
		before.Answered = true
		s.answered, s.differs = append(s.answered, key), true
		s.record(key, before, held)
	case wanted, before.Answered && held:
		s.record(key, before, true)
	default:
		s.differs = true
		if !before.Answered {
			s.change(key, before.Was)
		}
	}
}

func (s *shield) record(key string, what protection, held bool) {
	if !held {
		return
	}
	if s.recorded == nil {
		s.recorded = map[string]protection{}
	}
	s.recorded[key] = what
}

func (s *shield) change(key string, value *string) {
	if s.changes == nil {
		s.changes = map[string]*string{}
	}
	s.changes[key] = value
}

func (n *node) recordedProtection(key string) (protection, bool) {
	if n.ledger == nil {
		return protection{}, false
	}
	p, recorded := n.ledger.Protected[key]
	return p, recorded
}

// mayNotGo returns true if some maintenance that holds the node wants it to stay when it is
// empty. What one that is not understood wants is unknown, and removing a node is for good.
func (n *node) mayNotGo() bool {
	return n.unclear || slices.ContainsFunc(n.selections, func(one *selection) bool {
		return one.maintenance.holds() && one.maintenance.object.Annotations[v1alpha1.AllowScaleDownAnnotation] != "true"
	})
}

// events tell of autoscalers that are let at a node by somebody.
func (s *shield) events(n *node) []event.Event {
	events := make([]event.Event, 0, len(s.answered))
	for _, key := range s.answered {
		events = append(events, event.ScaleDownAllowed(n.object, key))
	}
	return events
}

// Protection are those annotations of a node that autoscalers read.
func Protection(node *corev1.Node) map[string]string {
	var shown map[string]string
	for _, key := range protections {
		if value, present := node.Annotations[key]; present {
			if shown == nil {
				shown = map[string]string{}
			}
			shown[key] = value
		}
	}
	return shown
}

// Unprotected are the annotations of a node that autoscalers read, as they are to be once
// nobody holds it any more; nil removes one. What somebody has changed meanwhile stays.
func Unprotected(node *corev1.Node) map[string]*string {
	held, err := readLedger(node.Annotations[v1alpha1.CordonAnnotation])
	if err != nil {
		return nil
	}
	var back map[string]*string
	for _, key := range protections {
		was, recorded := held.Protected[key]
		if !recorded || was.Answered || node.Annotations[key] != protects {
			continue
		}
		if back == nil {
			back = map[string]*string{}
		}
		back[key] = was.Was
	}
	return back
}
