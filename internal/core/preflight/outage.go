package preflight

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const maxOutages = 100

// Outage is an unprotected application whose ready pods all leave at once.
type Outage struct {
	Namespace string `json:"namespace"`
	Owner     Owner  `json:"owner"`
	PodCount  int    `json:"podCount"`
}

// application identifies the owner whose pods are counted together.
type application struct {
	namespace string
	owner     Owner
}

// outages returns the applications that go down, those of most pods first.
func (t *forecaster) outages(nodes []NodeForecast) []Outage {
	leaving, of := map[types.NamespacedName]bool{}, map[application]int{}
	for i := range nodes {
		for j := range nodes[i].Pods {
			if p := &nodes[i].Pods[j]; p.unprotected() {
				leaving[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = true
				of[application{p.Namespace, *p.Owner}]++
			}
		}
	}
	t.dropServed(of, leaving)
	var told []Outage
	for app, count := range of {
		if count > 1 {
			told = append(told, Outage{Namespace: app.namespace, Owner: app.owner, PodCount: count})
		}
	}
	slices.SortFunc(told, func(a, b Outage) int {
		return cmp.Or(cmp.Compare(b.PodCount, a.PodCount), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Owner.Name, b.Owner.Name), cmp.Compare(a.Owner.Kind, b.Owner.Kind))
	})
	return told[:min(len(told), maxOutages)]
}

// unprotected reports whether a pod leaves at once and is replaced afterwards. Job pods do not
// count.
func (p *PodForecast) unprotected() bool {
	return p.Action == ActionEvict && p.Outcome == OutcomeLeaves && len(p.Budgets) == 0 &&
		p.Type == v1alpha1.PodTypeDefault && p.Owner != nil && p.Owner.Kind != "Job"
}

// dropServed leaves out applications of which a pod is ready that does not leave.
func (t *forecaster) dropServed(of map[application]int, leaving map[types.NamespacedName]bool) {
	if len(of) == 0 {
		return
	}
	for _, pods := range t.World.Pods {
		for i := range pods {
			pod := pods[i].Object
			if leaving[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] || pod.DeletionTimestamp != nil || !podclass.Ready(pod) {
				continue
			}
			if owner := t.ownerOf(pod); owner != nil {
				delete(of, application{pod.Namespace, *owner})
			}
		}
	}
}
