package eviction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

const (
	exhausted = "The disruption budget web needs 3 healthy pods and has 3 currently"
	several   = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
	denial    = `admission webhook "guard.example.com" denied the request: not on a Friday`
)

var (
	blue  = types.NamespacedName{Namespace: "machines", Name: "blue"}
	green = types.NamespacedName{Namespace: "machines", Name: "green"}
)

// request is one that has reached the API server.
type request struct {
	at    time.Duration
	pod   types.UID
	grace string
}

// world is a cluster with pods and a budget or two, and a Queue that evicts from it.
// Its time passes only when everybody waits.
type world struct {
	t     *testing.T
	queue *Queue
	begin time.Time
	// results are the counted answers.
	results *prometheus.CounterVec

	mu     sync.Mutex
	pods   map[types.NamespacedName]*corev1.Pod
	budget *policyv1.PodDisruptionBudget
	// second is another budget; looks is how often budgets were read.
	second *policyv1.PodDisruptionBudget
	looks  int
	onLook func()
	// unreadable is the name of a pod that cannot be read.
	unreadable string
	// answers are what the API server says of a pod, by name; absent evicts.
	answers map[string]metav1.Status
	// hanging pods have no answer; all others take as long as latency.
	hanging map[string]bool
	latency time.Duration
	// lingering has evicted pods stay in the cache as they are.
	lingering bool
	requests  []request
	news      []types.NamespacedName
	// skewed is true while the clock is not trusted, ahead how far it is ahead.
	skewed bool
	ahead  time.Duration
	log    []string
}

// now is the earliest time that it may be.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return skew.Earliest(time.Now().Add(w.ahead), w.skewed)
}

// inWorld tells a story on a started Queue, and ends it without leaving anything
// behind.
func inWorld(t *testing.T, workers int, story func(*world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, workers)
		end := w.start()
		story(w)
		end()
	})
}

func newWorld(t *testing.T, workers int) *world {
	t.Helper()
	w := &world{
		t: t, begin: time.Now(), results: NewResults(),
		pods:    map[types.NamespacedName]*corev1.Pod{},
		answers: map[string]metav1.Status{}, hanging: map[string]bool{},
	}
	dispatcher := NewDispatcher(DispatcherOptions{Reader: w, Now: w.now, Results: w.results})
	w.queue = NewQueue(QueueOptions{Dispatcher: dispatcher, Evictor: w, Reader: w, Workers: workers, Changed: w.hear})
	return w
}

func (w *world) start() (end func()) {
	ctx, cancel := context.WithCancel(log.IntoContext(w.t.Context(), funcr.New(w.write, funcr.Options{Verbosity: 4})))
	ended := make(chan error, 1)
	go func() { ended <- w.queue.Start(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the queue ends with an error: %v", err)
		}
	}
}

func (w *world) write(_, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, line)
}

// hear counts news.
func (w *world) hear(owner types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.news = append(w.news, owner)
}

// change does something to the cluster and waits until nobody reacts any more.
func (w *world) change(do func()) {
	w.mu.Lock()
	do()
	w.mu.Unlock()
	synctest.Wait()
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// want has the queue evict pods, and waits until it has done what it can.
func (w *world) want(owner types.NamespacedName, pods ...*corev1.Pod) {
	w.queue.Want(owner, pods, nil)
	synctest.Wait()
}

// newPods adds pods of the application web; a lower number is older.
func (w *world) newPods(names ...string) []*corev1.Pod {
	var pods []*corev1.Pod
	w.change(func() {
		for _, name := range names {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"},
				CreationTimestamp: metav1.Time{Time: dawn.Add(time.Duration(len(w.pods)) * time.Second)},
			}, Spec: corev1.PodSpec{NodeName: "node-1"}}
			w.pods[client.ObjectKeyFromObject(pod)] = pod
			pods = append(pods, pod)
		}
	})
	return pods
}

// allow sets what the budget web allows and tells the queue of it, as the watch does.
func (w *world) allow(disruptions int32) {
	var old, now *policyv1.PodDisruptionBudget
	w.change(func() {
		old = w.budget
		now = budgetNamed("web", disruptions)
		if old != nil {
			now.Annotations = old.Annotations
		}
		w.budget = now
	})
	w.queue.options.Dispatcher.BudgetChanged(old, now)
	synctest.Wait()
}

// budgetNamed is a budget of the application web.
func budgetNamed(name string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: allowed},
	}
}

// Get is the cache of pods.
func (w *world) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key.Name == w.unreadable {
		return errors.New("the cache is not filled")
	}
	pod := w.pods[key]
	if pod == nil {
		return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
	}
	pod.DeepCopyInto(object.(*corev1.Pod))
	return nil
}

// List is the cache of budgets.
func (w *world) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	happen(w.onLook)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	budgets := list.(*policyv1.PodDisruptionBudgetList)
	for _, b := range []*policyv1.PodDisruptionBudget{w.budget, w.second} {
		if b != nil {
			budgets.Items = append(budgets.Items, *b)
		}
	}
	return nil
}

// Evict is the API server's eviction subresource.
func (w *world) Evict(ctx context.Context, pod *corev1.Pod, grace *int64) metav1.Status {
	hangs, latency := w.receive(pod, grace)
	if hangs {
		<-ctx.Done()
		return metav1.Status{Status: metav1.StatusFailure, Message: ctx.Err().Error()}
	}
	if latency > 0 {
		time.Sleep(latency)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if answer, refused := w.answers[pod.Name]; refused {
		return answer
	}
	protected := w.budget != nil && pod.Labels["app"] == "web"
	if protected && w.second != nil && w.second.Spec.Selector.MatchLabels["app"] == "web" {
		return answered(500, several)
	}
	if protected && w.budget.Status.DisruptionsAllowed == 0 {
		return answered(429, "Cannot evict pod as it would violate the pod's disruption budget.",
			metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: exhausted})
	}
	if protected {
		w.budget.Status.DisruptionsAllowed--
	}
	if !w.lingering {
		delete(w.pods, client.ObjectKeyFromObject(pod))
	}
	return metav1.Status{Status: metav1.StatusSuccess}
}

func (w *world) receive(pod *corev1.Pod, grace *int64) (hangs bool, latency time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := request{at: time.Since(w.begin), pod: pod.UID}
	if grace != nil {
		r.grace = fmt.Sprint(*grace)
	}
	w.requests = append(w.requests, r)
	return w.hanging[pod.Name], w.latency
}

func answered(code int32, message string, causes ...metav1.StatusCause) metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: code, Message: message, Details: &metav1.StatusDetails{Causes: causes},
	}
}

// left are the names of the pods that are still there.
func (w *world) left() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var left []string
	for _, pod := range w.pods {
		left = append(left, pod.Name)
	}
	slices.Sort(left)
	return left
}

// asked returns the requests to evict a pod until now.
func (w *world) asked(name string) []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var asked []request
	for _, r := range w.requests {
		if r.pod == types.UID("uid-"+name) {
			asked = append(asked, r)
		}
	}
	return asked
}

// heard returns the news since it was last called.
func (w *world) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var heard []string
	for _, owner := range w.news {
		heard = append(heard, owner.Name)
	}
	w.news = nil
	slices.Sort(heard)
	return heard
}

// refused are the owner's pods with refusals, each with its words.
func (w *world) refused(owner types.NamespacedName) []string {
	answers := w.queue.Refusals(owner)
	var refused []string
	for _, uid := range slices.Sorted(maps.Keys(answers)) {
		refused = append(refused, fmt.Sprintf("%s: %s", uid, answers[uid].Message))
	}
	return refused
}

// counts are the answers that were counted, by result.
func (w *world) counts(t *testing.T) map[evacuation.Result]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.results)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[evacuation.Result]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			counts[evacuation.Result(metric.GetLabel()[0].GetValue())] = metric.GetCounter().GetValue()
		}
	}
	return counts
}
