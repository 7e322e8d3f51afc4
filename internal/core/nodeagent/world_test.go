package nodeagent_test

import (
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/test/golden"
)

var now = time.Date(2026, time.March, 1, 14, 2, 0, 0, time.UTC)

const (
	proxyText = "apiVersion: v1\nkind: Pod\nmetadata: {name: proxy, namespace: edge, labels: {app: proxy}}\nspec: {terminationGracePeriodSeconds: 30, containers: [{name: proxy, image: x}]}\n"
	upTo7000  = `[{"podPriority":2147483647,"podType":"DaemonSet"},{"podPriority":7000,"podType":"Static"}]`
	upTo6999  = `[{"podPriority":6999,"podType":"Static"}]`
	heldProxy = ".proxy.yaml.ebbtide-held"
)

func file(t *testing.T, name, text, sum string) nodeagent.File {
	t.Helper()
	f := nodeagent.File{Name: name, Sum: sum, Changed: now.Add(-time.Hour)}
	m, err := nodeagent.ReadManifest([]byte(text))
	if err != nil {
		f.Fault = err.Error()
	}
	f.Manifest = m
	return f
}

func aMirror(uid string, priority int32) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "proxy-node-7", UID: types.UID(uid), Labels: map[string]string{"app": "proxy"}},
		Spec:       corev1.PodSpec{NodeName: "node-7", Priority: &priority},
	}
	podclass.MakeMirror(pod, "node")
	return pod
}

func anEvacuation(pod *corev1.Pod) *v1alpha1.Evacuation {
	e := evacuation.New(pod, v1alpha1.NodeMaintenanceInstigator, nil)
	e.UID = "evacuation"
	e.Status = v1alpha1.EvacuationStatus{
		ActiveEvacuatorClass: v1alpha1.KubeletEvacuatorClass, Message: "Evacuator is to move the pod.",
		EvacuationProgressTimestamp: &metav1.Time{Time: now.Add(-time.Second)},
	}
	return e
}

func aNode(targets string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-7", UID: "node", Annotations: map[string]string{
		v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":["kernel-update"]}`,
	}}}
	if targets != "" {
		node.Annotations[v1alpha1.DrainTargetsAnnotation] = targets
	}
	return node
}

func story(t *testing.T) *nodeagent.Snapshot {
	t.Helper()
	mirror := aMirror("mirror", 7000)
	return &nodeagent.Snapshot{
		Now: now, Live: true, KubeletSeen: now.Add(-5 * time.Second), Node: aNode(upTo7000), Pods: []*corev1.Pod{mirror},
		Self:        nodeagent.Self{Node: "node-7", PodName: "agent-x", Version: "1", BootID: "boot-1", Dir: "/manifests"},
		Evacuations: []*v1alpha1.Evacuation{anEvacuation(mirror)},
		Maintenances: []*v1alpha1.NodeMaintenance{{
			ObjectMeta: metav1.ObjectMeta{Name: "kernel-update"}, Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain, Reason: "OS upgrade"},
		}},
		Folder: nodeagent.Folder{Known: true, Files: []nodeagent.File{file(t, "proxy.yaml", proxyText, "aaaa")}},
	}
}

func entry(state v1alpha1.StaticPodState, ago time.Duration) nodeagent.Entry {
	priority := int32(7000)
	return nodeagent.Entry{
		File: "proxy.yaml", Held: heldProxy, SHA256: "aaaa", Pod: "edge/proxy-node-7", Priority: &priority, GraceSeconds: 30,
		Maintenance: "kernel-update", Reason: "OS upgrade", Evacuation: "evacuation", BootID: "boot-1", State: state, At: now.Add(-ago),
	}
}

func held(t *testing.T, state v1alpha1.StaticPodState, ago time.Duration) *nodeagent.Snapshot {
	t.Helper()
	s := story(t)
	s.Folder.Files = []nodeagent.File{file(t, heldProxy, proxyText, "aaaa")}
	s.Journal = nodeagent.Journal{Version: 1, BootID: "boot-1", Manifests: []nodeagent.Entry{entry(state, ago)}}
	if state == v1alpha1.StaticPodHeld {
		s.Pods, s.Evacuations = nil, nil
	}
	return s
}

func told(d nodeagent.Decision, namespace, name string) v1alpha1.StaticPod {
	i := slices.IndexFunc(d.Status.StaticPods, func(p v1alpha1.StaticPod) bool { return p.Namespace == namespace && p.Name == name })
	if i < 0 {
		return v1alpha1.StaticPod{}
	}
	return d.Status.StaticPods[i]
}

func moves(d nodeagent.Decision) (words []string) {
	for _, m := range d.Moves {
		over := ""
		if m.Over {
			over = " over"
		}
		words = append(words, m.From+over+" → "+m.To)
	}
	return words
}

func states(s *nodeagent.Snapshot, d nodeagent.Decision) (words []string) {
	j := &s.Journal
	if d.Journal != nil {
		j = d.Journal
	}
	for _, e := range j.Manifests {
		words = append(words, e.File+" "+string(e.State))
	}
	return words
}

func reasons(t *testing.T, d nodeagent.Decision) (all []string) {
	t.Helper()
	var words []string
	for _, e := range append(slices.Clone(d.Events), eventsOf(d.Moves)...) {
		if !slices.Contains(words, e.Message) {
			words = append(words, e.Message)
			golden.Message(t, e.Reason, e.Message)
			all = append(all, e.Reason)
		}
	}
	return all
}

func eventsOf(moves []nodeagent.Move) (all []event.Event) {
	for _, m := range moves {
		all = append(all, m.Events...)
	}
	return all
}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }
