package scenario

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// The pods of DaemonSets leave last and stay away until the maintenance is
// complete, those that tolerate everything included. Then they are back at once.
// Nobody touches other nodes.
func TestDaemonSetsStayAwayUntilComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three")
	log := w.everywhere(daemon{name: "log"}, nodes)
	proxy := w.everywhere(daemon{name: "proxy", priority: 1000, tolerant: true}, nodes)
	w.pods(nodes[0], pod{name: "web", held: true})
	var early []string
	webThere := true
	stop := w.watchPods(func(kind watch.EventType, p *corev1.Pod) {
		switch {
		case p.Name == "web":
			webThere = kind != watch.Deleted
		case webThere && p.DeletionTimestamp != nil:
			early = append(early, p.Name)
		}
	})

	w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])
	w.awaitPod("web", "terminating", terminating)
	w.release("web")
	w.awaitDrained("upgrade")
	stop()
	if len(early) > 0 {
		t.Errorf("pods of DaemonSets left before the ordinary pod: %v", early)
	}
	w.watchFor(nodes[0], "log", "proxy").assertNone()
	w.awaitHeld("proxy", nodes[0])
	assertUntouched(t, log, w.awaitOn("log", nodes[1:]), nodes[1:]...)

	w.assertBack(func() { w.setStage("upgrade", v1alpha1.StageComplete) }, nodes, "log", "proxy")
	w.assertNothingLeft(nodes[0])
	assertUntouched(t, log, w.awaitOn("log", nodes), nodes[1:]...)
	assertUntouched(t, proxy, w.awaitOn("proxy", nodes), nodes[1:]...)
	w.awaitNoEvacuations()
}

// A DaemonSet that is rolled out, and a node that joins, do not wait for a node
// under maintenance.
func TestOtherNodesDoNotWaitForASuppressedOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three")
	before := w.everywhere(daemon{name: "log"}, nodes)
	w.everywhere(daemon{name: "proxy", tolerant: true}, nodes)
	w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])
	w.awaitDrained("upgrade")
	w.awaitHeld("proxy", nodes[0])
	w.awaitOn("log", nodes[1:])

	rolled := &appsv1.DaemonSet{}
	rolled.Namespace = w.ns
	w.change(rolled, "log", func() { rolled.Spec.Template.Annotations = map[string]string{"version": "2"} })
	for _, node := range nodes[1:] {
		w.awaitReplaced("log", node, before[node])
	}
	joined := append(nodes[1:], w.nodes("four")...)
	w.awaitOn("log", joined)
	w.awaitReplaced("proxy", joined[2], "")
	w.awaitHeld("proxy", nodes[0])

	w.assertBack(func() { w.setStage("upgrade", v1alpha1.StageComplete) }, append(joined, nodes[0]), "log", "proxy")
}
