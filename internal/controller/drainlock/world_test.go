package drainlock

import (
	"crypto/sha256"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/test/fault"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

const namespace = "ebbtide-system"

type world struct {
	t        *testing.T
	api      *fault.Server
	clock    *testingclock.FakeClock
	registry *prometheus.Registry
	busy     traffic
	// skewed is true while the clock is not trusted.
	skewed bool
}

type traffic map[types.NamespacedName]bool

func (t traffic) Busy() map[types.NamespacedName]bool {
	busy := map[types.NamespacedName]bool{}
	maps.Copy(busy, t)
	return busy
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	return &world{
		t: t, api: fault.NewServer(t, objects...), clock: testingclock.NewFakeClock(noon),
		registry: prometheus.NewRegistry(), busy: traffic{},
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) now() (time.Time, bool) { return w.clock.Now(), w.skewed }

func (w *world) nodes() *nodes {
	return &nodes{
		client: w.api.Manager, live: w.api.Manager, emit: w.api.Emit, now: w.now, clock: w.clock, namespace: namespace,
		traffic: w.busy, metrics: newMetrics(w.registry), pauses: newPauses(), refusals: newRefusals(), queue: newQueue(), reading: make(chan struct{}, 1),
	}
}

func (w *world) keeper() *keeper {
	return &keeper{
		client: w.api.Manager, live: w.api.Manager, emit: w.api.Emit, now: w.now,
		pauses: newPauses(), told: map[types.NamespacedName][sha256.Size]byte{},
	}
}

func read[T client.Object](w *world, object T) (T, bool) {
	w.t.Helper()
	stored := object.DeepCopyObject().(T)
	err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(object), stored)
	w.must(client.IgnoreNotFound(err))
	return stored, err == nil
}

// aBudget allows this many disruptions of what has its name as the label app.
func aBudget(name string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(noon.Add(-24 * time.Hour)),
		},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: allowed, ExpectedPods: 3, CurrentHealthy: 3, DesiredHealthy: 2},
	}
}

func lockedBy(b *policyv1.PodDisruptionBudget, holder string, lasts time.Duration) *policyv1.PodDisruptionBudget {
	lock := budget.Lock{Holder: holder, AcquiredAt: metav1.NewTime(noon), ExpiresAt: metav1.NewTime(noon.Add(lasts))}
	return bearing(b, lock.Write())
}

func bearing(b *policyv1.PodDisruptionBudget, lock string) *policyv1.PodDisruptionBudget {
	changed := b.DeepCopy()
	changed.Annotations = map[string]string{v1alpha1.LockAnnotation: lock}
	return changed
}

func aPod(app, node string) *corev1.Pod {
	name := app + "-" + node
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name),
			Labels: map[string]string{"app": app, v1alpha1.OnUpgradeLabel: v1alpha1.OnUpgradeStay},
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func aNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)},
		Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{BootID: "boot"}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func saidBack(record *v1alpha1.DrainRecord) *v1alpha1.DrainRecord {
	record.Annotations = map[string]string{v1alpha1.BackAnnotation: "true"}
	return record
}

// aRecord needs the budgets of these applications, each of which has a pod on the
// node, for maintenance upgrade.
func aRecord(node string, apps ...string) *v1alpha1.DrainRecord {
	record := &v1alpha1.DrainRecord{
		ObjectMeta: metav1.ObjectMeta{Name: node, UID: types.UID("record-of-" + node), Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
		Spec: v1alpha1.DrainRecordSpec{
			MaintenanceRef: v1alpha1.MaintenanceReference{Name: "upgrade", UID: "upgrade"}, Reason: "OS upgrade",
			InPlace: v1alpha1.InPlace{ExpectedDowntimeSeconds: 300, LockTimeoutSeconds: 300, OnLockTimeout: v1alpha1.LockTimeoutEvict},
		},
	}
	for _, app := range apps {
		pod := aPod(app, node)
		record.Spec.Pods = append(record.Spec.Pods, v1alpha1.StayingPod{Namespace: "shop", Name: pod.Name, UID: pod.UID, BudgetUIDs: []types.UID{types.UID("uid-of-" + app)}})
		record.Spec.Budgets = append(record.Spec.Budgets, v1alpha1.BudgetReference{Namespace: "shop", Name: app, UID: types.UID("uid-of-" + app)})
	}
	return record
}

func held(record *v1alpha1.DrainRecord) *v1alpha1.DrainRecord {
	record.Status.ObservedGeneration = record.Generation
	record.Status.Boots = &v1alpha1.RecordedBoots{MaintenanceUID: record.Spec.MaintenanceRef.UID, BootID: "boot"}
	for _, needed := range record.Spec.Budgets {
		record.Status.Locks = append(record.Status.Locks, v1alpha1.RecordedLock{
			BudgetReference: needed, AcquiredTime: metav1.NewTime(noon), ConfirmedTime: &metav1.Time{Time: noon},
		})
	}
	return record
}

func aMutex() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.DrainLockMutex}}
}

func requestOf(node string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: node}}
}
