package scenario

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/cluster"
)

// prove asks for the claims about DaemonSets, locks and leaders at full length and
// speed, on a machine that does nothing else.
var prove = flag.Bool("prove", false, "make the claims about DaemonSets, locks and leaders at full length: a minute without pods that must not come, a manager killed behind every write, or at any time")

// lookFor is how long a scenario looks for pods that must not come.
func lookFor() time.Duration {
	if *prove {
		return time.Minute
	}
	return 10 * time.Second
}

// daemon is what a scenario cares about in a DaemonSet.
type daemon struct {
	name     string
	priority int32
	// tolerant pods tolerate every taint, and staying ones are skipped by drains.
	tolerant, staying bool
}

// everywhere creates the DaemonSet on all nodes of this world and waits for its pods.
func (w *world) everywhere(d daemon, nodes []string) map[string]types.UID {
	w.t.Helper()
	labels := map[string]string{"name": d.name}
	spec := w.podSpec()
	spec.NodeSelector = map[string]string{cluster.PoolLabel: w.cluster.Pool()}
	spec.TerminationGracePeriodSeconds = new(int64(0))
	if d.priority != 0 {
		spec.PriorityClassName = w.priorityClass(d.priority)
	}
	template := maps.Clone(labels)
	if d.staying {
		template[v1alpha1.DrainLabel] = "skip"
	}
	if d.tolerant {
		spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	w.create(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: d.name, Namespace: w.ns},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template}, Spec: spec},
		},
	})
	return w.awaitOn(d.name, nodes)
}

// awaitOn waits until a DaemonSet has a ready pod on each of the nodes and no
// other pod, and returns their UIDs by node.
func (w *world) awaitOn(name string, nodes []string) map[string]types.UID {
	w.t.Helper()
	var running map[string]types.UID
	w.awaitPods(fmt.Sprintf("pods of %s ready on %v only", name, nodes), func(pods []corev1.Pod) bool {
		running = map[string]types.UID{}
		count := 0
		for i := range pods {
			if pods[i].Labels["name"] != name {
				continue
			}
			count++
			if available(&pods[i]) {
				running[pods[i].Spec.NodeName] = pods[i].UID
			}
		}
		return count == len(nodes) && slices.Equal(slices.Sorted(maps.Keys(running)), slices.Sorted(slices.Values(nodes)))
	})
	return running
}

// on returns the pod of a DaemonSet that is made for a node; nil if there is none.
func (w *world) on(name, node string) *corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	w.must("list pods", w.client.List(w.ctx, list, client.InNamespace(w.ns), client.MatchingLabels{"name": name}))
	for i := range list.Items {
		if kube.PinnedNode(&list.Items[i]) == node {
			return &list.Items[i]
		}
	}
	return nil
}

// awaitHeld waits until the pod of a DaemonSet for a node is held back by our gate.
func (w *world) awaitHeld(name, node string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("pod of %s held back from %s", name, node), func() (bool, any) {
		pod := w.on(name, node)
		return pod != nil && pod.Spec.NodeName == "" && slices.Contains(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: v1alpha1.MaintenanceGate}), pod
	})
}

// awaitAway waits until no pod of a DaemonSet runs on a node.
func (w *world) awaitAway(name, node string) {
	w.t.Helper()
	w.awaitPods(fmt.Sprintf("no pod of %s on %s", name, node), func(pods []corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Labels["name"] == name && p.Spec.NodeName == node })
	})
}

// awaitReplaced waits until a DaemonSet has another ready pod on a node.
func (w *world) awaitReplaced(name, node string, old types.UID) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("another pod of %s on %s", name, node), func() (bool, any) {
		pod := w.on(name, node)
		return pod != nil && pod.UID != old && pod.Spec.NodeName == node && available(pod), pod
	})
}

// intruders notes pods of DaemonSets that come to a node where none may run.
type intruders struct {
	t    *testing.T
	mu   sync.Mutex
	seen []string
	came chan struct{}
	stop func()
}

// watchFor begins to look for pods of the named DaemonSets on a node.
func (w *world) watchFor(node string, names ...string) *intruders {
	w.t.Helper()
	in := &intruders{t: w.t, came: make(chan struct{}, 1)}
	in.stop = w.watchPods(func(kind watch.EventType, pod *corev1.Pod) {
		if kind == watch.Deleted || pod.Spec.NodeName != node || !slices.Contains(names, pod.Labels["name"]) {
			return
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		in.seen = append(in.seen, pod.Name)
		select {
		case in.came <- struct{}{}:
		default:
		}
	})
	return in
}

// assertNone looks for a while.
func (in *intruders) assertNone() {
	in.t.Helper()
	select {
	case <-in.came:
	case <-time.After(lookFor()):
	}
	in.stop()
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.seen) > 0 {
		in.t.Errorf("pods came to the node during its maintenance: %v", in.seen)
	}
}

// assertBack completes a maintenance and waits for the DaemonSets' pods, which
// have five seconds.
func (w *world) assertBack(end func(), nodes []string, names ...string) {
	w.t.Helper()
	end()
	ended := time.Now()
	for _, name := range names {
		w.awaitOn(name, nodes)
	}
	took := time.Since(ended)
	w.t.Logf("%s came back within %s", strings.Join(names, ", "), took.Round(10*time.Millisecond))
	if *prove && took > 5*time.Second {
		w.t.Errorf("the DaemonSets came back after %s, want at most 5 s", took)
	}
}

// suppressed is true for a node with our taint.
func suppressed(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == v1alpha1.DaemonSetTaint })
}

// assertNothingLeft waits until a node is as it was before its maintenance.
func (w *world) assertNothingLeft(node string) {
	w.t.Helper()
	w.awaitNode(node, "without our marks", func(n *corev1.Node) bool {
		return !suppressed(n) && n.Annotations[v1alpha1.CordonAnnotation] == "" && n.Annotations[v1alpha1.DrainTargetsAnnotation] == ""
	})
}

// assertUntouched compares the pods of other nodes with those of before.
func assertUntouched(t *testing.T, before, after map[string]types.UID, nodes ...string) {
	t.Helper()
	for _, node := range nodes {
		if before[node] != after[node] {
			t.Errorf("the pod on %s was replaced, although its node had no maintenance", node)
		}
	}
}
