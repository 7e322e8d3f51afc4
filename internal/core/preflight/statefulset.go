package preflight

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

type statefulSet struct {
	// parallel is true if it makes each pod whatever the others do.
	parallel bool
	// missing lists pods to create by ordinal, unready existing pods that do not serve.
	missing []missingPod
	unready map[int]string
}

type missingPod struct {
	ordinal int
	next    *replacement
}

func ofStatefulSet(object *corev1.Pod) bool {
	owner := podclass.Owner(object)
	return owner != nil && owner.Kind == "StatefulSet"
}

// ordinal returns the number at the end of the name of a pod.
func ordinal(object *corev1.Pod) int {
	// A name without one sorts first and so holds up all others, as an unknown should.
	number, _ := strconv.Atoi(object.Name[strings.LastIndexByte(object.Name, '-')+1:])
	return number
}

// miss records a pod that a StatefulSet lacks, and creates what it can.
func (r *run) miss(p *pod, next *replacement) {
	set := r.setOf(p.object)
	if p.state != gone {
		set.unready[ordinal(p.object)] = p.object.Name
		next.why = "its StatefulSet makes it when the pod is gone"
		return
	}
	next.set = set
	delete(set.unready, ordinal(p.object))
	set.missing = append(set.missing, missingPod{ordinal(p.object), next})
	slices.SortFunc(set.missing, func(a, b missingPod) int { return a.ordinal - b.ordinal })
	r.fill(set)
}

// fill creates missing pods, each when all before it serve unless in parallel.
func (r *run) fill(set *statefulSet) {
	for len(set.missing) > 0 {
		first := set.missing[0]
		if before := set.unreadyBefore(first.ordinal); before != "" && !set.parallel {
			for _, one := range set.missing {
				one.next.why = fmt.Sprintf("its StatefulSet makes it when %s is ready", before)
			}
			return
		}
		set.missing = set.missing[1:]
		set.unready[first.ordinal] = first.next.of.object.Name
		r.make(first.next)
		r.place(first.next)
	}
}

func (s *statefulSet) arrived(next *replacement) {
	if next.ready {
		delete(s.unready, ordinal(next.of.object))
	}
}

// unreadyBefore returns the first unready pod before an ordinal; empty if there is none.
func (s *statefulSet) unreadyBefore(limit int) string {
	first, name := limit, ""
	for at, one := range s.unready {
		if at < first {
			first, name = at, one
		}
	}
	return name
}

func (r *run) setOf(object *corev1.Pod) *statefulSet {
	if r.sets == nil {
		r.sets = map[ownerKey]*statefulSet{}
		for _, pods := range r.world.Pods {
			for _, one := range pods {
				r.seeReadiness(one)
			}
		}
		for _, waiting := range r.Unscheduled {
			r.seeReadiness(maintenance.Pod{Object: waiting})
		}
	}
	return r.setNamed(ownerOf(object))
}

// setNamed returns a StatefulSet. An unread one counts as ordered.
func (r *run) setNamed(key ownerKey) *statefulSet {
	set := r.sets[key]
	if set == nil {
		given := r.owners.statefulSets[key]
		set = &statefulSet{unready: map[int]string{}, parallel: given != nil && given.Spec.PodManagementPolicy == appsv1.ParallelPodManagement}
		r.sets[key] = set
	}
	return set
}

func (r *run) seeReadiness(one maintenance.Pod) {
	if ofStatefulSet(one.Object) && (!podclass.Ready(one.Object) || one.Object.DeletionTimestamp != nil) {
		r.setNamed(ownerOf(one.Object)).unready[ordinal(one.Object)] = one.Object.Name
	}
}
