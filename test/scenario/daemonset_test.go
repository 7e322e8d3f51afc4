package scenario

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
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

// While the target of a node is some of its DaemonSet pods only, these stay away,
// also when a person deletes one, and more important ones are recreated when they die.
func TestLongDaemonSetPodsAboveTheTargetAreRecreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one")
	w.everywhere(daemon{name: "low", priority: 1000}, nodes)
	w.everywhere(daemon{name: "stuck", priority: 1000}, nodes)
	w.everywhere(daemon{name: "high", priority: 5000}, nodes)
	w.hold(w.on("stuck", nodes[0]))

	w.maintain("upgrade", v1alpha1.StageDrain, nodes, daemons(1000))
	w.awaitHeld("low", nodes[0])
	w.assertNodeStatus("upgrade", nodes[0], func(s v1alpha1.NodeMaintenanceNodeStatus) any { return s.DrainTargets[1] }, daemons(1000))
	intruders := w.watchFor(nodes[0], "low")
	w.deletePod(w.on("low", nodes[0]))
	w.awaitHeld("low", nodes[0])
	for range 2 {
		died := w.on("high", nodes[0])
		w.deletePod(died)
		w.awaitReplaced("high", nodes[0], died.UID)
	}
	intruders.assertNone()

	w.release(w.on("stuck", nodes[0]).Name)
	w.awaitDrained("upgrade")
	w.awaitOn("low", nil)
	w.assertBack(func() { w.deleteMaintenance("upgrade") }, nodes, "low", "stuck", "high")
	w.assertNothingLeft(nodes[0])
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

// The manager is killed while DaemonSets are kept away. The API server goes on holding back
// a pod that tolerates everything, and the next manager gives all back in the end.
func TestLongManagerIsKilledWhileDaemonSetsStayAway(t *testing.T) {
	t.Parallel()
	w := newMortalWorld(t)
	nodes := w.nodes("one", "two")
	w.everywhere(daemon{name: "log"}, nodes)
	w.everywhere(daemon{name: "proxy", tolerant: true}, nodes)
	w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])
	w.awaitDrained("upgrade")
	w.awaitHeld("proxy", nodes[0])
	w.awaitOn("log", nodes[1:])

	w.manager.Kill(t)
	held := w.on("proxy", nodes[0])
	intruders := w.watchFor(nodes[0], "proxy")
	w.deletePod(held)
	w.eventually("another pod of proxy", func() (bool, any) {
		pod := w.on("proxy", nodes[0])
		return pod != nil && pod.UID != held.UID, pod
	})
	w.awaitHeld("proxy", nodes[0])
	w.awaitAway("log", nodes[0])
	w.manager.Start(t)
	w.awaitDrained("upgrade")
	intruders.assertNone()

	w.assertBack(func() { w.setStage("upgrade", v1alpha1.StageComplete) }, nodes, "log", "proxy")
	w.assertNothingLeft(nodes[0])
}

// DaemonSets come back to a node although it stays cordoned, as a person had it.
func TestDaemonSetsComeBackToANodeThatStaysCordoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one")
	w.everywhere(daemon{name: "log"}, nodes)
	w.cordon(nodes[0], true)
	w.maintain("upgrade", v1alpha1.StageDrain, nodes)
	w.awaitDrained("upgrade")
	w.awaitOn("log", nil)

	w.assertBack(func() { w.setStage("upgrade", v1alpha1.StageComplete) }, nodes, "log")
	w.assertNothingLeft(nodes[0])
	w.assertUnschedulable(nodes[0], true)
}

// Somebody who takes our marks off a node is overruled, and nobody calls it a
// fight. A pod that has come meanwhile goes again.
func TestSuppressionIsPutRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one")
	w.everywhere(daemon{name: "log"}, nodes)
	w.maintain("upgrade", v1alpha1.StageDrain, nodes)
	w.awaitDrained("upgrade")
	w.awaitNode(nodes[0], "suppressed", suppressed)
	node := &corev1.Node{}
	w.get(node, nodes[0])
	ledger, targets := node.Annotations[v1alpha1.CordonAnnotation], node.Annotations[v1alpha1.DrainTargetsAnnotation]

	w.change(node, nodes[0], func() {
		node.Spec.Taints = nil
		delete(node.Annotations, v1alpha1.DrainTargetsAnnotation)
	})

	w.awaitNode(nodes[0], "suppressed again, without a trace of a fight", func(n *corev1.Node) bool {
		return n.Annotations[v1alpha1.DrainTargetsAnnotation] == targets && n.Annotations[v1alpha1.CordonAnnotation] == ledger && suppressed(n)
	})
	w.awaitDrained("upgrade")
	w.awaitAway("log", nodes[0])
}

// A DaemonSet pod leaves with its node only: an Evacuation that somebody else
// asks for waits for a maintenance, and says so.
func TestADaemonSetPodLeavesWithItsNodeOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one")
	before := w.everywhere(daemon{name: "log"}, nodes)
	asked := evacuation.New(w.on("log", nodes[0]), foreignInstigator, nil)
	w.create(asked)

	await(w, "explained", asked, asked.Name, func(e *v1alpha1.Evacuation) bool {
		return e.Status.ActiveEvacuatorClass == v1alpha1.DaemonSetEvacuatorClass && !e.Status.ActiveEvacuatorCompleted &&
			contains(e.Status.Message, "waits for a NodeMaintenance that removes the DaemonSet pods of node "+nodes[0])
	})
	assertUntouched(t, before, w.awaitOn("log", nodes), nodes...)

	w.maintain("upgrade", v1alpha1.StageDrain, nodes)
	w.awaitDrained("upgrade")
	w.awaitOn("log", nil)
}

// Of two maintenances of a node one leaves DaemonSets alone. All stay away while
// the other goes on, and are back as soon as it is complete.
func TestDaemonSetsStayAwayForTheDeepestMaintenance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one")
	w.everywhere(daemon{name: "log"}, nodes)
	w.everywhere(daemon{name: "proxy", tolerant: true}, nodes)
	w.maintain("shallow", v1alpha1.StageIdle, nodes)
	shallow := w.maintenance("shallow")
	w.change(shallow, shallow.Name, func() {
		shallow.Spec.Stage, shallow.Spec.DrainDepth = v1alpha1.StageDrain, v1alpha1.PodTypeDefault
	})
	w.awaitDrained("shallow")
	w.maintain("deep", v1alpha1.StageDrain, nodes)
	w.awaitDrained("deep")
	w.awaitNode(nodes[0], "suppressed", suppressed)
	w.awaitHeld("proxy", nodes[0])
	w.awaitOn("log", nil)

	w.assertBack(func() { w.setStage("deep", v1alpha1.StageComplete) }, nodes, "log", "proxy")
	w.assertUnschedulable(nodes[0], true)
	w.awaitDrained("shallow")
}

// Who deletes the pods that are held back gets held ones again, and the gates
// that others have put on a pod stay.
func TestLongHeldPodsThatAreDeletedAreHeldAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one")
	theirs := corev1.PodSchedulingGate{Name: "scenario.ebbtide.dev/theirs"}
	proxy := &appsv1.DaemonSet{}
	proxy.Namespace = w.ns
	w.everywhere(daemon{name: "proxy", tolerant: true}, nodes)
	w.maintain("upgrade", v1alpha1.StageDrain, nodes)
	w.awaitDrained("upgrade")
	w.awaitHeld("proxy", nodes[0])
	intruders := w.watchFor(nodes[0], "proxy")
	for range 10 {
		w.deletePod(w.on("proxy", nodes[0]))
		w.awaitHeld("proxy", nodes[0])
	}
	w.change(proxy, "proxy", func() { proxy.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{theirs} })
	gated := func(want ...corev1.PodSchedulingGate) {
		t.Helper()
		w.eventually("the gates of the held pod", func() (bool, any) {
			pod := w.on("proxy", nodes[0])
			return pod != nil && slices.Equal(pod.Spec.SchedulingGates, want), pod
		})
	}
	gated(theirs, corev1.PodSchedulingGate{Name: v1alpha1.MaintenanceGate})
	intruders.assertNone()

	w.setStage("upgrade", v1alpha1.StageComplete)
	gated(theirs)
}
