package evictionrequest

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lifecycleac "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// Who may write Evacuations and not delete the pod has it moved by nobody in our name; who may
// delete it has an Evacuation that is ended, as no Eviction backs it.
func TestEvacuationsInOurNameThatNoEvictionBacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod, letNew := w.serve(named)
	defer letNew()
	evacuations := rbacv1.PolicyRule{APIGroups: []string{"ebbtide.dev"}, Resources: []string{"evacuations"}, Verbs: []string{"create", "get", "patch", "update", "list"}}
	name, mallory := w.cluster.User(t, evacuations)
	forged := evacuation.New(pod, v1alpha1.LifecycleInstigator, nil)
	refused := fmt.Sprintf("user %q may not delete pod %s", name, pod.Name)
	if err := mallory.Create(w.ctx, forged.DeepCopy()); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("who may not delete the pod asks in our name: %v, want %q", err, refused)
	}
	_, operator := w.cluster.User(t, evacuations, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})
	for what, turn := range map[string]string{
		"for an Eviction that is not there": `{"name":"pod-1-web","uid":"x","responder":"ebbtide.dev/deployment-surge"}`,
		"for nothing":                       "",
		"for what is no name":               `{"name":"../../x"}`,
		"for what nobody can read":          strings.Repeat("[", 1<<16),
	} {
		e := forged.DeepCopy()
		if turn != "" {
			e.Annotations[v1alpha1.EvictionTurnAnnotation] = turn
		}
		if err := operator.Create(w.ctx, e); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		w.awaitBack(pod)
	}
}

// Who may write the status of Evictions, and nothing else, can end our turn: the pod is as it
// was then, and is left to the next responder. Nobody else's turn can be had by it.
func TestLongOurEntryOfAStatusIsForged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod, letNew := w.serve(named, followed)
	defer letNew()
	w.ask("example.com/upgrade", pod)
	w.awaitDetached(pod)
	eviction := "pod-1-" + pod.Name
	_, mallory := w.cluster.User(t, rbacv1.PolicyRule{APIGroups: []string{"lifecycle.k8s.io"}, Resources: []string{"evictions/status"}, Verbs: []string{"patch"}})
	says := func(responder string, complete bool) error {
		own := lifecycleac.ResponderStatus().WithName(responder).WithHeartbeatTime(metav1.Now()).WithMessage(strings.Repeat("世", 1300))
		if complete {
			own.WithCompletionTime(metav1.Now())
		}
		return mallory.Status().Apply(w.ctx, lifecycleac.Eviction(eviction, w.ns).WithStatus(lifecycleac.EvictionStatus().WithResponders(own)),
			client.FieldOwner("mallory"), client.ForceOwnership)
	}
	w.must(says(surger, false))
	e := w.awaitWord(pod.Name, surger, "世")
	if own := core.ResponderOf(&e.Status, surger); own.CompletionTime != nil {
		t.Errorf("our turn is over: %+v", own)
	}
	w.awaitWord(pod.Name, surger, "Pod "+pod.Name+" serves on until it is replaced")
	w.must(says(surger, true))
	w.awaitEviction(eviction, awaiting, surger+" Completed, example.com/next Active, "+evictor+" Inactive")
	w.awaitBack(pod)
}
