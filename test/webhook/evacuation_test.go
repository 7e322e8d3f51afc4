package webhook

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
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

// KEP-4212 prints Evacuations with the finalizer of the NodeMaintenance controller.
func TestAnEvacuationInTheNameOfNodeMaintenancesIsWarnedOf(t *testing.T) {
	c := newAPI(t)
	pod := newPod(t, c, c.Namespace(t), "web", nil)
	user, warnings := listening(t, c)
	e := askedBy(pod)
	e.Finalizers = []string{v1alpha1.NodeMaintenanceInstigator}
	must(t, user.Create(t.Context(), e))
	if got := strings.Join(warnings.take(), "\n"); !strings.Contains(got, v1alpha1.NodeMaintenanceInstigator+" belongs to the NodeMaintenance controller") {
		t.Errorf("warnings %q, want one about the finalizer", got)
	}
}

func TestOddRegistrationsAreWarnedOf(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	many := map[string]string{}
	for i := range 101 {
		many[fmt.Sprintf("%se%03d.example.com", v1alpha1.EvacuatorAnnotationPrefix, i)] = fmt.Sprint(1000 - i)
	}
	const notAPriority = `must be an integer from 0 to 100000, as in "10000/controller"`
	for name, tc := range map[string]struct {
		annotations map[string]string
		evacuators  int
		warnings    []string
	}{
		"malformed": {
			registered("good.example.com", "5", "words.example.com", "soon", "less.example.com", "-1", "more.example.com", "100001",
				"half.example.com", "1.5", "Upper_Case", "1", "role.example.com", "1/"+strings.Repeat("r", 64)),
			1,
			[]string{
				"priority_Upper_Case is ignored: evacuator class", `priority_half.example.com is ignored: priority "1.5" ` + notAPriority,
				`priority_less.example.com is ignored: priority "-1" ` + notAPriority, `priority_more.example.com is ignored: priority "100001" ` + notAPriority,
				"priority_role.example.com is ignored: role must have at most 63 characters, has 64", `priority_words.example.com is ignored: priority "soon" ` + notAPriority,
			},
		},
		"two-controllers": {registered("a.example.com", "10000/controller", "b.example.com", "10000/controller"), 2, nil},
		"one-too-many":    {many, 100, []string{"priority_e100.example.com is ignored: a pod may have at most 100 evacuators, this one comes later"}},
	} {
		t.Run(name, func(t *testing.T) {
			user, warnings := listening(t, c)
			e := askedBy(newPod(t, c, namespace, name, tc.annotations))
			must(t, user.Create(t.Context(), e))
			if len(e.Spec.Evacuators) != tc.evacuators || len(warnings.text) != len(tc.warnings) {
				t.Fatalf("%d evacuators, warnings %q; want %d and %q", len(e.Spec.Evacuators), warnings.text, tc.evacuators, tc.warnings)
			}
			for i, words := range tc.warnings {
				if !strings.Contains(warnings.text[i], words) {
					t.Errorf("warning %q, want %q", warnings.text[i], words)
				}
			}
		})
	}
}

func TestAClassOf300Characters(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	long := strings.Repeat("c", 300)
	pod := sample.Pod(namespace, "long")
	pod.Annotations = registered(long, "1")
	wantWords(t, c.Client.Create(t.Context(), pod), "metadata.annotations: Invalid value", "name part must be no more than 63")

	made := v1alpha1.Evacuator{EvacuatorClass: long, Priority: 1}
	e := askedBy(newPod(t, c, namespace, "web", registered("mover.example.com", "1")), made)
	must(t, c.Client.Create(t.Context(), e))
	if len(e.Spec.Evacuators) != 1 || e.Spec.Evacuators[0].EvacuatorClass != "mover.example.com" {
		t.Errorf("evacuators %v, want those of the pod", e.Spec.Evacuators)
	}
	nobody := sample.Pod(namespace, "nobody")
	nobody.UID = "beef"
	wantWords(t, c.Client.Create(t.Context(), askedBy(nobody, made)), "spec.evacuators[0].evacuatorClass", "may not be more than 253")
}

func TestAnEvacuationOfAnotherPodIsRefused(t *testing.T) {
	c := newAPI(t)
	here, elsewhere := c.Namespace(t), c.Namespace(t)
	pod := newPod(t, c, here, "web", nil)
	replaced, moved := pod.DeepCopy(), pod.DeepCopy()
	replaced.UID = "beef"
	moved.Namespace = elsewhere
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		words string
	}{
		"another UID": {replaced, fmt.Sprintf(`spec.podRef.uid: Invalid value: "beef": pod web has the UID %s, so that this is another pod of the same name; read the pod again`, pod.UID)},
		"another namespace": {moved, fmt.Sprintf(
			`spec.podRef.name: Invalid value: "web": there is no pod of this name in namespace %s; an Evacuation lives in the namespace of its pod`, elsewhere)},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.Client.Create(t.Context(), askedBy(tc.pod))
			wantWords(t, err, webhookSays, tc.words)
			if !apierrors.IsInvalid(err) {
				t.Errorf("error %v, want the object to be invalid", err)
			}
		})
	}
}

func TestTheSchemaSaysWhatIsWrongWithAnEvacuation(t *testing.T) {
	c := newAPI(t)
	for spec, field := range map[string]string{
		"{}":                           "spec.podRef: Required value",
		`{podRef: web}`:                "spec.podRef: Invalid value",
		`{podRef: {name: "", uid: a}}`: "spec.podRef.name: Invalid value",
		`{podRef: {name: web, uid: a}, evacuators: [{evacuatorClass: a, priority: high}]}`: "spec.evacuators[0].priority: Invalid value",
	} {
		object := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(`
apiVersion: ebbtide.dev/v1alpha1
kind: Evacuation
metadata: {namespace: default, name: a-web}
spec: `+spec), &object.Object))
		err := c.Client.Create(t.Context(), object)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v, want one that says %q", spec, err, field)
		}
	}
}

func TestEvacuatorsAreThoseOfThePodForEver(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	made := []v1alpha1.Evacuator{{EvacuatorClass: "made-up.example.com", Priority: 1}}
	some := askedBy(newPod(t, c, namespace, "some", registered("mover.example.com", "1")))
	none := askedBy(newPod(t, c, namespace, "none", nil))
	must(t, c.Client.Create(t.Context(), some))
	must(t, c.Client.Create(t.Context(), none))

	some.Spec.Evacuators, none.Spec.Evacuators = made, made
	wantWords(t, c.Client.Update(t.Context(), some), "spec.evacuators: Invalid value", "evacuators are set once and then immutable")
	wantWords(t, c.Client.Update(t.Context(), none), webhookSays,
		"spec.evacuators: Forbidden: evacuators are those that are registered on pod none and no others; leave them out, or try again if they have just changed")
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

func TestACancellationThatIsForbiddenIsRefused(t *testing.T) {
	c := newAPI(t)
	pod := newPod(t, c, c.Namespace(t), "web", registered("mover.example.com", "1"))
	e := askedBy(pod)
	must(t, c.Client.Create(t.Context(), e))
	e.Status = v1alpha1.EvacuationStatus{ActiveEvacuatorClass: "mover.example.com", EvacuationCancellationPolicy: v1alpha1.CancellationForbid}
	must(t, c.Client.Status().Update(t.Context(), e))

	err := c.Client.Delete(t.Context(), e)
	wantWords(t, err, webhookSays, "status.evacuationCancellationPolicy: Forbidden: "+
		"evacuator mover.example.com has forbidden to cancel the evacuation of pod web; it ends when the pod is gone")

	must(t, c.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	patience.Eventually(t, "the deletion to be allowed when the pod is gone", func(ctx context.Context) (string, bool) {
		err := c.Client.Delete(ctx, e)
		return fmt.Sprint(err), err == nil
	})
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
