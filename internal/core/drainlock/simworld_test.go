package drainlock_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

// store is what the API server has of one kind, and what those who watch it have
// seen of that. Objects are never changed in place.
type store[K comparable, T any] struct {
	now     map[K]T
	past    []dated[K, T]
	changes int
}

type dated[K comparable, T any] struct {
	at  time.Time
	all map[K]T
}

func (s *store[K, T]) seen() map[K]T { return s.past[0].all }

func (s *store[K, T]) change(at time.Time, change func(map[K]T)) {
	s.now = maps.Clone(s.now)
	if s.now == nil {
		s.now = map[K]T{}
	}
	change(s.now)
	s.changes++
	s.past = append(s.past, dated[K, T]{at: at, all: s.now})
}

func (s *store[K, T]) hear(w *world) {
	for len(s.past) > 1 && (w.now.Sub(s.past[1].at) > lag || w.rand.IntN(3) > 0) {
		s.past = s.past[1:]
	}
}

func (s *store[K, T]) hearAll() { s.past = s.past[len(s.past)-1:] }

const lag = 1500 * time.Millisecond

type machine struct {
	name        string
	maintenance *v1alpha1.NodeMaintenance
	// drained is true when its maintenance has been told so; over when it is complete.
	drained, over bool
	// ordered is true once it is to reboot, whatever is said of the maintenance since;
	// away while it is down; back when it has been.
	ordered, away, back bool
	// reported is true when the kubelet has told of the boot.
	reported bool
	since    time.Time
	// overTime is when the maintenance was complete.
	overTime time.Time
	// under are the budgets that there were when it was told that it may go.
	under map[string]bool
	// pool is true if nobody completes the maintenance before the node has returned.
	pool bool
}

type eviction struct {
	pod  types.UID
	own  bool
	land time.Time
}

type world struct {
	seed uint64
	rand *rand.Rand
	now  time.Time
	// skew is how far the clock of the manager is ahead.
	skew time.Duration
	// rough worlds have accidents of which no protocol is to blame, calm ones none at
	// all any more.
	rough, calm bool
	// wipes is true of a world in which records and budgets are deleted; missing are the
	// budgets that are not there, and born is since when others are that were missing.
	wipes   bool
	missing map[string]*policyv1.PodDisruptionBudget
	born    map[string]time.Time
	flaw    flaw

	version int
	nodes   []*machine
	records store[string, *v1alpha1.DrainRecord]
	budgets store[v1alpha1.BudgetReference, *policyv1.PodDisruptionBudget]
	pods    store[types.UID, *corev1.Pod]
	mutex   store[string, *coordinationv1.Lease]
	hosts   store[string, *corev1.Node]
	// dead are the pods that are down, whatever the API says of them.
	dead     map[types.UID]bool
	apps     []string
	replicas map[string]int
	flying   []eviction

	// checked is after how many changes the world was last checked.
	checked int
	// fault is the first thing that must not be.
	fault string
	trace []string
	count map[string]int
}

type flaw string

const spare = "spare"

func newSimWorld(seed uint64, rough bool, f flaw) *world {
	w := &world{
		seed: seed, rand: rand.New(rand.NewPCG(seed, 50)), now: began, rough: rough, flaw: f,
		replicas: map[string]int{}, count: map[string]int{}, dead: map[types.UID]bool{},
		missing: map[string]*policyv1.PodDisruptionBudget{}, born: map[string]time.Time{},
	}
	w.records.change(w.now, func(map[string]*v1alpha1.DrainRecord) {})
	w.mutex.change(w.now, func(map[string]*coordinationv1.Lease) {})
	nodes := 2 + w.rand.IntN(4)
	for i := range nodes {
		w.nodes = append(w.nodes, &machine{name: "node-" + strconv.Itoa(i+1)})
		w.reportBoot(w.nodes[i].name)
	}
	for i := range 1 + w.rand.IntN(5) {
		w.newApp("app-"+string(rune('a'+i)), nodes)
	}
	w.hearAll()
	return w
}

func (w *world) newApp(app string, nodes int) {
	n := 2 + w.rand.IntN(max(nodes-1, 1))
	w.apps, w.replicas[app] = append(w.apps, app), n
	where := w.rand.Perm(nodes)
	for i := range n {
		w.newPod(app, w.nodes[where[i%nodes]].name, true)
	}
	most := intstr.FromInt32(int32(1 + w.rand.IntN(2)*w.rand.IntN(2)))
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app, UID: types.UID(app), Generation: 1, CreationTimestamp: metav1.NewTime(began)},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}
	w.putBudget(b)
	w.count1(b)
}

func (w *world) newPod(app, node string, ready bool) {
	w.version++
	uid := types.UID(app + "-" + strconv.Itoa(w.version))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: string(uid), UID: uid, Labels: map[string]string{"app": app, v1alpha1.OnUpgradeLabel: v1alpha1.OnUpgradeStay}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
	setReady(pod, ready)
	w.startContainers(pod)
	w.dead[uid] = !ready
	w.pods.change(w.now, func(all map[types.UID]*corev1.Pod) { all[uid] = pod })
}

func setReady(pod *corev1.Pod, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
}

func isReady(pod *corev1.Pod) bool { return pod.Status.Conditions[0].Status == corev1.ConditionTrue }

func (w *world) turn(pod *corev1.Pod, ready bool) {
	turned := pod.DeepCopy()
	setReady(turned, ready)
	w.pods.change(w.now, func(all map[types.UID]*corev1.Pod) { all[pod.UID] = turned })
}

func (w *world) nextVersion() string {
	w.version++
	return strconv.Itoa(w.version)
}

func ref(b *policyv1.PodDisruptionBudget) v1alpha1.BudgetReference {
	return drainlock.ReferenceTo(b)
}

func (w *world) putBudget(b *policyv1.PodDisruptionBudget) {
	b.ResourceVersion = w.nextVersion()
	w.budgets.change(w.now, func(all map[v1alpha1.BudgetReference]*policyv1.PodDisruptionBudget) { all[ref(b)] = b })
}

func (w *world) annotate(old *policyv1.PodDisruptionBudget, lock string) bool {
	now := w.budgets.now[ref(old)]
	if now == nil || now.ResourceVersion != old.ResourceVersion && w.flaw != noVersions {
		return false
	}
	changed := now.DeepCopy()
	delete(changed.Annotations, v1alpha1.LockAnnotation)
	if lock != "" {
		changed.Annotations = map[string]string{v1alpha1.LockAnnotation: lock}
	}
	at := metav1.NewTime(w.now)
	changed.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &at}}
	w.putBudget(changed)
	return true
}

func (w *world) putRecord(r *v1alpha1.DrainRecord) {
	r.ResourceVersion = w.nextVersion()
	w.records.change(w.now, func(all map[string]*v1alpha1.DrainRecord) { all[r.Name] = r })
}

// writeSpec creates or changes a record as it was seen.
func (w *world) writeSpec(node string, old *v1alpha1.DrainRecord, spec v1alpha1.DrainRecordSpec) {
	now := w.records.now[node]
	if old == nil {
		if now == nil {
			uid := types.UID("record-" + w.nextVersion())
			w.putRecord(&v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{Name: node, UID: uid, Generation: 1}, Spec: spec})
		}
		return
	}
	if now == nil || now.ResourceVersion != old.ResourceVersion {
		return
	}
	changed := now.DeepCopy()
	changed.Spec = spec
	changed.Generation++
	w.putRecord(changed)
}

func on(pods map[types.UID]*corev1.Pod, node string) []*corev1.Pod {
	var found []*corev1.Pod
	for _, pod := range pods {
		if pod.Spec.NodeName == node {
			found = append(found, pod)
		}
	}
	slices.SortFunc(found, func(a, b *corev1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	return found
}

func (w *world) all(budgets map[v1alpha1.BudgetReference]*policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
	list := make([]*policyv1.PodDisruptionBudget, 0, len(w.apps))
	for _, b := range budgets {
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b *policyv1.PodDisruptionBudget) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func (w *world) changes() int {
	return w.records.changes + w.budgets.changes + w.pods.changes
}

func (w *world) hear() {
	w.hosts.hear(w)
	w.records.hear(w)
	if w.flaw != deadCache || w.chance(20) {
		w.budgets.hear(w)
		w.pods.hear(w)
	}
	w.mutex.hear(w)
}

func (w *world) hearAll() {
	w.hosts.hearAll()
	w.records.hearAll()
	w.budgets.hearAll()
	w.pods.hearAll()
	w.mutex.hearAll()
}

func (w *world) fail(format string, arguments ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, arguments...)
	}
}

func (w *world) say(format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	w.count[strings.Fields(text)[0]]++
	if w.trace != nil {
		w.trace = append(w.trace, fmt.Sprintf("%6.1fs %s", w.now.Sub(began).Seconds(), text))
	}
}
