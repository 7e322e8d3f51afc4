package webhook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// registered are annotations by which evacuators register: classes and values.
func registered(pairs ...string) map[string]string {
	annotations := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		annotations[v1alpha1.EvacuatorAnnotationPrefix+pairs[i]] = pairs[i+1]
	}
	return annotations
}

// newPod creates a pod on a node.
func newPod(t *testing.T, c *cluster.Cluster, namespace, name string, annotations map[string]string) *corev1.Pod {
	t.Helper()
	pod := sample.Pod(namespace, name)
	pod.Annotations = annotations
	must(t, c.Client.Create(t.Context(), pod))
	return pod
}

// askedBy is the Evacuation that a foreign instigator writes for a pod.
func askedBy(pod *corev1.Pod, evacuators ...v1alpha1.Evacuator) *v1alpha1.Evacuation {
	e := evacuation.New(pod, v1alpha1.InstigatorFinalizerPrefix+"test.example.com", evacuators)
	e.Labels, e.Annotations = nil, nil
	return e
}

// listening returns the administrator's client and what the API server warns of.
func listening(t *testing.T, c *cluster.Cluster) (client.Client, *heard) {
	t.Helper()
	warnings := &heard{}
	config := rest.CopyConfig(c.Config)
	config.WarningHandler = warnings
	user, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
	must(t, err)
	return user, warnings
}

// wantWords wants an error that contains all these words.
func wantWords(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("error %v, want one that says %q", err, word)
		}
	}
}

const webhookSays = `admission webhook "evacuations.ebbtide.dev" denied the request: `

func TestAnEvacuationHasWhatItsPodSays(t *testing.T) {
	c := newAPI(t)
	pod := newPod(t, c, c.Namespace(t), "web", registered("mover.example.com", "20", "backup.example.com", "10/spare"))
	user, warnings := listening(t, c)
	e := askedBy(pod, v1alpha1.Evacuator{EvacuatorClass: "made-up.example.com", Priority: 1})
	e.Labels = map[string]string{"app": "db", "own": "kept"}
	e.Status.ActiveEvacuatorClass = "made-up.example.com"

	must(t, user.Create(t.Context(), e))

	want := askedBy(pod, v1alpha1.Evacuator{EvacuatorClass: "mover.example.com", Priority: 20},
		v1alpha1.Evacuator{EvacuatorClass: "backup.example.com", Priority: 10, Role: "spare"})
	if diff := cmp.Diff(want.Spec, e.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"app": "web", "own": "kept"}, e.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if got := e.Annotations[v1alpha1.NodeAnnotation]; got != "node-one" {
		t.Errorf("node %q, want that of the pod", got)
	}
	if diff := cmp.Diff(v1alpha1.EvacuationStatus{}, e.Status); diff != "" {
		t.Errorf("an Evacuation begins without a status (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"spec.evacuators: replaced by those that are registered on pod web"}, warnings.text); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestNobodyEvacuatesAPodThatTheyMayNotDelete(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	writes := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"evacuations"}, Verbs: []string{"*"}}
	mine := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"mine"}, Verbs: []string{"delete"}}
	name, user := c.User(t, writes, mine)

	allowed := askedBy(newPod(t, c, namespace, "mine", nil))
	must(t, user.Create(t.Context(), allowed))
	allowed.Finalizers = nil
	must(t, user.Update(t.Context(), allowed))
	must(t, user.Delete(t.Context(), allowed))

	refused := askedBy(newPod(t, c, namespace, "other", nil))
	words := fmt.Sprintf(`user %q may not delete pod other in namespace %s, and only who may delete a pod may have it evacuated or end that: `+
		`ask for the verb "delete" on pods in this namespace`, name, namespace)
	wantDenied := func(err error) {
		t.Helper()
		wantWords(t, err, webhookSays, words)
		if !apierrors.IsForbidden(err) {
			t.Errorf("error %v, want it to be forbidden", err)
		}
	}
	wantDenied(user.Create(t.Context(), refused.DeepCopy()))
	must(t, c.Client.Create(t.Context(), refused))
	refused.Finalizers = nil
	wantDenied(user.Update(t.Context(), refused.DeepCopy()))
	wantDenied(user.Delete(t.Context(), refused))
}

func TestWhatAnEvacuatorMayReport(t *testing.T) {
	c := newAPI(t)
	e := askedBy(newPod(t, c, c.Namespace(t), "web", nil))
	must(t, c.Client.Create(t.Context(), e))
	report := func(change func(*v1alpha1.EvacuationStatus)) error {
		changed := e.DeepCopy()
		change(&changed.Status)
		return c.Client.Status().Update(t.Context(), changed)
	}
	progress := func(offset time.Duration) func(*v1alpha1.EvacuationStatus) {
		return func(s *v1alpha1.EvacuationStatus) {
			s.EvacuationProgressTimestamp = &metav1.Time{Time: time.Now().Add(offset)}
		}
	}
	wantWords(t, report(progress(5*time.Minute)), `admission webhook "evacuation-status.ebbtide.dev" denied the request: `,
		"status.evacuationProgressTimestamp: Invalid value", "a minute from now; check the clock of the evacuator")
	must(t, report(progress(30*time.Second)))

	must(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(e), e))
	must(t, report(func(s *v1alpha1.EvacuationStatus) { s.FailedEvictionCounter = 3 }))
	must(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(e), e))
	wantWords(t, report(func(s *v1alpha1.EvacuationStatus) { s.FailedEvictionCounter = 2 }),
		"status.failedEvictionCounter: Invalid value", "failedEvictionCounter only grows")
}
