package maintenance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// blocked are the warnings of a pass that something is blocked.
func (w *world) blocked() []string {
	w.t.Helper()
	d := w.pass()
	var all []string
	for i := range d.Maintenances {
		for _, e := range d.Maintenances[i].Events {
			if e.Reason == v1alpha1.EventBlocked {
				all = append(all, e.Regarding.Kind+"/"+e.Regarding.Name)
			}
			if e.Reason == v1alpha1.EventBlocked && (e.Type != corev1.EventTypeWarning || e.Message == "") {
				w.t.Errorf("it is told by %+v, want a warning in words", e)
			}
		}
	}
	return all
}

// What blocks a drain is told on the maintenance, its node, and a pod that does not leave: when
// it begins, and again only when the cause is another one.
func TestBlockersAreReportedWhenTheCauseChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one", "two")
	w.maintenance("m", drain, nil, "one", "two")
	pods := w.run("one", 3, 0)
	w.run("two", 1, 0)
	w.pass()
	expect := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, w.blocked()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("nothing blocks")
	w.refuse(pods[1])
	expect("a budget refuses", "NodeMaintenance/m", "Node/one", "Pod/"+pods[1].Name)
	expect("it goes on refusing")
	w.refuse(pods[0])
	expect("it refuses another pod, too")
	for _, pod := range pods[:2] {
		w.remove(pod.UID)
	}
	expect("they are gone")
	w.refuse(pods[2])
	expect("it refuses the last one", "NodeMaintenance/m", "Node/one", "Pod/"+pods[2].Name)
	pods[2].DeletionTimestamp, pods[2].Finalizers = metaTime(w.now.Add(-time.Hour)), []string{"example.com/keep"}
	expect("a finalizer keeps it", "NodeMaintenance/m", "Node/one", "Pod/"+pods[2].Name)
}

// Many nodes that are blocked at once are told of some of them, and of none twice.
func TestEventsOfManyBlockedNodesAreBounded(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("node-%02d", i))
	}
	w := newWorld(t, names...)
	w.maintenance("m", drain, nil, names...)
	var pods []*corev1.Pod
	for _, name := range names {
		pods = append(pods, w.run(name, 1, 0)...)
	}
	w.pass()
	for _, pod := range pods {
		w.refuse(pod)
	}
	got := w.blocked()
	nodes := slices.DeleteFunc(slices.Clone(got), func(one string) bool { return !strings.HasPrefix(one, "Node/") })
	if len(nodes) != 10 || len(got) != 21 || got[0] != "NodeMaintenance/m" {
		t.Errorf("told are %v, want the maintenance, 10 nodes and a pod of each", got)
	}
	if again := w.blocked(); len(again) > 0 {
		t.Errorf("told again are %v", again)
	}
}
