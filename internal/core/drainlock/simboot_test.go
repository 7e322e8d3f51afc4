package drainlock_test

import (
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// grace is after how long the pods of a node that is away are shown as not ready.
	grace = 40 * time.Second
	// downtime is how long a node of these worlds is away at the most, with the time
	// until its kubelet reports.
	downtime = time.Minute
)

func (w *world) newMaintenance() metav1.ObjectMeta {
	version := w.nextVersion()
	return metav1.ObjectMeta{Name: "reboot-" + version, UID: types.UID("uid-" + version)}
}

// administer completes the maintenance of a node, or gives it up. Some people do so
// when the node has hardly begun to reboot; of a pool nobody does before it is back.
func (w *world) administer(m *machine) {
	record := w.records.now[m.name]
	returned := record == nil || len(record.Spec.Budgets) == 0 || drainlock.Returned(record)
	switch {
	case m.over:
	case m.pool && m.drained && !returned && !w.rough:
	case m.drained && (m.back || m.ordered && !w.calm) && w.chance(3):
		w.say("complete %s", m.name)
		m.over, m.overTime = true, w.now
	case !m.drained && !w.calm && w.chance(60):
		w.say("cancelled %s", m.name)
		m.over, m.overTime = true, w.now
	}
}

// reboot takes a drained node down and brings it back. What its kubelet has said
// before is shown until it reports again: of the node, and of each pod on its own.
func (w *world) reboot(m *machine) {
	switch {
	case m.maintenance == nil || !m.drained || m.back:
		w.report(m, w.calm)
	case !m.ordered && !m.over && w.chance(4):
		m.ordered, m.since = true, w.now
	case m.ordered && !m.away && w.chance(2):
		w.goDown(m)
	case m.away && w.now.Sub(m.since) > 5*time.Second && (w.calm || w.chance(w.slowness())):
		w.comeUp(m)
	}
}

func (w *world) slowness() int {
	if w.wipes {
		return 16
	}
	return 4
}

func (w *world) goDown(m *machine) {
	w.say("down %s", m.name)
	m.away, m.since = true, w.now
	for _, pod := range on(w.pods.now, m.name) {
		w.dead[pod.UID] = true
	}
}

func (w *world) comeUp(m *machine) {
	w.say("back %s", m.name)
	m.away, m.back = false, true
}

func (w *world) report(m *machine, certainly bool) {
	if w.unreported(m) && (certainly || w.chance(2)) {
		w.reportBoot(m.name)
	}
}

func (w *world) unreported(m *machine) bool {
	return m.back && !m.reported
}

func (w *world) reportBoot(name string) {
	host := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	host.Status.NodeInfo.BootID = "boot-" + w.nextVersion()
	host.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	host.ResourceVersion = w.nextVersion()
	if before := w.hosts.now[name]; before != nil {
		host.Annotations = before.Annotations
	}
	w.machine(name).reported = true
	w.hosts.change(w.now, func(all map[string]*corev1.Node) { all[name] = host })
}

func (w *world) machine(name string) *machine {
	if i := slices.IndexFunc(w.nodes, func(m *machine) bool { return m.name == name }); i >= 0 {
		return w.nodes[i]
	}
	return nil
}

func (w *world) startContainers(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: "container-" + strconv.Itoa(w.version), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
}

// recover has pods get ready on nodes that are not away, and those of nodes that have
// been away for long be shown as they are.
func (w *world) recover(everything bool) {
	w.missKubelets()
	for _, uid := range slices.Sorted(maps.Keys(w.pods.now)) {
		pod := w.pods.now[uid]
		m := w.machine(pod.Spec.NodeName)
		switch {
		case m != nil && m.away:
			if isReady(pod) && w.now.Sub(m.since) > grace {
				w.turn(pod, false)
			}
		case m != nil && w.calm && w.unreported(m):
			// The kubelet tells of itself first.
		case (w.dead[uid] || !isReady(pod)) && (everything || w.chance(4)):
			w.start1(pod)
		}
	}
}

func (w *world) missKubelets() {
	for _, m := range w.nodes {
		if host := w.hosts.now[m.name]; m.away && w.now.Sub(m.since) > grace && podclass.NodeReady(host) {
			host = host.DeepCopy()
			host.ResourceVersion, host.Status.Conditions = w.nextVersion(), nil
			w.hosts.change(w.now, func(all map[string]*corev1.Node) { all[m.name] = host })
		}
	}
}

func (w *world) believe(s drainlock.Snapshot) *v1alpha1.DrainRecord {
	record := s.Record.DeepCopy()
	record.Annotations = map[string]string{v1alpha1.BackAnnotation: "true"}
	return record
}

// couldGo is true of a node that has waited, has nothing and could lock everything that
// it needs: simpler than what the protocol asks, so that there are fewer of them.
func (w *world) couldGo(r *v1alpha1.DrainRecord) bool {
	if r.Spec.Complete || r.Status.WaitStartTime == nil || len(r.Status.GivenUp) > 0 || drainlock.Returned(r) {
		return false
	}
	for _, b := range r.Spec.Budgets {
		if one := w.budgets.now[b]; one == nil || one.Annotations != nil || one.Status.ObservedGeneration < one.Generation || one.Status.DisruptionsAllowed < 1 {
			return false
		}
	}
	ready := map[types.UID]int{}
	for _, stayed := range r.Spec.Pods {
		pod := w.pods.now[stayed.UID]
		if pod == nil || !isReady(pod) {
			return false
		}
		for _, under := range stayed.BudgetUIDs {
			ready[under]++
		}
	}
	return !slices.ContainsFunc(slices.Collect(maps.Values(ready)), func(pods int) bool { return pods > 1 })
}

// checkTurn: who has waited longer for one of the same budgets, and could go, goes first.
func (w *world) checkTurn(node string) {
	taker := w.records.now[node]
	if !w.calm || w.rough || w.wipes || w.flaw == greedy || w.flaw == noMutex || !w.couldGo(taker) {
		return
	}
	for _, other := range w.records.now {
		if share(other, taker) && w.couldGo(other) && other.Status.WaitStartTime.Before(taker.Status.WaitStartTime) {
			w.fail("%s goes before %s, which waits for longer", node, other.Name)
		}
	}
}

// share reports whether two records ask for one of the same budgets.
func share(one, other *v1alpha1.DrainRecord) bool {
	return slices.ContainsFunc(one.Spec.Budgets, func(b v1alpha1.BudgetReference) bool { return slices.Contains(other.Spec.Budgets, b) })
}

func (w *world) start1(pod *corev1.Pod) {
	w.version++
	started := pod.DeepCopy()
	setReady(started, true)
	if w.dead[pod.UID] {
		w.startContainers(started)
	}
	delete(w.dead, pod.UID)
	w.pods.change(w.now, func(all map[types.UID]*corev1.Pod) { all[pod.UID] = started })
}

// obey takes a node down that was ordered to reboot some time ago.
func (w *world) obey(m *machine) {
	if m.ordered && !m.away && !m.back && w.now.Sub(m.since) > downtime {
		w.goDown(m)
	}
}

// finishReboots has nodes report in time: a node is not away for longer than it is
// expected to be after somebody has said that its maintenance is over.
func (w *world) finishReboots() {
	for _, m := range w.nodes {
		w.obey(m)
		if !m.over || !m.ordered || w.now.Sub(m.overTime) < downtime-20*time.Second {
			continue
		}
		if !m.away && !m.back {
			w.goDown(m)
		}
		if m.away {
			w.comeUp(m)
		}
		w.report(m, true)
		for _, pod := range on(w.pods.now, m.name) {
			if w.dead[pod.UID] {
				w.start1(pod)
			}
		}
	}
}
