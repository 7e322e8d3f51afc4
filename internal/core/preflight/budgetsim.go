package preflight

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// The codes of the API server's answers.
const (
	tooManyRequests     = 429
	internalServerError = 500
)

// simulatedBudget keeps the numbers of a budget up to date, as the disruption controller does.
type simulatedBudget struct {
	// budget is a copy whose status changes, given the one that was read.
	budget, given *policyv1.PodDisruptionBudget
	// ready and unready are waiting pods in order, which a budget treats differently.
	ready, unready []*pod
	// asked counts evictions, let those allowed as disruptions.
	asked, let int
	// unclear is true if it is unknown whether a replacement of one of its pods fits anywhere.
	unclear bool
}

type simulatedBudgets struct {
	given    map[string][]*policyv1.PodDisruptionBudget
	copies   map[string][]*policyv1.PodDisruptionBudget
	compiled map[string]budget.Compiled
	budgets  map[*policyv1.PodDisruptionBudget]*simulatedBudget
}

func newSimulatedBudgets(given map[string][]*policyv1.PodDisruptionBudget) simulatedBudgets {
	l := simulatedBudgets{
		given: given, copies: make(map[string][]*policyv1.PodDisruptionBudget, len(given)),
		compiled: map[string]budget.Compiled{}, budgets: map[*policyv1.PodDisruptionBudget]*simulatedBudget{},
	}
	for namespace, budgets := range given {
		for _, b := range budgets {
			copied := *b
			l.copies[namespace] = append(l.copies[namespace], &copied)
			l.budgets[&copied] = &simulatedBudget{budget: &copied, given: b}
		}
	}
	return l
}

func (l *simulatedBudgets) all() map[string][]*policyv1.PodDisruptionBudget { return l.copies }

func (l *simulatedBudgets) of(object *corev1.Pod) []*simulatedBudget {
	compiled, known := l.compiled[object.Namespace]
	if !known {
		compiled = budget.Compile(l.copies[object.Namespace])
		l.compiled[object.Namespace] = compiled
	}
	applying := compiled.Applying(object)
	if len(applying) == 0 {
		return nil
	}
	budgets := make([]*simulatedBudget, len(applying))
	for i, b := range applying {
		budgets[i] = l.budgets[b]
	}
	return budgets
}

// count changes the healthy and total pods. The expected number changes only if it counts pods, not
// replicas.
func (b *simulatedBudget) count(healthy, pods int32) {
	status := &b.budget.Status
	status.CurrentHealthy += healthy
	if floor := b.budget.Spec.MinAvailable; floor != nil && floor.Type == intstr.Int {
		status.ExpectedPods += pods
	}
	status.DisruptionsAllowed = max(0, status.CurrentHealthy-status.DesiredHealthy)
	if status.ExpectedPods <= 0 || budget.Uncountable(b.budget) {
		status.DisruptionsAllowed = 0
	}
}

// verdict names an answer of the eviction API.
type verdict int

const (
	refused verdict = iota
	// free needs no disruption, lucky depends on the present state, let uses an allowed disruption.
	free
	lucky
	let
)

// admit returns what the eviction API says of a pod under this one budget.
func (b *simulatedBudget) admit(object *corev1.Pod) verdict {
	allowed, known := budget.Allowed(b.budget)
	status := &b.budget.Status
	switch ready := podclass.Ready(object); {
	case !ready && budget.LetsUnreadyGo(b.budget):
		return free
	case !ready && status.CurrentHealthy >= status.DesiredHealthy && status.DesiredHealthy > 0:
		return lucky
	case known && allowed > 0:
		return let
	default:
		return refused
	}
}

// refusal returns the answer of the API server to the eviction of a pod.
func (b *simulatedBudget) refusal() evacuation.Outcome {
	status := &b.budget.Status
	message := fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.budget.Name, status.DesiredHealthy, status.CurrentHealthy)
	if _, known := budget.Allowed(b.budget); !known {
		message = fmt.Sprintf("The disruption budget %s is still being processed by the server.", b.budget.Name)
	}
	return evacuation.Classify(metav1.Status{
		Status: metav1.StatusFailure, Code: tooManyRequests,
		Message: "Cannot evict pod as it would violate the pod's disruption budget.",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: message}}},
	})
}

// severalBudgets returns the answer to the eviction of a pod under more than one.
func severalBudgets() evacuation.Outcome {
	return evacuation.Classify(metav1.Status{
		Status: metav1.StatusFailure, Code: internalServerError,
		Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
	})
}

func (b *simulatedBudget) wait(p *pod) {
	if podclass.Ready(p.object) {
		b.ready = append(b.ready, p)
	} else {
		b.unready = append(b.unready, p)
	}
}

func (b *simulatedBudget) next() (*pod, verdict) {
	for _, line := range []*[]*pod{&b.unready, &b.ready} {
		if len(*line) == 0 {
			continue
		}
		first := (*line)[0]
		if says := b.admit(first.object); says != refused {
			*line = (*line)[1:]
			return first, says
		}
	}
	return nil, refused
}

func (b *simulatedBudget) waiting() int { return len(b.ready) + len(b.unready) }

func (b *simulatedBudget) forget(p *pod) {
	same := func(other *pod) bool { return other == p }
	b.ready, b.unready = slices.DeleteFunc(b.ready, same), slices.DeleteFunc(b.unready, same)
}
