package validate_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

func TestEvacuationCreationRefusesForeignPodsAndEvacuators(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*validate.EvacuationFacts)
		want   []string
	}{
		"of its pod":                  {func(*validate.EvacuationFacts) {}, nil},
		"evacuators in another order": {func(e *validate.EvacuationFacts) { e.Object.Spec.Evacuators = evacuators("b", "a") }, nil},
		"without a pod": {
			func(e *validate.EvacuationFacts) { e.Pod = nil },
			[]string{"spec.podRef.name: Invalid value"},
		},
		"of a pod with another UID": {
			func(e *validate.EvacuationFacts) { e.Pod = webPod("beef") },
			[]string{"spec.podRef.uid: Invalid value"},
		},
		"with an evacuator too many": {
			func(e *validate.EvacuationFacts) { e.Object.Spec.Evacuators = evacuators("a", "b", "c") },
			[]string{"spec.evacuators: Forbidden"},
		},
		"with another priority": {
			func(e *validate.EvacuationFacts) { e.Object.Spec.Evacuators[0].Priority = 7 },
			[]string{"spec.evacuators: Forbidden"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := given(evacuators("a", "b")...)
			tc.change(&e)
			expect(t, tc.want, validate.CreateEvacuation(e))
		})
	}
}

func TestEvacuationUpdateRefusesMadeUpEvacuators(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after []v1alpha1.Evacuator
		podGone       bool
		want          []string
	}{
		"a finalizer is dropped":               {before: evacuators("a"), after: evacuators("a")},
		"the same, long after":                 {before: evacuators("a"), after: evacuators("a"), podGone: true},
		"evacuators are resolved later":        {after: evacuators("a", "b")},
		"evacuators are made up later":         {after: evacuators("c"), want: []string{"spec.evacuators: Forbidden"}},
		"evacuators for a pod that is no more": {after: evacuators("a"), podGone: true, want: []string{"spec.evacuators: Forbidden"}},
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

func TestEvacuationUpdateRefusesCompleteLabel(t *testing.T) {
	refused := []string{"metadata.labels[ebbtide.dev/complete]: Forbidden"}
	marked := given(evacuators("a")...)
	marked.Object.Labels = map[string]string{v1alpha1.CompleteLabel: "true"}
	expect(t, refused, validate.UpdateEvacuation(marked, given(evacuators("a")...).Object))
	expect(t, refused, validate.UpdateEvacuation(given(evacuators("a")...), marked.Object))
	expect(t, nil, validate.UpdateEvacuation(marked, marked.Object))
}

func TestEvacuationDeletionIsRefusedIfCancellationIsForbidden(t *testing.T) {
	refused := []string{"status.evacuationCancellationPolicy: Forbidden"}
	for name, tc := range map[string]struct {
		policy v1alpha1.EvacuationCancellationPolicy
		pod    *corev1.Pod
		want   []string
	}{
		"nobody minds":                       {"", webPod("0f1e"), nil},
		"allowed":                            {v1alpha1.CancellationAllow, webPod("0f1e"), nil},
		"forbidden":                          {v1alpha1.CancellationForbid, webPod("0f1e"), refused},
		"forbidden, but the pod is gone":     {v1alpha1.CancellationForbid, nil, nil},
		"forbidden, but the pod is replaced": {v1alpha1.CancellationForbid, webPod("beef"), nil},
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

func TestEvacuationStatusRefusesProgressInTheFuture(t *testing.T) {
	now := time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)
	in := func(offset time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(offset)} }
	for name, tc := range map[string]struct {
		before, after *metav1.Time
		want          []string
	}{
		"no progress":                    {nil, nil, nil},
		"now":                            {nil, in(0), nil},
		"a clock that is slightly fast":  {nil, in(time.Minute), nil},
		"the future":                     {in(0), in(61 * time.Second), []string{"status.evacuationProgressTimestamp: Invalid value"}},
		"the future, as it was already":  {in(time.Hour), in(time.Hour), nil},
		"another future than it was":     {in(time.Hour), in(2 * time.Hour), []string{"status.evacuationProgressTimestamp: Invalid value"}},
		"the future, and then the truth": {in(time.Hour), in(0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := v1alpha1.EvacuationStatus{}, v1alpha1.EvacuationStatus{}
			before.EvacuationProgressTimestamp, after.EvacuationProgressTimestamp = tc.before, tc.after
			expect(t, tc.want, validate.UpdateEvacuationStatus(after, before, now))
		})
	}
}

// KEP-4212 prints Evacuations with the finalizer of the NodeMaintenance controller.
func TestEvacuationWithFinalizerOfNodeMaintenancesWarns(t *testing.T) {
	if got := validate.InstigatorWarnings(given().Object); len(got) != 1 || !strings.Contains(got[0], v1alpha1.NodeMaintenanceInstigator) {
		t.Errorf("warnings are %q, want one about the finalizer", got)
	}
	own := evacuation.New(webPod("0f1e"), v1alpha1.InstigatorFinalizerPrefix+"example.com", nil)
	if got := validate.InstigatorWarnings(own); len(got) != 0 {
		t.Errorf("warnings are %q, want none", got)
	}
}

func TestEvacuationWithReplacedEvacuatorsWarns(t *testing.T) {
	problems := []podclass.Problem{{Key: "k", Message: "annotation k is ignored: why"}}
	for name, tc := range map[string]struct {
		given    []v1alpha1.Evacuator
		problems []podclass.Problem
		want     int
	}{
		"none given":              {nil, nil, 0},
		"the same in other order": {evacuators("b", "a"), nil, 0},
		"both":                    {evacuators("a"), problems, 2},
	} {
		t.Run(name, func(t *testing.T) {
			expectWarnings(t, tc.want, validate.EvacuationWarnings(tc.given, given(), tc.problems))
		})
	}
}
