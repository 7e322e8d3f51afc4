package drainlock_test

import (
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

func (w *world) chance(n int) bool { return w.rand.IntN(n) == 0 }

func (w *world) desired(b *policyv1.PodDisruptionBudget) int {
	return max(w.replicas[b.Name]-b.Spec.MaxUnavailable.IntValue(), 0)
}

func (w *world) selects(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	return pod.Labels["app"] == b.Spec.Selector.MatchLabels["app"]
}

func (w *world) under(b *policyv1.PodDisruptionBudget) []*corev1.Pod {
	var found []*corev1.Pod
	for _, uid := range slices.Sorted(maps.Keys(w.pods.now)) {
		if pod := w.pods.now[uid]; w.selects(b, pod) {
			found = append(found, pod)
		}
	}
	return found
}

func (w *world) count1(old *policyv1.PodDisruptionBudget) {
	status := policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: old.Generation, ExpectedPods: int32(w.replicas[old.Name]), DesiredHealthy: int32(w.desired(old)),
	}
	for _, pod := range w.pods.now {
		if w.selects(old, pod) && isReady(pod) {
			status.CurrentHealthy++
		}
	}
	status.DisruptionsAllowed = max(status.CurrentHealthy-status.DesiredHealthy, 0)
	if !reflect.DeepEqual(old.Status, status) {
		b := old.DeepCopy()
		b.Status = status
		w.putBudget(b)
	}
}

func (w *world) controllers(everything bool) {
	for _, b := range w.all(w.budgets.now) {
		if everything || w.chance(2) {
			w.count1(b)
		}
	}
	pods := map[string]int{}
	for _, pod := range w.pods.now {
		pods[pod.Labels["app"]]++
	}
	for _, app := range w.apps {
		for range w.replicas[app] - pods[app] {
			w.newPod(app, spare, false)
		}
	}
	w.recover(everything)
}

func (w *world) locked(b *policyv1.PodDisruptionBudget) bool {
	_, locked := budget.LockOf(b, w.now, 0)
	return locked && w.flaw != lawless
}

// evict begins an eviction: it is admitted now and lands later.
func (w *world) evict(pod *corev1.Pod, own bool) {
	for _, b := range w.all(w.budgets.now) {
		if w.selects(b, pod) && w.locked(b) {
			return
		}
	}
	late := drainlock.Settle
	if own {
		late *= 4
	}
	w.flying = append(w.flying, eviction{pod: pod.UID, own: own, land: w.now.Add(time.Duration(w.rand.Int64N(int64(late))))})
}

// land decides about an eviction as the API server does.
func (w *world) land(e eviction) {
	pod := w.pods.now[e.pod]
	if pod == nil {
		return
	}
	for _, old := range w.all(w.budgets.now) {
		if !w.selects(old, pod) {
			continue
		}
		free := !isReady(pod) && old.Status.CurrentHealthy >= old.Status.DesiredHealthy && old.Status.DesiredHealthy > 0
		if free {
			continue
		}
		if old.Status.ObservedGeneration < old.Generation || old.Status.DisruptionsAllowed <= 0 {
			return
		}
		b := old.DeepCopy()
		b.Status.DisruptionsAllowed--
		b.Status.DisruptedPods = map[string]metav1.Time{pod.Name: metav1.NewTime(w.now)}
		w.putBudget(b)
	}
	w.say("evicted %s from %s", pod.Name, pod.Spec.NodeName)
	w.pods.change(w.now, func(all map[types.UID]*corev1.Pod) { delete(all, pod.UID) })
}

func (w *world) tick(d time.Duration) {
	w.now = w.now.Add(d)
	w.finishReboots()
	slices.SortStableFunc(w.flying, func(a, b eviction) int { return a.land.Compare(b.land) })
	for len(w.flying) > 0 && !w.flying[0].land.After(w.now) {
		e := w.flying[0]
		w.flying = w.flying[1:]
		w.land(e)
		w.check()
	}
}

func (w *world) maintain(m *machine) {
	if m.maintenance == nil {
		if !w.calm && (w.chance(6) || w.wipes) {
			w.start(m)
		}
		return
	}
	w.administer(m)
	record := w.records.seen()[m.name]
	if m.over {
		w.end(m, record)
		return
	}
	need := w.need(m, record)
	for _, pod := range need.Leaving {
		w.evict(pod, true)
	}
	spec := drainlock.Needs(need)
	switch {
	case record == nil && len(need.Leaving) > 0:
	case record == nil || !record.Spec.Complete && !equality.Semantic.DeepEqual(record.Spec, spec):
		w.writeSpec(m.name, record, spec)
	case m.drained && !m.ordered && !drainlock.Held(record):
		w.say("taken back %s", m.name)
		m.drained = false
	case m.drained && m.reported && m.back && w.anew(record):
		w.again(m)
	case !m.drained && !record.Spec.Complete && len(need.Leaving) == 0 && drainlock.Held(record):
		w.tell(m)
	}
}

func (w *world) start(m *machine) {
	*m = machine{name: m.name, pool: w.chance(2), maintenance: &v1alpha1.NodeMaintenance{
		ObjectMeta: w.newMaintenance(),
		Spec:       v1alpha1.NodeMaintenanceSpec{InPlace: &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60, LockTimeoutSeconds: 300, OnLockTimeout: v1alpha1.LockTimeoutWait}},
	}}
	in := m.maintenance.Spec.InPlace
	if w.chance(3) {
		in.OnLockTimeout, in.LockTimeoutSeconds = v1alpha1.LockTimeoutEvict, int32(1+w.rand.IntN(60))
	}
	if w.rough && w.chance(4) {
		in.OnLockTimeout, in.LockTimeoutSeconds = v1alpha1.LockTimeoutDelete, int32(1+w.rand.IntN(30))
	}
	w.say("start %s", m.name)
}

func (w *world) end(m *machine, record *v1alpha1.DrainRecord) {
	switch {
	case record == nil && m.ordered && !m.back:
		// Its record was wiped, and it is on its way.
	case record == nil && w.records.now[m.name] == nil:
		w.say("ended %s", m.name)
		*m = machine{name: m.name}
	case record != nil && !record.Spec.Complete:
		over := *record.Spec.DeepCopy()
		over.Complete = true
		w.writeSpec(m.name, record, over)
	}
}

func (w *world) need(m *machine, record *v1alpha1.DrainRecord) drainlock.Need {
	need := drainlock.Need{Maintenance: m.maintenance, Record: record, Budgets: w.all(w.budgets.seen())}
	for _, pod := range on(w.pods.seen(), m.name) {
		leaves := record != nil && len(record.Status.GivenUp) > 0 && slices.ContainsFunc(budget.Applying(pod, need.Budgets), func(b *policyv1.PodDisruptionBudget) bool { return drainlock.GivenUp(record, ref(b)) })
		if leaves {
			need.Leaving = append(need.Leaving, pod)
		} else {
			need.Staying = append(need.Staying, pod)
		}
	}
	return need
}

func (w *world) disturb() {
	if w.calm {
		return
	}
	b := w.all(w.budgets.now)[w.rand.IntN(len(w.budgets.now))]
	hold, locked := budget.LockOf(b, w.now, 0)
	switch w.rand.IntN(14) {
	case 0:
		if !locked {
			lock := budget.Lock{Holder: "alice", AcquiredAt: metav1.NewTime(w.now), ExpiresAt: metav1.NewTime(w.now.Add(time.Duration(1+w.rand.IntN(90)) * time.Second))}
			w.annotate(b, lock.Write())
		}
	case 1:
		if hold.Holder == "alice" {
			w.annotate(b, "")
		}
	case 2:
		w.respecify(b)
	case 3, 4, 5, 6, 7:
		if pods := w.under(b); len(pods) > 0 {
			w.evict(pods[w.rand.IntN(len(pods))], w.chance(3))
		}
	case 8:
		w.crash()
	case 9:
		if m := w.nodes[w.rand.IntN(len(w.nodes))]; m.maintenance != nil && !m.over {
			m.maintenance = m.maintenance.DeepCopy() // Another one has taken over.
			m.maintenance.ObjectMeta = w.newMaintenance()
		}
	default:
		if w.rough {
			w.suffer(b)
		}
	}
}

// respecify changes how much a budget allows, to what the application bears.
func (w *world) respecify(b *policyv1.PodDisruptionBudget) {
	most := intstr.FromInt32(int32(w.rand.IntN(4)))
	changed := b.DeepCopy()
	changed.Spec.MaxUnavailable = &most
	if !w.rough && w.desired(changed) > w.available(changed) {
		return
	}
	changed.Generation++
	w.putBudget(changed)
}

func (w *world) crash() {
	w.tick(3 * time.Second)
	for _, e := range w.flying {
		w.land(e)
	}
	w.flying = nil
	w.skew = time.Duration(w.rand.IntN(121)-60) * time.Second
	w.hearAll()
}

func (w *world) suffer(b *policyv1.PodDisruptionBudget) {
	pods := w.under(b)
	records := slices.Sorted(maps.Keys(w.records.now))
	switch w.rand.IntN(9) {
	case 0, 1:
		if len(pods) > 0 {
			w.turn(pods[w.rand.IntN(len(pods))], false)
		}
	case 2:
		if len(pods) > 0 {
			gone := pods[w.rand.IntN(len(pods))].UID
			w.pods.change(w.now, func(all map[types.UID]*corev1.Pod) { delete(all, gone) })
		}
	case 3:
		w.annotate(b, "")
	case 4:
		w.annotate(b, []string{"{", `{"holder":"nodemaintenance/gone/node-9","expiresAt":"2030-01-01T00:00:00Z"}`, `{"holder":"bob","expiresAt":"2020-01-01T00:00:00Z"}`}[w.rand.IntN(3)])
	case 5:
		changed := b.DeepCopy()
		changed.Spec.Selector.MatchLabels["app"] = w.all(w.budgets.now)[w.rand.IntN(len(w.budgets.now))].Name
		changed.Generation++
		w.putBudget(changed)
	case 6:
		w.now = w.now.Add(time.Duration(w.rand.IntN(12)) * time.Minute)
	case 7:
		if len(records) > 0 {
			w.tamper(w.records.now[records[w.rand.IntN(len(records))]])
		}
	case 8:
		if len(records) > 0 && w.chance(5) {
			w.records.change(w.now, func(all map[string]*v1alpha1.DrainRecord) { delete(all, records[0]) })
		}
	}
}

func (w *world) tamper(r *v1alpha1.DrainRecord) {
	r = r.DeepCopy()
	switch w.rand.IntN(5) {
	case 0:
		r.Status.Locks = nil
	case 1:
		for _, b := range r.Spec.Budgets {
			r.Spec.Budgets = append([]v1alpha1.BudgetReference{b}, r.Spec.Budgets...)
		}
		r.Generation++
	case 2:
		at := metav1.NewTime(w.now.Add(1000 * time.Hour))
		r.Status.WaitStartTime = &at
		for i := range r.Status.Locks {
			r.Status.Locks[i].AcquiredTime = at
		}
	case 3:
		r.Status.Locks = append(r.Status.Locks, r.Status.Locks...)
		r.Status.Locks = append(r.Status.Locks, v1alpha1.RecordedLock{BudgetReference: v1alpha1.BudgetReference{Namespace: "nowhere", Name: "nothing"}})
	case 4:
		r.Status = v1alpha1.DrainRecordStatus{ObservedGeneration: -1}
	}
	w.putRecord(r)
}
