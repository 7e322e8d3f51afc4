package maintenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/event"
)

const (
	// uncordonWindow is how long a foreign uncordon is remembered.
	uncordonWindow = 10 * time.Minute
	// toleratedUncordons is how many of them in the window are no reason to
	// call the maintenance blocked.
	toleratedUncordons = 3
	// rememberedUncordons bounds the ledger.
	rememberedUncordons = 10
)

// ledger is what a node was before its maintenance and who holds it. It is
// written in one update with the cordon, so a node that has a ledger and is
// schedulable was made so by somebody else.
type ledger struct {
	// WasUnschedulable is what the last holder restores.
	WasUnschedulable bool `json:"wasUnschedulable"`
	// Unknown is true if nobody knows what the node was: it is left cordoned.
	Unknown bool `json:"unknown,omitempty"`
	// Holders are the names of the maintenances that hold the node, sorted.
	Holders []string `json:"holders"`
	// ForeignUncordons are when somebody else made the node schedulable.
	ForeignUncordons []metav1.Time `json:"foreignUncordons,omitempty"`
}

// readLedger parses the annotation. A ledger that does not say what the node was
// cannot be read.
func readLedger(text string) (ledger, error) {
	read := struct {
		ledger

		WasUnschedulable *bool `json:"wasUnschedulable"`
	}{}
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return ledger{}, err
	}
	if read.WasUnschedulable == nil {
		return ledger{}, errors.New("wasUnschedulable is missing")
	}
	read.ledger.WasUnschedulable = *read.WasUnschedulable
	return read.ledger, nil
}

// readLedger parses equal ledgers once.
func (p *pass) readLedger(text string) (ledger, error) {
	known, found := p.ledgers[text]
	if !found {
		known.ledger, known.err = readLedger(text)
		if known.err != nil {
			// An unknown is never a yes: whatever it was, it does not become schedulable.
			known.ledger = ledger{WasUnschedulable: true, Unknown: true}
		}
		p.ledgers[text] = known
	}
	return known.ledger, known.err
}

// parsedLedger is what reading a ledger has come to.
type parsedLedger struct {
	ledger ledger
	err    error
}

func (l ledger) lists(name string) bool { return slices.Contains(l.Holders, name) }

// write renders the ledger.
func (l ledger) write() string {
	// Strings, booleans and times always marshal.
	text, _ := json.Marshal(l)
	return string(text)
}

// recent are the foreign uncordons of the window before now. Another manager's
// clock may be ahead, but not by a whole window.
func (l ledger) recent(now time.Time) []metav1.Time {
	var recent []metav1.Time
	for _, at := range l.ForeignUncordons {
		if now.Sub(at.Time).Abs() < uncordonWindow {
			recent = append(recent, at)
		}
	}
	return recent[max(0, len(recent)-rememberedUncordons):]
}

// cordon is what becomes of the cordon of a site.
type cordon struct {
	// ledger is as observed; its holders are empty if there is none.
	ledger ledger
	change *CordonChange
	events []event.Event
	// foreign is true if somebody made the node schedulable just now, fought if
	// that happened too often.
	foreign, fought bool
	// fights is how often in the window.
	fights []metav1.Time
}

// newCordon decides about the cordon of a site.
func (p *pass) newCordon(s *site) cordon {
	text, present := s.node.Annotations[v1alpha1.CordonAnnotation]
	if !present {
		return p.firstCordon(s)
	}
	observed, err := p.readLedger(text)
	holders := p.holders(s, observed)
	if len(holders) == 0 {
		return restored(s, observed)
	}
	c := p.keptCordon(s, observed, holders)
	if err != nil {
		c.change = &CordonChange{Unschedulable: true, Ledger: c.wanted(holders).write()}
		c.events = append(c.events, event.LedgerUnreadable(s.node, err))
	}
	return c
}

// holders are the sorted names of those that hold the site. One that cannot be
// understood any more keeps what it holds: which nodes it means is unknown.
func (p *pass) holders(s *site, observed ledger) []string {
	holders := []string{}
	for _, one := range s.shares {
		if one.intent.holds() {
			holders = append(holders, one.intent.name())
		}
	}
	for _, i := range p.intents {
		if i.keepsUnread(observed) {
			holders = append(holders, i.name())
		}
	}
	slices.Sort(holders)
	return holders
}

// firstCordon is about a node without a ledger.
func (p *pass) firstCordon(s *site) cordon {
	holders := p.holders(s, ledger{})
	if len(holders) == 0 {
		return askedUncordon(s)
	}
	first := ledger{WasUnschedulable: s.node.Spec.Unschedulable, Holders: holders}
	c := cordon{change: &CordonChange{Unschedulable: true, Ledger: first.write()}}
	if !s.node.Spec.Unschedulable {
		c.events = []event.Event{event.NodeCordoned(s.node, holders)}
	}
	return c
}

// askedUncordon makes a node schedulable that we never cordoned, because a
// maintenance went from Idle straight to Complete.
func askedUncordon(s *site) cordon {
	if !s.node.Spec.Unschedulable {
		return cordon{}
	}
	for _, one := range s.shares {
		if i := one.intent; asksUncordon(i) {
			return cordon{
				change: &CordonChange{Unschedulable: false},
				events: []event.Event{event.NodeUncordoned(s.node, i.name())},
			}
		}
	}
	return cordon{}
}

// asksUncordon returns true if an administrator has set stage Complete where
// nothing was begun. A deletion alone does not ask for that.
func asksUncordon(i *intent) bool {
	if i.stage != v1alpha1.StageComplete || hasStarted(i.object, v1alpha1.StageCordon, v1alpha1.StageDrain) {
		return false
	}
	deleted := i.object.DeletionTimestamp
	return deleted == nil || slices.ContainsFunc(i.object.Status.StageStatuses, func(s v1alpha1.StageStatus) bool {
		return s.Name == v1alpha1.StageComplete && s.StartTimestamp.Before(deleted)
	})
}

// restored gives a node back that nobody holds any more.
func restored(s *site, observed ledger) cordon {
	c := cordon{ledger: observed}
	if observed.Unknown {
		c.change = &CordonChange{Unschedulable: s.node.Spec.Unschedulable}
		c.events = []event.Event{event.NodeLeftCordoned(s.node)}
		return c
	}
	c.change = &CordonChange{Unschedulable: observed.WasUnschedulable}
	c.events = []event.Event{event.NodeRestored(s.node, observed.WasUnschedulable)}
	return c
}

// keptCordon holds a node on for its holders.
func (p *pass) keptCordon(s *site, observed ledger, holders []string) cordon {
	now := p.snapshot.Now
	c := cordon{ledger: observed, fights: observed.recent(now), foreign: !s.node.Spec.Unschedulable}
	if c.foreign {
		c.fights = append(c.fights, metav1.NewTime(now).Rfc3339Copy())
		c.fights = c.fights[max(0, len(c.fights)-rememberedUncordons):]
		c.events = append(c.events, event.ForeignUncordon(s.node, holders))
		for _, one := range s.shares {
			if one.intent.holds() {
				c.events = append(c.events, event.ForeignUncordonOf(one.intent.object, s.node.Name))
			}
		}
	}
	if c.fought = len(c.fights) > toleratedUncordons; c.fought {
		p.requeue(c.fights[len(c.fights)-toleratedUncordons-1].Add(uncordonWindow))
	}
	if c.foreign || !slices.Equal(observed.Holders, holders) {
		c.change = &CordonChange{Unschedulable: true, Ledger: c.wanted(holders).write()}
	}
	return c
}

// wanted is the ledger of a node that stays held.
func (c cordon) wanted(holders []string) ledger {
	return ledger{
		WasUnschedulable: c.ledger.WasUnschedulable,
		Unknown:          c.ledger.Unknown,
		Holders:          holders,
		ForeignUncordons: c.fights,
	}
}

// blocker says who fights over the cordon of the site.
func (c cordon) blocker(s *site) v1alpha1.Blocker {
	return v1alpha1.Blocker{
		Type:      v1alpha1.BlockerForeignUncordon,
		Object:    blocker.OfNode(s.node),
		SinceTime: &c.fights[0],
		Message: fmt.Sprintf("Somebody made node %s schedulable %d times in the last 10 minutes; it is cordoned again each time.",
			s.node.Name, len(c.fights)),
		Suggestion: fmt.Sprintf("Find out who uncordons it and stop that, or complete the maintenance. The managers of its fields: kubectl get node %s -o yaml --show-managed-fields",
			s.node.Name),
	}
}
