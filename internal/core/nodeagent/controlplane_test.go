package nodeagent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/test/golden"
)

const allStatic = `[{"podPriority":2147483647,"podType":"Static"}]`

var programs = []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"}

func partText(component string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %[1]s, namespace: kube-system, labels: {component: %[1]s, tier: control-plane}}\n"+
		"spec: {priorityClassName: system-node-critical, containers: [{name: %[1]s, image: x}]}\n", component)
}

func partMirror(component, node string) *corev1.Pod {
	priority := int32(2_000_001_000)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: component + "-" + node, UID: types.UID(component + "-" + node), Labels: map[string]string{"component": component, "tier": "control-plane"},
		},
		Spec:   corev1.PodSpec{NodeName: node, Priority: &priority},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	podclass.MakeMirror(pod, "node")
	return pod
}

// controlStory is a node of the control plane, one of three, all of whose static pods are
// asked to leave, and which has claimed to be the one.
func controlStory(t *testing.T) *nodeagent.Snapshot {
	t.Helper()
	s := &nodeagent.Snapshot{
		Now: now, Live: true, KubeletSeen: now.Add(-5 * time.Second), Node: aNode(allStatic),
		Self: nodeagent.Self{Node: "node-7", Version: "1", BootID: "boot-1", Dir: "/manifests"}, Folder: nodeagent.Folder{Known: true},
		ControlPlane: nodeagent.ControlPlane{
			Terminate: true, Host: true, Hostname: "host-7", Address: "api.example.com", Known: true, Claim: "node-7", RestoreAfter: 10 * time.Minute,
			Servers: []nodeagent.APIServer{
				{Host: "host-7", Renewed: now.Add(-time.Second), Seen: now.Add(-time.Second)},
				{Host: "host-8", Renewed: now.Add(-9 * time.Second), Seen: now.Add(-8 * time.Second)},
			},
			Signs: nodeagent.Signs{Uptime: time.Hour, Began: time.Minute, Answered: time.Hour - 2*time.Second},
		},
	}
	s.Node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}}
	for _, component := range programs {
		mirror := partMirror(component, "node-7")
		s.Pods = append(s.Pods, mirror)
		s.Evacuations = append(s.Evacuations, anEvacuation(mirror))
		s.Folder.Files = append(s.Folder.Files, file(t, component+".yaml", partText(component), component))
	}
	for _, node := range []string{"node-7", "node-8", "node-9"} {
		s.ControlPlane.Etcd = append(s.ControlPlane.Etcd, partMirror("etcd", node))
	}
	return s
}

func putAside(t *testing.T, s *nodeagent.Snapshot, n int, state v1alpha1.StaticPodState) {
	t.Helper()
	s.Journal = nodeagent.Journal{Version: 1, BootID: "boot-1"}
	for i, component := range programs[:n] {
		s.Folder.Files[i] = file(t, nodeagent.HeldName(component+".yaml"), partText(component), component)
		priority := int32(2_000_001_000)
		s.Journal.Manifests = append(s.Journal.Manifests, nodeagent.Entry{
			File: component + ".yaml", Held: nodeagent.HeldName(component + ".yaml"), SHA256: component, Pod: "kube-system/" + component + "-node-7",
			Priority: &priority, GraceSeconds: 30, State: state, At: now.Add(-time.Second), BootID: "boot-1", ControlPlane: true,
		})
	}
	if state == v1alpha1.StaticPodHeld {
		s.Pods, s.Evacuations = s.Pods[n:], s.Evacuations[n:]
	}
	slices.SortFunc(s.Journal.Manifests, func(a, b nodeagent.Entry) int { return strings.Compare(a.File, b.File) })
}

func part(d nodeagent.Decision, component string) v1alpha1.StaticPod {
	return told(d, "kube-system", component+"-node-7")
}

func away2(component string) string {
	return component + ".yaml → " + nodeagent.HeldName(component+".yaml")
}

func back2(component string) string {
	return nodeagent.HeldName(component+".yaml") + " → " + component + ".yaml"
}

var stays = map[string]struct {
	component string
	change    func(*nodeagent.Snapshot)
}{
	"nobody wants it": {
		"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Terminate = false },
	},
	"the agent is a pod": {
		"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Host = false },
	},
	"nothing is known": {"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Known = false }},
	"its own API server only": {
		"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Servers = s.ControlPlane.Servers[:1] },
	},
	"no API server with a Lease": {"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Servers = nil }},
	"the other Lease is old":     {"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Servers[1].Renewed = now.Add(-time.Minute) }},
	"the other Lease is in the future": {
		"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Servers[1].Renewed = now.Add(61 * time.Second) },
	},
	"the other Lease was never seen to change": {
		"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Servers[1].Seen = time.Time{} },
	},
	"the other Lease does not change any more": {
		"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Servers[1].Seen = now.Add(-time.Minute) },
	},
	"the other Lease names no host": {"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Servers[1].Host = "" }},
	"the other Lease names the node": {
		"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Servers[1].Host = "node-7" },
	},
	"the other Lease names the host as the Node's label does": {"kube-scheduler", func(s *nodeagent.Snapshot) {
		s.Node.Labels = map[string]string{corev1.LabelHostname: "host-8"}
	}},
	"the host has no name": {"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Hostname = "" }},
	"it asks itself":       {"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Address = "127.0.0.1" }},
	"it asks itself by name": {
		"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Address = "localhost" },
	},
	"it asks itself by its hostname": {
		"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Address = "host-7" },
	},
	"it asks itself by its node's name": {
		"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Address = "node-7" },
	},
	"it asks its own address": {
		"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Address = "::ffff:192.0.2.7" },
	},
	"it asks any address of its own": {"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Address = "0.0.0.0" }},
	"it asks whom nobody knows":      {"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Address = "" }},
	"another node is on": {
		"kube-scheduler", func(s *nodeagent.Snapshot) { s.ControlPlane.Claim = "node-8" },
	},
	"another part of it": {"kube-scheduler", func(s *nodeagent.Snapshot) {
		s.Folder.Files[0].Manifest.Component = ""
	}},
	"a mirror that calls itself a part": {"kube-scheduler", func(s *nodeagent.Snapshot) {
		s.Folder.Files[0].Manifest.ControlPlane = false
	}},
	"two members of etcd": {
		"etcd", func(s *nodeagent.Snapshot) { s.ControlPlane.Etcd = s.ControlPlane.Etcd[:2] },
	},
	"three others": {
		"etcd", func(s *nodeagent.Snapshot) { s.ControlPlane.Etcd[0].Spec.NodeName = "node-6" },
	},
	"one is no mirror pod": {
		"etcd", func(s *nodeagent.Snapshot) { delete(s.ControlPlane.Etcd[1].Annotations, corev1.MirrorPodAnnotationKey) },
	},
	"one has its annotation only": {
		"etcd", func(s *nodeagent.Snapshot) { s.ControlPlane.Etcd[1].OwnerReferences = nil },
	},
	"one is elsewhere": {"etcd", func(s *nodeagent.Snapshot) { s.ControlPlane.Etcd[1].Namespace = "default" }},
	"one twice":        {"etcd", func(s *nodeagent.Snapshot) { s.ControlPlane.Etcd[1].Spec.NodeName = "node-9" }},
	"a fourth is not Ready": {"etcd", func(s *nodeagent.Snapshot) {
		weak := partMirror("etcd", "node-6")
		weak.Status.Conditions = nil
		s.ControlPlane.Etcd = append(s.ControlPlane.Etcd, weak)
	}},
	"a fourth is going": {"etcd", func(s *nodeagent.Snapshot) {
		weak := partMirror("etcd", "node-6")
		weak.DeletionTimestamp = &metav1.Time{Time: now}
		s.ControlPlane.Etcd = append(s.ControlPlane.Etcd, weak)
	}},
	"nothing of all that": {"etcd", func(s *nodeagent.Snapshot) {
		s.ControlPlane = nodeagent.ControlPlane{Terminate: true, Address: "api", Known: true, Claim: "node-9"}
	}},
}

var unproved = []string{"nothing is known", "the other Lease was never seen to change", "the other Lease does not change any more"}

func TestAPartOfTheControlPlaneStays(t *testing.T) {
	for name, test := range stays {
		t.Run(name, func(t *testing.T) {
			s := controlStory(t)
			putAside(t, s, slices.Index(programs, test.component), v1alpha1.StaticPodHeld)
			test.change(s)
			d := nodeagent.Decide(*s)
			pod := part(d, test.component)
			reason := v1alpha1.StaticPodControlPlane
			if slices.Contains(unproved, name) {
				reason = v1alpha1.StaticPodUnreadable
			}
			golden.Message(t, pod.Reason, pod.Message)
			if pod.State != v1alpha1.StaticPodUnmanageable || pod.Reason != reason {
				t.Errorf("it is %s (%s): %s, want it to stay: %s", pod.State, pod.Reason, pod.Message, reason)
			}
			if slices.Contains(moves(d), away2(test.component)) || d.Claim == nodeagent.ClaimTake {
				t.Errorf("it goes all the same: %v, claim %d", moves(d), d.Claim)
			}
		})
	}
}

// It is told in time that the other API server has gone silent.
func TestItIsLookedAtAgainWhenALeaseGetsOld(t *testing.T) {
	s := controlStory(t)
	s.Node, s.ControlPlane.Claim = aNode(""), ""
	s.ControlPlane.Servers = append(s.ControlPlane.Servers, nodeagent.APIServer{Host: "host-9", Renewed: now.Add(-20 * time.Second), Seen: now})
	if d := nodeagent.Decide(*s); d.After != 51*time.Second {
		t.Errorf("decides again after %s, want 51s, when the last one is old", d.After)
	}
}

// What it says of itself twice has to be the same.
func TestWhichPartAManifestIs(t *testing.T) {
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: kube-system, labels: {component: %s}}\nspec: {containers: [%s]}\n"
	for name, test := range map[string]struct{ label, containers, want string }{
		"as kubeadm has it":     {"etcd", "{name: etcd}", "etcd"},
		"by its label":          {"etcd", "{name: db}", "etcd"},
		"by its container":      {"''", "{name: helper}, {name: kube-apiserver}", "kube-apiserver"},
		"a label that differs":  {"kube-scheduler", "{name: etcd}", ""},
		"two of them in a pod":  {"''", "{name: kube-scheduler}, {name: kube-apiserver}", ""},
		"none of them at all":   {"kube-vip", "{name: kube-vip}", ""},
		"one that differs last": {"etcd", "{name: etcd}, {name: kube-apiserver}", ""},
	} {
		m, err := nodeagent.ReadManifest(fmt.Appendf(nil, text, test.label, test.containers))
		if err != nil || m.Component != test.want {
			t.Errorf("%s: %+v, %v; want %q", name, m, err, test.want)
		}
	}
}
