package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// maxDetail bounds the names that others gave, maxReasons how many reasons are told.
const (
	maxDetail  = 63
	maxReasons = 5
)

// kind names a reason that keeps a pod away from a node.
type kind uint8

const (
	nothing kind = iota
	cordoned
	tainted
	notSelected
	portTaken
	tooManyPods
	tooLittle
	claimInUse
	outOfReach
	noVolume
	uneven
	unspread
	alone
	avoided
	refused
)

// obstacle keeps a pod away from a node, with a resource, a port or a text as its detail.
type obstacle struct {
	kind   kind
	detail int32
}

var fit = obstacle{}

func (e *Estimate) reason(text string) int32 {
	n, known := e.said[text]
	if !known {
		n = int32(len(e.reasons))
		e.said[text] = n
		e.reasons = append(e.reasons, text)
	}
	return n
}

type tallied struct {
	obstacle
	nodes int
}

// explain returns what keeps the pods of a class away from each node.
func (e *Estimate) explain(c *class) string {
	var all []tallied
	for _, n := range e.nodes {
		o := e.fits(c, n)
		i := slices.IndexFunc(all, func(t tallied) bool { return t.obstacle == o })
		if i < 0 {
			i, all = len(all), append(all, tallied{obstacle: o})
		}
		all[i].nodes++
	}
	slices.SortFunc(all, func(a, b tallied) int {
		return cmp.Or(cmp.Compare(b.nodes, a.nodes), cmp.Compare(a.kind, b.kind), cmp.Compare(a.detail, b.detail))
	})
	if len(e.nodes) == 0 {
		return "there are no nodes"
	}
	var told []string
	for _, t := range all[:min(len(all), maxReasons)] {
		told = append(told, e.tell(c, t))
	}
	if rest := all[min(len(all), maxReasons):]; len(rest) > 0 {
		nodes := 0
		for _, t := range rest {
			nodes += t.nodes
		}
		told = append(told, fmt.Sprintf("%d for other reasons", nodes))
	}
	return fmt.Sprintf("0/%d nodes fit: %s", len(e.nodes), strings.Join(told, ", "))
}

// phrases holds the texts for one node and for several.
var phrases = map[kind][2]string{
	cordoned:    {"is cordoned", "are cordoned"},
	tainted:     {"has taint %s", "have taint %s"},
	notSelected: {"does not match its node selector or affinity", "do not match its node selector or affinity"},
	portTaken:   {"has host port %s taken", "have host port %s taken"},
	tooManyPods: {"has too many pods", "have too many pods"},
	tooLittle:   {"has too little %s", "have too little %s"},
	claimInUse:  {"is no choice while another pod uses claim %s", "are no choice while another pod uses claim %s"},
	outOfReach:  {"does not reach its volume %s", "do not reach its volume %s"},
	noVolume:    {"has no volume for its claim %s", "have no volume for its claim %s"},
	uneven:      {"would break its topology spread over %s", "would break its topology spread over %s"},
	unspread:    {"lacks label %s of its topology spread", "lack label %s of its topology spread"},
	alone:       {"has no pod near that its affinity asks for (by %s)", "have no pod near that its affinity asks for (by %s)"},
	avoided:     {"has pods near that its anti-affinity excludes (by %s)", "have pods near that its anti-affinity excludes (by %s)"},
	refused:     {"has pods near whose anti-affinity excludes it (by %s)", "have pods near whose anti-affinity excludes it (by %s)"},
}

func (e *Estimate) tell(c *class, t tallied) string {
	phrase := phrases[t.kind][min(t.nodes, 2)-1]
	if strings.Contains(phrase, "%s") {
		phrase = fmt.Sprintf(phrase, e.detail(c, t.obstacle))
	}
	return fmt.Sprintf("%d %s", t.nodes, phrase)
}

func (e *Estimate) detail(c *class, o obstacle) string {
	switch o.kind {
	case portTaken:
		return fmt.Sprint(o.detail)
	case tooLittle:
		name := e.resource[o.detail]
		return fmt.Sprintf("%s (needs %s)", excerpt.Line(string(name), maxDetail), c.needs(name, int(o.detail)))
	}
	return excerpt.Line(e.reasons[o.detail], maxDetail)
}

func (c *class) needs(name corev1.ResourceName, at int) string {
	for _, a := range c.request {
		if a.resource != at {
			continue
		}
		switch name {
		case corev1.ResourceCPU:
			return resource.NewMilliQuantity(a.value, resource.DecimalSI).String()
		case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			return resource.NewQuantity(a.value, resource.BinarySI).String()
		}
		return resource.NewQuantity(a.value, resource.DecimalSI).String()
	}
	return "some"
}
