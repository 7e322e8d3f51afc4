package drainplan

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Defaults returns the twelve entries that every plan has (KEP-4212). Together they select every
// pod.
func Defaults() []v1alpha1.DrainPlanEntry {
	var entries []v1alpha1.DrainPlanEntry
	for _, podType := range order {
		for _, priority := range []int32{
			1000000000, // the highest of user defined priority classes
			2000000000, // system-cluster-critical
			2000001000, // system-node-critical
			2147483647, // the highest that there is
		} {
			entries = append(entries, v1alpha1.DrainPlanEntry{PodPriority: priority, PodType: podType})
		}
	}
	return entries
}

// Normalise returns a plan in order, without duplicates and with the default entries. Entries with
// different selectors and the same pod type and priority keep their order.
func Normalise(plan []v1alpha1.DrainPlanEntry) []v1alpha1.DrainPlanEntry {
	var normal []v1alpha1.DrainPlanEntry
	for _, spec := range slices.Concat(plan, Defaults()) {
		spec = complete(spec)
		if !contains(normal, spec) {
			normal = append(normal, spec)
		}
	}
	slices.SortStableFunc(normal, compareSpecs)
	return normal
}

const maxEntries = 64

// Inject returns the plan with the missing default entries in their places. A plan that the API
// refuses, or would refuse with them, is returned unchanged.
func Inject(plan []v1alpha1.DrainPlanEntry) []v1alpha1.DrainPlanEntry {
	full := slices.Clone(plan)
	for _, entry := range Defaults() {
		if !contains(plan, entry) {
			full = append(full, entry)
		}
	}
	if len(full) > maxEntries || !slices.IsSortedFunc(plan, compareSpecs) || repeats(plan) {
		return plan
	}
	slices.SortStableFunc(full, compareSpecs)
	return full
}

func contains(plan []v1alpha1.DrainPlanEntry, entry v1alpha1.DrainPlanEntry) bool {
	entry = complete(entry)
	return slices.ContainsFunc(plan, func(other v1alpha1.DrainPlanEntry) bool {
		if other.PodPriority != entry.PodPriority || cmp.Or(other.PodType, v1alpha1.PodTypeDefault) != entry.PodType {
			return false
		}
		selector := complete(other).PodSelector
		return selector == entry.PodSelector || equality.Semantic.DeepEqual(selector, entry.PodSelector)
	})
}

func repeats(plan []v1alpha1.DrainPlanEntry) bool {
	for i := range plan {
		if contains(plan[:i], complete(plan[i])) {
			return true
		}
	}
	return false
}

func compareSpecs(a, b v1alpha1.DrainPlanEntry) int {
	depthA, _ := Depth(a.PodType)
	depthB, _ := Depth(b.PodType)
	return cmp.Or(
		cmp.Compare(depthA, depthB),
		cmp.Compare(a.PodPriority, b.PodPriority),
		cmp.Compare(specBreadth(a), specBreadth(b)),
	)
}

func specBreadth(spec v1alpha1.DrainPlanEntry) int {
	if spec.PodSelector == nil {
		return 1
	}
	return 0
}

// Plan is the normalised and compiled plan of one maintenance.
type Plan struct {
	entries []Entry
}

// New returns the plan of a maintenance that removes pods down to drainDepth, Static if empty,
// without entries for deeper pods. The error names the field at fault.
func New(drainPlan []v1alpha1.DrainPlanEntry, drainDepth v1alpha1.PodType) (Plan, error) {
	drainDepth = cmp.Or(drainDepth, v1alpha1.PodTypeStatic)
	limit, known := Depth(drainDepth)
	if !known {
		return Plan{}, fmt.Errorf("spec.drainDepth: must be Default, DaemonSet or Static, is %q", drainDepth)
	}
	// This reports errors with the user's indexes.
	if _, err := Compile("spec.drainPlan", drainPlan); err != nil {
		return Plan{}, err
	}
	entries, err := Compile("drainPlan", Normalise(drainPlan))
	if err != nil {
		return Plan{}, err
	}
	return Plan{entries: slices.DeleteFunc(entries, func(entry Entry) bool { return entry.depth > limit })}, nil
}

// Depth returns the depth of the deepest pods that the plan selects.
func (p Plan) Depth() int { return p.entries[len(p.entries)-1].depth }

// Len returns the number of entries, at least four.
func (p Plan) Len() int { return len(p.entries) }

// Entry returns the entry at a position.
func (p Plan) Entry(position int) Entry { return p.entries[position] }

// Entries returns all entries, in order. They must not be changed.
func (p Plan) Entries() []Entry { return p.entries }

// Cum returns the set of the entries up to and including a position.
func (p Plan) Cum(position int) Set { return NewSet(p.entries[:position+1]...) }

// First returns the first position below limit whose entry covers the pod, otherwise limit.
func (p Plan) First(pod Subject, limit int) int {
	for i := range p.entries[:limit] {
		if p.entries[i].Covers(pod) {
			return i
		}
	}
	return limit
}
