package evictionrequest

import (
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	lifecycleac "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
)

// effort is how long the writes for many pods took, and what CPU time.
type effort struct {
	took  time.Duration
	spent spent
}

// writesAlone makes the requests for many pods, and all that the manager writes for them,
// as many pods at a time as the manager has workers.
func (w *world) writesAlone() effort {
	w.t.Helper()
	pods := make([]*corev1.Pod, *many)
	cluster.Each(w.t, *many, func(n int) error {
		pods[n] = w.newPod(fmt.Sprintf("web-%d", n))
		return w.client.Create(w.ctx, pods[n])
	})
	before, began := w.spent(nil), time.Now()
	cluster.Each(w.t, *many, func(n int) error { return w.evictsAlone(pods[n]) })
	return effort{took: time.Since(began), spent: w.spent(nil).less(before)}
}

// evictsAlone writes what is written of the eviction of one pod.
func (w *world) evictsAlone(pod *corev1.Pod) error {
	request := newRequest("example.com/upgrade", pod)
	if err := w.client.Create(w.ctx, request); err != nil {
		return err
	}
	e := &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.ns, Name: "pod-1-" + pod.Name, Labels: map[string]string{"example.com/upgrade": "requester", evictor: "responder"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "lifecycle.k8s.io/v1alpha1", Kind: "EvictionRequest", Name: request.Name, UID: request.UID}},
		},
		Spec: lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: pod.Name, UID: pod.UID}}},
	}
	if err := w.client.Create(w.ctx, e, client.FieldOwner(core.FieldManager)); err != nil {
		return err
	}
	start := metav1.Now()
	turn := func(state lifecyclev1alpha1.ResponderStateType, told []*metav1ac.ConditionApplyConfiguration) runtime.ApplyConfiguration {
		return lifecycleac.Eviction(e.Name, w.ns).WithStatus(lifecycleac.EvictionStatus().WithObservedGeneration(1).WithConditions(told...).
			WithRequesters(lifecycleac.Requester().WithName("example.com/upgrade").WithIntent("Eviction")).
			WithTargetResponders(lifecycleac.TargetResponder().WithName(evictor).WithPriority(100).WithState(state)).
			WithResponders(lifecycleac.ResponderStatus().WithName(evictor).WithStartTime(start)))
	}
	told := func(told []*metav1ac.ConditionApplyConfiguration) runtime.ApplyConfiguration {
		return lifecycleac.EvictionRequest(request.Name, w.ns).WithStatus(lifecycleac.EvictionRequestStatus().WithObservedGeneration(1).WithConditions(told...))
	}
	waits := conditionsAlone("AwaitingEviction", "False", "AwaitingEviction", "")
	over := conditionsAlone("Succeeded", "True", "PodDeleted", "Pod "+pod.Name+" is gone.")
	report := lifecycleac.ResponderStatus().WithName(evictor).WithHeartbeatTime(start).WithCompletionTime(start).WithMessage("Pod " + pod.Name + " is gone.")
	for _, write := range []func() error{
		func() error { return w.applies(core.FieldManager, turn("Active", waits)) },
		func() error { return w.applies(core.FieldManager, told(waits)) },
		func() error { return w.client.SubResource("eviction").Create(w.ctx, pod, &policyv1.Eviction{}) },
		func() error {
			return w.applies(core.EvictorFieldManager, lifecycleac.Eviction(e.Name, w.ns).WithStatus(lifecycleac.EvictionStatus().WithResponders(report)))
		},
		func() error { return w.applies(core.FieldManager, turn("Completed", over)) },
		func() error { return w.applies(core.FieldManager, told(over)) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) applies(manager string, status runtime.ApplyConfiguration) error {
	return w.client.Status().Apply(w.ctx, status, client.FieldOwner(manager), client.ForceOwnership)
}

func conditionsAlone(failed, evicted, reason, words string) []*metav1ac.ConditionApplyConfiguration {
	return []*metav1ac.ConditionApplyConfiguration{
		metav1ac.Condition().WithType("Failed").WithStatus("False").WithReason(failed).WithMessage("").WithLastTransitionTime(metav1.Now()),
		metav1ac.Condition().WithType("TargetEvicted").WithStatus(metav1.ConditionStatus(evicted)).WithReason(reason).WithMessage(words).WithLastTransitionTime(metav1.Now()),
	}
}

// spent is the CPU time of processes, in seconds.
type spent struct{ server, etcd, manager float64 }

func (s spent) less(before spent) spent {
	return spent{s.server - before.server, s.etcd - before.etcd, s.manager - before.manager}
}

func (s spent) String() string {
	return fmt.Sprintf("API server %.1f s, etcd %.1f s, manager %.1f s", s.server, s.etcd, s.manager)
}

func (w *world) spent(manager *cluster.Replica) (all spent) {
	w.t.Helper()
	httpClient, err := rest.HTTPClientFor(w.cluster.Config)
	w.must(err)
	const seconds = "process_cpu_seconds_total"
	all.server = metric(w.t, w.fetch(httpClient, w.cluster.Config.Host+"/metrics"), seconds)
	all.etcd = metric(w.t, w.fetch(http.DefaultClient, w.cluster.EtcdURL+"/metrics"), seconds)
	if manager != nil {
		_, text := manager.Metrics(w.t, w.cluster.Config.BearerToken)
		all.manager = metric(w.t, text, seconds)
	}
	return all
}

func (w *world) fetch(httpClient *http.Client, url string) string {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, url, http.NoBody)
	w.must(err)
	response, err := httpClient.Do(request)
	w.must(err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	w.must(err)
	return string(body)
}
