package surge

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	core "ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/test/difference"
)

func (w *world) reconcile(it item) time.Duration {
	w.t.Helper()
	result, err := w.reconciler.Reconcile(w.t.Context(), it)
	w.must(err)
	return result.RequeueAfter
}

func TestAPodIsDetachedInOneWriteAndOnlyItsMetadataChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.pod("web-0")
	w.ask(before)
	w.reconcile(web)
	got := w.pod("web-0")
	if got.Annotations[v1alpha1.SurgeAnnotation] == "" || got.Labels[hashLabel] == "abc" {
		t.Errorf("the pod is not detached: %v, %v", got.Labels, got.Annotations)
	}
	got.Labels, got.Annotations, got.ResourceVersion = before.Labels, before.Annotations, before.ResourceVersion
	if diff := cmp.Diff(before, got); diff != "" {
		t.Errorf("more has changed (-before +after):\n%s", diff)
	}
	told := "PodDetached on Pod/web-0: Detached from ReplicaSet web-abc, which makes a replacement; serves on until that is available."
	difference.None(t, "events", []string{told}, w.api.Events())
}

func TestADecisionOnAnOldPodIsDecidedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(w.pod("web-0"))
	w.api.Refuse = func(request string) error {
		if request == "patch Pod web-0" {
			w.api.Refuse = nil
			changed := w.pod("web-0")
			changed.Annotations = map[string]string{"example.com/touched": "meanwhile"}
			w.must(w.api.Update(t.Context(), changed))
		}
		return nil
	}
	w.reconcile(web)
	if _, detached := w.pod("web-0").Annotations[v1alpha1.SurgeAnnotation]; detached || len(w.api.Events()) > 0 {
		t.Errorf("a pod was detached on old state: %v, %v", w.pod("web-0").Annotations, w.api.Events())
	}
	w.reconcile(web)
	if _, detached := w.pod("web-0").Annotations[v1alpha1.SurgeAnnotation]; !detached {
		t.Error("the pod is not detached on new state either")
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	tests := map[string]struct {
		claims   []client.Object
		refusal  error
		message  string
		detached bool
	}{
		"one node mounts it": {claims: []client.Object{claim}, message: "Deployment web cannot surge: only one node can mount its volume claim data, which is ReadWriteOnce."},
		"it does not exist":  {detached: true},
		"it cannot be read":  {claims: []client.Object{claim}, refusal: errors.New("no answer"), message: "Waits: the volume claims of Deployment web cannot be read: get volume claim data: no answer."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.claims...)
			d := aDeployment()
			w.must(w.api.Get(t.Context(), web.NamespacedName, d))
			d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			}}}
			w.must(w.api.Update(t.Context(), d))
			w.ask(w.pod("web-0"))
			w.clock.Step(time.Minute)
			w.api.Refuse = func(request string) error {
				if strings.HasPrefix(request, "get PersistentVolumeClaim") {
					return test.refusal
				}
				return nil
			}
			if _, err := w.reconciler.Reconcile(t.Context(), web); !errors.Is(err, test.refusal) {
				t.Errorf("reconcile ends with %v, want %v", err, test.refusal)
			}
			if got := w.evacuation(w.pod("web-0")).Status.Message; got != test.message {
				t.Errorf("message is %q, want %q", got, test.message)
			}
			if got := core.Detached(w.pod("web-0")); got != test.detached {
				t.Errorf("detached is %v, want %v", got, test.detached)
			}
		})
	}
}

// A cache that is behind does not make a pod one of nobody.
func TestAnEvacuationThatCameBeforeItsPodWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.ask(w.pod("web-0"))
	alone := item{NamespacedName: client.ObjectKeyFromObject(e)}
	behind := newWorld(t)
	behind.ask(aPod("web-0"))
	w.must(behind.api.Delete(t.Context(), aPod("web-0")))
	w.reconciler.client = behind.api.Manager

	if again := w.reconcile(alone); again != staleRetry || len(w.woken) > 0 {
		t.Errorf("looked at again in %s, woken %v, want in %s", again, w.woken, staleRetry)
	}
	w.reconciler.client = w.api.Manager
	w.reconcile(alone)
	difference.None(t, "woken", []item{web}, w.woken, cmp.AllowUnexported(item{}))
}

// queue notes what is added to it.
type queue struct {
	workqueue.TypedRateLimitingInterface[item]
	added []item
	// after is how long the last one is left alone.
	after time.Duration
}

func (q *queue) AddAfter(it item, after time.Duration) {
	q.added, q.after = append(q.added, it), after
}

func TestOnlyPodsThatMatterCostAnything(t *testing.T) {
	t.Parallel()
	marked, detached, lost, misled := aPod("web-0"), aPod("web-0"), aPod("web-0"), aPod("web-0")
	marked.Annotations = map[string]string{v1alpha1.SurgeReplacementAnnotation: `{"deployment":{"name":"web","uid":"uid-of-web"},"for":"uid"}`}
	detached.Annotations = map[string]string{v1alpha1.SurgeAnnotation: `{"pod":"uid-of-web-0","deployment":{"name":"web","uid":"uid-of-web"},"hash":"abc"}`}
	detached.OwnerReferences = nil
	lost.Labels = map[string]string{hashLabel: "detached-by-ebbtide"}
	lost.OwnerReferences = nil
	misled.Annotations = map[string]string{v1alpha1.SurgeReplacementAnnotation: `{"for":"uid"}`}
	evacuationOfLost := item{NamespacedName: types.NamespacedName{Namespace: lost.Namespace, Name: evacuation.Name(lost)}}
	tests := map[string]struct {
		pod  *corev1.Pod
		busy types.UID
		want []item
	}{
		"of an idle Deployment":     {pod: aPod("web-0")},
		"of a busy Deployment":      {pod: aPod("web-0"), busy: "uid-of-web-abc", want: []item{web}},
		"marked, after a restart":   {pod: marked, want: []item{web}},
		"detached, after a restart": {pod: detached, want: []item{web}},
		"with a mark of no use":     {pod: misled, busy: "uid-of-web-abc", want: []item{web}},
		"detached without a record": {pod: lost, want: []item{evacuationOfLost}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.api.Refuse = func(request string) error { t.Errorf("an event costs: %s", request); return nil }
			if test.busy != "" {
				w.reconciler.busy.note(test.busy, web)
			}
			q := &queue{}
			handlerOf(w.reconciler.busy, w.reconciler.ofPod).Create(t.Context(), event.TypedCreateEvent[*corev1.Pod]{Object: test.pod}, q)
			difference.None(t, "reconciled", test.want, q.added, cmp.AllowUnexported(item{}))
		})
	}
}

func TestADeploymentIsBusyWhileAPodMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	busy := func() bool {
		_, deployment := w.reconciler.ofDeployment(t.Context(), aDeployment())
		_, set := w.reconciler.ofReplicaSet(t.Context(), aSet())
		return deployment && set
	}
	if busy() {
		t.Error("the Deployment is busy without an evacuation")
	}
	w.ask(w.pod("web-0"))
	w.reconcile(web)
	if !busy() {
		t.Error("the Deployment is not busy while its pod is detached")
	}
	w.must(w.api.Delete(t.Context(), w.pod("web-0")))
	w.withdraw()
	w.reconcile(web)
	if busy() {
		t.Error("the Deployment is busy after its pod is gone")
	}
}

// A pod does not go back before it is recorded that we have given up: the next
// decision would begin again.
func TestAMoveEndsAtTheFirstWriteThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(w.pod("web-0"))
	w.reconcile(web)
	w.replicaSets()
	w.clock.Step(11 * time.Minute)
	failure := errors.New("no answer")
	w.api.Refuse = func(request string) error {
		if strings.HasPrefix(request, "patch status") {
			return failure
		}
		return nil
	}
	if _, err := w.reconciler.Reconcile(t.Context(), web); !errors.Is(err, failure) {
		t.Errorf("reconcile ends with %v, want %v", err, failure)
	}
	if got := w.pod("web-0"); got.Labels[hashLabel] == "abc" || got.OwnerReferences != nil {
		t.Errorf("the pod went back: %v, %v", got.Labels, got.OwnerReferences)
	}
	if got := w.pod("web-1").Annotations; len(got) > 0 {
		t.Errorf("the newcomer is to make room: %v", got)
	}
}
