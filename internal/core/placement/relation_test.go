package placement_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/core/placement"
)

// affine is a spec with an affinity of this kind to pods with a label, by a topology.
func affine(kind, label, topology string, more ...string) string {
	key, value, _ := strings.Cut(label, "=")
	return fmt.Sprintf("affinity: {%s: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: %s, labelSelector: {matchLabels: {%s: %s}}, %s}]}}",
		kind, topology, key, value, strings.Join(more, ", "))
}

// spread is a spec with a constraint on pods with label app=web.
func spread(skew int, topology string, more ...string) string {
	return fmt.Sprintf("topologySpreadConstraints: [{maxSkew: %d, topologyKey: %s, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}, %s}]",
		skew, topology, strings.Join(more, ", "))
}

func elsewhere(pod *corev1.Pod) *corev1.Pod {
	pod.Namespace = "other"
	return pod
}

func terminating(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = &metav1.Time{}
	return pod
}

var zones = nodes(newNode("a1", "zone=a"), newNode("a2", "zone=a"), newNode("b1", "zone=b"), newNode("x", ""))

func TestPodsAskForOthers(t *testing.T) {
	t.Parallel()
	db := newPod("db", "b1", "app=db", asking("cpu: 3"))
	toDB := newPod("new", "", "app=web", affine("podAffinity", "app=db", "zone"))
	run(t, map[string]filter{
		"near a pod": {world: placement.World{Nodes: zones, Pods: pods(db)}, pod: toDB, node: "b1"},
		"in a namespace that is named": {
			world: placement.World{Nodes: zones, Pods: pods(elsewhere(db.DeepCopy()))},
			pod:   newPod("new", "", "", affine("podAffinity", "app=db", "zone", "namespaces: [other]")), node: "b1",
		},
		"in a namespace that is selected": {
			world: placement.World{
				Nodes: zones, Pods: pods(elsewhere(db.DeepCopy())),
				Namespaces: []*corev1.Namespace{read[corev1.Namespace]("metadata: {name: other, labels: {team: a}}")},
			},
			pod: newPod("new", "", "", affine("podAffinity", "app=db", "zone", "namespaceSelector: {matchLabels: {team: a}}")), node: "b1",
		},
		"in no namespace that is selected": {
			world: placement.World{
				Nodes: zones, Pods: pods(elsewhere(db.DeepCopy())),
				Namespaces: []*corev1.Namespace{read[corev1.Namespace]("metadata: {name: other, labels: {team: b}}")},
			},
			pod: newPod("new", "", "", affine("podAffinity", "app=db", "zone", "namespaceSelector: {matchLabels: {team: a}}")),
		},
		"in any namespace": {
			world: placement.World{Nodes: zones, Pods: pods(elsewhere(db.DeepCopy()))},
			pod:   newPod("new", "", "", affine("podAffinity", "app=db", "zone", "namespaceSelector: {}")), node: "b1",
		},
		"the first of a series goes anywhere with a zone": {
			world: placement.World{Nodes: nodes(newNode("x", ""), newNode("y", "zone=b"))},
			pod:   newPod("new", "", "app=web", affine("podAffinity", "app=web", "zone")), node: "y",
		},
		"the second of a series goes to the first": {
			world: placement.World{Nodes: zones, Pods: pods(newPod("web", "b1", "app=web", asking("cpu: 3")))},
			pod:   newPod("new", "", "app=web", affine("podAffinity", "app=web", "zone")), node: "b1",
		},
		"one that terminates is still there": {
			world: placement.World{Nodes: zones, Pods: pods(terminating(db.DeepCopy()))}, pod: toDB, node: "b1",
		},
	})
}

func TestPodsKeepAwayFromOthers(t *testing.T) {
	t.Parallel()
	host := corev1.LabelHostname
	two := nodes(newNode("a", "zone=a"), newNode("b", "zone=a"))
	apart := newPod("new", "", "app=web", affine("podAntiAffinity", "app=web", host))
	run(t, map[string]filter{
		"a node each": {
			world: placement.World{Nodes: two, Pods: pods(newPod("web", "a", "app=web", "{}"))}, pod: apart,
			node: "b", thenCordon: "a",
		},
		"all nodes have one": {
			world: placement.World{Nodes: two, Pods: pods(newPod("w1", "a", "app=web", "{}"), newPod("w2", "b", "app=web", "{}"))}, pod: apart,
		},
		"those of another namespace mean their own": {
			world: placement.World{Nodes: two, Pods: pods(elsewhere(newPod("db", "a", "app=db", affine("podAntiAffinity", "app=web", "zone"))))},
			pod:   newPod("new", "", "app=web", "{}"), node: "b",
		},
		"whom they mean could not be read": {
			world: placement.World{
				Nodes: two, Unread: placement.Unread{Namespaces: "forbidden"},
				Pods: pods(elsewhere(newPod("db", "a", "app=db", affine("podAntiAffinity", "app=web", "zone", "namespaceSelector: {matchLabels: {team: a}}")))),
			},
			pod: newPod("new", "", "app=web", "{}"),
		},
	})
}

func web(name, node string) *corev1.Pod { return newPod(name, node, "app=web", "{}") }

// small has no room, and both has one zone each.
var (
	small = newNode("b1", "zone=b", offers("pods", "0"))
	both  = nodes(newNode("a1", "zone=a"), newNode("b1", "zone=b"))
)

func TestPodsAreSpread(t *testing.T) {
	t.Parallel()
	run(t, map[string]filter{
		"a pod that does not count itself": {
			world: placement.World{Nodes: nodes(newNode("a1", "zone=a"), small), Pods: pods(web("1", "a1"))},
			pod:   newPod("new", "", "app=other", spread(1, "zone")), node: "a1",
		},
		"one that terminates does not count": {
			world: placement.World{Nodes: nodes(newNode("a1", "zone=a"), small), Pods: pods(terminating(web("1", "a1")))},
			pod:   newPod("new", "", "app=web", spread(1, "zone")), node: "a1",
		},
		"a node without the label": {
			world: placement.World{Nodes: nodes(newNode("x", ""))},
			pod:   newPod("new", "", "app=web", spread(1, "zone")),
		},
	})
}

func TestWhichNodesASpreadCounts(t *testing.T) {
	t.Parallel()
	run(t, map[string]filter{
		"too few zones": {
			world: placement.World{Nodes: both, Pods: pods(web("1", "a1"), web("2", "b1"))},
			pod:   newPod("new", "", "app=web", spread(1, "zone", "minDomains: 3")),
		},
		"a zone that the pod may not use does not count": {
			world: placement.World{Nodes: nodes(newNode("a1", "zone=a,disk=ssd"), newNode("b1", "zone=b")), Pods: pods(web("1", "a1"))},
			pod:   newPod("new", "", "app=web", "nodeSelector: {disk: ssd}\n"+spread(1, "zone")), node: "a1",
		},
		"a zone that the pod may not use counts if it says so": {
			world: placement.World{Nodes: nodes(newNode("a1", "zone=a,disk=ssd"), newNode("b1", "zone=b")), Pods: pods(web("1", "a1"))},
			pod:   newPod("new", "", "app=web", "nodeSelector: {disk: ssd}\n"+spread(1, "zone", "nodeAffinityPolicy: Ignore")),
		},
		"a cordoned zone keeps pods out of the others": {
			world: placement.World{Nodes: nodes(newNode("a1", "zone=a"), newNode("b1", "zone=b", isCordoned)), Pods: pods(web("1", "a1"))},
			pod:   newPod("new", "", "app=web", spread(1, "zone")),
		},
		"a cordoned zone does not count for who honours taints": {
			world: placement.World{Nodes: both, Pods: pods(web("1", "a1"), web("2", "b1"))},
			pod:   newPod("new", "", "app=web", spread(1, "zone", "nodeTaintsPolicy: Honor")),
			node:  "a1", thenCordon: "b1", thenNode: "a1",
		},
		"only pods of the same revision count": {
			world: placement.World{Nodes: nodes(newNode("a1", "zone=a"), small), Pods: pods(newPod("1", "a1", "app=web,revision=1", "{}"))},
			pod:   newPod("new", "", "app=web,revision=2", spread(1, "zone", "matchLabelKeys: [revision]")), node: "a1",
		},
		"a wish keeps nobody away": {
			world: placement.World{Nodes: nodes(newNode("a1", "zone=a"), small), Pods: pods(web("1", "a1"))},
			pod: newPod("new", "", "app=web",
				strings.ReplaceAll(spread(1, "zone"), "DoNotSchedule", "ScheduleAnyway")), node: "a1",
		},
	})
}
