package webhook

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// evictWith calls the eviction API for a pod.
func evictWith(t *testing.T, user client.Client, pod *corev1.Pod, options metav1.DeleteOptions, more ...client.SubResourceCreateOption) error {
	t.Helper()
	return user.SubResource("eviction").Create(t.Context(), sample.Pod(pod.Namespace, pod.Name), &policyv1.Eviction{DeleteOptions: &options}, more...)
}

func evict(t *testing.T, c *cluster.Cluster, pod *corev1.Pod) error {
	t.Helper()
	return evictWith(t, c.Client, pod, metav1.DeleteOptions{})
}

// evacuationOf is the Evacuation of a pod; nil if it has none.
func evacuationOf(t *testing.T, c *cluster.Cluster, pod *corev1.Pod) *v1alpha1.Evacuation {
	t.Helper()
	e := &v1alpha1.Evacuation{}
	err := c.Client.Get(t.Context(), types.NamespacedName{Namespace: pod.Namespace, Name: evacuation.Name(pod)}, e)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(t, err)
	return e
}

// wantToWait wants the answer on which drainers try again, when they like.
func wantToWait(t *testing.T, err error, words ...string) {
	t.Helper()
	wantWords(t, err, append(words, `admission webhook "evictions.ebbtide.dev" denied the request: `)...)
	if _, when := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || when {
		t.Errorf("error %v, want 429 that does not say when to try again", err)
	}
}

func wantEvicted(t *testing.T, c *cluster.Cluster, pod *corev1.Pod) {
	t.Helper()
	found := &corev1.Pod{}
	err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), found)
	if !apierrors.IsNotFound(err) && found.DeletionTimestamp == nil {
		t.Errorf("pod %s should be evicted: %v", pod.Name, err)
	}
}

func wantLeftAlone(t *testing.T, c *cluster.Cluster, pod *corev1.Pod) {
	t.Helper()
	must(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	if pod.DeletionTimestamp != nil {
		t.Errorf("pod %s should not be evicted", pod.Name)
	}
}

func TestWhoEvictsAPodWaitsForItsEvacuators(t *testing.T) {
	c := newAPI(t)
	pod := newPod(t, c, c.Namespace(t), "web", registered("mover.example.com", "20"))

	wantToWait(t, evict(t, c, pod), "evacuation in progress: mover.example.com is asked to move pod web; try again until the pod is gone")

	e := evacuationOf(t, c, pod)
	if e == nil {
		t.Fatal("the pod's evacuators were not asked")
	}
	if !slices.Equal(e.Finalizers, []string{v1alpha1.EvictionInstigator}) || len(e.Spec.Evacuators) != 1 || e.Labels["app"] != "web" {
		t.Errorf("evacuation %+v, want a complete one in the name of the eviction API", e)
	}
	first, err := time.Parse(time.RFC3339, e.Annotations[v1alpha1.EvictionAttemptAnnotation])
	if err != nil || time.Since(first).Abs() > time.Minute {
		t.Errorf("the attempt is noted as of %s (%v), want now", first, err)
	}
	patience.Eventually(t, "the evacuation to be known", func(context.Context) (string, bool) {
		err := evict(t, c, pod)
		return err.Error(), !apierrors.IsTooManyRequests(err) || strings.Contains(err.Error(), "moves pod web (asked for at ")
	})
	if diff := cmp.Diff(e.ResourceVersion, evacuationOf(t, c, pod).ResourceVersion); diff != "" {
		t.Errorf("attempts are not noted all the time (-want +got):\n%s", diff)
	}
	wantLeftAlone(t, c, pod)

	e.Status.ActiveEvacuatorClass, e.Status.ActiveEvacuatorCompleted = "mover.example.com", true
	must(t, c.Client.Status().Update(t.Context(), e))
	eventuallyEvicted(t, c, pod)
}

// evictorOfTheManager returns what evicts in the name of the manager.
func evictorOfTheManager(t *testing.T, c *cluster.Cluster) *kube.Evictor {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: cluster.Account.User(),
		Groups:   []string{"system:masters"},
	}
	httpClient, err := rest.HTTPClientFor(config)
	must(t, err)
	evictor, err := kube.NewEvictor(config, httpClient)
	must(t, err)
	return evictor
}

// A Machine's drain waits for evacuators like any other drain, although it is the
// manager that evicts; for an Evacuation it evicts when they have had their namespaceLimit.
func TestTheManagerWaitsForEvacuatorsOnlyForMachines(t *testing.T) {
	c := newAPI(t)
	pod := newPod(t, c, c.Namespace(t), "web", registered("mover.example.com", "20"))
	evictor := evictorOfTheManager(t, c)

	outcome := evacuation.Classify(evictor.ForMachines().Evict(t.Context(), pod, nil))
	if outcome.Result != evacuation.Postponed || !strings.Contains(outcome.Message, "evacuation in progress: mover.example.com") {
		t.Errorf("an eviction for a Machine is answered %+v, want it postponed for the evacuators", outcome)
	}
	if e := evacuationOf(t, c, pod); e == nil || !slices.Equal(e.Finalizers, []string{v1alpha1.EvictionInstigator}) {
		t.Errorf("evacuation %+v, want one in the name of the eviction API", e)
	}
	wantLeftAlone(t, c, pod)

	if outcome := evacuation.Classify(evictor.Evict(t.Context(), pod, nil)); outcome.Result != evacuation.Evicted {
		t.Errorf("an eviction for an Evacuation is answered %+v, want success", outcome)
	}
	wantEvicted(t, c, pod)
}

func TestManyEvictAPodAtOnce(t *testing.T) {
	c := newAPI(t)
	pod := newPod(t, c, c.Namespace(t), "web", registered("mover.example.com", "20"))
	answers := make(chan error)
	for range 20 {
		go func() {
			answers <- c.Client.SubResource("eviction").Create(t.Context(), sample.Pod(pod.Namespace, pod.Name), &policyv1.Eviction{})
		}()
	}
	for range 20 {
		wantToWait(t, <-answers, "evacuation in progress: mover.example.com", "try again until the pod is gone")
	}
	if e := evacuationOf(t, c, pod); e == nil || !slices.Equal(e.Finalizers, []string{v1alpha1.EvictionInstigator}) {
		t.Errorf("evacuation %+v, want one for all of them", e)
	}
	wantLeftAlone(t, c, pod)
}

// eventuallyEvicted tries again as drainers do, until the cache has heard.
func eventuallyEvicted(t *testing.T, c *cluster.Cluster, pod *corev1.Pod) {
	t.Helper()
	patience.Eventually(t, "the eviction", func(context.Context) (string, bool) {
		err := evict(t, c, pod)
		if err == nil {
			return "", true
		}
		wantToWait(t, err)
		return err.Error(), false
	})
	wantEvicted(t, c, pod)
}

func TestADryRunOfAnEvictionLeavesNoTrace(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	for name, dry := range map[string]func(*corev1.Pod) error{
		"of-the-request": func(pod *corev1.Pod) error {
			return evictWith(t, c.Client, pod, metav1.DeleteOptions{}, &client.SubResourceCreateOptions{CreateOptions: client.CreateOptions{DryRun: []string{metav1.DryRunAll}}})
		},
		"of-the-body": func(pod *corev1.Pod) error {
			return evictWith(t, c.Client, pod, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			moved, bare := newPod(t, c, namespace, name, registered("mover.example.com", "20")), newPod(t, c, namespace, name+"-bare", nil)
			wantToWait(t, dry(moved), "evacuation in progress: mover.example.com")
			must(t, dry(bare))
			wantLeftAlone(t, c, moved)
			wantLeftAlone(t, c, bare)
			if e := evacuationOf(t, c, moved); e != nil {
				t.Errorf("a dry run created %+v", e)
			}
		})
	}
}

func TestUnrelatedEvictionsPass(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)

	bare := newPod(t, c, namespace, "bare", nil)
	must(t, evict(t, c, bare))
	wantEvicted(t, c, bare)

	daemon := sample.Pod(namespace, "daemon")
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "beef", Controller: new(true)}}
	must(t, c.Client.Create(t.Context(), daemon))
	must(t, evict(t, c, daemon))
	wantEvicted(t, c, daemon)

	pod := newPod(t, c, namespace, "web", registered("mover.example.com", "20"))
	err := evictWith(t, c.Client, pod, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(types.UID("beef"))}})
	wantWords(t, err, "the UID in the precondition (beef) does not match the UID in record")
	err = evictWith(t, c.Client, pod, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}})
	wantWords(t, err, "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record")
	wantLeftAlone(t, c, pod)
	if e := evacuationOf(t, c, pod); e != nil {
		t.Errorf("the evacuators of another pod are asked: %+v", e)
	}

	if err := evict(t, c, sample.Pod(namespace, "nobody")); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want the pod not to be found", err)
	}
}

func TestTheOldEvictionWaitsToo(t *testing.T) {
	c := newAPI(t)
	pod := newPod(t, c, c.Namespace(t), "web", registered("mover.example.com", "20"))
	old := &policyv1beta1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}}
	wantToWait(t, c.Client.SubResource("eviction").Create(t.Context(), pod, old), "evacuation in progress: mover.example.com")
	if e := evacuationOf(t, c, pod); e != nil {
		t.Errorf("a dry run created %+v", e)
	}
}

func errorText(err error) string {
	if err == nil {
		return "admitted"
	}
	return err.Error()
}
