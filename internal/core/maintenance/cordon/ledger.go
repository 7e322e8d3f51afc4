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
	// uncordonWindow limits how long a foreign uncordon is remembered.
	uncordonWindow = 10 * time.Minute
	// toleratedUncordons is the number in the window that does not block the maintenance.
	toleratedUncordons = 3
	// rememberedUncordons and recordedHolders bound the ledger.
	rememberedUncordons = 10
	recordedHolders     = 64
)

// Ledger records what a node was before its maintenance and which maintenances hold it. It is
// written in one update with the cordon, so a schedulable node with a ledger was uncordoned by
// another client.
type Ledger struct {
	WasUnschedulable bool `json:"wasUnschedulable"`
	// Unknown is true if it is unknown what the node was: it is left cordoned.
	Unknown bool `json:"unknown,omitempty"`
	// Holders are the sorted names of the maintenances that hold the node, at most recordedHolders.
	Holders          []string      `json:"holders"`
	ForeignUncordons []metav1.Time `json:"foreignUncordons,omitempty"`
	// Protected records the annotations of autoscalers, by key.
	Protected map[string]Protection `json:"protected,omitempty"`

	unreadable error
}

// ReadLedger parses v1alpha1.CordonAnnotation. If it is invalid, the node counts as unschedulable.
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

// Of returns the ledger of a node; nil if it has none.
func Of(node *corev1.Node) *Ledger {
	text, present := node.Annotations[v1alpha1.CordonAnnotation]
	if !present {
		return nil
	}
	return ReadLedger(text)
}

// Holders returns the names in the ledger of a node; none if it cannot be read.
func Holders(node *corev1.Node) []string {
	if held := Of(node); held != nil {
		return held.Holders
	}
	return nil
}

// GivenBack returns whether a node is unschedulable once it is no longer held, and whether its
// ledger says so; held is false without a ledger.
func GivenBack(node *corev1.Node) (unschedulable, known, held bool) {
	ledger := Of(node)
	if ledger == nil {
		return node.Spec.Unschedulable, true, false
	}
	return ledger.back(node), !ledger.Unknown, true
}

// Lists returns true if the ledger names the maintenance.
func (l *Ledger) Lists(name string) bool { return l != nil && slices.Contains(l.Holders, name) }

// name chooses the holders that the ledger names, first those that it names already.
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

func (l *Ledger) text() string {
	// Strings, booleans and times always marshal.
	text, _ := json.Marshal(l)
	return string(text)
}

// recent returns the foreign uncordons of the window, with some clock skew.
func (l *Ledger) recent(now time.Time) []metav1.Time {
	var recent []metav1.Time
	for _, at := range l.ForeignUncordons {
		if now.Sub(at.Time).Abs() < uncordonWindow {
			recent = append(recent, at)
		}
	}
	return recent[max(0, len(recent)-rememberedUncordons):]
}

// back returns whether a node is unschedulable when its last holder has left it. If that is
// unknown it stays as it is, and a node that was uncordoned in the meantime stays schedulable.
func (l *Ledger) back(node *corev1.Node) bool {
	return node.Spec.Unschedulable && (l.Unknown || l.WasUnschedulable)
}
