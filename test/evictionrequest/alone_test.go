package evictionrequest

import (
	"slices"
	"sync"
	"testing"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
)

// Where another controller is to answer and none does, a maintenance asks once, waits for 30
// seconds, takes that back and says so, and has the pod evacuated. The next pod is not asked
// in vain. All other tests of this control plane have ended by then.
func TestLongNobodyAnswersAMaintenance(t *testing.T) {
	t.Parallel()
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Nodes: 1, NoMachines: true})
	w.cluster.StartManagerWith(t, "--eviction-requests=member", "--machines=false")
	asked := w.followAsked()
	pod := w.pod("web-0", "example.com/leader 20000")
	began := time.Now()
	m := w.drain()
	request := own(pod)
	w.eventually("the pod to be asked", func() (bool, any) {
		err := w.client.Get(w.ctx, client.ObjectKeyFromObject(request), request)
		return err == nil, err
	})
	if blockers := w.evacuations(); len(blockers) > 0 || request.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentEviction {
		t.Errorf("there are %d Evacuations, and the request is %+v", len(blockers), request.Spec)
	}
	time.Sleep(time.Until(began.Add(core.AnswerDeadline)))
	w.awaitEvent(w.ns, v1alpha1.EventEvictionRequestUnanswered,
		"No controller responds to EvictionRequests in this cluster; web-0 is evacuated without its evictionResponders (example.com/leader). Run Ebbtide with --eviction-requests=controller.")
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(request), request))
	at, err := time.Parse(time.RFC3339, request.Annotations[v1alpha1.WithdrawnAnnotation])
	if waited := at.Sub(request.CreationTimestamp.Time); err != nil || waited < core.AnswerDeadline || request.Annotations[v1alpha1.UnansweredAnnotation] != "true" ||
		request.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentWithdrawn {
		t.Errorf("the request is %+v %+v after %s, want it withdrawn as unanswered, and not before %s", request.ObjectMeta, request.Spec, waited, core.AnswerDeadline)
	}
	w.awaitGone(pod)

	second := w.pod("web-1", "example.com/leader 20000")
	w.awaitGone(second)
	w.awaitDrained(m)
	if want, got := []string{request.Name}, asked.names(); !slices.Equal(got, want) {
		t.Errorf("there were the requests %v, want only that for the first pod: %v", got, want)
	}
}

// askedFor are the names of the requests that there have been.
type askedFor struct {
	mu  sync.Mutex
	all []string
}

func (w *world) followAsked() *askedFor {
	w.t.Helper()
	a, list := &askedFor{}, &lifecyclev1alpha1.EvictionRequestList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.ns)))
	w.cluster.Follow(w.t, list, func(kind watch.EventType, object client.Object) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if kind == watch.Added {
			a.all = append(a.all, object.GetName())
		}
	}, client.InNamespace(w.ns))
	return a
}

func (a *askedFor) names() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

func (a *askedFor) count() int { return len(a.names()) }
