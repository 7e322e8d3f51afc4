package preflight_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/placement"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

// ofCores returns a node with as many cores.
func ofCores(name, cores string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// takes returns a pod of a ReplicaSet that takes as many cores of a node.
func takes(node, name, cores string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores)}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID("of-" + name), Controller: new(true)}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func TestPodsOfANodeFitElsewhereOrNot(t *testing.T) {
	t.Parallel()
	owned := func(kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.OwnerReferences[0].Kind = kind }
	}
	bare := func(p *corev1.Pod) { p.OwnerReferences = nil }
	claims := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	}
	cordoned := func(n *corev1.Node) *corev1.Node {
		n.Spec.Unschedulable = true
		return n
	}
	for name, test := range map[string]struct {
		nodes       []*corev1.Node
		pods        []*corev1.Pod
		unscheduled []*corev1.Pod
		leaving     []string
		unread      placement.Unread
		fits        bool
		unknown     bool
	}{
		"there is room":      {pods: []*corev1.Pod{takes("a", "web", "3"), takes("b", "api", "1")}, fits: true},
		"it is taken":        {pods: []*corev1.Pod{takes("a", "web", "3"), takes("b", "api", "2")}},
		"two fit one by one": {pods: []*corev1.Pod{takes("a", "web", "2"), takes("a", "api", "2")}, fits: true},
		"one of two":         {pods: []*corev1.Pod{takes("a", "web", "3"), takes("a", "api", "2")}},
		"only when the big one is first": {
			nodes: []*corev1.Node{ofCores("a", "8"), ofCores("b", "4"), ofCores("c", "1")},
			pods:  []*corev1.Pod{takes("a", "big", "4"), takes("a", "small", "1")}, fits: true,
		},
		"the other is cordoned":  {nodes: []*corev1.Node{ofCores("a", "4"), cordoned(ofCores("b", "4"))}, pods: []*corev1.Pod{takes("a", "web", "1")}},
		"the other leaves":       {pods: []*corev1.Pod{takes("a", "web", "1")}, leaving: []string{"b"}},
		"another one leaves":     {nodes: []*corev1.Node{ofCores("a", "4"), ofCores("b", "4"), ofCores("c", "4")}, pods: []*corev1.Pod{takes("a", "web", "3"), takes("b", "api", "2")}, leaving: []string{"b"}},
		"a drained one":          {nodes: []*corev1.Node{ofCores("a", "4"), ofCores("b", "4"), ofCores("c", "4")}, pods: []*corev1.Pod{takes("a", "web", "3")}, leaving: []string{"b", "", "gone"}, fits: true},
		"one waits for the room": {pods: []*corev1.Pod{takes("a", "web", "3")}, unscheduled: []*corev1.Pod{takes("", "api", "2")}},
		"one waits for more":     {pods: []*corev1.Pod{takes("a", "web", "3")}, unscheduled: []*corev1.Pod{takes("", "api", "5")}, fits: true},
		"a DaemonSet":            {pods: []*corev1.Pod{takes("a", "logs", "9", owned("DaemonSet"))}, fits: true},
		"a static pod":           {pods: []*corev1.Pod{takes("a", "etcd", "9", bare, func(p *corev1.Pod) { podclass.MakeMirror(p, "a") })}, fits: true},
		"a bare pod":             {pods: []*corev1.Pod{takes("a", "debug", "9", bare)}, fits: true},
		"a done pod":             {pods: []*corev1.Pod{takes("a", "import", "9", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, fits: true},
		"a leaving pod":          {pods: []*corev1.Pod{takes("a", "web", "9", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })}, fits: true},
		"a pod that stays":       {pods: []*corev1.Pod{takes("a", "web", "9", func(p *corev1.Pod) { p.Labels[v1alpha1.DrainLabel] = "Skip" })}, fits: true},
		"unread claims":          {pods: []*corev1.Pod{takes("a", "db", "1", claims)}, unread: placement.Unread{Claims: "Forbidden"}, unknown: true},
		"unread claims, no room": {pods: []*corev1.Pod{takes("a", "db", "1", claims), takes("a", "web", "5")}, unread: placement.Unread{Claims: "Forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.nodes == nil {
				test.nodes = []*corev1.Node{ofCores("a", "4"), ofCores("b", "4")}
			}
			room := preflight.Room{World: placement.World{Nodes: test.nodes, Pods: test.pods, Unread: test.unread}, Unscheduled: test.unscheduled}
			fits, unknown := room.Fits("a", test.leaving)
			if fits != test.fits || (unknown != "") != test.unknown {
				t.Errorf("fits: %t, unknown: %q", fits, unknown)
			}
		})
	}
}
