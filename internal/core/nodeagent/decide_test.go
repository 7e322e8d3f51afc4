package nodeagent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/test/golden"
)

const (
	away    = "proxy.yaml → .proxy.yaml.ebbtide-held"
	back    = ".proxy.yaml.ebbtide-held → proxy.yaml"
	holding = "proxy.yaml Holding"
)

type outcome struct {
	moves, journal, events []string
	state                  v1alpha1.StaticPodState
	reason                 string
	live                   bool // if the API server has to be asked first
}

func check(t *testing.T, s *nodeagent.Snapshot, want outcome) nodeagent.Decision {
	t.Helper()
	d := nodeagent.Decide(*s)
	pod := told(d, "edge", "proxy-node-7")
	got := outcome{moves(d), states(s, d), reasons(t, d), pod.State, pod.Reason, d.NeedsLive}
	golden.Message(t, string(pod.State), pod.Reason, pod.Message)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	return d
}

func TestAStaticPodIsPutAsideAtItsTurn(t *testing.T) {
	s := story(t)
	d := check(t, s, outcome{
		moves: []string{away}, journal: []string{holding}, state: v1alpha1.StaticPodRunning,
		events: []string{"StaticPodHeld"},
	})
	want := entry(v1alpha1.StaticPodHolding, 0)
	if diff := cmp.Diff([]nodeagent.Entry{want}, d.Journal.Manifests); diff != "" {
		t.Errorf("written down before (-want +got):\n%s", diff)
	}
}

// What is asked for wrongly, or not yet, moves nothing and says nothing.
func TestAStaticPodIsLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*nodeagent.Snapshot){
		"above the target":            func(s *nodeagent.Snapshot) { s.Node = aNode(upTo6999) },
		"no maintenance":              func(s *nodeagent.Snapshot) { s.Node = aNode("") },
		"targets that cannot be read": func(s *nodeagent.Snapshot) { s.Node = aNode("}") },
		"no node":                     func(s *nodeagent.Snapshot) { s.Node = nil },
		"nobody asks":                 func(s *nodeagent.Snapshot) { s.Evacuations = nil },
		"nobody asks any more":        func(s *nodeagent.Snapshot) { s.Evacuations[0].Finalizers = []string{"hold"} },
		"another's turn":              func(s *nodeagent.Snapshot) { s.Evacuations[0].Status.ActiveEvacuatorClass = "mover.example.com" },
		"its turn is over":            func(s *nodeagent.Snapshot) { s.Evacuations[0].Status.ActiveEvacuatorCompleted = true },
		"another mirror was meant":    func(s *nodeagent.Snapshot) { s.Pods[0].UID = "another" },
		"an Evacuation of another name": func(s *nodeagent.Snapshot) {
			s.Evacuations[0].Name = "odd"
		},
		"it is to be retained":             func(s *nodeagent.Snapshot) { s.Pods[0].Labels[v1alpha1.DrainLabel] = "skip" },
		"the manifest says retained":       func(s *nodeagent.Snapshot) { s.Folder.Files[0].Manifest.Labels[v1alpha1.DrainLabel] = "skip" },
		"it has finished":                  func(s *nodeagent.Snapshot) { s.Pods[0].Status.Phase = corev1.PodSucceeded },
		"somebody deletes its mirror pod":  func(s *nodeagent.Snapshot) { s.Pods[0].DeletionTimestamp = &metav1.Time{Time: now} },
		"a mirror with too low a priority": func(s *nodeagent.Snapshot) { high := int32(9000); s.Folder.Files[0].Manifest.Priority = &high },
		"a label that only the mirror has": func(s *nodeagent.Snapshot) {
			s.Node = aNode(`[{"podPriority":7000,"podType":"Static","podSelector":{"matchLabels":{"moved":"yes"}}}]`)
			s.Pods[0].Labels["moved"] = "yes"
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := story(t)
			change(s)
			d := check(t, s, outcome{state: v1alpha1.StaticPodRunning})
			if len(d.Evacuations) > 0 || d.Journal != nil {
				t.Errorf("wrote %+v and %+v, want nothing", d.Evacuations, d.Journal)
			}
		})
	}
}

func TestACacheAloneMovesNothing(t *testing.T) {
	s := story(t)
	s.Live = false
	check(t, s, outcome{state: v1alpha1.StaticPodRunning, live: true})
	s = held(t, v1alpha1.StaticPodHeld, time.Minute)
	s.Live, s.Node = false, aNode("")
	check(t, s, outcome{journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld, live: true})
}

var unmanageable = map[string]struct {
	change            func(*testing.T, *nodeagent.Snapshot)
	reason, condition string
}{
	"control plane, by its label": {
		func(_ *testing.T, s *nodeagent.Snapshot) { s.Folder.Files[0].Manifest.ControlPlane = true },
		v1alpha1.StaticPodControlPlane, v1alpha1.StaticPodsFound,
	},
	"a URL": {
		func(_ *testing.T, s *nodeagent.Snapshot) {
			s.Pods[0].Annotations["kubernetes.io/config.source"] = "http"
		},
		v1alpha1.StaticPodFromURL, v1alpha1.StaticPodsFound,
	},
	"the wrong folder": {
		func(_ *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files = nil
		},
		v1alpha1.StaticPodNoManifest, v1alpha1.StaticPodNoManifest,
	},
	"no folder": {
		func(_ *testing.T, s *nodeagent.Snapshot) { s.Folder = nodeagent.Folder{Known: true, Absent: true} },
		v1alpha1.StaticPodNoManifest, v1alpha1.StaticPodNoManifest,
	},
	"two manifests": {
		func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files = append(s.Folder.Files, file(t, "copy.yaml", proxyText, "bbbb"))
		},
		v1alpha1.StaticPodSeveralManifests, v1alpha1.StaticPodSeveralManifests,
	},
	"a folder that cannot be written": {
		func(_ *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Fault, s.Folder.Message = v1alpha1.StaticPodReadOnly, "/manifests cannot be written: read-only file system"
		},
		v1alpha1.StaticPodReadOnly, v1alpha1.StaticPodReadOnly,
	},
	"a single file": {
		func(_ *testing.T, s *nodeagent.Snapshot) {
			s.Folder = nodeagent.Folder{Fault: v1alpha1.StaticPodSingleFile, Message: "/manifests is a file"}
		},
		v1alpha1.StaticPodSingleFile, v1alpha1.StaticPodSingleFile,
	},
	"a manifest that is no pod any more": {
		func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files = []nodeagent.File{file(t, "proxy.yaml", "kind: List", "")}
		},
		v1alpha1.StaticPodUnparsable, v1alpha1.StaticPodUnparsable,
	},
	"a name that is too long": {
		func(_ *testing.T, s *nodeagent.Snapshot) { s.Folder.Files[0].Name = strings.Repeat("x", 242) },
		v1alpha1.StaticPodRefused, v1alpha1.StaticPodRefused,
	},
	"a folder with pods of others only": {
		func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files = []nodeagent.File{file(t, "other.yaml", strings.Replace(proxyText, "name: proxy,", "name: other,", 1), "")}
			s.Folder.Files[0].Changed = now
		},
		v1alpha1.StaticPodNoManifest, v1alpha1.StaticPodNoManifest,
	},
}

func TestUnmanageablePodsAreRetainedAndNamed(t *testing.T) {
	for name, test := range unmanageable {
		t.Run(name, func(t *testing.T) {
			s := story(t)
			test.change(t, s)
			d := check(t, s, outcome{state: v1alpha1.StaticPodUnmanageable, reason: test.reason})
			if got := d.Status.Conditions[0]; got.Reason != test.condition {
				t.Errorf("the condition has reason %s (%s), want %s", got.Reason, got.Message, test.condition)
			}
		})
	}
}

func TestAPodTerminatesAndIsHeld(t *testing.T) {
	for name, test := range map[string]struct {
		state  v1alpha1.StaticPodState
		ago    time.Duration
		change func(*nodeagent.Snapshot)
		want   outcome
	}{
		"as in the KEP": {
			v1alpha1.StaticPodHolding, time.Second, func(*nodeagent.Snapshot) {},
			outcome{journal: []string{holding}, state: v1alpha1.StaticPodHolding},
		},
		"long past its grace period": {
			v1alpha1.StaticPodHolding, 95 * time.Second, func(*nodeagent.Snapshot) {},
			outcome{
				journal: []string{holding}, state: v1alpha1.StaticPodHolding, reason: v1alpha1.StaticPodStuck,
			},
		},
		"the kubelet does not answer": {
			v1alpha1.StaticPodHolding, 95 * time.Second, func(s *nodeagent.Snapshot) { s.KubeletSeen = now.Add(-45 * time.Second) },
			outcome{journal: []string{holding}, state: v1alpha1.StaticPodHolding, reason: v1alpha1.StaticPodKubeletDown},
		},
		"its mirror pod is gone": {
			v1alpha1.StaticPodHolding, 5 * time.Second, func(s *nodeagent.Snapshot) { s.Pods = nil },
			outcome{journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld},
		},
		"its mirror pod is gone, says a cache": {
			v1alpha1.StaticPodHolding, 5 * time.Second, func(s *nodeagent.Snapshot) { s.Pods, s.Live = nil, false },
			outcome{journal: []string{holding}, state: v1alpha1.StaticPodHolding, live: true},
		},
		"nobody knows of the kubelet": {
			v1alpha1.StaticPodHolding, 5 * time.Second, func(s *nodeagent.Snapshot) { s.Pods, s.KubeletSeen = nil, time.Time{} },
			outcome{
				journal: []string{holding}, state: v1alpha1.StaticPodHolding, reason: v1alpha1.StaticPodKubeletDown,
			},
		},
		"its mirror pod is gone, and so is the kubelet": {
			v1alpha1.StaticPodHolding, 5 * time.Second, func(s *nodeagent.Snapshot) { s.Pods, s.KubeletSeen = nil, now.Add(-45*time.Second) },
			outcome{journal: []string{holding}, state: v1alpha1.StaticPodHolding, reason: v1alpha1.StaticPodKubeletDown},
		},
		"nobody knows of the node": {
			v1alpha1.StaticPodHolding, 5 * time.Second, func(s *nodeagent.Snapshot) { s.Pods, s.Node, s.Live = nil, nil, false },
			outcome{journal: []string{holding}, state: v1alpha1.StaticPodHolding},
		},
		"its mirror pod is back, whoever made it": {
			v1alpha1.StaticPodHeld, time.Hour, func(s *nodeagent.Snapshot) { s.Pods = []*corev1.Pod{aMirror("later", 7000)} },
			outcome{journal: []string{holding}, state: v1alpha1.StaticPodHolding},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := held(t, test.state, test.ago)
			test.change(s)
			check(t, s, test.want)
		})
	}
}

// The Evacuation is written when there is something new, and every three minutes.
func TestProgressIsReported(t *testing.T) {
	s := held(t, v1alpha1.StaticPodHolding, time.Second)
	d := nodeagent.Decide(*s)
	want := s.Evacuations[0].Status.DeepCopy()
	want.EvacuationProgressTimestamp, want.ExpectedEvacuationFinishTime = &metav1.Time{Time: now}, &metav1.Time{Time: now.Add(29 * time.Second)}
	want.Message = "proxy-node-7 is terminating the pod due to node maintenance (OS upgrade)."
	if len(d.Evacuations) != 1 {
		t.Fatalf("%d statuses are written, want one", len(d.Evacuations))
	}
	if diff := cmp.Diff(*want, d.Evacuations[0].Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	s.Evacuations[0].Status = *want
	for name, test := range map[string]struct {
		after  time.Duration
		writes int
	}{
		"nothing is new":                {10 * time.Second, 0},
		"it is stuck":                   {95 * time.Second, 1},
		"it takes longer than expected": {4 * time.Minute, 1},
	} {
		later := *s
		later.Now, later.KubeletSeen = now.Add(test.after), now.Add(test.after)
		d := nodeagent.Decide(later)
		if len(d.Evacuations) != test.writes || d.After == 0 {
			t.Errorf("%s: %d statuses are written, again after %s; want %d, and a time", name, len(d.Evacuations), d.After, test.writes)
		}
	}
	s.Now, s.KubeletSeen = now.Add(2*time.Minute), now.Add(2*time.Minute)
	s.Evacuations[0].Status = nodeagent.Decide(*s).Evacuations[0].Status
	s.Now, s.KubeletSeen = s.Now.Add(time.Minute), s.Now.Add(time.Minute)
	if d := nodeagent.Decide(*s); len(d.Evacuations) > 0 {
		t.Errorf("what only counts seconds is written again: %q", d.Evacuations[0].Status.Message)
	}
}

const restored = "StaticPodRestored"

func plain(t *testing.T) []nodeagent.File {
	t.Helper()
	return []nodeagent.File{file(t, "proxy.yaml", proxyText, "aaaa")}
}

var returns = map[string]struct {
	state  v1alpha1.StaticPodState
	ago    time.Duration
	change func(*testing.T, *nodeagent.Snapshot)
	want   outcome
}{
	"the maintenance is over": {
		v1alpha1.StaticPodHeld, time.Hour, func(_ *testing.T, s *nodeagent.Snapshot) { s.Node = aNode("") },
		outcome{moves: []string{back}, journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld},
	},
	"another maintenance wants less": {
		v1alpha1.StaticPodHeld, time.Hour, func(_ *testing.T, s *nodeagent.Snapshot) { s.Node = aNode(upTo6999) },
		outcome{moves: []string{back}, journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld},
	},
	"its manifest is back": {
		v1alpha1.StaticPodHeld, time.Hour, func(t *testing.T, s *nodeagent.Snapshot) { s.Node, s.Folder.Files = aNode(""), plain(t) },
		outcome{journal: []string{"proxy.yaml Restoring"}, events: []string{restored}, state: v1alpha1.StaticPodRestoring},
	},
	"it has yet to start": {
		v1alpha1.StaticPodRestoring, 59 * time.Second, func(t *testing.T, s *nodeagent.Snapshot) {
			s.Node, s.Folder.Files, s.Pods = aNode(""), plain(t), nil
		},
		outcome{journal: []string{"proxy.yaml Restoring"}, state: v1alpha1.StaticPodRestoring},
	},
	"it does not start": {
		v1alpha1.StaticPodRestoring, time.Minute, func(t *testing.T, s *nodeagent.Snapshot) {
			s.Node, s.Folder.Files, s.Pods = aNode(""), plain(t), nil
		},
		outcome{
			journal: []string{"proxy.yaml Restoring"}, state: v1alpha1.StaticPodRestoring, reason: v1alpha1.StaticPodNotStarted,
		},
	},
	"it runs": {
		v1alpha1.StaticPodRestoring, time.Second, func(t *testing.T, s *nodeagent.Snapshot) { s.Node, s.Folder.Files = aNode(""), plain(t) },
		outcome{state: v1alpha1.StaticPodRunning},
	},
	"its manifest is taken away after all": {
		v1alpha1.StaticPodRestoring, time.Second, func(_ *testing.T, s *nodeagent.Snapshot) { s.Node, s.Folder.Files, s.Pods = aNode(""), nil, nil },
		outcome{},
	},
	"the Node is unknown": {
		v1alpha1.StaticPodHeld, time.Hour, func(_ *testing.T, s *nodeagent.Snapshot) { s.Node, s.Live = nil, false },
		outcome{journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld},
	},
	"what has to stay away cannot be read": {
		v1alpha1.StaticPodHeld, time.Hour, func(_ *testing.T, s *nodeagent.Snapshot) { s.Node = aNode("}") },
		outcome{
			journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld,
		},
	},
	"the folder cannot be read": {
		v1alpha1.StaticPodHeld, time.Hour, func(_ *testing.T, s *nodeagent.Snapshot) {
			s.Node, s.Folder = aNode(""), nodeagent.Folder{Fault: v1alpha1.StaticPodUnreadable, Message: "/manifests: input/output error"}
		},
		outcome{journal: []string{"proxy.yaml Held"}},
	},
	"the folder is not there": {
		v1alpha1.StaticPodHeld, time.Hour, func(_ *testing.T, s *nodeagent.Snapshot) {
			s.Node, s.Folder = aNode(""), nodeagent.Folder{Known: true, Absent: true}
		},
		outcome{journal: []string{"proxy.yaml Held"}},
	},
	"the rename fails": {
		v1alpha1.StaticPodHeld, time.Hour, func(_ *testing.T, s *nodeagent.Snapshot) {
			s.Node, s.Failures = aNode(""), map[string]string{"proxy.yaml": "operation not permitted"}
		},
		outcome{
			moves: []string{back}, journal: []string{"proxy.yaml Held"}, state: v1alpha1.StaticPodHeld, reason: v1alpha1.StaticPodRefused,
		},
	},
}

func TestAPodComesBack(t *testing.T) {
	for name, test := range returns {
		t.Run(name, func(t *testing.T) {
			s := held(t, test.state, test.ago)
			test.change(t, s)
			check(t, s, test.want)
		})
	}
}
