package surge_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/surge"
)

const hashLabel = appsv1.DefaultDeploymentUniqueLabelKey

// world is a Deployment and everybody who acts on it: its own controllers, a
// kubelet, the evacuation controller, people, and a manager that carries out
// what is decided and may die between any two writes.
type world struct {
	t    *testing.T
	seed uint64
	rand *rand.Rand
	now  time.Time

	deployment  *appsv1.Deployment // nil once deleted
	sets        []*appsv1.ReplicaSet
	pods        map[string]*corev1.Pod
	evacuations map[types.UID]*v1alpha1.Evacuation
	created     int

	// calm worlds know no misfortune: every pod becomes ready and stays so, and
	// nobody but drains touches the Deployment.
	calm bool
	// results counts how surges ended.
	results map[surge.Result]int
	// counted is how many messages were found to count pods correctly.
	counted int
}

func newWorld(t *testing.T, seed uint64, calm bool) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 4212))
	w := &world{
		t: t, seed: seed, rand: r, calm: calm, now: time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC),
		pods: map[string]*corev1.Pod{}, evacuations: map[types.UID]*v1alpha1.Evacuation{}, results: map[surge.Result]int{},
	}
	count, most := int32(1+r.IntN(4)), intstr.FromInt32(int32(1+r.IntN(2)))
	w.deployment = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &count, MinReadySeconds: int32(r.IntN(3)),
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &most}},
		},
	}
	w.newSet(count)
	for range 200 {
		w.controllers()
		w.now = w.now.Add(time.Second)
	}
	return w
}

func (w *world) newSet(replicas int32) {
	w.created++
	hash := fmt.Sprintf("hash%d", w.created)
	w.sets = append(w.sets, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-" + hash, UID: types.UID("uid-" + hash), Labels: map[string]string{hashLabel: hash},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas},
	})
}

func (w *world) newPod(set *appsv1.ReplicaSet) {
	w.created++
	name := fmt.Sprintf("%s-%d", set.Name, w.created)
	w.pods[name] = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", CreationTimestamp: metav1.NewTime(w.now),
			Labels:          map[string]string{"app": "web", hashLabel: set.Labels[hashLabel]},
			OwnerReferences: owner(set),
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func owner(set *appsv1.ReplicaSet) []metav1.OwnerReference {
	controller := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: &controller}}
}

// change replaces a pod, so that snapshots stay as they were.
func (w *world) change(pod *corev1.Pod, edit func(*corev1.Pod)) {
	changed := pod.DeepCopy()
	version, err := strconv.Atoi(pod.ResourceVersion)
	if err != nil {
		w.t.Fatal(err)
	}
	changed.ResourceVersion = strconv.Itoa(version + 1)
	edit(changed)
	w.pods[pod.Name] = changed
}

func (w *world) delete(pod *corev1.Pod) {
	w.change(pod, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: w.now} })
}

// sorted makes what happens depend on the seed alone.
func (w *world) sorted() []*corev1.Pod {
	return slices.SortedFunc(maps.Values(w.pods), func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
}

func (w *world) owned(set *appsv1.ReplicaSet) []*corev1.Pod {
	return slices.DeleteFunc(w.sorted(), func(p *corev1.Pod) bool {
		ref := metav1.GetControllerOf(p)
		return ref == nil || ref.UID != set.UID || !active(p)
	})
}

func active(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Status == corev1.ConditionTrue })
}

// available is ready for minReadySeconds.
func (w *world) available(p *corev1.Pod) bool {
	settled := w.now.Add(-time.Duration(w.deployment.Spec.MinReadySeconds) * time.Second)
	return ready(p) && !p.Status.Conditions[0].LastTransitionTime.After(settled)
}

func setReady(p *corev1.Pod, is bool, now time.Time) {
	status := corev1.ConditionFalse
	if is {
		status, p.Status.Phase = corev1.ConditionTrue, corev1.PodRunning
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(now)}}
}

// serving counts what a Service sends requests to.
func (w *world) serving() int {
	count := 0
	for _, pod := range w.pods {
		if active(pod) && ready(pod) {
			count++
		}
	}
	return count
}

// controllers is one round of everybody but people and the manager, each of whom
// may not get its turn.
func (w *world) controllers() {
	for _, step := range []func(){w.releaseAndAdopt, w.replicate, w.roll, w.collect, w.kubelet, w.evacuate} {
		if w.rand.IntN(3) > 0 {
			step()
		}
	}
}

func (w *world) setOf(hash string) *appsv1.ReplicaSet {
	at := slices.IndexFunc(w.sets, func(s *appsv1.ReplicaSet) bool { return s.Labels[hashLabel] == hash && s.DeletionTimestamp == nil })
	if at < 0 {
		return nil
	}
	return w.sets[at]
}

// releaseAndAdopt is how ReplicaSets follow labels. They never look at pods that are done.
func (w *world) releaseAndAdopt() {
	for _, pod := range w.sorted() {
		set, ref := w.setOf(pod.Labels[hashLabel]), metav1.GetControllerOf(pod)
		switch {
		case !active(pod):
		case ref != nil && (set == nil || set.UID != ref.UID):
			w.change(pod, func(p *corev1.Pod) { p.OwnerReferences = nil })
		case ref == nil && set != nil:
			w.change(pod, func(p *corev1.Pod) { p.OwnerReferences = owner(set) })
		}
	}
}

// replicate creates and deletes pods as ReplicaSets do: those that are not ready
// go first, then the cheapest, then the newest.
func (w *world) replicate() {
	for _, set := range w.sets {
		if set.DeletionTimestamp != nil {
			continue
		}
		owned := w.owned(set)
		for range int(*set.Spec.Replicas) - len(owned) {
			w.newPod(set)
		}
		slices.SortFunc(owned, func(a, b *corev1.Pod) int {
			return cmp.Or(compareBool(ready(a), ready(b)), cmp.Compare(costOf(a), costOf(b)), b.CreationTimestamp.Compare(a.CreationTimestamp.Time))
		})
		for _, pod := range owned[:max(0, len(owned)-int(*set.Spec.Replicas))] {
			w.delete(pod)
		}
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func costOf(p *corev1.Pod) int {
	cost, err := strconv.Atoi(p.Annotations[corev1.PodDeletionCost])
	if err != nil {
		return 0
	}
	return cost
}

// roll is how a Deployment keeps its newest ReplicaSet at its replicas, and moves
// them there from the older ones as far as that leaves enough pods.
func (w *world) roll() {
	if w.deployment == nil {
		return
	}
	spare := -int(*w.deployment.Spec.Replicas)
	for _, set := range w.sets {
		available := len(slices.DeleteFunc(w.owned(set), func(p *corev1.Pod) bool { return !w.available(p) }))
		spare += min(available, int(*set.Spec.Replicas))
	}
	newest := len(w.sets) - 1
	for i, set := range w.sets {
		switch {
		case i == newest:
			set.Spec.Replicas = w.deployment.Spec.Replicas
		case *set.Spec.Replicas > 0 && spare > 0:
			set.Spec.Replicas = new(*set.Spec.Replicas - 1)
			spare--
		}
	}
}

// collect is the garbage collector.
func (w *world) collect() {
	if w.deployment == nil && len(w.sets) > 0 {
		w.sets = w.sets[1:]
	}
	for _, pod := range w.sorted() {
		ref := metav1.GetControllerOf(pod)
		if ref != nil && pod.DeletionTimestamp == nil && !slices.ContainsFunc(w.sets, func(s *appsv1.ReplicaSet) bool { return s.UID == ref.UID }) {
			w.delete(pod)
		}
	}
}

// kubelet makes pods ready and ends those that are deleted.
func (w *world) kubelet() {
	for _, pod := range w.sorted() {
		switch {
		case w.rand.IntN(3) == 0:
		case pod.DeletionTimestamp != nil:
			delete(w.pods, pod.Name)
		case pod.Status.Phase == corev1.PodPending && (w.calm || w.rand.IntN(8) > 0):
			w.change(pod, func(p *corev1.Pod) { setReady(p, true, w.now) })
		}
	}
}

// evacuate is the evacuation controller.
func (w *world) evacuate() {
	for _, uid := range slices.Sorted(maps.Keys(w.evacuations)) {
		e := w.evacuations[uid]
		pod := w.pods[e.Spec.PodRef.Name]
		switch {
		case pod == nil, !active(pod), len(evacuation.Instigators(e)) == 0:
			delete(w.evacuations, uid)
		case e.Status.ActiveEvacuatorClass == "":
			changed := e.DeepCopy()
			changed.Status.ActiveEvacuatorClass = v1alpha1.DeploymentEvacuatorClass
			changed.Status.EvacuationProgressTimestamp = &metav1.Time{Time: w.now}
			w.replaceEvacuation(changed)
		case e.Status.ActiveEvacuatorCompleted && w.rand.IntN(2) == 0:
			w.delete(pod)
		}
	}
}

func (w *world) replaceEvacuation(e *v1alpha1.Evacuation) {
	w.created++
	e.ResourceVersion = strconv.Itoa(w.created)
	w.evacuations[e.Spec.PodRef.UID] = e
}

// snapshot is what a manager observes.
func (w *world) snapshot() surge.Snapshot {
	s := surge.Snapshot{Now: w.now, Name: "web", Deployment: w.deployment, Mode: surge.Annotated}
	for _, set := range w.sets {
		copied := *set
		s.ReplicaSets = append(s.ReplicaSets, &copied)
	}
	for _, pod := range w.sorted() {
		if _, annotated := surge.DeploymentOf(pod); annotated || metav1.GetControllerOf(pod) != nil {
			s.Pods = append(s.Pods, pod)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(w.evacuations)) {
		s.Evacuations = append(s.Evacuations, w.evacuations[uid])
	}
	return s
}
