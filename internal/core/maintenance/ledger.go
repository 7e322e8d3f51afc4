package maintenance

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// ledger is what a node was before its maintenance and who holds it. It is
// written in one update with the cordon, so a node that has a ledger and is
// schedulable was made so by somebody else.
type ledger struct {
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
	Protected map[string]protection `json:"protected,omitempty"`

	// unreadable is why the annotation cannot be parsed; nil if it can.
	unreadable error
	// names are Holders, for looking them up.
	names map[string]bool
}

// readLedger parses the annotation. A ledger that does not say what the node was
// cannot be read.
func readLedger(text string) (ledger, error) {
	parsed := struct {
		ledger

		WasUnschedulable *bool `json:"wasUnschedulable"`
	}{}
	if err := json.Unmarshal([]byte(text), &parsed); err != nil {
		return ledger{}, err
	}
	if parsed.WasUnschedulable == nil {
		return ledger{}, errors.New("wasUnschedulable is missing")
	}
	parsed.ledger.WasUnschedulable = *parsed.WasUnschedulable
	maps.DeleteFunc(parsed.Protected, func(key string, p protection) bool {
		return !slices.Contains(protections, key) || p.Was != nil && len(*p.Was) > maxWas
	})
	return parsed.ledger, nil
}

// ledger parses equal ledgers once. One that cannot be parsed says that the node
// was unschedulable: an unknown is never a yes.
func (r *reader) ledger(text string) *ledger {
	known, found := r.ledgers[text]
	if !found {
		parsed, err := readLedger(text)
		if err != nil {
			parsed = ledger{WasUnschedulable: true, Unknown: true, unreadable: err}
		}
		parsed.names = make(map[string]bool, len(parsed.Holders))
		for _, name := range parsed.Holders {
			parsed.names[name] = true
		}
		known = &parsed
		r.ledgers[text] = known
	}
	return known
}

// listedHolders are the holders of a node that its ledger names: first those that it has named
// already, as one that is not understood any more is known by nothing else.
func (n *node) listedHolders() []string {
	if len(n.holders) <= recordedHolders {
		return n.holders
	}
	named := slices.Clone(n.holders)
	slices.SortStableFunc(named, func(a, b string) int {
		return cmp.Compare(ones(!n.ledger.lists(a)), ones(!n.ledger.lists(b)))
	})
	named = named[:recordedHolders]
	slices.Sort(named)
	return named
}

// lists returns true if the maintenance of this name holds the node.
func (l *ledger) lists(name string) bool { return l != nil && l.names[name] }

// text renders the ledger.
func (l ledger) text() string {
	// Strings, booleans and times always marshal.
	text, _ := json.Marshal(l)
	return string(text)
}

// recent are the foreign uncordons of the window before now. Another manager's
// clock may be ahead, but not by a whole window.
func (l *ledger) recent(now time.Time) []metav1.Time {
	var recent []metav1.Time
	for _, at := range l.ForeignUncordons {
		if now.Sub(at.Time).Abs() < uncordonWindow {
			recent = append(recent, at)
		}
	}
	return recent[max(0, len(recent)-rememberedUncordons):]
}

// back is whether a node is unschedulable when its last holder has left it. What nobody
// knows stays as it is.
func (l *ledger) back(node *corev1.Node) bool {
	return node.Spec.Unschedulable && (l.Unknown || l.WasUnschedulable)
}
