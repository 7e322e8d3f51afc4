package validate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

func webPod(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: uid}}
}

func evacuators(classes ...string) []v1alpha1.Evacuator {
	var list []v1alpha1.Evacuator
	for _, class := range classes {
		list = append(list, v1alpha1.Evacuator{EvacuatorClass: class, Priority: 100})
	}
	return list
}

// given is an Evacuation of a pod that exists and has the evacuators a and b; its
// own are those of the argument.
func given(own ...v1alpha1.Evacuator) validate.EvacuationFacts {
	return validate.EvacuationFacts{
		Object:     evacuation.New(webPod("0f1e"), v1alpha1.NodeMaintenanceInstigator, own),
		Pod:        webPod("0f1e"),
		Evacuators: evacuators("a", "b"),
	}
}

func TestEvacuationIsCreated(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*validate.EvacuationFacts)
		want   string
	}{
		"of its pod":                  {func(*validate.EvacuationFacts) {}, ""},
		"evacuators in another order": {func(e *validate.EvacuationFacts) { e.Object.Spec.Evacuators = evacuators("b", "a") }, ""},
		"without a pod": {
			func(e *validate.EvacuationFacts) { e.Pod = nil },
			`spec.podRef.name: Invalid value: "web-0": there is no pod of this name in namespace shop; an Evacuation lives in the namespace of its pod`,
		},
		"of a pod with another UID": {
			func(e *validate.EvacuationFacts) { e.Pod = webPod("beef") },
			`spec.podRef.uid: Invalid value: "0f1e": pod web-0 has the UID beef, so that this is another pod of the same name; read the pod again`,
		},
		"with an evacuator too many": {
			func(e *validate.EvacuationFacts) { e.Object.Spec.Evacuators = evacuators("a", "b", "c") },
			"spec.evacuators: Forbidden: evacuators are those that are registered on pod web-0 and no others; leave them out, or try again if they have just changed",
		},
		"with another priority": {
			func(e *validate.EvacuationFacts) { e.Object.Spec.Evacuators[0].Priority = 7 },
			"spec.evacuators: Forbidden: evacuators are those that are registered on pod web-0 and no others; leave them out, or try again if they have just changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := given(evacuators("a", "b")...)
			tc.change(&e)
			expect(t, tc.want, validate.CreateEvacuation(e))
		})
	}
}

func TestEvacuationIsUpdated(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after []v1alpha1.Evacuator
		podGone       bool
		want          string
	}{
		"a finalizer is dropped":               {before: evacuators("a"), after: evacuators("a")},
		"the same, long after":                 {before: evacuators("a"), after: evacuators("a"), podGone: true},
		"evacuators are resolved later":        {after: evacuators("a", "b")},
		"evacuators are made up later":         {after: evacuators("c"), want: "spec.evacuators: Forbidden: evacuators are those that are registered on pod web-0 and no others; leave them out, or try again if they have just changed"},
		"evacuators for a pod that is no more": {after: evacuators("a"), podGone: true, want: "spec.evacuators: Forbidden: evacuators are those that are registered on pod web-0 and no others; leave them out, or try again if they have just changed"},
	} {
		t.Run(name, func(t *testing.T) {
			e := given(tc.after...)
			if tc.podGone {
				e.Pod, e.Evacuators = nil, nil
			}
			expect(t, tc.want, validate.UpdateEvacuation(e, given(tc.before...).Object))
		})
	}
}

func TestOnlyTheControllerMarksAnEvacuation(t *testing.T) {
	const refused = "metadata.labels[ebbtide.dev/complete]: Forbidden: only the evacuation controller sets it, when the pod is gone; " +
		"leave it as it is, and drop your finalizer if you no longer ask for the evacuation"
	marked := given(evacuators("a")...)
	marked.Object.Labels = map[string]string{v1alpha1.CompleteLabel: "true"}
	expect(t, refused, validate.UpdateEvacuation(marked, given(evacuators("a")...).Object))
	expect(t, refused, validate.UpdateEvacuation(given(evacuators("a")...), marked.Object))
	expect(t, "", validate.UpdateEvacuation(marked, marked.Object))
}

func TestEvacuationIsDeleted(t *testing.T) {
	const refused = "status.evacuationCancellationPolicy: Forbidden: evacuator mover.example.com has forbidden to cancel the evacuation of pod web-0; it ends when the pod is gone"
	for name, tc := range map[string]struct {
		policy v1alpha1.EvacuationCancellationPolicy
		pod    *corev1.Pod
		want   string
	}{
		"nobody minds":                       {"", webPod("0f1e"), ""},
		"allowed":                            {v1alpha1.CancellationAllow, webPod("0f1e"), ""},
		"forbidden":                          {v1alpha1.CancellationForbid, webPod("0f1e"), refused},
		"forbidden, but the pod is gone":     {v1alpha1.CancellationForbid, nil, ""},
		"forbidden, but the pod is replaced": {v1alpha1.CancellationForbid, webPod("beef"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := given()
			e.Pod = tc.pod
			e.Object.Status.ActiveEvacuatorClass = "mover.example.com"
			e.Object.Status.EvacuationCancellationPolicy = tc.policy
			expect(t, tc.want, validate.DeleteEvacuation(e))
		})
	}
}

func TestEvacuationStatus(t *testing.T) {
	now := time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)
	in := func(offset time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(offset)} }
	for name, tc := range map[string]struct {
		before, after *metav1.Time
		want          string
	}{
		"no progress":                    {nil, nil, ""},
		"now":                            {nil, in(0), ""},
		"a clock that is slightly fast":  {nil, in(time.Minute), ""},
		"the future":                     {in(0), in(61 * time.Second), `status.evacuationProgressTimestamp: Invalid value: "2026-03-01T08:01:01Z": must not be later than 2026-03-01T08:01:00Z, a minute from now; check the clock of the evacuator`},
		"the future, as it was already":  {in(time.Hour), in(time.Hour), ""},
		"another future than it was":     {in(time.Hour), in(2 * time.Hour), `status.evacuationProgressTimestamp: Invalid value: "2026-03-01T10:00:00Z": must not be later than 2026-03-01T08:01:00Z, a minute from now; check the clock of the evacuator`},
		"the future, and then the truth": {in(time.Hour), in(0), ""},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := v1alpha1.EvacuationStatus{}, v1alpha1.EvacuationStatus{}
			before.EvacuationProgressTimestamp, after.EvacuationProgressTimestamp = tc.before, tc.after
			expect(t, tc.want, validate.UpdateEvacuationStatus(after, before, now))
		})
	}
}

// KEP-4212 prints Evacuations with the finalizer of the NodeMaintenance controller.
func TestWhoAsksInTheNameOfNodeMaintenancesIsWarned(t *testing.T) {
	if got := validate.InstigatorWarnings(given().Object); len(got) != 1 || !strings.Contains(got[0], v1alpha1.NodeMaintenanceInstigator) {
		t.Errorf("warnings are %q, want one about the finalizer", got)
	}
	own := evacuation.New(webPod("0f1e"), v1alpha1.InstigatorFinalizerPrefix+"example.com", nil)
	if got := validate.InstigatorWarnings(own); len(got) != 0 {
		t.Errorf("warnings are %q, want none", got)
	}
}

func TestEvacuationWarnings(t *testing.T) {
	const replaced = "spec.evacuators: replaced by those that are registered on pod web-0"
	problems := []podclass.Problem{{Key: "k", Message: "annotation k is ignored: why"}}
	for name, tc := range map[string]struct {
		given    []v1alpha1.Evacuator
		problems []podclass.Problem
		want     []string
	}{
		"none given":              {nil, nil, nil},
		"the same in other order": {evacuators("b", "a"), nil, nil},
		"others":                  {evacuators("c"), nil, []string{replaced}},
		"a malformed annotation":  {nil, problems, []string{"pod web-0: annotation k is ignored: why"}},
		"both":                    {evacuators("a"), problems, []string{replaced, "pod web-0: annotation k is ignored: why"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, validate.EvacuationWarnings(tc.given, given(), tc.problems)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func expect(t *testing.T, want string, refused field.ErrorList) {
	t.Helper()
	got := ""
	if err := refused.ToAggregate(); err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("refused with %q, want %q", got, want)
	}
}
