package nodeagent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodeagent"
)

func written(t *testing.T, ago time.Duration) nodeagent.File {
	t.Helper()
	f := file(t, "proxy.yaml", proxyText, "bbbb")
	f.Changed = now.Add(-ago)
	return f
}

var running = []*corev1.Pod{aMirror("mirror", 7000)}

var differences = map[string]struct {
	state  v1alpha1.StaticPodState
	change func(*testing.T, *nodeagent.Snapshot)
	want   outcome
}{
	"somebody writes the manifest a moment ago": {
		v1alpha1.StaticPodHeld, func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files = append(s.Folder.Files, written(t, 199*time.Millisecond))
		},
		outcome{journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld},
	},
	"somebody has written the manifest": {
		v1alpha1.StaticPodHeld, func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files = append(s.Folder.Files, written(t, 200*time.Millisecond))
		},
		outcome{
			moves: []string{"proxy.yaml over → " + heldProxy}, journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld,
			events: []string{"ManifestReplaced"},
		},
	},
	"somebody has written the manifest, and the maintenance is over": {
		v1alpha1.StaticPodHeld, func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files, s.Node = append(s.Folder.Files, written(t, 0)), aNode("")
		},
		outcome{
			moves: []string{heldProxy + " → .proxy.yaml.ebbtide-superseded"}, journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld,
			events: []string{"ManifestSuperseded"},
		},
	},
	"the same for the third time": {
		v1alpha1.StaticPodHeld, func(t *testing.T, s *nodeagent.Snapshot) {
			s.Node = aNode("")
			s.Folder.Files = append(s.Folder.Files, written(t, 0), nodeagent.File{Name: ".proxy.yaml.ebbtide-superseded"}, nodeagent.File{Name: ".proxy.yaml.2.ebbtide-superseded"})
		},
		outcome{
			moves: []string{heldProxy + " → .proxy.yaml.3.ebbtide-superseded"}, journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld,
			events: []string{"ManifestSuperseded"},
		},
	},
	"somebody takes the held file away": {
		v1alpha1.StaticPodHeld, func(_ *testing.T, s *nodeagent.Snapshot) { s.Folder.Files = nil },
		outcome{events: []string{"ManifestGone"}},
	},
	"somebody brings it back by hand": {
		v1alpha1.StaticPodHeld, func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files, s.Pods = []nodeagent.File{written(t, time.Hour)}, running
		},
		outcome{
			state:  v1alpha1.StaticPodRunning,
			events: []string{"ManifestGone"},
		},
	},
	"the journal is lost": {
		v1alpha1.StaticPodHeld, func(_ *testing.T, s *nodeagent.Snapshot) { s.Journal = nodeagent.Journal{} },
		outcome{journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld},
	},
	"the journal is lost, and so is the priority: nothing that may be meant comes back": {
		v1alpha1.StaticPodHeld, func(_ *testing.T, s *nodeagent.Snapshot) {
			s.Journal, s.Node = nodeagent.Journal{}, aNode(`[{"podPriority":-5,"podType":"Static"}]`)
		},
		outcome{journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld},
	},
	"the journal is lost, and the API remembers the priority": {
		v1alpha1.StaticPodHeld, func(_ *testing.T, s *nodeagent.Snapshot) {
			s.Journal, s.Node = nodeagent.Journal{}, aNode(upTo6999)
			s.Agent = &v1alpha1.NodeAgent{Status: v1alpha1.NodeAgentStatus{StaticPods: []v1alpha1.StaticPod{
				{Namespace: "edge", Name: "proxy-node-7", Priority: 7000, State: v1alpha1.StaticPodHeld},
			}}}
		},
		outcome{moves: []string{back}, journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld},
	},
	"what is put aside is no pod any more": {
		v1alpha1.StaticPodHeld, func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files, s.Node = []nodeagent.File{file(t, heldProxy, "][", "")}, aNode(upTo6999)
		},
		outcome{journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld},
	},
	"what is put aside is no pod any more, and no static pod has to stay away": {
		v1alpha1.StaticPodHeld, func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files, s.Node = []nodeagent.File{file(t, heldProxy, "][", "")}, aNode(`[{"podPriority":5,"podType":"DaemonSet"}]`)
		},
		outcome{moves: []string{back}, journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld},
	},
	"a crash between journal and rename": {
		v1alpha1.StaticPodHolding, func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files = []nodeagent.File{file(t, "proxy.yaml", proxyText, "aaaa")}
		},
		outcome{
			moves: []string{away}, journal: []string{holding}, state: v1alpha1.StaticPodRunning,
			events: []string{"StaticPodHeld"},
		},
	},
	"a crash between journal and rename, and nobody asks any more": {
		v1alpha1.StaticPodHolding, func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files, s.Evacuations = []nodeagent.File{file(t, "proxy.yaml", proxyText, "aaaa")}, nil
		},
		outcome{state: v1alpha1.StaticPodRunning},
	},
	"a crash between rename and Evacuation": {
		v1alpha1.StaticPodHolding, func(*testing.T, *nodeagent.Snapshot) {},
		outcome{journal: []string{holding}, state: v1alpha1.StaticPodHolding},
	},
	"another file makes the pod now": {
		v1alpha1.StaticPodHeld, func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files, s.Pods = append(s.Folder.Files, file(t, "copy.yaml", proxyText, "cccc")), running
		},
		outcome{journal: []string{holding}, state: v1alpha1.StaticPodRunning},
	},
}

// Others write, move and lose files, and agents crash between any two steps.
func TestFoldersAndJournalsThatDiffer(t *testing.T) {
	for name, test := range differences {
		t.Run(name, func(t *testing.T) {
			s := held(t, test.state, time.Minute)
			if test.state == v1alpha1.StaticPodHolding {
				s.Journal.Manifests[0].At = now.Add(-time.Second)
			}
			test.change(t, s)
			check(t, s, test.want)
		})
	}
}

// Somebody deletes the mirror pod by force: the kubelet takes up to a minute and a half to
// make another one, and meanwhile the pod runs.
func TestAPodWhoseMirrorIsDeletedIsNotGone(t *testing.T) {
	s := story(t)
	s.Pods = nil
	s.Agent = &v1alpha1.NodeAgent{Status: v1alpha1.NodeAgentStatus{StaticPods: []v1alpha1.StaticPod{
		{Namespace: "edge", Name: "proxy-node-7", Priority: 7000, State: v1alpha1.StaticPodRunning},
	}}}
	d := check(t, s, outcome{
		state: v1alpha1.StaticPodRunning, reason: v1alpha1.StaticPodNoMirror,
	})
	if pod := told(d, "edge", "proxy-node-7"); pod.Priority != 7000 || pod.Manifest != "proxy.yaml" {
		t.Errorf("told of %+v", pod)
	}
}

// A folder that cannot be read says nothing new: whoever waits for a pod goes on to wait.
func TestAFolderThatCannotBeReadChangesNoState(t *testing.T) {
	for _, state := range []v1alpha1.StaticPodState{v1alpha1.StaticPodRunning, v1alpha1.StaticPodHolding, v1alpha1.StaticPodUnmanageable} {
		s := held(t, v1alpha1.StaticPodHolding, time.Second)
		s.Folder = nodeagent.Folder{Fault: v1alpha1.StaticPodUnreadable, Message: "/manifests: input/output error"}
		s.Agent = &v1alpha1.NodeAgent{Status: v1alpha1.NodeAgentStatus{StaticPods: []v1alpha1.StaticPod{
			{Namespace: "edge", Name: "proxy-node-7", Priority: 7000, State: state},
		}}}
		d := nodeagent.Decide(*s)
		if pod := told(d, "edge", "proxy-node-7"); pod.State != state {
			t.Errorf("a pod that was %s is told to be %s: %s", state, pod.State, pod.Message)
		}
		unmirrored := *s
		unmirrored.Pods = nil
		if pod := told(nodeagent.Decide(unmirrored), "edge", "proxy-node-7"); pod.State != state && state != v1alpha1.StaticPodUnmanageable {
			t.Errorf("a pod that was %s and has no mirror is told to be %q", state, pod.State)
		}
		if c := d.Status.Conditions[0]; c.Reason != v1alpha1.StaticPodUnreadable || len(d.Moves) > 0 || d.Journal != nil {
			t.Errorf("condition %+v, moves %v, journal %v", c, moves(d), d.Journal)
		}
	}
}

// What is new is since now, what is not is since before, and the other half of the status
// stays.
func TestTheStatusOfTheAgent(t *testing.T) {
	s := held(t, v1alpha1.StaticPodHeld, time.Hour)
	before := metav1.NewTime(now.Add(-time.Hour))
	s.Agent = &v1alpha1.NodeAgent{Status: v1alpha1.NodeAgentStatus{
		StaticPods: []v1alpha1.StaticPod{{Namespace: "edge", Name: "proxy-node-7", State: v1alpha1.StaticPodHeld, SinceTime: &before}},
		Shutdown:   &v1alpha1.NodeShutdown{Phase: v1alpha1.ShutdownNone, Mode: v1alpha1.ShutdownModeDrain},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionShutdownManageable, Status: metav1.ConditionTrue}},
	}}
	status := nodeagent.Decide(*s).Status
	if pod := status.StaticPods[0]; !pod.SinceTime.Equal(&before) || pod.MaintenanceName != "kernel-update" || pod.Priority != 7000 || pod.Manifest != "proxy.yaml" {
		t.Errorf("told of %+v, want it held since an hour for kernel-update", pod)
	}
	if status.HeldCount != 1 || status.Shutdown == nil || len(status.Conditions) != 2 || status.BootID != "boot-1" || status.ManifestDir != "/manifests" {
		t.Errorf("status is %+v", status)
	}
	s.Agent.Status = status
	again := nodeagent.Decide(*s)
	if diff := cmp.Diff(status, again.Status); diff != "" || again.Journal != nil {
		t.Errorf("without news the journal becomes %+v, and the status changes:\n%s", again.Journal, diff)
	}
}

func TestLongListLeavesOutRunningPods(t *testing.T) {
	s := held(t, v1alpha1.StaticPodHeld, time.Hour)
	for i := range 400 {
		name := fmt.Sprintf("a%03d", i)
		s.Folder.Files = append(s.Folder.Files, file(t, name+".yaml", strings.Replace(proxyText, "name: proxy,", "name: "+name+",", 1), ""))
		pod := aMirror(name, 0)
		pod.Name = name + "-node-7"
		s.Pods = append(s.Pods, pod)
	}
	d := nodeagent.Decide(*s)
	if len(d.Status.StaticPods) != 256 || told(d, "edge", "proxy-node-7").State != v1alpha1.StaticPodHeld {
		t.Errorf("%d pods are listed, want 256 with the one that is held", len(d.Status.StaticPods))
	}
}

func TestControlPlanePods(t *testing.T) {
	pod := func(meta, container string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, " + meta + "}\nspec: {containers: [{name: " + container + ", image: x}]}"
	}
	for text, want := range map[string]bool{
		pod("namespace: kube-system, labels: {tier: control-plane}", "x"):                               true,
		pod("namespace: kube-system, labels: {component: etcd}", "x"):                                   true,
		pod("namespace: kube-system, annotations: {kubeadm.kubernetes.io/etcd.advertise-urls: u}", "x"): true,
		pod("namespace: kube-system", "kube-apiserver"):                                                 true,
		pod("namespace: kube-system", "kube-vip"):                                                       false,
		pod("namespace: edge, labels: {tier: control-plane}", "etcd"):                                   false,
	} {
		m, err := nodeagent.ReadManifest([]byte(text))
		if err != nil || m.ControlPlane != want {
			t.Errorf("%s\nis of the control plane: %+v, %v; want %t", text, m, err, want)
		}
	}
}

func TestManifests(t *testing.T) {
	for text, want := range map[string]string{
		"":                          `it has apiVersion "" and kind "", not v1 and Pod`,
		"apiVersion: v1\nkind: Pod": "the pod has no name",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}": `it has apiVersion "apps/v1" and kind "Deployment", not v1 and Pod`,
		"apiVersion: v1\nkind: Pod\nmetadata: {name: [x]}":           "cannot unmarshal array",
		"\x00\x01": "control characters are not allowed",
		bomb:       "excessive aliasing",
	} {
		if m, err := nodeagent.ReadManifest([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q is read as %+v, %v; want %q", text, m, err, want)
		}
	}
	m, err := nodeagent.ReadManifest([]byte(`{"apiVersion":"v1","kind":"Pod","unknown":1,"metadata":{"name":"x"},"spec":{"priorityClassName":"system-node-critical","terminationGracePeriodSeconds":99999999999}}`))
	if err != nil || m.Namespace != "default" || m.Priority == nil || *m.Priority != 2_000_001_000 || m.Grace != 24*time.Hour {
		t.Errorf("read %+v, %v; want a pod in default with the priority of its class and a grace period that is bounded", m, err)
	}
}

// bomb grows a thousandfold with each line.
var bomb = func() string {
	lines := []string{"a0: &a0 [x,x,x,x,x,x,x,x,x,x]"}
	for i := range 12 {
		ref := fmt.Sprintf("*a%d", i)
		lines = append(lines, fmt.Sprintf("a%d: &a%d [%s]", i+1, i+1, strings.TrimSuffix(strings.Repeat(ref+",", 10), ",")))
	}
	return strings.Join(lines, "\n")
}()
