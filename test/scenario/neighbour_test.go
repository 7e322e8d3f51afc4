package scenario

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/tier"
)

// neighbour is a namespace whose webhook does not answer.
type neighbour struct {
	*world

	free chan struct{}
	stop func()

	mu          sync.Mutex
	held, ended int
}

// newNeighbour is a world whose requests by a rule hang, as long as the API server lets them.
func newNeighbour(t *testing.T, operation admissionregistrationv1.OperationType, group, resource string) *neighbour {
	t.Helper()
	n := &neighbour{world: newWorld(t), free: make(chan struct{})}
	server := httptest.NewTLSServer(n)
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: n.name("hangs")},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "hangs.example.com", AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: new(int32(30)),
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), FailurePolicy: new(admissionregistrationv1.Fail),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      new(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: n.ns}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{operation},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
			}},
		}},
	}
	n.create(hook)
	n.stop = sync.OnceFunc(func() {
		close(n.free)
		n.must("delete the webhook", n.client.Delete(n.ctx, hook))
	})
	t.Cleanup(func() {
		n.stop()
		server.Close()
	})
	return n
}

// ServeHTTP holds a request until the neighbour is well again, or the API server gives up.
func (n *neighbour) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if dry := review.Request.DryRun; dry == nil || !*dry {
		n.count(1, 0)
		select {
		case <-n.free:
		case <-r.Context().Done():
		}
		n.count(-1, 1)
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	_ = json.NewEncoder(w).Encode(review)
}

func (n *neighbour) count(held, ended int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held += held
	n.ended += ended
}

func (n *neighbour) counts() (held, ended int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held, n.ended
}

// drain creates a maintenance whose requests hang, and waits until so many do.
func (n *neighbour) drain(name string, hang int, nodes ...string) {
	n.t.Helper()
	n.maintain(name, v1alpha1.StageDrain, nodes)
	n.t.Cleanup(n.stop) // Before the maintenance gives its nodes back.
	n.awaitHeld(hang)
}

func (n *neighbour) awaitHeld(hang int) {
	n.t.Helper()
	n.eventually(fmt.Sprintf("%d requests hang", hang), func() (bool, any) {
		held, _ := n.counts()
		return held >= hang, held
	})
}

// slowsNobody fails if something takes longer beside the neighbour than alone. It does not if
// it is over before the first of the neighbour's requests has ended.
func (n *neighbour) slowsNobody(what string, alone time.Duration, do func()) {
	n.t.Helper()
	_, before := n.counts()
	beside := taken(do)
	held, ended := n.counts()
	n.t.Logf("%s: alone %s, beside %d requests that hang %s, %d ended", what, alone, held, beside, ended-before)
	if ended > before && beside > 3*alone {
		n.t.Errorf("%s takes %s beside a slow neighbour, %d of whose requests ended meanwhile, and %s alone", what, beside, ended-before, alone)
	}
}

func taken(do func()) time.Duration {
	begun := time.Now()
	do()
	return time.Since(begun)
}

// manyPods are ordinary pods with these names.
func manyPods(count int) []pod {
	all := make([]pod, count)
	for i := range all {
		all[i].name = fmt.Sprintf("pod-%d", i)
	}
	return all
}

// leaves drains a node with one pod.
func (w *world) leaves(node string) func() {
	w.t.Helper()
	name := w.pods(node, pod{name: "on-" + node})[0]
	return func() {
		w.maintain("drain-"+node, v1alpha1.StageDrain, []string{node})
		w.awaitGone(name)
	}
}

func TestLongEvictionsThatHangSlowNoOtherNamespace(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	w, slow := newWorld(t), newNeighbour(t, admissionregistrationv1.Create, "", "pods/eviction")
	nodes := w.nodes("one", "two")
	alone, beside := w.leaves(nodes[0]), w.leaves(nodes[1])
	node := slow.nodes("slow")[0]
	slow.pods(node, manyPods(90)...)
	took := taken(alone)

	slow.drain("slow", 32, node)

	slow.slowsNobody("a drain", took, beside)
}

func TestLongSurgesThatHangSlowNoOtherNamespace(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	slow := newNeighbour(t, admissionregistrationv1.Update, "", "pods")
	surges := func() func() {
		w := newWorld(t)
		nodes, letNew := w.oldAndNew()
		w.serve(app{name: "web", replicas: 2, ready: "100ms"})
		pods := &corev1.PodList{}
		w.must("list pods", w.client.List(w.ctx, pods, client.InNamespace(w.ns)))
		letNew()
		return func() {
			w.maintain("drain", v1alpha1.StageDrain, nodes[:1])
			for i := range pods.Items {
				w.awaitGone(pods.Items[i].Name)
			}
		}
	}
	took := taken(surges())
	beside := surges()
	nodes, letNew := slow.oldAndNew()
	slow.serve(app{name: "web", replicas: 3, ready: "100ms"})
	letNew()

	slow.drain("slow", 1, nodes[0])

	slow.slowsNobody("a drain of pods that surge", took, beside)
}

func TestLongEvacuationsThatHangSlowNoOtherMaintenance(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	w, slow := newWorld(t), newNeighbour(t, admissionregistrationv1.Create, v1alpha1.SchemeGroupVersion.Group, "evacuations")
	nodes := w.nodes("one", "two")
	cordons := func(node string) func() {
		return func() {
			w.maintain("drain-"+node, v1alpha1.StageDrain, []string{node})
			w.awaitNode(node, "cordoned", func(n *corev1.Node) bool { return n.Spec.Unschedulable })
		}
	}
	took := taken(cordons(nodes[0]))
	names := make([]string, 60)
	for i := range names {
		names[i] = fmt.Sprintf("slow-%d", i)
	}
	for i, node := range slow.nodes(names...) {
		slow.pods(node, pod{name: fmt.Sprintf("pod-%d", i)})
	}
	for _, name := range names {
		slow.maintain(name, v1alpha1.StageDrain, []string{slow.name(name)})
	}
	t.Cleanup(slow.stop)
	slow.awaitHeld(32)

	slow.slowsNobody("a cordon", took, cordons(nodes[1]))
}

func TestLongEvacuationsThatHangSlowNoOtherNodeOfTheMaintenance(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	w, slow := newWorld(t), newNeighbour(t, admissionregistrationv1.Create, v1alpha1.SchemeGroupVersion.Group, "evacuations")
	nodes := w.nodes("alone", "z-beside")
	good := w.pods(nodes[1], pod{name: "good"})[0]
	took := taken(w.leaves(nodes[0]))
	names := make([]string, 80)
	for i := range names {
		names[i] = fmt.Sprintf("slow-%d", i)
	}
	all := slow.nodes(names...)
	for i, node := range all {
		slow.createPod(slow.podOn(node, pod{name: fmt.Sprintf("pod-%d", i)}))
	}

	slow.slowsNobody("a drain", took, func() {
		w.maintain("drain", v1alpha1.StageDrain, append(all, nodes[1]))
		t.Cleanup(slow.stop)
		w.awaitGone(good)
	})
}

func TestLongLocksThatHangSlowNoOtherNode(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	w, slow := newWorld(t), newNeighbour(t, admissionregistrationv1.Update, "policy", "poddisruptionbudgets")
	nodes := w.nodes("one", "two")
	locks := func(node string) func() {
		name := "on-" + node
		w.guarded(node, name)
		return func() {
			w.maintainInPlace("drain-"+node, minutes, node)
			w.awaitLock(w.holder("drain-"+node, node), name)
		}
	}
	alone, beside := locks(nodes[0]), locks(nodes[1])
	names := make([]string, 40)
	for i := range names {
		names[i] = fmt.Sprintf("slow-%d", i)
	}
	all := slow.nodes(names...)
	for i, node := range all {
		slow.guarded(node, names[i])
	}
	took := taken(alone)

	slow.maintainInPlace("slow", minutes, all...)
	t.Cleanup(slow.stop)
	slow.awaitHeld(20)

	slow.slowsNobody("a lock", took, beside)
}

func TestLongMachinesThatHangSlowNoOtherNamespace(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	w, slow := newWorld(t), newNeighbour(t, admissionregistrationv1.Update, v1alpha1.SchemeGroupVersion.Group, "machines")
	appears := func(name string) func() {
		return func() {
			w.machineOnly(name)
			await(w, "known", &v1alpha1.Machine{}, name, func(m *v1alpha1.Machine) bool { return len(m.Finalizers) > 0 })
		}
	}
	w.clusterOf(hosts)
	slow.clusterOf(hosts)
	took := taken(appears("alone"))

	for i := range 40 {
		slow.machineOnly(fmt.Sprintf("slow-%d", i))
	}
	t.Cleanup(slow.stop)
	slow.awaitHeld(32)

	slow.slowsNobody("the first write to a Machine", took, appears("beside"))
}

func TestLongClustersThatHangSlowNoOtherNamespace(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	w, slow := newWorld(t), newNeighbour(t, admissionregistrationv1.Update, v1alpha1.SchemeGroupVersion.Group, "clusters")
	appears := func(name string) func() {
		return func() {
			w.clusterOf(name)
			await(w, "held", &v1alpha1.Cluster{}, name, func(c *v1alpha1.Cluster) bool { return len(c.Finalizers) > 0 })
		}
	}
	took := taken(appears("alone"))

	for i := range 8 {
		slow.clusterOf(fmt.Sprintf("slow-%d", i))
	}
	t.Cleanup(slow.stop)
	slow.awaitHeld(4)

	slow.slowsNobody("the first write to a Cluster", took, appears("beside"))
}
