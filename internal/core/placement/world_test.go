package placement_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/internal/core/placement"
	"ebbtide.dev/ebbtide/test/golden"
)

// read is an object of its YAML.
func read[T any](text string) *T {
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		panic(err)
	}
	return object
}

// newNode has 4 cores, 8 GiB and room for 10 pods, and labels as in "zone=a,disk=ssd".
func newNode(name, labels string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pairs(labels)}}
	n.Labels[corev1.LabelHostname] = name
	n.Status.Allocatable = corev1.ResourceList{
		"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("10"),
	}
	for _, change := range changes {
		change(n)
	}
	return n
}

func pairs(text string) map[string]string {
	all := map[string]string{}
	for _, pair := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		key, value, _ := strings.Cut(pair, "=")
		all[key] = value
	}
	return all
}

func isCordoned(n *corev1.Node) {
	n.Spec.Unschedulable = true
	taint("node.kubernetes.io/unschedulable", "", "NoSchedule")(n)
}

func taint(key, value, effect string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
}

func offers(name, amount string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse(amount) }
}

// newPod is in namespace shop on this node, with labels as those of newNode, and with a spec
// of which the text tells what matters.
func newPod(name, node, labels, spec string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: pairs(labels)}}
	pod.Spec = *read[corev1.PodSpec](spec)
	pod.Spec.NodeName = node
	return pod
}

// asking is a spec with these requests.
func asking(requests string) string {
	return "containers: [{name: app, resources: {requests: {" + requests + "}}}]"
}

// filter is a story: where a pod goes, nowhere if that is empty; testdata/messages.txt says why.
type filter struct {
	world      placement.World
	pod        *corev1.Pod
	node       string
	thenCordon string // and asked again
	thenNode   string
}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// check returns why the pod goes nowhere at first.
func (f filter) check(t *testing.T) (why string) {
	t.Helper()
	e := placement.New(f.world)
	pod := f.pod
	if pod == nil {
		pod = newPod("new", "", "", "{}")
	}
	why = wantPlace(t, e, pod, f.node)
	if f.thenCordon != "" {
		e.Cordon(f.thenCordon)
		wantPlace(t, e, pod, f.thenNode)
	}
	return why
}

func wantPlace(t *testing.T, e *placement.Estimate, pod *corev1.Pod, node string) (why string) {
	t.Helper()
	got, why := e.Place(pod)
	if got != node || (why == "") != (node != "") {
		t.Errorf("%s: placed on %q, because %q, want %q", pod.Name, got, why, node)
	}
	if why != "" {
		golden.Message(t, why)
	}
	return why
}

func nodes(all ...*corev1.Node) []*corev1.Node { return all }

func pods(all ...*corev1.Pod) []*corev1.Pod { return all }

func claims(all ...string) (list []*corev1.PersistentVolumeClaim) {
	for _, text := range all {
		claim := read[corev1.PersistentVolumeClaim](text)
		claim.Namespace = "shop"
		list = append(list, claim)
	}
	return list
}

func volumes(all ...string) (list []*corev1.PersistentVolume) {
	for _, text := range all {
		list = append(list, read[corev1.PersistentVolume](text))
	}
	return list
}

func classes(all ...string) (list []*storagev1.StorageClass) {
	for _, text := range all {
		list = append(list, read[storagev1.StorageClass](text))
	}
	return list
}
