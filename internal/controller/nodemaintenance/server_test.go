package nodemaintenance

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// server is a real API server and a manager on it that is stepped by hand.
type server struct {
	t       *testing.T
	cluster *cluster.Cluster
	api     client.Client
	// prefix makes names this test's own.
	prefix  string
	manager *reconciler
	clock   *testingclock.FakeClock
	told    told
}

func newServer(t *testing.T) *server {
	t.Helper()
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	s := &server{
		t: t, cluster: c, api: c.Client, prefix: c.Pool(),
		clock: testingclock.NewFakeClock(time.Now()), told: told{},
	}
	options := kube.CacheOptions()
	options.Scheme = c.Client.Scheme()
	reads, err := cache.New(c.Config, options)
	s.must("make the cache", err)
	s.must("index the cache", kube.IndexFields(s.ctx(), reads))
	ctx, stop := context.WithCancel(s.ctx())
	ended := make(chan error, 1)
	go func() { ended <- reads.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run the cache: %v", err)
		}
	})

	consistent := true
	managed, err := client.New(c.Config, client.Options{
		Scheme: options.Scheme, Cache: &client.CacheOptions{Reader: reads, EnableReadYourWritesConsistency: &consistent},
	})
	s.must("make the manager's client", err)
	s.manager = newReconciler(managed, func(...event.Event) {}, s.clock, newMetrics(prometheus.NewRegistry()))
	return s
}

func (s *server) ctx() context.Context { return log.IntoContext(s.t.Context(), testr.New(s.t)) }

func (s *server) must(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// reconcile tells the manager of what its cache shows and has it run the passes that
// are due.
func (s *server) reconcile() {
	s.t.Helper()
	s.must("tell the manager", s.told.tell(s.ctx(), s.manager.client, s.manager))
	s.must("reconcile", runDue(s.ctx(), s.manager, s.clock))
}

// stepUntil runs passes until the world is as wanted. What others write takes a
// moment to reach the cache.
func (s *server) stepUntil(what string, reached func() (saw string, ok bool)) {
	s.t.Helper()
	patience.Eventually(s.t, what, func(context.Context) (string, bool) {
		s.reconcile()
		s.clock.Step(2 * time.Second)
		return reached()
	})
}

// A node is drained and given back on a real API server: its admission, its
// merge of node conditions and its handling of finalizers are those of
// Kubernetes, and every pass sees what the one before has written.
func TestADrainOnARealAPIServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.prefix + "-node", Labels: map[string]string{"pool": s.prefix}}}
	s.must("create the node", s.api.Create(s.ctx(), node))
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	s.must("make the node ready", s.api.Status().Update(s.ctx(), node))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.prefix + "-pod", Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "shop", Image: "shop"}}},
	}
	s.must("create the pod", s.api.Create(s.ctx(), pod))
	upgrade := aMaintenance("upgrade", s.prefix)
	upgrade.ObjectMeta = metav1.ObjectMeta{Name: s.prefix}
	s.must("create the maintenance", s.api.Create(s.ctx(), upgrade))

	s.stepUntil("the node to be cordoned and its pod to be asked to leave", func() (string, bool) {
		evacuations := s.evacuationsOf(pod)
		s.read(node)
		conditions := trueConditions(node)
		return fmt.Sprintf("cordoned %t, evacuations %d, conditions %v", node.Spec.Unschedulable, len(evacuations), conditions),
			node.Spec.Unschedulable && len(evacuations) == 1 && fmt.Sprint(conditions) == "[DrainInProgress Ready]"
	})

	s.evacuate(pod)
	s.stepUntil("the maintenance to be drained", func() (string, bool) {
		s.read(upgrade)
		return upgrade.Status.Summary, meta.IsStatusConditionTrue(upgrade.Status.Conditions, v1alpha1.ConditionDrained)
	})

	s.change("complete the maintenance", upgrade, func() { upgrade.Spec.Stage = v1alpha1.StageComplete })
	s.stepUntil("the node to be given back", func() (string, bool) {
		s.read(node)
		s.read(upgrade)
		ledger, held := node.Annotations[v1alpha1.CordonAnnotation]
		return fmt.Sprintf("cordoned %t, ledger %q, finalizers %v, conditions %v",
				node.Spec.Unschedulable, ledger, upgrade.Finalizers, trueConditions(node)),
			!node.Spec.Unschedulable && !held && len(upgrade.Finalizers) == 0 && fmt.Sprint(trueConditions(node)) == "[Ready]"
	})

	s.read(node)
	s.read(upgrade)
	settled := []string{node.ResourceVersion, upgrade.ResourceVersion}
	for range 3 {
		s.reconcile()
		s.clock.Step(2 * time.Second)
	}
	s.read(node)
	s.read(upgrade)
	if got := []string{node.ResourceVersion, upgrade.ResourceVersion}; fmt.Sprint(got) != fmt.Sprint(settled) {
		t.Errorf("node and maintenance are at %v after nothing happened, want %v: something was written", got, settled)
	}
}

func (s *server) read(object client.Object) {
	s.t.Helper()
	s.must("get "+object.GetName(), s.api.Get(s.ctx(), client.ObjectKeyFromObject(object), object))
}

// change changes an object, also one that the managers of other tests write just then.
func (s *server) change(what string, object client.Object, edit func()) {
	s.t.Helper()
	s.must(what, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s.read(object)
		edit()
		return s.api.Update(s.ctx(), object)
	}))
}

func (s *server) evacuationsOf(pod *corev1.Pod) []v1alpha1.Evacuation {
	s.t.Helper()
	var all v1alpha1.EvacuationList
	s.must("list evacuations", s.api.List(s.ctx(), &all, client.InNamespace(pod.Namespace)))
	var found []v1alpha1.Evacuation
	for i := range all.Items {
		if all.Items[i].Spec.PodRef.UID == pod.UID {
			found = append(found, all.Items[i])
		}
	}
	return found
}

// evacuate does what the evacuation controller does.
func (s *server) evacuate(pod *corev1.Pod) {
	s.t.Helper()
	s.must("delete the pod", s.api.Delete(s.ctx(), pod, client.GracePeriodSeconds(0)))
	for _, evacuation := range s.evacuationsOf(pod) {
		if _, err := kube.RemoveFinalizer(s.ctx(), s.api, &evacuation, v1alpha1.NodeMaintenanceInstigator); err != nil {
			s.t.Fatalf("release the evacuation: %v", err)
		}
		s.must("delete the evacuation", client.IgnoreNotFound(s.api.Delete(s.ctx(), &evacuation)))
	}
}
