package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/placement"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// quiet is for how long nothing may have changed before all has come to rest: longer
// than any controller here lets events gather. What waits for longer shows it.
const quiet = 2500 * time.Millisecond

// still is how a stage is at one moment.
type still struct {
	nodes        []*corev1.Node
	pods         []*corev1.Pod
	budgets      []*policyv1.PodDisruptionBudget
	evacuations  map[types.UID]*v1alpha1.Evacuation
	deployments  []*appsv1.Deployment
	replicaSets  []*appsv1.ReplicaSet
	statefulSets []*appsv1.StatefulSet
	jobs         []*batchv1.Job
}

func (s *stage) look(ctx context.Context) (*still, error) {
	var nodes corev1.NodeList
	var pods corev1.PodList
	var budgets policyv1.PodDisruptionBudgetList
	var evacuations v1alpha1.EvacuationList
	var deployments appsv1.DeploymentList
	var replicaSets appsv1.ReplicaSetList
	var statefulSets appsv1.StatefulSetList
	var jobs batchv1.JobList
	if err := s.client.List(ctx, &nodes, client.MatchingLabels{cluster.PoolLabel: s.cluster.Pool()}); err != nil {
		return nil, err
	}
	for _, list := range []client.ObjectList{&pods, &budgets, &evacuations, &deployments, &replicaSets, &statefulSets, &jobs} {
		if err := s.client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return nil, err
		}
	}
	seen := &still{
		nodes: kube.Pointers(nodes.Items), pods: kube.Pointers(pods.Items), budgets: kube.Pointers(budgets.Items), evacuations: map[types.UID]*v1alpha1.Evacuation{},
		deployments: kube.Pointers(deployments.Items), replicaSets: kube.Pointers(replicaSets.Items), statefulSets: kube.Pointers(statefulSets.Items), jobs: kube.Pointers(jobs.Items),
	}
	for _, e := range kube.Pointers(evacuations.Items) {
		seen.evacuations[e.Spec.PodRef.UID] = e
	}
	return seen, nil
}

// forecast is what preflight makes of it.
func (s *stage) forecast(seen *still, m *v1alpha1.NodeMaintenance) preflight.Forecast {
	snapshot := preflight.Snapshot{
		World: maintenance.Snapshot{
			Now: time.Now(), Nodes: seen.nodes, Pods: map[string][]maintenance.Pod{}, Runners: maintenance.Runners{DaemonSets: true},
			Budgets: map[string][]*policyv1.PodDisruptionBudget{s.namespace: seen.budgets},
		},
		Maintenance: m,
		Owners:      preflight.Owners{Deployments: seen.deployments, ReplicaSets: seen.replicaSets, StatefulSets: seen.statefulSets, Jobs: seen.jobs},
		Place: func() preflight.Placer {
			return placement.New(placement.World{Nodes: seen.nodes, Pods: seen.pods})
		},
	}
	for _, node := range seen.nodes {
		snapshot.World.Pods[node.Name] = []maintenance.Pod{}
	}
	for _, pod := range seen.pods {
		if pod.Spec.NodeName == "" {
			snapshot.Unscheduled = append(snapshot.Unscheduled, pod)
			continue
		}
		snapshot.World.Pods[pod.Spec.NodeName] = append(snapshot.World.Pods[pod.Spec.NodeName], maintenance.Pod{Object: pod})
	}
	return preflight.Of(snapshot)
}

// changes remembers when something last changed.
type changes struct{ last atomic.Int64 }

func (c *changes) see(watch.EventType, client.Object) { c.last.Store(time.Now().UnixNano()) }

// follow watches all that a drain changes in the namespace.
func (s *stage) follow() *changes {
	s.t.Helper()
	c := &changes{}
	c.see("", nil)
	for _, list := range []client.ObjectList{&corev1.PodList{}, &policyv1.PodDisruptionBudgetList{}, &v1alpha1.EvacuationList{}, &appsv1.ReplicaSetList{}, &batchv1.JobList{}} {
		if err := s.client.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			s.t.Fatalf("list: %v", err)
		}
		s.cluster.Follow(s.t, list, c.see, client.InNamespace(s.namespace))
	}
	return c
}

// rest waits until nothing moves any more, and returns what is there then.
func (s *stage) rest(c *changes, drained map[string]bool) *still {
	s.t.Helper()
	var seen *still
	patience.Eventually(s.t, "everything at rest", func(ctx context.Context) (string, bool) {
		since := time.Since(time.Unix(0, c.last.Load()))
		if since < quiet {
			return fmt.Sprintf("the last change is %s ago", since), false
		}
		var err error
		if seen, err = s.look(ctx); err != nil {
			return err.Error(), false
		}
		moving := seen.moving(drained)
		return moving, moving == ""
	})
	return seen
}

// moving is what has not come to rest; empty if all has.
func (s *still) moving(drained map[string]bool) string {
	var words []string
	say := func(moves bool, format string, args ...any) {
		if moves {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	for _, pod := range s.pods {
		why := s.podMoves(pod, drained)
		say(why != "", "pod %s %s", pod.Name, why)
	}
	for _, b := range s.budgets {
		// What cannot be counted is said in a condition.
		say(b.Status.ObservedGeneration < b.Generation && len(b.Status.Conditions) == 0, "budget %s is not counted", b.Name)
		healthy, countable := s.healthy(b)
		say(countable && int(b.Status.CurrentHealthy) != healthy, "budget %s counts %d pods and there are %d", b.Name, b.Status.CurrentHealthy, healthy)
		// A pod that comes back under its name counts as disrupted for up to two minutes.
		say(len(b.Status.DisruptedPods) > 0, "budget %s thinks that pods are being evicted", b.Name)
	}
	for _, set := range s.replicaSets {
		say(set.Status.Replicas != *set.Spec.Replicas, "ReplicaSet %s has %d of %d", set.Name, set.Status.Replicas, *set.Spec.Replicas)
	}
	for _, d := range s.deployments {
		say(d.Status.ObservedGeneration < d.Generation, "Deployment %s is not seen", d.Name)
	}
	for _, job := range s.jobs {
		// Its status still counts pods that have failed while it holds back from making others.
		active := s.active(job)
		say(active != *job.Spec.Parallelism, "Job %s has %d of %d", job.Name, active, *job.Spec.Parallelism)
	}
	return strings.Join(words, ", ")
}

// healthy is how many pods of a budget its controller will count when it gets to it. It
// is not countable if that says that it cannot, or if another budget has any of these pods:
// the controller looks after one budget of each pod.
func (s *still) healthy(b *policyv1.PodDisruptionBudget) (healthy int, countable bool) {
	countable = !slices.ContainsFunc(b.Status.Conditions, func(c metav1.Condition) bool { return c.Reason == policyv1.SyncFailedReason })
	budgets := budget.Compile(s.budgets)
	for _, pod := range s.pods {
		if of := budgets.Applying(pod); slices.Contains(of, b) {
			countable = countable && len(of) == 1
			healthy += one(pod.DeletionTimestamp == nil && podclass.Ready(pod))
		}
	}
	return healthy, countable
}

// active is how many pods of a Job have not ended.
func (s *still) active(job *batchv1.Job) (pods int32) {
	for _, pod := range s.pods {
		if metav1.IsControlledBy(pod, job) && !podclass.Terminal(pod) {
			pods++
		}
	}
	return pods
}

// waitsToSurge is true of a pod whose replacement fits nowhere, or that waits for one that is
// detached, which its budgets hold or whose replacement fits nowhere.
func waitsToSurge(e *v1alpha1.Evacuation) bool {
	surged := apimeta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionSurged)
	return blocker.Unplaced(e) != nil || surged != nil && surged.Reason == v1alpha1.ReasonWaitingForMaxSurge
}

// podMoves is what becomes of a pod yet; empty if nothing does.
func (s *still) podMoves(pod *corev1.Pod, drained map[string]bool) string {
	scheduled := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	switch {
	case pod.DeletionTimestamp != nil:
		return "terminates"
	case podclass.Terminal(pod):
		return ""
	case pod.Spec.NodeName == "" && !scheduled:
		return "is not looked at"
	case pod.Spec.NodeName == "":
		return ""
	case pod.Status.Phase == corev1.PodPending:
		return "begins"
	case !drained[pod.Spec.NodeName]:
		return ""
	}
	e := s.evacuations[pod.UID]
	if e == nil || waitsToSurge(e) {
		return ""
	}
	if !apimeta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionEvictionRefused) {
		return "is being evacuated"
	}
	for _, b := range s.budgets {
		if b.Name != e.Status.RefusingBudgetName {
			continue
		}
		// The API server says the same of a budget that it has not counted and of a pod that
		// changes at this moment, which is asked for again within a minute.
		uncounted := strings.Contains(e.Status.Message, "still being processed") && b.Status.ObservedGeneration >= b.Generation
		if uncounted || b.Status.DisruptionsAllowed > 0 && podclass.Ready(pod) {
			return "is about to be evicted"
		}
	}
	return ""
}
