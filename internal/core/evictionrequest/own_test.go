package evictionrequest_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// What becomes of a request of ours when nobody needs it any more, also if the manager that
// withdrew it is gone.
func TestUnneededRequestIsCleanedUp(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failed := func(request *lifecyclev1alpha1.EvictionRequest, reason string) {
		request.Status.ObservedGeneration = new(request.Generation)
		request.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue, Reason: reason}}
	}
	withdrawn := func(ago time.Duration) func(*lifecyclev1alpha1.EvictionRequest) {
		return func(request *lifecyclev1alpha1.EvictionRequest) {
			*request = *evictionrequest.WithdrawnAt(request, at.Add(-ago), false)
		}
	}
	for name, test := range map[string]struct {
		change func(*lifecyclev1alpha1.EvictionRequest)
		gone   *time.Duration
		want   string
	}{
		"it asks":                       {func(*lifecyclev1alpha1.EvictionRequest) {}, nil, "kept"},
		"it has failed, and is told of": {func(r *lifecyclev1alpha1.EvictionRequest) { failed(r, "NoFurtherResponder") }, nil, "kept"},
		"it shares the end of one that was withdrawn": {
			func(r *lifecyclev1alpha1.EvictionRequest) { failed(r, "CanceledDueToNoRequesters") }, nil, "deleted",
		},
		"the pod has just gone":          {func(*lifecyclev1alpha1.EvictionRequest) {}, new(time.Duration(0)), "kept for 1m0s"},
		"the pod has gone long ago":      {func(*lifecyclev1alpha1.EvictionRequest) {}, new(time.Minute), "deleted"},
		"just withdrawn":                 {withdrawn(time.Second), nil, "kept for 59s"},
		"withdrawn, and everybody knows": {func(r *lifecyclev1alpha1.EvictionRequest) { withdrawn(0)(r); failed(r, "CanceledDueToNoRequesters") }, nil, "deleted"},
		"withdrawn, and final, of an earlier generation": {func(r *lifecyclev1alpha1.EvictionRequest) {
			withdrawn(time.Second)(r)
			failed(r, "EvictionInvalid")
			r.Generation++
		}, nil, "kept for 59s"},
		"withdrawn, and observed, but not final": {func(r *lifecyclev1alpha1.EvictionRequest) {
			withdrawn(time.Second)(r)
			r.Status.ObservedGeneration = new(r.Generation)
		}, nil, "kept for 59s"},
		"withdrawn, and nobody answers":         {withdrawn(time.Minute), nil, "deleted"},
		"withdrawn at a time that is to come":   {withdrawn(-time.Hour), nil, "recorded"},
		"withdrawn by somebody, who knows when": {func(r *lifecyclev1alpha1.EvictionRequest) { r.Spec.Intent = "Withdrawn" }, nil, "recorded"},
		"withdrawn at no time": {func(r *lifecyclev1alpha1.EvictionRequest) {
			withdrawn(0)(r)
			r.Annotations[v1alpha1.WithdrawnAnnotation] = "never"
		}, nil, "recorded"},
		"it is being deleted": {func(r *lifecyclev1alpha1.EvictionRequest) {
			withdrawn(time.Hour)(r)
			r.DeletionTimestamp = new(metav1.NewTime(at))
		}, nil, "kept"},
	} {
		request := evictionrequest.New(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "5d2f"}})
		request.Generation = 2
		test.change(request)
		if got := cleanedUp(evictionrequest.DecideCleanup(request, at, test.gone)); got != test.want {
			t.Errorf("%s: it is %s, want %s", name, got, test.want)
		}
	}
}

func cleanedUp(d evictionrequest.Cleanup) string {
	switch {
	case d.Delete:
		return "deleted"
	case d.Record != nil && d.Record.Annotations[v1alpha1.WithdrawnAnnotation] == "2026-03-01T12:00:00Z":
		return "recorded"
	case d.RequeueAfter > 0:
		return "kept for " + d.RequeueAfter.String()
	}
	return "kept"
}

// A later manager knows an unanswered request by its annotation.
func TestWithdrawnRequestShowsWhetherItWasAnswered(t *testing.T) {
	t.Parallel()
	request := evictionrequest.New(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "5d2f"}})
	for _, unanswered := range []bool{true, false} {
		if got := evictionrequest.IsUnanswered(evictionrequest.WithdrawnAt(request, noon, unanswered)); got != unanswered {
			t.Errorf("unanswered: %t, want %t", got, unanswered)
		}
	}
}

// Whoever takes the node off a request of ours hides it from no manager: it is written anew. What
// is not ours, or asks for nothing, is left alone.
func TestARequestNamesItsNode(t *testing.T) {
	t.Parallel()
	pod := newStage(t).pod("web-0", "example.com/leader 20000")
	pod.Spec.NodeName = "one"
	request := evictionrequest.New(pod)
	if got := evictionrequest.Located(request, pod); got != nil {
		t.Errorf("a request that names its node is written: %v", got.Annotations)
	}
	for _, changed := range []map[string]string{nil, {v1alpha1.NodeAnnotation: "two", "example.com/kept": "x"}} {
		request.Annotations = changed
		got := evictionrequest.Located(request, pod)
		if got == nil || got.Annotations[v1alpha1.NodeAnnotation] != "one" || len(got.Annotations) != max(1, len(changed)) {
			t.Errorf("with the annotations %v it is to be %v, want node one", changed, got)
		}
		if request.Annotations[v1alpha1.NodeAnnotation] == "one" {
			t.Error("the snapshot was changed")
		}
	}
	for what, change := range map[string]func(*lifecyclev1alpha1.EvictionRequest){
		"it is withdrawn": func(r *lifecyclev1alpha1.EvictionRequest) {
			r.Spec.Intent = lifecyclev1alpha1.EvictionRequestIntentWithdrawn
		},
		"it is another's": func(r *lifecyclev1alpha1.EvictionRequest) { r.Spec.Requester = "example.com/upgrade" },
		"its pod is gone": func(r *lifecyclev1alpha1.EvictionRequest) { r.Spec.Target.Pod.UID = "earlier" },
	} {
		other := request.DeepCopy()
		change(other)
		if got := evictionrequest.Located(other, pod); got != nil {
			t.Errorf("%s, and it is written: %v", what, got.Annotations)
		}
	}
}
