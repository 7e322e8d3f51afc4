package rollout

import (
	"fmt"
	"strings"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// maxNamed is the number of unavailable nodes that a message names.
const maxNamed = 3

// limit bounds how many nodes are unavailable at the same time, and keeps them in one domain.
type limit struct {
	// of begins each message.
	of             string
	maxUnavailable int
	topologyKey    string
	// unavailable are the nodes that count, domains counts them by domain.
	unavailable map[*node]bool
	named       []*node
	domains     map[string]int
	messages    map[string]string // by reason
}

func newLimit(of string, maxUnavailable int, topologyKey string) *limit {
	return &limit{
		of: of, maxUnavailable: maxUnavailable, topologyKey: topologyKey,
		unavailable: map[*node]bool{}, domains: map[string]int{}, messages: map[string]string{},
	}
}

// domain returns the topology domain of a node; empty if it has none, or if domains do not matter.
func (n *node) domain(key string) string {
	if key == "" {
		return ""
	}
	return n.Labels[key]
}

// add counts a node as unavailable.
func (l *limit) add(n *node) {
	if l.unavailable[n] {
		return
	}
	l.unavailable[n] = true
	clear(l.messages)
	l.domains[n.domain(l.topologyKey)]++
	if len(l.named) <= maxNamed {
		l.named = append(l.named, n)
	}
}

// refusal returns why a node must not start beside those that are unavailable.
func (l *limit) refusal(n *node) refusal {
	others, inDomain := len(l.unavailable), l.domains[n.domain(l.topologyKey)]
	if l.unavailable[n] {
		others--
		inDomain--
	}
	switch {
	case others > inDomain:
		return l.refuse(n, v1alpha1.RolloutWaitsForDomain, func() string {
			return fmt.Sprintf("Unavailable: %s. Only nodes of one domain of %s may be.", l.list(n, others), l.topologyKey)
		})
	case others >= l.maxUnavailable:
		return l.refuse(n, v1alpha1.RolloutWaitsForUnavailable, func() string {
			return fmt.Sprintf("Unavailable: %s. At most %s may be.", l.list(n, others), phrase.Count(l.maxUnavailable, "node"))
		})
	}
	return refusal{}
}

// refuse returns a refusal with a message that is the same for all nodes that are available.
func (l *limit) refuse(n *node, reason string, message func() string) refusal {
	if l.unavailable[n] {
		return refusal{reason, l.of + message()}
	}
	if l.messages[reason] == "" {
		l.messages[reason] = l.of + message()
	}
	return refusal{reason, l.messages[reason]}
}

// list names some of the nodes that are unavailable beside this one, which may be nil.
func (l *limit) list(n *node, count int) string {
	var names []string
	for _, other := range l.named {
		if other != n && len(names) < maxNamed {
			names = append(names, other.Name+" ("+other.cause()+")")
		}
	}
	return listOf(names, count)
}

// listOf lists the names of some of so many.
func listOf(names []string, count int) string {
	text := strings.Join(names, ", ")
	if more := count - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// cause returns why the node is unavailable.
func (n *node) cause() string {
	switch {
	case n.startedBy != "" || len(n.holders) > 0 || n.admitted != nil:
		return "under maintenance"
	case n.gone && !n.ready:
		return "being replaced"
	case !n.ready:
		return "not Ready"
	case n.Spec.Unschedulable:
		return "cordoned"
	default:
		return "soaking"
	}
}
