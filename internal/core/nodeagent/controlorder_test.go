package nodeagent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/test/golden"
)

// Each goes when the one before is gone, and says so meanwhile.
func TestTheControlPlaneGoesInItsOrder(t *testing.T) {
	for i, component := range programs {
		s := controlStory(t)
		putAside(t, s, i, v1alpha1.StaticPodHeld)
		d := nodeagent.Decide(*s)
		if got := strings.Join(moves(d), ", "); got != away2(component) {
			t.Errorf("after %d it is the turn of %s, want %s", i, got, component)
		}
		wait(t, d, programs[i+1:])
		if len(d.Evacuations) != len(programs)-i-1 {
			t.Errorf("%d Evacuations are told of, want all %d that wait", len(d.Evacuations), len(programs)-i-1)
		}
		if d.Journal == nil || !slices.ContainsFunc(d.Journal.Manifests, func(e nodeagent.Entry) bool { return e.ControlPlane && e.State == v1alpha1.StaticPodHolding }) {
			t.Errorf("written down is %+v, want a part of the control plane", d.Journal)
		}
	}
	s := controlStory(t)
	putAside(t, s, 2, v1alpha1.StaticPodHolding)
	d := nodeagent.Decide(*s)
	golden.Message(t, part(d, "kube-apiserver").Message)
	if len(d.Moves) > 0 {
		t.Errorf("while two terminate: %v", moves(d))
	}
}

func wait(t *testing.T, d nodeagent.Decision, parts []string) {
	t.Helper()
	for _, later := range parts {
		pod := part(d, later)
		golden.Message(t, pod.Message)
		if pod.State != v1alpha1.StaticPodRunning {
			t.Errorf("%s is %s: %q", later, pod.State, pod.Message)
		}
	}
}

// A part that is not asked to go, or cannot, is not waited for.
func TestOnlyPartsThatGoAreWaitedFor(t *testing.T) {
	for name, change := range map[string]func(*nodeagent.Snapshot){
		"a label of its mirror retains it":   func(s *nodeagent.Snapshot) { s.Pods[0].Labels[v1alpha1.DrainLabel] = "skip" },
		"a label of its manifest retains it": func(s *nodeagent.Snapshot) { s.Folder.Files[0].Manifest.Labels[v1alpha1.DrainLabel] = "skip" },
		"it comes from elsewhere":            func(s *nodeagent.Snapshot) { s.Pods[0].Annotations["kubernetes.io/config.source"] = "http" },
		"it is above the target": func(s *nodeagent.Snapshot) {
			s.Node = aNode(`[{"podPriority":2147483647,"podType":"Static","podSelector":{"matchExpressions":[{"key":"component","operator":"NotIn","values":["kube-scheduler"]}]}}]`)
		},
		"it never ran": func(s *nodeagent.Snapshot) { s.Pods = s.Pods[1:] },
	} {
		s := controlStory(t)
		change(s)
		if d := nodeagent.Decide(*s); strings.Join(moves(d), ", ") != away2("kube-controller-manager") {
			t.Errorf("%s: %v; want the controller manager to go", name, moves(d))
		}
	}
}

// Nor is one whose mirror pod is hidden, unless the kubelet has not started it.
func TestHiddenPartsAreWaitedFor(t *testing.T) {
	for said, want := range map[v1alpha1.StaticPod]string{
		{State: v1alpha1.StaticPodRunning}:                                              "",
		{State: v1alpha1.StaticPodRestoring}:                                            "",
		{State: v1alpha1.StaticPodRestoring, Reason: v1alpha1.StaticPodNotStarted}:      away2("kube-controller-manager"),
		{State: v1alpha1.StaticPodUnmanageable, Reason: v1alpha1.StaticPodControlPlane}: away2("kube-controller-manager"),
	} {
		s := controlStory(t)
		s.Pods = s.Pods[1:]
		said.Namespace, said.Name, said.Priority = "kube-system", "kube-scheduler-node-7", 2_000_001_000
		s.Agent = &v1alpha1.NodeAgent{Status: v1alpha1.NodeAgentStatus{StaticPods: []v1alpha1.StaticPod{said}}}
		if d := nodeagent.Decide(*s); strings.Join(moves(d), ", ") != want {
			t.Errorf("with a hidden scheduler that is %s (%s): %v, want %q", said.State, said.Reason, moves(d), want)
		}
	}
}

// A part that has to stay away is not waited for by those that come back.
func TestAPartThatStaysAwayIsNotWaitedFor(t *testing.T) {
	s := controlStory(t)
	putAside(t, s, 4, v1alpha1.StaticPodHeld)
	s.Node = aNode(`[{"podPriority":2147483647,"podType":"Static","podSelector":{"matchLabels":{"component":"etcd"}}}]`)
	if d := nodeagent.Decide(*s); strings.Join(moves(d), ", ") != back2("kube-apiserver") {
		t.Errorf("%v; want the API server", moves(d))
	}
}

// Nothing moves by a cache, nor before the node has claimed to be the only one.
func TestTheControlPlaneIsClaimedFirst(t *testing.T) {
	s := controlStory(t)
	s.ControlPlane.Claim, s.Live = "", false
	if d := nodeagent.Decide(*s); !d.NeedsLive || d.Claim != nodeagent.ClaimKeep || len(d.Moves) > 0 {
		t.Errorf("by a cache: claim %d, moves %v, asks the API server: %t", d.Claim, moves(d), d.NeedsLive)
	}
	s.Live = true
	if d := nodeagent.Decide(*s); d.Claim != nodeagent.ClaimTake || len(d.Moves) > 0 {
		t.Errorf("without a claim: claim %d, moves %v", d.Claim, moves(d))
	}
}

func TestTheClaimIsGivenBack(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*testing.T, *nodeagent.Snapshot)
		want   nodeagent.Claim
	}{
		"all is over":                   {func(*testing.T, *nodeagent.Snapshot) {}, nodeagent.ClaimRelease},
		"another has it":                {func(_ *testing.T, s *nodeagent.Snapshot) { s.ControlPlane.Claim = "node-8" }, nodeagent.ClaimKeep},
		"nothing can go":                {func(_ *testing.T, s *nodeagent.Snapshot) { s.Node, s.ControlPlane.Servers = aNode(allStatic), nil }, nodeagent.ClaimRelease},
		"a part has to go":              {func(_ *testing.T, s *nodeagent.Snapshot) { s.Node = aNode(allStatic) }, nodeagent.ClaimKeep},
		"a part is not Ready":           {func(_ *testing.T, s *nodeagent.Snapshot) { s.Pods[2].Status.Conditions = nil }, nodeagent.ClaimKeep},
		"a part is not there":           {func(_ *testing.T, s *nodeagent.Snapshot) { s.Pods = s.Pods[1:] }, nodeagent.ClaimKeep},
		"parts are away":                {func(t *testing.T, s *nodeagent.Snapshot) { putAside(t, s, 1, v1alpha1.StaticPodHeld) }, nodeagent.ClaimKeep},
		"the folder cannot be read":     {func(_ *testing.T, s *nodeagent.Snapshot) { s.Folder = nodeagent.Folder{} }, nodeagent.ClaimKeep},
		"the folder is gone":            {func(_ *testing.T, s *nodeagent.Snapshot) { s.Folder = nodeagent.Folder{Known: true, Absent: true} }, nodeagent.ClaimKeep},
		"the claim is not known":        {func(_ *testing.T, s *nodeagent.Snapshot) { s.ControlPlane.Known = false }, nodeagent.ClaimKeep},
		"somebody has taken files away": {func(_ *testing.T, s *nodeagent.Snapshot) { s.Folder.Files, s.Pods = nil, nil }, nodeagent.ClaimRelease},
	} {
		t.Run(name, func(t *testing.T) {
			s := controlStory(t)
			s.Node = aNode("")
			test.change(t, s)
			if d := nodeagent.Decide(*s); d.Claim != test.want {
				t.Errorf("claim %d, want %d", d.Claim, test.want)
			}
			s.Live = false
			if d := nodeagent.Decide(*s); d.Claim != nodeagent.ClaimKeep {
				t.Errorf("by a cache: claim %d", d.Claim)
			}
		})
	}
}

// They come back the other way, each when the one that it needs has started, or is late.
func TestTheControlPlaneComesBackInItsOrder(t *testing.T) {
	s := controlStory(t)
	putAside(t, s, 4, v1alpha1.StaticPodHeld)
	s.Node = aNode("")
	for i := len(programs) - 1; i >= 0; i-- {
		d := nodeagent.Decide(*s)
		if got := strings.Join(moves(d), ", "); got != back2(programs[i]) {
			t.Fatalf("comes back: %q, want %s", got, programs[i])
		}
		if i > 0 {
			golden.Message(t, part(d, programs[i-1]).Message)
		}
		reappears(t, s, i)
		if i%2 == 0 {
			s.Pods = append(s.Pods, partMirror(programs[i], "node-7"))
		} else {
			s.Now = s.Now.Add(time.Minute)
		}
	}
}

func reappears(t *testing.T, s *nodeagent.Snapshot, i int) {
	t.Helper()
	s.Folder.Files[i] = file(t, programs[i]+".yaml", partText(programs[i]), programs[i])
	for range 2 {
		d := nodeagent.Decide(*s)
		if len(d.Moves) > 0 {
			t.Fatalf("%v, and %s has not started", moves(d), programs[i])
		}
		if d.Journal != nil {
			s.Journal = *d.Journal
		}
	}
}
