package maintenance_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// dawn is when the first maintenance of every story is created.
var dawn = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

// world is the API as a pass sees it.
type world struct {
	t            *testing.T
	now          time.Time
	maintenances []*v1alpha1.NodeMaintenance
	nodes        []*corev1.Node
	pods         map[string][]*corev1.Pod
	evacuations  map[types.UID]*v1alpha1.Evacuation
	runners      maintenance.Runners
	// requests and evictions are by pod, requester is what is known of asking by them.
	requests    map[types.UID]*lifecyclev1alpha1.EvictionRequest
	evictions   map[types.UID]*lifecyclev1alpha1.Eviction
	requester   evictionrequest.Availability
	rules       []*v1alpha1.MachineDrainRule
	namespaces  map[string]map[string]string
	records     map[string]*v1alpha1.DrainRecord
	clockSkewed bool
	budgets     []*policyv1.PodDisruptionBudget
	nodeBudgets []*v1alpha1.NodeBudget
	unread      bool // nodeBudgets are
	born        int
	// protect are the annotations of autoscalers that are bridged.
	protect []string
	// refused is what the API server has refused.
	refused map[maintenance.Write]maintenance.Refusal
}

func newWorld(t *testing.T, nodes ...string) *world {
	w := &world{
		t: t, now: dawn.Add(time.Hour),
		pods:        map[string][]*corev1.Pod{},
		evacuations: map[types.UID]*v1alpha1.Evacuation{},
		requests:    map[types.UID]*lifecyclev1alpha1.EvictionRequest{},
		evictions:   map[types.UID]*lifecyclev1alpha1.Eviction{},
		records:     map[string]*v1alpha1.DrainRecord{},
		namespaces:  map[string]map[string]string{"default": {"team": "web"}},
	}
	for _, name := range nodes {
		w.node(name)
	}
	return w
}

func (w *world) node(name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"name": name}}}
	w.nodes = append(w.nodes, node)
	w.pods[name] = nil
	return node
}

func (w *world) find(name string) *corev1.Node {
	at := slices.IndexFunc(w.nodes, func(n *corev1.Node) bool { return n.Name == name })
	if at < 0 {
		w.t.Fatalf("there is no node %s", name)
	}
	return w.nodes[at]
}

// maintenance adds one that is a minute younger than the one before.
func (w *world) maintenance(name string, stage v1alpha1.NodeMaintenanceStage, plan []v1alpha1.DrainPlanEntry, nodes ...string) *v1alpha1.NodeMaintenance {
	m := &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Generation: 1,
			CreationTimestamp: metav1.NewTime(dawn.Add(time.Duration(len(w.maintenances)) * time.Minute)),
		},
		Spec: v1alpha1.NodeMaintenanceSpec{Stage: stage, DrainPlan: plan, NodeSelector: named(nodes...)},
	}
	w.maintenances = append(w.maintenances, m)
	return m
}

// named selects nodes by name.
func named(nodes ...string) *corev1.NodeSelector {
	selector := &corev1.NodeSelector{}
	for _, name := range nodes {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
		})
	}
	return selector
}

// run starts pods of one priority on a node.
func (w *world) run(node string, count int, priority int32, with ...func(*corev1.Pod)) []*corev1.Pod {
	var started []*corev1.Pod
	for range count {
		w.born++
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%04d", w.born), UID: types.UID(fmt.Sprintf("uid-%04d", w.born))},
			Spec:       corev1.PodSpec{NodeName: node, Priority: &priority},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		}
		for _, change := range with {
			change(pod)
		}
		w.pods[node] = append(w.pods[node], pod)
		started = append(started, pod)
	}
	return started
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Labels = map[string]string{key: value}
	}
}

func ofDaemonSet(pod *corev1.Pod) {
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: &controller}}
}

func ofJob(pod *corev1.Pod) {
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "report", Controller: &controller}}
}

func static(pod *corev1.Pod) {
	podclass.MakeMirror(pod, "node")
}

// evacuate gives a pod its Evacuation.
func (w *world) evacuate(pod *corev1.Pod) *v1alpha1.Evacuation {
	evacuation := &v1alpha1.Evacuation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: string(pod.UID) + "-" + pod.Name, Finalizers: []string{v1alpha1.NodeMaintenanceInstigator},
		},
		Spec: v1alpha1.EvacuationSpec{PodRef: v1alpha1.LocalPodReference{Name: pod.Name, UID: pod.UID}},
	}
	w.evacuations[pod.UID] = evacuation
	return evacuation
}

// leave removes the pods of a node up to a priority, with their Evacuations.
func (w *world) leave(node string, priority int32) {
	w.pods[node] = slices.DeleteFunc(w.pods[node], func(pod *corev1.Pod) bool {
		gone := *pod.Spec.Priority <= priority
		if gone {
			delete(w.evacuations, pod.UID)
		}
		return gone
	})
}

// selected are the nodes that some maintenance selects, and those that are marked.
func (w *world) selected() []*corev1.Node {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(node *corev1.Node) bool {
		return !maintenance.Marked(node) && !slices.ContainsFunc(w.maintenances, func(m *v1alpha1.NodeMaintenance) bool {
			selector := maintenance.Selector(m)
			return selector != nil && selector.Match(node)
		})
	})
}

func (w *world) snapshot() maintenance.Snapshot {
	selected := w.selected()
	pods := map[string][]maintenance.Pod{}
	for name := range w.records {
		pods[name] = w.evacuated(name)
		if at := slices.IndexFunc(w.nodes, func(n *corev1.Node) bool { return n.Name == name }); at >= 0 && !slices.Contains(selected, w.nodes[at]) {
			selected = append(selected, w.nodes[at])
		}
	}
	for _, node := range selected {
		if _, known := w.pods[node.Name]; known {
			pods[node.Name] = w.evacuated(node.Name)
		}
	}
	return maintenance.Snapshot{
		Now: w.now, ClockSkewed: w.clockSkewed, Refused: w.refused, Maintenances: w.maintenances, Nodes: selected, Pods: pods,
		Runners: w.runners, Protect: w.protect, Requester: w.requester, NodeBudgets: w.limits(),
		DrainRecords: maps.Clone(w.records), Budgets: map[string][]*policyv1.PodDisruptionBudget{"default": slices.Clone(w.budgets)},
		Rules: drainrule.Compile(w.rules), Facts: drainrule.Facts{Namespaces: w.namespaces},
	}
}

// evacuated are the pods of a node with their Evacuations.
func (w *world) evacuated(node string) []maintenance.Pod {
	pods := make([]maintenance.Pod, 0, len(w.pods[node]))
	for _, pod := range w.pods[node] {
		pods = append(pods, maintenance.Pod{
			Object: pod, Evacuation: w.evacuations[pod.UID], Request: w.requests[pod.UID], Eviction: w.evictions[pod.UID],
		})
	}
	return pods
}

// pass decides and carries everything out, as the shell does.
func (w *world) pass() maintenance.Decision {
	decision := w.decide(w.snapshot())
	for i := range decision.Maintenances {
		w.record(&decision.Maintenances[i])
	}
	for i := range decision.Nodes {
		if d := &decision.Nodes[i]; !slices.ContainsFunc(d.Maintenances, func(name string) bool { return ended(decision, name) }) {
			w.act(d)
		}
	}
	return decision
}

// ended returns true if the decision completes a maintenance because its node is back, or gives
// nodes back.
func ended(decision maintenance.Decision, name string) bool {
	return slices.ContainsFunc(decision.Maintenances, func(d maintenance.MaintenanceDecision) bool {
		return (d.Returned || d.GiveBack != nil) && d.Maintenance.Name == name
	})
}

func (w *world) record(d *maintenance.MaintenanceDecision) {
	m := d.Maintenance
	if d.AddFinalizer {
		m.Finalizers = append(m.Finalizers, v1alpha1.MaintenanceCompletionFinalizer)
	}
	if d.HandOver != nil {
		w.handOver(m, *d.HandOver)
	}
	if d.GiveBack != nil {
		w.giveBack(m, d.GiveBack)
		return
	}
	d.Status.DeepCopyInto(&m.Status)
	if d.Complete {
		m.Spec.Stage = v1alpha1.StageComplete
	}
	if d.DropFinalizer {
		m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == v1alpha1.MaintenanceCompletionFinalizer })
	}
}

func (w *world) giveBack(m *v1alpha1.NodeMaintenance, late *maintenance.GiveBack) {
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.GivenBackAnnotation, late.Record)
	m.Generation++
	if m.Spec.CompletedNodes = append(m.Spec.CompletedNodes, late.Nodes...); len(late.Nodes) == 0 {
		m.Spec.Stage = v1alpha1.StageComplete
	}
}

func (w *world) act(d *maintenance.NodeDecision) {
	w.writeDrainRecord(d)
	if d.Node.UID == "" {
		return
	}
	node := w.find(d.Node.Name)
	if d.Cordon != nil {
		hold(node, d.Cordon)
	}
	for _, deletion := range d.Delete {
		w.end(deletion.Pod, deletion.GracePeriodSeconds)
	}
	for _, asked := range d.Evacuate {
		if asked.EvictionRequest == nil {
			w.evacuate(asked.Pod)
		}
	}
	for _, evacuation := range d.Withdraw {
		delete(w.evacuations, evacuation.Spec.PodRef.UID)
	}
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return slices.Contains(d.Retract, c.Type)
	})
	for _, condition := range d.Conditions {
		node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == condition.Type })
		node.Status.Conditions = append(node.Status.Conditions, condition)
	}
}

// end has a pod terminate, as the API server does it: a shorter grace period counts from
// the first request.
func (w *world) end(pod *corev1.Pod, seconds int64) {
	since := w.now
	if pod.DeletionTimestamp != nil {
		since = pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	}
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = metaTime(since.Add(time.Duration(seconds)*time.Second)), &seconds
}

// told are the events of a node and of the pods that are asked to leave it.
func told(d maintenance.NodeDecision) []event.Event {
	events := d.Events
	for _, request := range d.Evacuate {
		events = append(events, request.Events...)
	}
	return events
}

// requested are the pods that requests are about.
func requested(requests []maintenance.Request) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(requests))
	for _, request := range requests {
		pods = append(pods, request.Pod)
	}
	return pods
}

// hold makes a node show what a change asks for.
func hold(node *corev1.Node, change *cordon.Change) {
	node.Spec.Unschedulable = change.Unschedulable
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == v1alpha1.DaemonSetTaint })
	for key, value := range map[string]string{v1alpha1.HandedOverLabel: change.HandedOverBy, v1alpha1.DaemonSetDrainLabel: change.DrainTargets} {
		delete(node.Labels, key)
		if value != "" {
			metav1.SetMetaDataLabel(&node.ObjectMeta, key, "true")
		}
	}
	for key, value := range map[string]string{
		v1alpha1.CordonAnnotation: change.Ledger, v1alpha1.DrainTargetsAnnotation: change.DrainTargets,
		v1alpha1.HandedOverByAnnotation: change.HandedOverBy,
	} {
		delete(node.Annotations, key)
		if value != "" {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, key, value)
		}
	}
	for key, value := range change.Protection {
		delete(node.Annotations, key)
		if value != nil {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, key, *value)
		}
	}
	if change.Suppress {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: v1alpha1.DaemonSetTaint, Effect: corev1.TaintEffectNoSchedule})
	}
}

// lines writes the node statuses of a maintenance as
// "<node> <pending>+<evacuating> <message> [<targets>]".
func lines(m *v1alpha1.NodeMaintenance) []string {
	var all []string
	for _, s := range m.Status.NodeStatuses {
		all = append(all, fmt.Sprintf("%s %d+%d %s [%s]", s.NodeRef.Name, s.PodsPendingEvacuation, s.PodsEvacuating, s.DrainMessage, targets(s.DrainTargets)))
	}
	return all
}

func targets(entries []v1alpha1.DrainPlanEntry) string {
	var words []string
	for _, entry := range entries {
		word := fmt.Sprintf("%s %d", entry.PodType, entry.PodPriority)
		if entry.PodSelector != nil {
			word += " " + metav1.FormatLabelSelector(entry.PodSelector)
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func reasons(events []event.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.Regarding.Kind+"/"+e.Regarding.Name+" "+e.Reason)
	}
	return all
}

func linesOf(status v1alpha1.NodeMaintenanceStatus) []string {
	return lines(&v1alpha1.NodeMaintenance{Status: status})
}

func metaTime(at time.Time) *metav1.Time { return &metav1.Time{Time: at} }

// remove ends a pod and its Evacuation.
func (w *world) remove(gone types.UID) {
	delete(w.evacuations, gone)
	for node := range w.pods {
		w.pods[node] = slices.DeleteFunc(w.pods[node], func(pod *corev1.Pod) bool { return pod.UID == gone })
	}
}
