package preflight_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

// roomy is enough room on two other nodes.
func roomy() map[string]int { return map[string]int{"two": 10, "three": 9} }

func finalizer(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/backup"} }

func terminating(pod *corev1.Pod) {
	soon := metav1.NewTime(morning.Add(10e9))
	pod.DeletionTimestamp = &soon
}

func tracked(pod *corev1.Pod) { pod.Finalizers = []string{"batch.kubernetes.io/job-tracking"} }

func static(pod *corev1.Pod) {
	podclass.MakeMirror(pod, "node")
}

func pending(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending; unready(pod) }

// fate is a cluster, and what becomes of the pods of node one.
type fate struct {
	world func(*world)
	want  []string
}

// What becomes of pods that are protected.
var fatesByBudget = map[string]fate{
	"a budget lets them go one after the other": {
		func(w *world) {
			w.replicas("web", "one", "one", "two", "three")
			w.budget("web", "web", atMost(1), 4, 3)
		},
		[]string{"Leaves", "1 web-0 Evict Leaves -> two", "1 web-1 Evict Leaves -> three"},
	},
	"there is room for one of two, so one of them stays": {
		func(w *world) {
			w.free = map[string]int{"two": 0}
			w.replicas("web", "one", "one", "two")
			w.budget("web", "web", atMost(1), 3, 2)
		},
		[]string{
			"Blocked",
			"1 web-0 Evict MayBeBlocked PDBExhausted -> -",
			"1 web-1 Evict MayBeBlocked PDBExhausted",
		},
	},
	"pods that are not ready stay if the others do not suffice": {
		func(w *world) {
			w.pod("one", "web-0", of("ReplicaSet", "web"), unready)
			w.budget("web", "web", atLeast(2), 3, 2).Status.CurrentHealthy = 1
			w.World.Budgets["shop"][0].Status.DisruptionsAllowed = 0
		},
		[]string{"Blocked", "1 web-0 Evict Blocked PDBExhausted"},
	},
	"budgets that could not be read are unknown, not absent": {
		func(w *world) {
			w.Unread = []preflight.Unread{{Kind: "PodDisruptionBudget", Namespace: "shop", Why: "forbidden"}}
			w.replicas("web", "one")
		},
		[]string{"Unknown", "1 web-0 Evict Unknown -> two"},
	},
	"a budget that is not counted yet allows nothing": {
		func(w *world) {
			w.replicas("web", "one")
			w.budget("web", "web", atMost(1), 2, 1).Generation = 2
		},
		[]string{"Blocked", "1 web-0 Evict Blocked PDBExhausted"},
	},
	"what a deadline deletes leaves": {
		func(w *world) {
			w.drain.Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(morning.Add(3600e9)), OnDeadline: v1alpha1.DeadlineDelete}
			w.replicas("web", "one", "two")
			w.budget("web", "web", atMost(0), 2, 2)
		},
		[]string{"Leaves", "1 web-0 Delete Leaves -> two"},
	},
}

// What becomes of pods that somebody makes again.
var fatesByOwner = map[string]fate{
	"none is there": {
		func(*world) {},
		[]string{"Leaves"},
	},
	"a Deployment that cannot surge does not": {
		func(w *world) {
			w.replicas("web", "one", "two")
			w.deployment("web").Spec.Paused = true
			w.budget("web", "web", atMost(0), 2, 2)
		},
		[]string{"Blocked", "1 web-0 Evict Blocked PDBUnsatisfiable"},
	},
	"a StatefulSet makes the same pods again, one after the other": {
		func(w *world) {
			w.pod("one", "db-0", of("StatefulSet", "db"))
			w.pod("one", "db-1", of("StatefulSet", "db"))
			w.budget("db", "db", atLeast(1), 2, 1)
		},
		[]string{"Leaves", "1 db-0 Evict Leaves -> two", "1 db-1 Evict Leaves -> three"},
	},
	"nobody knows whether a pod fits": {
		func(w *world) {
			for _, name := range []string{"web-0", "web-1"} {
				w.pod("one", name, of("ReplicaSet", "web"), func(pod *corev1.Pod) { pod.Spec.SchedulerName = "other" })
			}
			w.budget("web", "web", atMost(1), 2, 1)
		},
		[]string{
			"Unknown",
			"1 web-0 Evict Unknown PDBExhausted -> -",
			"1 web-1 Evict Unknown PDBExhausted",
		},
	},
	"a bare pod is made again by nobody": {
		func(w *world) {
			w.pod("one", "tool", func(pod *corev1.Pod) {
				pod.Spec.Volumes = []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			})
		},
		[]string{"Leaves", "1 tool Evict Leaves"},
	},
	"an evacuator of somebody else has a turn": {
		func(w *world) {
			w.pod("one", "vm-1", of("ReplicaSet", "vm"), func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{v1alpha1.EvacuatorAnnotationPrefix + "mover.example.com": "5000/mover"}
			})
		},
		[]string{"Leaves", "1 vm-1 Evacuator Leaves -> two"},
	},
	"whether a controller of another kind makes pods is not known": {
		func(w *world) {
			w.pod("one", "web-0", of("CloneSet", "web"))
		},
		[]string{"Leaves", "1 web-0 Evict Leaves -> -"},
	},
}

// What becomes of pods that a drain treats in other ways.
var fatesByDrain = map[string]fate{
	"a pod that asks to be skipped stays": {
		func(w *world) {
			w.pod("one", "tool", labelled(v1alpha1.DrainLabel, "skip"))
			w.replicas("web", "one")
		},
		[]string{"Leaves", "1 web-0 Evict Leaves -> two", "0 tool Keep Stays"},
	},
	"a pod that is to complete is waited for": {
		func(w *world) {
			w.pod("one", "batch-1", of("Job", "batch"), labelled(v1alpha1.DrainLabel, "wait-completed"), tracked)
		},
		[]string{"Completes", "0 batch-1 WaitForCompletion Completes WaitingForCompletion"},
	},
	"a pod that rules are unclear about": {
		func(w *world) {
			w.World.Rules = drainrule.Unread("ebbtide-system", "the server is busy")
			w.replicas("web", "one")
		},
		[]string{"Blocked", "0 web-0 None Blocked DrainRuleUnclear"},
	},
	"a finalizer keeps a pod that terminates": {
		func(w *world) {
			w.pod("one", "web-0", of("ReplicaSet", "web"), finalizer)
			w.pod("one", "web-1", of("ReplicaSet", "web"), finalizer, terminating)
			w.pod("one", "web-2", of("ReplicaSet", "web"), terminating)
			w.pod("one", "batch-1", of("Job", "batch"), tracked)
		},
		[]string{
			"Blocked",
			"0 web-1 AlreadyLeaving Blocked TerminatingFinalizer",
			"0 web-2 AlreadyLeaving Leaves",
			"1 batch-1 Evict Leaves -> two",
			"1 web-0 Evict Blocked TerminatingFinalizer -> three",
		},
	},
	"a node that does not answer confirms nothing": {
		func(w *world) {
			w.World.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
			w.pod("one", "web-0", of("ReplicaSet", "web"), unready)
			w.pod("one", "db-0", of("StatefulSet", "db"), unready)
		},
		[]string{
			"Blocked",
			"1 db-0 Evict Blocked NodeUnreachable -> -",
			"1 web-0 Evict Blocked NodeUnreachable -> two",
		},
	},
	"pods of a DaemonSet leave, static ones stay without an agent": {
		func(w *world) {
			w.pod("one", "proxy-1", of("DaemonSet", "proxy"))
			w.pod("one", "etcd-one", static)
		},
		[]string{"Leaves", "1 proxy-1 DaemonSet Leaves", "0 etcd-one GoesWithNode Stays"},
	},
	"static pods leave where there is an agent": {
		func(w *world) {
			w.pod("one", "etcd-one", static)
			w.World.Runners.Agents = map[string]maintenance.Agent{"one": {}}
		},
		[]string{"Leaves", "1 etcd-one Static Leaves"},
	},
	"static pods stay where the agent is silent": {
		func(w *world) {
			w.pod("one", "etcd-one", static)
			w.World.Runners.Agents = map[string]maintenance.Agent{"one": {SilentSince: morning.Add(-1e9)}}
		},
		[]string{"Blocked", "1 etcd-one Static Blocked NodeAgentDown"},
	},
	"later waves wait for pods that do not leave": {
		func(w *world) {
			w.drain.Spec.DrainPlan = []v1alpha1.DrainPlanEntry{{PodPriority: 10}, {PodPriority: 20}}
			w.pod("one", "web-0", of("ReplicaSet", "web"), priority(5))
			w.pod("one", "web-1", of("ReplicaSet", "web"), priority(15))
			w.pod("one", "web-2", of("ReplicaSet", "web"), priority(25))
			w.pod("one", "db-0", of("ReplicaSet", "db"), priority(15))
			w.budget("db", "db", atMost(0), 1, 1)
		},
		[]string{
			"Blocked",
			"1 web-0 Evict Leaves -> two",
			"2 db-0 Evict Blocked PDBUnsatisfiable",
			"2 web-1 Evict Leaves -> three",
			"0 web-2 Evict Waits",
		},
	},
}

func TestResultsOfPods(t *testing.T) {
	for _, fates := range []map[string]fate{fatesByBudget, fatesByOwner, fatesByDrain, fatesBySurge, fatesInDetail} {
		for name, tc := range fates {
			t.Run(name, func(t *testing.T) {
				w := newWorld("one", "two", "three")
				w.free = roomy()
				tc.world(w)
				assertTold(t, w.forecast(), tc.want...)
			})
		}
	}
}

func priority(n int32) change { return func(pod *corev1.Pod) { pod.Spec.Priority = &n } }
