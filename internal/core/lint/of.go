package lint

import (
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/surge"
)

// Snapshot is everything that is checked.
type Snapshot struct {
	Now          time.Time
	Pods         []*corev1.Pod
	Budgets      []*policyv1.PodDisruptionBudget
	Deployments  []*appsv1.Deployment
	ReplicaSets  []*appsv1.ReplicaSet
	StatefulSets []*appsv1.StatefulSet
	DaemonSets   []*appsv1.DaemonSet
	Claims       []*corev1.PersistentVolumeClaim
	Volumes      []*corev1.PersistentVolume
	Unread       []string
}

// Of checks a snapshot in time linear in its size.
func Of(s Snapshot) Report {
	l := newLinter(&s)
	for _, pod := range s.Pods {
		if !podclass.Terminal(pod) && podclass.Type(pod) == v1alpha1.PodTypeDefault {
			l.budgetsOf(pod)
			l.ownerOf(pod)
			l.dataOf(pod)
		}
	}
	for _, d := range s.Deployments {
		l.deployment(d)
	}
	for _, set := range s.StatefulSets {
		l.statefulSet(set)
	}
	for _, set := range s.DaemonSets {
		l.daemonSet(set)
	}
	return l.report()
}

type linter struct {
	*Snapshot
	budgets     map[string]budget.Compiled
	deployments map[types.UID]*appsv1.Deployment
	// local are the claims whose data is on a node.
	local map[types.NamespacedName]bool
	found map[key]*open
}

// key identifies a finding; later pods are added to it.
type key struct {
	check  Check
	object v1alpha1.BlockerObject
}

type open struct {
	Finding
	// names are objects of which the message names a few.
	names map[string]bool
}

func newLinter(s *Snapshot) *linter {
	l := &linter{
		Snapshot: s, budgets: map[string]budget.Compiled{}, deployments: surge.ByReplicaSet(s.Deployments, s.ReplicaSets),
		local: map[types.NamespacedName]bool{}, found: map[key]*open{},
	}
	byNamespace := map[string][]*policyv1.PodDisruptionBudget{}
	for _, b := range s.Budgets {
		byNamespace[b.Namespace] = append(byNamespace[b.Namespace], b)
	}
	for namespace, all := range byNamespace {
		l.budgets[namespace] = budget.Compile(all)
	}
	l.findLocal()
	return l
}

func (l *linter) findLocal() {
	local := make(map[string]bool, len(l.Volumes))
	for _, v := range l.Volumes {
		local[v.Name] = v.Spec.Local != nil || v.Spec.HostPath != nil
	}
	for _, claim := range l.Claims {
		if local[claim.Spec.VolumeName] {
			l.local[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = true
		}
	}
}

func (l *linter) add(f Finding, pods int) *open {
	f.Severity, f.Object.UID = severities[f.Check], ""
	k := key{f.Check, f.Object}
	there := l.found[k]
	if there == nil {
		there = &open{Finding: f, names: map[string]bool{}}
		l.found[k] = there
	}
	there.PodCount += pods
	return there
}

const maxNames = 3

func (o *open) some() string {
	return phrase.Some(slices.Sorted(maps.Keys(o.names)), maxNames)
}

func (l *linter) report() Report {
	r := Report{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}, Time: metav1.NewTime(l.Now), Findings: make([]Finding, 0, len(l.found)), Unread: l.Unread,
	}
	for _, f := range l.found {
		if len(f.names) > 0 {
			f.Message = fmt.Sprintf(f.Message, f.some())
		}
		r.Findings = append(r.Findings, f.Finding)
		r.Count.add(f.Severity)
	}
	slices.SortFunc(r.Findings, func(a, b Finding) int { return compare(&a, &b) })
	return r
}

// forever are blockers that stay until someone removes them.
var forever = map[v1alpha1.BlockerType]Check{v1alpha1.BlockerPDBUnsatisfiable: BudgetNeverAllows, v1alpha1.BlockerMultiplePDBs: SeveralBudgets}

func (l *linter) budgetsOf(pod *corev1.Pod) {
	b, found := blocker.Foreseen(&blocker.Facts{Now: l.Now, Pod: pod, Budgets: l.budgets[pod.Namespace]})
	if !found || forever[b.Type] == "" {
		return
	}
	if b.Type == v1alpha1.BlockerMultiplePDBs {
		b.Object = l.application(pod)
	}
	f := l.add(Finding{Check: forever[b.Type], Object: b.Object, Message: b.Message, Suggestion: b.Suggestion}, 1)
	// The order of pods is random, and the suggestion may name one.
	f.Suggestion = min(f.Suggestion, b.Suggestion)
}
