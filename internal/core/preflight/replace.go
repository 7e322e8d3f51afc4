package preflight

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/placement"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// somewhere is the node of a replacement for which nobody has looked.
const somewhere = "?"

// roomy stands in where there is no Placer: every pod is thought to find a node.
type roomy struct{}

func (roomy) Place(*corev1.Pod) (node, why string) { return somewhere, "" }
func (roomy) Remove(*corev1.Pod)                   {}
func (roomy) Cordon(string)                        {}

// replacement is the pod that comes in place of one that leaves.
type replacement struct {
	of *pod
	// template is the pod that is made; nil until it is placed.
	template *corev1.Pod
	// made is true once it is created, node is its node; empty with the reason in why.
	made      bool
	node, why string
	// jobFails is true if it is not made because its Job has failed for good.
	jobFails bool
	unknown  bool
	ready    bool
	// awaited is true if the pod leaves only when it is on a node.
	awaited bool
	set     *statefulSet
}

// replace returns the pod that its owner creates instead; nil without one.
func (r *run) replace(p *pod) *replacement {
	owner := podclass.Owner(p.object)
	if owner == nil {
		return nil
	}
	next := &replacement{of: p, ready: podclass.Ready(p.object) || !r.serves(p.object.Spec.NodeName)}
	switch owner.Kind {
	case "ReplicaSet", "ReplicationController", "StatefulSet":
		return next
	case "Job":
		next.why = r.owners.jobEnds(owner.UID)
		next.jobFails = next.why != ""
	case "DaemonSet", "Node":
		return nil
	default:
		next.why = fmt.Sprintf("whether %s %s makes another one is not known", owner.Kind, owner.Name)
	}
	return next
}

// serves reports whether a node is Ready, so that pods are unready for other reasons.
func (r *run) serves(name string) bool {
	return podclass.NodeReady(r.node(name))
}

func templateOf(object *corev1.Pod) *corev1.Pod {
	made := &corev1.Pod{ObjectMeta: object.ObjectMeta, Spec: object.Spec, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	made.UID = types.UID("after-" + string(object.UID))
	made.DeletionTimestamp, made.DeletionGracePeriodSeconds, made.ResourceVersion = nil, nil, ""
	made.CreationTimestamp = metav1.Time{}
	made.Spec.NodeName = ""
	return made
}

// succeed creates the replacement. A StatefulSet does so after the pod is gone.
func (r *run) succeed(p *pod) {
	next := r.replace(p)
	if next == nil {
		return
	}
	p.replacement = next
	switch {
	case ofStatefulSet(p.object):
		r.miss(p, next)
	case next.why == "":
		r.make(next)
		r.place(next)
	}
}

// make counts a pod that its owner has made.
func (r *run) make(next *replacement) {
	next.made = true
	for _, b := range next.of.budgets {
		b.count(0, 1)
	}
}

// place has a pod that was made run where it fits.
func (r *run) place(next *replacement) {
	if r.fits(next) {
		return
	}
	r.unplaced = append(r.unplaced, next)
	for _, b := range next.of.budgets {
		b.unclear = b.unclear || next.unknown
	}
}

// fits tries to have a pod run, and counts it where it does.
func (r *run) fits(next *replacement) bool {
	if next.template == nil && r.Place != nil {
		next.template = templateOf(next.of.object)
	}
	if next.node, next.why = r.placer.Place(next.template); next.node == "" {
		next.unknown = placement.IsUnknown(next.why)
		return false
	}
	r.moved = true
	if next.ready {
		for _, b := range next.of.budgets {
			b.count(1, 0)
			r.opened = append(r.opened, b)
		}
	}
	if next.set != nil {
		next.set.arrived(next)
	}
	return true
}

// placeAgain retries replacements without a node. Equal pods are tried once.
func (r *run) placeAgain() {
	if !r.moved {
		return
	}
	waiting := r.unplaced
	r.unplaced = nil
	refused := map[ownerKey]string{}
	for _, next := range waiting {
		owner := ownerOf(next.of.object)
		if why, known := refused[owner]; known && owner.uid != "" {
			next.why = why
			r.unplaced = append(r.unplaced, next)
			continue
		}
		if !r.fits(next) {
			refused[owner] = next.why
			r.unplaced = append(r.unplaced, next)
			continue
		}
		if next.set != nil {
			r.fill(next.set)
		}
		if next.awaited {
			r.goOn(next.of)
		}
	}
	r.open()
}

// placeUnscheduled first places pods that wait for the scheduler.
func (r *run) placeUnscheduled() {
	waiting := slices.SortedFunc(slices.Values(r.Unscheduled), byName)
	for _, object := range waiting {
		if object.DeletionTimestamp == nil && !podclass.Terminal(object) && podclass.Unscheduled(object) == nil {
			r.placer.Place(object)
		}
	}
}

func byName(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
