package maintenance_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

func registered(class string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[v1alpha1.EvacuatorAnnotationPrefix+class] = "10000/controller"
	}
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

// Each pod is alone on its node; counted pods hold Drained back.
func TestWhichPodsLeave(t *testing.T) {
	type with = []func(*corev1.Pod)
	ours := maintenance.Runners{DaemonSets: true, Agents: map[string]maintenance.Agent{"one": {}}}
	for name, test := range map[string]struct {
		with    with
		depth   v1alpha1.PodType
		runners maintenance.Runners
		// want is pending/evacuating/retained after two passes.
		want [3]int32
	}{
		"an ordinary pod":                           {with{}, "", ours, [3]int32{0, 1, 0}},
		"a terminating pod counts":                  {with{terminating}, "", ours, [3]int32{0, 1, 0}},
		"a succeeded pod is nothing":                {with{phase(corev1.PodSucceeded)}, "", ours, [3]int32{}},
		"a failed pod is nothing":                   {with{phase(corev1.PodFailed)}, "", ours, [3]int32{}},
		"skip":                                      {with{labelled(v1alpha1.DrainLabel, "Skip")}, "", ours, [3]int32{0, 0, 1}},
		"wait-completed":                            {with{labelled(v1alpha1.DrainLabel, "WaitCompleted")}, "", ours, [3]int32{1, 0, 0}},
		"wait-completed that completed":             {with{labelled(v1alpha1.DrainLabel, "wait-completed"), phase(corev1.PodSucceeded)}, "", ours, [3]int32{}},
		"a label that is not understood":            {with{labelled(v1alpha1.DrainLabel, "later")}, "", ours, [3]int32{0, 1, 0}},
		"DaemonSet":                                 {with{ofDaemonSet}, "", ours, [3]int32{0, 1, 0}},
		"DaemonSet that nobody evacuates":           {with{ofDaemonSet}, "", maintenance.Runners{}, [3]int32{0, 0, 1}},
		"DaemonSet that only registered ours":       {with{ofDaemonSet, registered(v1alpha1.DaemonSetEvacuatorClass)}, "", maintenance.Runners{}, [3]int32{0, 0, 1}},
		"DaemonSet with an evacuator of a third":    {with{ofDaemonSet, registered("storage.example.com")}, "", maintenance.Runners{}, [3]int32{0, 1, 0}},
		"DaemonSet below the depth":                 {with{ofDaemonSet}, "Default", ours, [3]int32{0, 0, 1}},
		"DaemonSet within the depth":                {with{ofDaemonSet}, "DaemonSet", ours, [3]int32{0, 1, 0}},
		"wait-completed that nobody could evacuate": {with{ofDaemonSet, labelled(v1alpha1.DrainLabel, "wait-completed")}, "", maintenance.Runners{}, [3]int32{0, 0, 1}},
		"static":                                      {with{static}, "", ours, [3]int32{0, 1, 0}},
		"static without an agent on this node":        {with{static}, "", maintenance.Runners{DaemonSets: true, Agents: map[string]maintenance.Agent{"two": {}}}, [3]int32{0, 0, 1}},
		"static that only registered ours":            {with{static, registered(v1alpha1.KubeletEvacuatorClass)}, "", maintenance.Runners{DaemonSets: true}, [3]int32{0, 0, 1}},
		"static with an evacuator of a third":         {with{static, registered("kubelet.example.com")}, "", maintenance.Runners{}, [3]int32{0, 1, 0}},
		"static below the depth":                      {with{static}, "DaemonSet", ours, [3]int32{0, 0, 1}},
		"static with a malformed evacuator of theirs": {with{static, malformed}, "", maintenance.Runners{}, [3]int32{0, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			w.runners = test.runners
			m := w.maintenance("m", drain, nil, "one")
			m.Spec.DrainDepth = test.depth
			w.run("one", 1, 0, test.with...)
			w.pass()
			w.pass()
			s := m.Status.NodeStatuses[0]
			if diff := cmp.Diff(test.want, [3]int32{s.PodsPendingEvacuation, s.PodsEvacuating, s.PodsRetained}); diff != "" {
				t.Errorf("pending, evacuating, retained (-want +got):\n%s", diff)
			}
			left := test.want[0]+test.want[1] > 0
			if isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) == left {
				t.Errorf("Drained is %v with %d pods left", !left, test.want[0]+test.want[1])
			}
		})
	}
}

func terminating(pod *corev1.Pod) { pod.DeletionTimestamp = metaTime(dawn.Add(2 * time.Hour)) }

func malformed(pod *corev1.Pod) {
	pod.Annotations[v1alpha1.EvacuatorAnnotationPrefix+"kubelet.example.com"] = "soon"
}

func TestWaitCompletedIsABlocker(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	pod := w.run("one", 1, 0)[0]
	w.pass()
	pod.Labels = map[string]string{v1alpha1.DrainLabel: "wait-completed"}
	if d := w.pass().Nodes[0]; len(d.Withdraw) != 1 {
		t.Errorf("the evacuation of a pod that is to complete is not withdrawn: %+v", d)
	}
	s := m.Status.NodeStatuses[0]
	if len(s.Blockers) != 1 || s.Blockers[0].Type != v1alpha1.BlockerWaitingForCompletion {
		t.Errorf("blockers are %+v, want WaitingForCompletion", s.Blockers)
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked); c.Reason != "WaitingForCompletion" {
		t.Errorf("Blocked is %+v, want WaitingForCompletion", c)
	}
}

func TestBlockersDoNotDependOnTheOrderOfPods(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	w.run("one", 3, 0, labelled(v1alpha1.DrainLabel, "wait-completed"), ofJob)
	w.pass()
	before := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked).Message
	slices.Reverse(w.pods["one"])
	w.pass()
	after := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked).Message
	if !strings.Contains(before, "pod-0001") || after != before {
		t.Errorf("in another order of the pods, Blocked changes from %q to %q", before, after)
	}
}

func TestOnlyPodsThatCameBackAreRecreated(t *testing.T) {
	w := newWorld(t, "one", "two")
	m := w.maintenance("m", drain, nil, "one")
	expect := func(what string, created time.Duration, want ...v1alpha1.BlockerType) {
		t.Helper()
		pod := w.run("two", 1, 0, ofJob)[0]
		pod.CreationTimestamp.Time = dawn.Add(created)
		for range 3 {
			var got []v1alpha1.BlockerType
			for _, s := range w.pass().Maintenances[0].Status.NodeStatuses {
				for _, b := range s.Blockers {
					got = append(got, b.Type)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		w.remove(pod.UID)
		w.pass()
	}
	w.pass()
	w.now = dawn.Add(5 * time.Hour)
	m.Spec.NodeSelector = named("one", "two")
	expect("a pod that ran when its node joined an old drain", 4*time.Hour)
	w.now = dawn.Add(7 * time.Hour)
	expect("a pod that came to the drained node", 6*time.Hour, v1alpha1.BlockerRecreated)
}

func TestInvalidLabelIsReportedOnce(t *testing.T) {
	w := newWorld(t, "one")
	w.maintenance("m", drain, nil, "one")
	w.run("one", 1, 0, labelled(v1alpha1.DrainLabel, "later"))
	events := told(w.pass().Nodes[0])
	if !slices.Contains(reasons(events), "Pod/pod-0001 DrainLabelIgnored") {
		t.Errorf("events are %v", reasons(events))
	}
	if again := w.pass(); len(again.Nodes) > 0 {
		t.Errorf("the next pass does %+v, want nothing", again.Nodes)
	}
}

func TestTheEvacuationOfAPodThatHasFinishedIsWithdrawn(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	pod := w.run("one", 1, 0)[0]
	w.pass()
	pod.Status.Phase = corev1.PodSucceeded
	if d := w.pass().Nodes[0]; len(d.Withdraw) != 1 || len(d.Evacuate) > 0 {
		t.Errorf("got %+v, want its evacuation withdrawn", d)
	}
	if !isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Errorf("status is %+v, want Drained", m.Status)
	}
}

func names(pods []*corev1.Pod) []string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Name)
	}
	return all
}

func nodeCondition(node *corev1.Node, conditionType corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return corev1.NodeCondition{}
}
