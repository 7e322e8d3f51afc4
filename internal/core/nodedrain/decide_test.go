package nodedrain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// outline is a decision with pods by name, without its message.
type outline struct {
	Done                                    bool
	Evict                                   []string
	Grace                                   *int64
	Skipped                                 []string
	Terminating, Refused, Completing, Later []string
	Unknown                                 []string
	Failed                                  bool
	RequeueAfter                            time.Duration
}

func outlineOf(d Decision) outline {
	list := func(pods []*corev1.Pod) (names []string) {
		for _, p := range pods {
			names = append(names, p.Name)
		}
		return names
	}
	return outline{
		Done: d.Done, Evict: list(d.Evict), Grace: d.GracePeriodSeconds, Skipped: list(d.Skipped),
		Terminating: list(d.Terminating), Refused: list(d.Refused), Completing: list(d.Completing), Later: list(d.Later),
		Unknown: list(d.Unknown), Failed: d.Failed, RequeueAfter: d.RequeueAfter,
	}
}

func check(t *testing.T, s Snapshot, want outline) {
	t.Helper()
	d := Decide(s)
	if diff := cmp.Diff(want, outlineOf(d)); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if d.Done != (d.Message == "") {
		t.Errorf("done is %v, the message %q", d.Done, d.Message)
	}
}

// cases are pods of a node and what is decided about them.
type cases map[string]struct {
	pods []*corev1.Pod
	want outline
}

func (c cases) run(t *testing.T) {
	t.Helper()
	for name, test := range c {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, snapshot(test.pods...), test.want)
		})
	}
}

// machine-deletion-process: "Pods that are skipped/ignored during drain".
func TestSkipped(t *testing.T) {
	cases{
		"Pods belonging to an existing DaemonSet are skipped": {
			[]*corev1.Pod{ofDaemonSet("alive", pod("agent-1"))},
			outline{Done: true, Skipped: []string{"agent-1"}},
		},
		"Mirror Pods are skipped": {
			[]*corev1.Pod{mirror(pod("kube-apiserver-node"))},
			outline{Done: true, Skipped: []string{"kube-apiserver-node"}},
		},
		"Pods with the label drain=skip are skipped": {
			[]*corev1.Pod{skipped(pod("a"))},
			outline{Done: true, Skipped: []string{"a"}},
		},
		"Pods that match a MachineDrainRule with behavior Skip are skipped": {
			[]*corev1.Pod{labelled("monitoring", "", pod("a"))},
			outline{Done: true, Skipped: []string{"a"}},
		},
		"a skipped pod that terminates is not waited for": {
			[]*corev1.Pod{terminating(time.Minute, skipped(pod("a")))},
			outline{Done: true, Skipped: []string{"a"}},
		},
	}.run(t)
}

// machine-deletion-process: "Pods that should not be evicted, but we have to wait
// for their completion".
func TestWaitCompleted(t *testing.T) {
	cases{
		"Pods with the label drain=wait-completed are waited for": {
			[]*corev1.Pod{waitCompleted(pod("a"))},
			outline{Completing: []string{"a"}},
		},
		"Pods that match a MachineDrainRule with behavior WaitCompleted are waited for": {
			[]*corev1.Pod{labelled("batch", "", pod("a"))},
			outline{Completing: []string{"a"}},
		},
		"a pod under WaitCompleted that has succeeded is done": {
			[]*corev1.Pod{phase(corev1.PodSucceeded, waitCompleted(pod("a")))},
			outline{Done: true},
		},
		"a pod under WaitCompleted that has failed is done": {
			[]*corev1.Pod{phase(corev1.PodFailed, labelled("batch", "", pod("a")))},
			outline{Done: true},
		},
		"a finished pod under WaitCompleted does not hold up those of a higher order": {
			[]*corev1.Pod{phase(corev1.PodSucceeded, waitCompleted(pod("a"))), ordered(10, pod("b"))},
			outline{Evict: []string{"b"}},
		},
		"a finished pod under WaitCompleted that a finalizer keeps is done": {
			[]*corev1.Pod{terminating(-time.Hour, phase(corev1.PodSucceeded, waitCompleted(pod("a"))))},
			outline{Done: true},
		},
		"a pod under WaitCompleted that is being deleted is waited for until it is gone": {
			[]*corev1.Pod{terminating(time.Minute, waitCompleted(pod("a")))},
			outline{Terminating: []string{"a"}},
		},
	}.run(t)
}

// machine-deletion-process: "Pods that should be evicted".
func TestEvicted(t *testing.T) {
	cases{
		"orphaned DaemonSet Pods have to be evicted as well": {
			[]*corev1.Pod{ofDaemonSet("of-an-earlier-one", pod("agent-1"))},
			outline{Evict: []string{"agent-1"}},
		},
		"a finished pod of a DaemonSet is drained": {
			[]*corev1.Pod{phase(corev1.PodFailed, ofDaemonSet("alive", pod("agent-1")))},
			outline{Evict: []string{"agent-1"}},
		},
		"Pods that match a MachineDrainRule with behavior Drain are evicted": {
			[]*corev1.Pod{labelled("plain", "", pod("a"))},
			outline{Evict: []string{"a"}},
		},
		"All Pods not belonging to any of the other categories are evicted": {
			[]*corev1.Pod{pod("a"), phase(corev1.PodPending, pod("b"))},
			outline{Evict: []string{"a", "b"}},
		},
		"so are those that have finished": {
			[]*corev1.Pod{phase(corev1.PodSucceeded, pod("a")), phase(corev1.PodFailed, pod("b"))},
			outline{Evict: []string{"a", "b"}},
		},
		"If there are no more Pods that have to be drained Node drain is completed": {
			nil,
			outline{Done: true},
		},
		"an eviction that went through only means that the deletionTimestamp is set": {
			[]*corev1.Pod{terminating(30*time.Second, pod("a"))},
			outline{Terminating: []string{"a"}},
		},
		"a pod outlives its grace period and is waited for": {
			[]*corev1.Pod{terminating(-time.Hour, pod("a"))},
			outline{Terminating: []string{"a"}},
		},
	}.run(t)
}

// machine-drain-rules, "Node drain behavior", and decision 1 of the product: the
// lowest order first.
func TestOrders(t *testing.T) {
	cases{
		"Per default all Pods are drained at the same time": {
			[]*corev1.Pod{pod("a"), pod("b"), pod("c")},
			outline{Evict: []string{"a", "b", "c"}},
		},
		"evict all Pods with the lowest order": {
			[]*corev1.Pod{ordered(100, pod("portworx")), pod("a"), ordered(1, pod("b"))},
			outline{Evict: []string{"a"}, Later: []string{"b", "portworx"}},
		},
		"an order may be negative": {
			[]*corev1.Pod{pod("a"), ordered(-10, pod("b")), ordered(-1, pod("c"))},
			outline{Evict: []string{"b"}, Later: []string{"a", "c"}},
		},
		"Pods are evicted only after all other Pods with a lower order have been deleted": {
			[]*corev1.Pod{terminating(time.Minute, pod("a")), ordered(100, pod("portworx"))},
			outline{Terminating: []string{"a"}, Later: []string{"portworx"}},
		},
		"a pod that terminates holds the order of its rule": {
			[]*corev1.Pod{terminating(time.Minute, ordered(100, pod("portworx"))), pod("a"), ordered(100, pod("b"))},
			outline{Terminating: []string{"portworx"}, Evict: []string{"a"}, Later: []string{"b"}},
		},
		"others of the order of a pod that terminates are evicted": {
			[]*corev1.Pod{terminating(time.Minute, ordered(10, pod("a"))), ordered(10, pod("b"))},
			outline{Terminating: []string{"a"}, Evict: []string{"b"}},
		},
		"the oldest is evicted first": {
			[]*corev1.Pod{aged(time.Minute, pod("a")), aged(time.Hour, pod("b")), aged(time.Hour, pod("c")), aged(time.Second, pod("0"))},
			outline{Evict: []string{"b", "c", "a", "0"}},
		},
	}.run(t)
}

// machine-deletion-process: "Pods with WaitCompleted have a hard-coded order of 0",
// and nobody else holds one.
func TestOrdersOfThoseThatAreNotEvicted(t *testing.T) {
	cases{
		"Pods with WaitCompleted have a hard-coded order of 0": {
			[]*corev1.Pod{waitCompleted(pod("a")), ordered(-1, pod("b")), pod("c"), ordered(1, pod("d"))},
			outline{Completing: []string{"a"}, Evict: []string{"b"}, Later: []string{"c", "d"}},
		},
		"pods of order 0 are evicted while others of it complete": {
			[]*corev1.Pod{waitCompleted(pod("a")), pod("c"), ordered(1, pod("d"))},
			outline{Completing: []string{"a"}, Evict: []string{"c"}, Later: []string{"d"}},
		},
		"those of a higher order wait until the last has completed": {
			[]*corev1.Pod{waitCompleted(pod("a")), ordered(1, pod("d"))},
			outline{Completing: []string{"a"}, Later: []string{"d"}},
		},
		"a pod under WaitCompleted that is being deleted holds order 0": {
			[]*corev1.Pod{terminating(time.Minute, waitCompleted(pod("a"))), ordered(1, pod("d"))},
			outline{Terminating: []string{"a"}, Later: []string{"d"}},
		},
		"skipped pods hold no order": {
			[]*corev1.Pod{skipped(pod("a")), ofDaemonSet("alive", pod("agent-1")), ordered(100, pod("portworx"))},
			outline{Skipped: []string{"a", "agent-1"}, Evict: []string{"portworx"}},
		},
		"storage does not leave under a pod that nobody knows how to treat": {
			[]*corev1.Pod{unjudged(pod("a")), pod("web"), ordered(-1, pod("batch")), ordered(100, pod("portworx"))},
			outline{Unknown: []string{"a"}, Evict: []string{"batch"}, Later: []string{"portworx", "web"}, Failed: true},
		},
		"what leaves together with it is evicted": {
			[]*corev1.Pod{unjudged(pod("a")), pod("web"), ordered(100, pod("portworx"))},
			outline{Unknown: []string{"a"}, Evict: []string{"web"}, Later: []string{"portworx"}, Failed: true},
		},
		"neither does it under one that terminates": {
			[]*corev1.Pod{terminating(time.Minute, unjudged(pod("a"))), ordered(100, pod("portworx"))},
			outline{Unknown: []string{"a"}, Later: []string{"portworx"}, Failed: true},
		},
	}.run(t)
}

// machine-deletion-process, "Special cases".
func TestSpecialCases(t *testing.T) {
	one := ptr.To[int64](1)
	missing := snapshot(pod("a"))
	missing.Node = nil
	tests := map[string]struct {
		snapshot Snapshot
		want     outline
	}{
		"If the Node doesn't exist anymore, Node drain is entirely skipped": {
			missing,
			outline{Done: true},
		},
		"Pods with deletionTimestamp more than 1s in the past are ignored": {
			unreachable(snapshot(terminating(-1001*time.Millisecond, pod("a")))),
			outline{Done: true, Grace: one},
		},
		"a pod whose deletionTimestamp is 1s in the past is waited for a moment longer": {
			unreachable(snapshot(terminating(-time.Second, pod("a")))),
			outline{Terminating: []string{"a"}, Grace: one, RequeueAfter: time.Millisecond},
		},
		"a deletionTimestamp is in the future as long as the grace period lasts": {
			unreachable(snapshot(terminating(time.Minute, pod("a")), terminating(5*time.Second, pod("b")), terminating(-time.Hour, pod("c")))),
			outline{Terminating: []string{"a", "b"}, Grace: one, RequeueAfter: 6*time.Second + time.Millisecond},
		},
		"pods that are ignored hold no order": {
			unreachable(snapshot(terminating(-time.Minute, pod("a")), terminating(-time.Minute, waitCompleted(pod("b"))), ordered(1, pod("c")))),
			outline{Evict: []string{"c"}, Grace: one},
		},
		"nobody asks how to treat a pod that is ignored": {
			unreachable(snapshot(terminating(-time.Minute, unjudged(pod("a"))))),
			outline{Done: true, Grace: one},
		},
		"a skipped pod is skipped, and nobody waits for its end": {
			unreachable(snapshot(terminating(time.Minute, skipped(pod("a"))), terminating(-time.Minute, skipped(pod("b"))))),
			outline{Done: true, Skipped: []string{"a", "b"}, Grace: one},
		},
		"Pod evictions will use 1s GracePeriodSeconds": {
			unreachable(snapshot(pod("a"))),
			outline{Evict: []string{"a"}, Grace: one},
		},
		"PodDisruptionBudgets are still respected": {
			answered(budgeted, unreachable(snapshot(pod("a"), ordered(1, pod("b"))))),
			outline{Evict: []string{"a"}, Refused: []string{"a"}, Later: []string{"b"}, Grace: one},
		},
		"a node that is not ready is not unreachable": {
			func() Snapshot {
				s := snapshot(terminating(-time.Hour, pod("a")), pod("b"))
				s.Node = node(corev1.ConditionFalse)
				return s
			}(),
			outline{Terminating: []string{"a"}, Evict: []string{"b"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, test.snapshot, test.want)
		})
	}
}

// One pod that cannot be judged never holds up another.
func TestUnreadableDaemonSets(t *testing.T) {
	s := snapshot(ofDaemonSet("alive", pod("agent-1")), pod("a"), mirror(pod("kube-proxy-node")))
	s.Facts.DaemonSets = nil
	s.Facts.DaemonSetErrors = map[types.NamespacedName]string{{Namespace: "ns", Name: "agent"}: "the server is down"}
	check(t, s, outline{Unknown: []string{"agent-1"}, Evict: []string{"a"}, Skipped: []string{"kube-proxy-node"}, Failed: true})
}

func TestIgnoredLabelsAreReported(t *testing.T) {
	s := snapshot(labelled(v1alpha1.DrainLabel, "perhaps", pod("b")), pod("a"))
	d := Decide(s)
	if len(d.Problems) != 1 || d.Problems[0].Pod.Name != "b" || d.Problems[0].Key != v1alpha1.DrainLabel {
		t.Errorf("problems are %v, want one of the label of b", d.Problems)
	}
	check(t, s, outline{Evict: []string{"a", "b"}})
}

func TestLeft(t *testing.T) {
	d := Decide(snapshot(skipped(pod("a")), pod("b"), ordered(1, pod("c")), waitCompleted(pod("d")), terminating(0, pod("e")), unjudged(pod("f"))))
	if got, want := Names(d.Left(), 10), "ns/b, ns/c, ns/d, ns/e, ns/f"; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
}
