package preflight_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/test/golden"
)

var morning = time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)

// beside is the label of pods that fit nowhere before a pod of this app was placed.
const beside = "beside"

// rooms is a Placer that knows how many pods fit on each node, and who has to be beside whom.
type rooms struct {
	free   map[string]int
	names  []string
	closed map[string]bool
	on     map[types.UID]string
	placed map[string]bool
}

func (r *rooms) Place(pod *corev1.Pod) (node, why string) {
	if pod.Spec.SchedulerName != "" {
		return "", "unknown: its scheduler is another one"
	}
	if len(r.names) == 0 {
		r.names = slices.Sorted(maps.Keys(r.free))
	}
	if app := pod.Labels[beside]; app != "" && !r.placed[app] {
		return "", "0 nodes fit: " + app + " is on none."
	}
	for _, name := range r.names {
		if !r.closed[name] && r.free[name] > 0 && (node == "" || r.free[name] > r.free[node]) {
			node = name
		}
	}
	if node == "" {
		return "", "0 nodes fit: all are full."
	}
	r.free[node]--
	r.on[pod.UID] = node
	r.placed[pod.Labels["app"]] = true
	return node, ""
}

func (r *rooms) Remove(pod *corev1.Pod) {
	node := r.on[pod.UID]
	if node == "" {
		node = pod.Spec.NodeName
	}
	r.free[node]++
}

func (r *rooms) Cordon(node string) { r.closed[node] = true }

// world is a cluster of which a drain is asked.
type world struct {
	preflight.Snapshot
	// free is how many pods more fit on a node; nil is that nobody looks.
	free  map[string]int
	made  int
	drain *v1alpha1.NodeMaintenance
}

// newWorld is a cluster whose first node is to be drained.
func newWorld(nodes ...string) *world {
	w := &world{}
	w.World = maintenance.Snapshot{
		Now: morning, Pods: map[string][]maintenance.Pod{}, Budgets: map[string][]*policyv1.PodDisruptionBudget{},
		Runners: maintenance.Runners{DaemonSets: true},
	}
	for _, name := range nodes {
		w.World.Nodes = append(w.World.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{corev1.LabelHostname: name}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
		w.World.Pods[name] = []maintenance.Pod{}
	}
	w.drain = &v1alpha1.NodeMaintenance{Spec: v1alpha1.NodeMaintenanceSpec{NodeSelector: named(nodes[0])}}
	return w
}

func named(nodes ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes},
	}}}}
}

type change func(*corev1.Pod)

// pod runs a pod of this name and app, which is ready.
func (w *world) pod(node, name string, changes ...change) *corev1.Pod {
	w.made++
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(fmt.Sprintf("uid-%03d", w.made)), Labels: map[string]string{"app": strings.TrimRight(name, "-0123456789")},
			CreationTimestamp: metav1.NewTime(morning.Add(-time.Hour)),
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range changes {
		c(pod)
	}
	w.World.Pods[node] = append(w.World.Pods[node], maintenance.Pod{Object: pod})
	return pod
}

func of(kind, name string) change {
	return func(pod *corev1.Pod) {
		version := "apps/v1"
		if kind == "Job" {
			version = "batch/v1"
		}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID(kind + name), Controller: new(true)}}
	}
}

func labelled(key, value string) change {
	return func(pod *corev1.Pod) { pod.Labels[key] = value }
}

func unready(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

// replicas runs pods of a ReplicaSet on these nodes.
func (w *world) replicas(app string, nodes ...string) {
	for i, node := range nodes {
		w.pod(node, fmt.Sprintf("%s-%d", app, i), of("ReplicaSet", app))
	}
}

// budget protects the pods of an app, all of which are healthy.
func (w *world) budget(name, app string, spec policyv1.PodDisruptionBudgetSpec, expected, desired int32) *policyv1.PodDisruptionBudget {
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: 1},
		Spec:       spec,
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, ExpectedPods: expected, CurrentHealthy: expected, DesiredHealthy: desired, DisruptionsAllowed: max(0, expected-desired),
		},
	}
	w.World.Budgets["shop"] = append(w.World.Budgets["shop"], b)
	return b
}

func atLeast(n int32) policyv1.PodDisruptionBudgetSpec {
	return policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(n))}
}

func atMost(n int32) policyv1.PodDisruptionBudgetSpec {
	return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(n))}
}

// deployment owns the ReplicaSet of an app, and surges.
func (w *world) deployment(app string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: app, UID: types.UID("Deployment" + app),
		Annotations: map[string]string{v1alpha1.EvacuatorAnnotationPrefix + v1alpha1.DeploymentEvacuatorClass: "10000/controller"},
	}}
	w.Owners.Deployments = append(w.Owners.Deployments, d)
	w.Owners.ReplicaSets = append(w.Owners.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: app, UID: types.UID("ReplicaSet" + app),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: app, UID: d.UID, Controller: new(true)}},
	}})
	return d
}

func (w *world) forecast() preflight.Forecast {
	s := w.Snapshot
	s.Maintenance = w.drain
	if w.free != nil {
		s.Place = func() preflight.Placer {
			free := map[string]int{}
			for name, n := range w.free {
				free[name] = n
			}
			return &rooms{free: free, closed: map[string]bool{}, on: map[types.UID]string{}, placed: map[string]bool{}}
		}
	}
	return preflight.Of(s)
}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// told returns the outcome of a forecast and of each pod. "-" is a replacement without a node.
func told(f preflight.Forecast) string {
	lines := []string{string(f.Outcome)}
	for _, node := range f.Nodes {
		for _, p := range node.Pods {
			line := fmt.Sprintf("%d %s %s %s", p.Wave, p.Name, p.Action, p.Outcome)
			if p.Blocker != nil {
				line += " " + string(p.Blocker.Type)
			}
			if p.Replacement != nil {
				line += " -> " + cmp.Or(p.Replacement.Node, "-")
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// assertTold compares the outcomes of a forecast, and keeps its messages.
func assertTold(t *testing.T, f preflight.Forecast, want ...string) {
	t.Helper()
	if got := told(f); got != strings.Join(want, "\n") {
		t.Errorf("forecast is\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	golden.Message(t, f.Verdict)
	for _, node := range f.Nodes {
		for _, p := range node.Pods {
			if p.Why != "" {
				golden.Message(t, string(p.Action), p.Why)
			}
			if p.Replacement != nil && p.Replacement.Why != "" {
				golden.Message(t, "replacement", p.Replacement.Why)
			}
		}
	}
}
