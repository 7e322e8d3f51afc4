package proof

import (
	"fmt"
	"math/rand/v2"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// plot is a small cluster and what of it is drained.
type plot struct {
	nodes   []place
	apps    []cast
	budgets []policyv1.PodDisruptionBudgetSpec
	// drained are the first nodes.
	drained int
	plan    []v1alpha1.DrainPlanEntry
}

// place is a node.
type place struct {
	cpu, zone, disk string
	tainted         bool
}

// cast is an owner of pods, and what these are like.
type cast struct {
	kind, name string
	replicas   int32
	cpu        string
	// parallel is a StatefulSet that makes its pods at once; recreate, paused and surges are
	// about Deployments.
	parallel, recreate, paused, surges bool
	maxSurge                           intstr.IntOrString
	// apart keeps the pods on different nodes, spread spreads them evenly over what this label says.
	apart        bool
	spread, disk string
	tolerates    bool
	neverReady   bool
	label        string
	tier         string
}

// kinds are weighed by how often they are drawn.
var kinds = []string{"Deployment", "Deployment", "Deployment", "Deployment", "StatefulSet", "StatefulSet", "Job", "Pod", "DaemonSet"}

// imagine returns the plot of a seed that has this number: 3 to 6 nodes, 5 to 25 pods.
func imagine(seed uint64, number int) plot {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	one := func(percent int) bool { return r.IntN(100) < percent }
	var p plot
	for range 3 + r.IntN(4) {
		p.nodes = append(p.nodes, place{cpu: pick(r, "1", "2", "2", "4"), zone: pick(r, "a", "b", "c"), disk: pick(r, "ssd", "hdd"), tainted: one(10)})
	}
	p.drained = 1 + r.IntN(len(p.nodes)-1)
	for pods := int32(0); pods < 5+r.Int32N(15) && len(p.apps) < 8; {
		a := p.app(r, one)
		pods += a.replicas
		p.apps = append(p.apps, a)
		if a.kind != "DaemonSet" && one(70) {
			p.budgets = append(p.budgets, protection(r, one, "app", a))
		}
		if a.kind != "DaemonSet" && one(8) {
			p.budgets = append(p.budgets, protection(r, one, "app", a))
		}
	}
	if one(15) {
		p.budgets = append(p.budgets, protection(r, one, "tier", p.apps[0]))
	}
	if one(20) {
		p.plan = []v1alpha1.DrainPlanEntry{{
			PodPriority: 1000, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.apps[0].name}},
		}}
	}
	return p
}

func (p *plot) app(r *rand.Rand, one func(int) bool) cast {
	a := cast{
		kind: pick(r, kinds...), name: fmt.Sprintf("app%d", len(p.apps)), replicas: 1 + r.Int32N(5),
		cpu: pick(r, "50m", "50m", "100m", "250m", "500m", "900m"), tier: pick(r, "front", "back"),
		parallel: one(50), recreate: one(15), paused: one(10), surges: one(30), maxSurge: pick(r, intstr.FromInt32(1), intstr.FromString("25%"), intstr.FromInt32(0)),
		apart: one(20), tolerates: one(15), neverReady: one(8),
	}
	// A replacement that is never ready is awaited for ever.
	a.neverReady = a.neverReady && !a.surges
	switch a.kind {
	case "Pod":
		a.replicas = 1
	case "Job":
		// After the fifth pod that fails a Job waits nearly three minutes before it makes another.
		a.replicas = min(a.replicas, 3)
	}
	if one(15) {
		a.spread = pick(r, "kubernetes.io/hostname", "topology.kubernetes.io/zone")
	}
	if one(15) {
		a.disk = pick(r, "ssd", "hdd")
	}
	if one(10) {
		a.label = pick(r, "skip", "wait-completed")
	}
	return a
}

// protection is a budget of any sort, possible or not.
func protection(r *rand.Rand, one func(int) bool, by string, a cast) policyv1.PodDisruptionBudgetSpec {
	value := a.name
	if by == "tier" {
		value = a.tier
	}
	spec := policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{by: value}}}
	switch r.IntN(4) {
	case 0:
		spec.MinAvailable = new(intstr.FromInt32(r.Int32N(a.replicas + 2)))
	case 1:
		spec.MinAvailable = new(intstr.FromString(pick(r, "30%", "50%", "80%", "100%")))
	case 2:
		spec.MaxUnavailable = new(intstr.FromInt32(r.Int32N(3)))
	default:
		spec.MaxUnavailable = new(intstr.FromString(pick(r, "0%", "25%", "50%")))
	}
	if one(30) {
		spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	}
	return spec
}

func (p plot) String() string {
	var words []string
	for _, a := range p.apps {
		words = append(words, fmt.Sprintf("%+v", a))
	}
	for _, b := range p.budgets {
		words = append(words, fmt.Sprintf("budget %v min %v max %v unhealthy %v", b.Selector.MatchLabels, b.MinAvailable, b.MaxUnavailable, b.UnhealthyPodEvictionPolicy != nil))
	}
	return fmt.Sprintf("nodes %+v, the first %d are drained, plan %v\n%s", p.nodes, p.drained, p.plan, strings.Join(words, "\n"))
}
