package maintenance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// namedNodes is how many nodes a message names.
const namedNodes = 3

// messages says of every share what it does or what it waits for (KEP-4212).
func (p *pass) messages() {
	for _, s := range p.sites {
		turns := s.turns()
		for _, one := range s.drains {
			one.message = one.explain()
			if one.left > 0 {
				one.turns = turns
			}
		}
	}
}

func (s *share) explain() string {
	switch {
	case !s.site.known:
		return "Waiting for the pods of the node to be read."
	case s.done():
		return "Drained."
	case s.counted() == 0:
		return s.site.lock.waiting
	case s.left == 0:
		return waiting(s)
	}
	if s.side() < 0 {
		return fmt.Sprintf("Evacuating (limited by %s)", s.limiter().name())
	}
	if older := s.forwarder(); older != nil {
		return fmt.Sprintf("Evacuating (fast-forwarded by older %s)", older.name())
	}
	return "Evacuating"
}

// side is where the target of the site stands, seen from the intent: below 0 it
// lags behind the intent's entry, above 0 it is ahead.
func (s *share) side() int { return s.site.target.set.Top().Compare(s.intent.entry) }

// limiter is the intent that keeps the target of the site behind this one: the
// oldest other one at the entry that the target has come to, else the ruling
// one. An intent without pods left limits nobody.
func (s *share) limiter() *intent {
	if s.side() < 0 {
		top := s.site.target.set.Top()
		for _, other := range s.site.drains {
			if other != s && !other.intent.idle && other.intent.entry.Compare(top) == 0 {
				return other.intent
			}
		}
	}
	return s.site.ruling
}

// forwarder is the older intent that has brought the target of the site ahead of
// this one: the oldest at the entry that the target has come to, else the least
// that is further. It is nil if the target is not ahead, or if no older intent is
// as far: the target is history then.
func (s *share) forwarder() *intent {
	if s.side() <= 0 {
		return nil
	}
	top := s.site.target.set.Top()
	var least *intent
	for _, other := range s.site.drains {
		if other.intent.age >= s.intent.age {
			break
		}
		switch side := other.intent.entry.Compare(top); {
		case side == 0:
			return other.intent
		case side > 0 && (least == nil || other.intent.entry.Compare(least.entry) < 0):
			least = other.intent
		}
	}
	return least
}

// ask returns the shares whose pods an intent with pods left waits for, by site.
// They are its own as long as some evacuate; else those that its limiters wait
// for. A limiter is always less than the one that it limits, so this ends; and
// the least intent of all rules every site that it is on, so it never ends empty.
func (i *intent) ask() []*share {
	if i.asked {
		return i.answer
	}
	i.asked = true
	var limiters []*intent
	for _, one := range i.shares {
		if one.left > 0 || !one.site.known {
			i.answer = append(i.answer, one)
		}
		if limiter := one.limiter(); one.beyond && !slices.Contains(limiters, limiter) {
			limiters = append(limiters, limiter)
		}
	}
	if len(i.answer) > 0 {
		return i.answer
	}
	for _, limiter := range limiters {
		i.answer = append(i.answer, limiter.ask()...)
	}
	slices.SortStableFunc(i.answer, func(a, b *share) int {
		return cmp.Or(cmp.Compare(a.site.node.Name, b.site.node.Name), cmp.Compare(a.intent.age, b.intent.age))
	})
	i.answer = slices.CompactFunc(i.answer, func(a, b *share) bool { return a.site == b.site })
	return i.answer
}

// waiting names the sites that a share without pods under its target waits for.
func waiting(s *share) string {
	asked := s.intent
	if s.side() < 0 {
		asked = s.limiter()
	}
	answer := asked.ask()
	named := answer[:min(len(answer), namedNodes)]
	foreign := slices.ContainsFunc(answer, func(one *share) bool { return one.intent != answer[0].intent })
	words := make([]string, 0, len(named))
	for _, one := range named {
		word := one.site.node.Name
		if foreign {
			word += of(one, s)
		}
		words = append(words, word)
	}
	text := "Waiting for node " + strings.Join(words, ", ")
	if len(answer) > 1 {
		text = "Waiting for nodes " + strings.Join(words, ", ")
	}
	if more := len(answer) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if !foreign && len(answer) > 0 {
		text += of(answer[0], s)
	}
	return text + "."
}

// of names the maintenance that a share belongs to, if it is another one.
func of(one, seenFrom *share) string {
	if one.intent == seenFrom.intent {
		return ""
	}
	return fmt.Sprintf(" (%s)", one.intent.name())
}
