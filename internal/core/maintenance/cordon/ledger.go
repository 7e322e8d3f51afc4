package cordon

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// uncordonWindow is how long a foreign uncordon is remembered.
	uncordonWindow = 10 * time.Minute
	// toleratedUncordons is how many of them in the window are no reason to
	// call the maintenance blocked.
	toleratedUncordons = 3
	// rememberedUncordons bounds the ledger.
	rememberedUncordons = 10
	// recordedHolders bounds it, too: an update of a node may not become too long.
	recordedHolders = 64
)

// Ledger is what a node was before its maintenance and who holds it. It is
// written in one update with the cordon, so a node that has a ledger and is
// schedulable was made so by somebody else.
type Ledger struct {
	// WasUnschedulable is what the last holder restores.
	WasUnschedulable bool `json:"wasUnschedulable"`
	// Unknown is true if nobody knows what the node was: it is left cordoned.
	Unknown bool `json:"unknown,omitempty"`
	// Holders are the names of maintenances that hold the node, sorted; all of them up to
	// recordedHolders.
	Holders []string `json:"holders"`
	// ForeignUncordons are when somebody else made the node schedulable.
	ForeignUncordons []metav1.Time `json:"foreignUncordons,omitempty"`
	// Protected are by their keys the annotations by which autoscalers leave the node alone,
	// and what they were.
	Protected map[string]Protection `json:"protected,omitempty"`

	// unreadable is why the annotation cannot be parsed; nil if it can.
	unreadable error
}

// ReadLedger parses a value of v1alpha1.CordonAnnotation. One that cannot be parsed, or does
// not say what the node was, says that it was unschedulable: an unknown is never a yes.
func ReadLedger(text string) *Ledger {
	parsed := struct {
		Ledger

		WasUnschedulable *bool `json:"wasUnschedulable"`
	}{}
	err := json.Unmarshal([]byte(text), &parsed)
	if err == nil && parsed.WasUnschedulable == nil {
		err = errors.New("wasUnschedulable is missing")
	}
	if err != nil {
		return &Ledger{WasUnschedulable: true, Unknown: true, unreadable: err}
	}
	parsed.Ledger.WasUnschedulable = *parsed.WasUnschedulable
	maps.DeleteFunc(parsed.Protected, func(key string, p Protection) bool {
		return !slices.Contains(protections, key) || p.Was != nil && len(*p.Was) > maxWas
	})
	return &parsed.Ledger
}

// Of is the ledger of a node; nil if it has none.
func Of(node *corev1.Node) *Ledger {
	text, present := node.Annotations[v1alpha1.CordonAnnotation]
	if !present {
		return nil
	}
	return ReadLedger(text)
}

// Holders are the names of the maintenances that hold a node, as its ledger has
// them; none if it cannot be read.
func Holders(node *corev1.Node) []string {
	if held := Of(node); held != nil {
		return held.Holders
	}
	return nil
}

// GivenBack returns whether a node that maintenances hold is unschedulable once nobody
// holds it any more, and whether its ledger says so; held is false without a ledger.
func GivenBack(node *corev1.Node) (unschedulable, known, held bool) {
	ledger := Of(node)
	if ledger == nil {
		return node.Spec.Unschedulable, true, false
	}
	return ledger.back(node), !ledger.Unknown, true
}

// Lists returns true if the ledger names the maintenance.
func (l *Ledger) Lists(name string) bool { return l != nil && slices.Contains(l.Holders, name) }

// name chooses which holders the ledger names: first those that it has named already, as
// one that is not understood any more is known by nothing else.
func (l *Ledger) name(holders []string) []string {
	if len(holders) <= recordedHolders {
		return holders
	}
	listed := slices.DeleteFunc(slices.Clone(holders), func(name string) bool { return !l.Lists(name) })
	others := slices.DeleteFunc(slices.Clone(holders), l.Lists)
	named := slices.Concat(listed, others)[:recordedHolders]
	slices.Sort(named)
	return named
}

// text renders the ledger.
func (l *Ledger) text() string {
	// Strings, booleans and times always marshal.
	text, _ := json.Marshal(l)
	return string(text)
}

// recent are the foreign uncordons of the window before now. Another manager's
// clock may be ahead, but not by a whole window.
func (l *Ledger) recent(now time.Time) []metav1.Time {
	var recent []metav1.Time
	for _, at := range l.ForeignUncordons {
		if now.Sub(at.Time).Abs() < uncordonWindow {
			recent = append(recent, at)
		}
	}
	return recent[max(0, len(recent)-rememberedUncordons):]
}

// back is whether a node is unschedulable when its last holder has left it. What nobody
// knows stays as it is; one that somebody has made schedulable in the meantime stays so.
func (l *Ledger) back(node *corev1.Node) bool {
	return node.Spec.Unschedulable && (l.Unknown || l.WasUnschedulable)
}
