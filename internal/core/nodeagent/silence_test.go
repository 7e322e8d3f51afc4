package nodeagent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodeagent"
)

// silent is a node whose control plane and whose proxy are away, and to which no API
// server answers. What it knows of the Node is old.
func silent(t *testing.T) *nodeagent.Snapshot {
	t.Helper()
	s := controlStory(t)
	putAside(t, s, 4, v1alpha1.StaticPodHeld)
	s.Folder.Files = append(s.Folder.Files, file(t, heldProxy, proxyText, "aaaa"))
	s.Journal.Manifests = append(s.Journal.Manifests, entry(v1alpha1.StaticPodHeld, time.Minute))
	s.Live, s.ControlPlane.RestoreAfter = false, 10*time.Minute
	s.ControlPlane.Signs = nodeagent.Signs{Uptime: time.Hour, Began: time.Minute, Answered: 50 * time.Minute}
	return s
}

var allBack = strings.Join([]string{back2("etcd"), back2("kube-apiserver"), back2("kube-controller-manager"), back2("kube-scheduler")}, ", ")

func TestControlPlaneReturnsWithoutAnAPIServer(t *testing.T) {
	ofBoot := func(boot string, since int64) *nodeagent.Silence {
		return &nodeagent.Silence{BootID: boot, SinceSeconds: since}
	}
	for name, test := range map[string]struct {
		change func(*nodeagent.Snapshot)
		back   bool
		after  time.Duration
	}{
		"ten minutes":             {func(*nodeagent.Snapshot) {}, true, 0},
		"a moment less":           {func(s *nodeagent.Snapshot) { s.ControlPlane.Signs.Answered += time.Millisecond }, false, time.Millisecond},
		"nothing of the Node":     {func(s *nodeagent.Snapshot) { s.Node, s.Pods = nil, nil }, true, 0},
		"an agent that retains":   {func(s *nodeagent.Snapshot) { s.ControlPlane.Terminate, s.ControlPlane.Host = false, false }, true, 0},
		"never":                   {func(s *nodeagent.Snapshot) { s.ControlPlane.RestoreAfter = 0 }, false, 0},
		"no clock":                {func(s *nodeagent.Snapshot) { s.ControlPlane.Signs = nodeagent.Signs{} }, false, 0},
		"a wall clock that jumps": {func(s *nodeagent.Snapshot) { s.Now = s.Now.Add(-1000 * time.Hour) }, true, 0},
		"a wall clock that jumps ahead": {func(s *nodeagent.Snapshot) {
			s.Now = s.Now.Add(1000 * time.Hour)
			s.ControlPlane.Signs.Answered = s.ControlPlane.Signs.Uptime
		}, false, 10 * time.Minute},
		"an agent that has just begun": {func(s *nodeagent.Snapshot) {
			s.ControlPlane.Signs = nodeagent.Signs{Uptime: time.Hour, Began: time.Hour - time.Second}
		}, false, 10*time.Minute - time.Second},
		"an agent that has just begun anew": {func(s *nodeagent.Snapshot) {
			s.ControlPlane.Signs = nodeagent.Signs{Uptime: time.Hour, Began: time.Hour - time.Second}
			s.Journal.Silence = ofBoot("boot-1", 3000)
		}, true, 0},
		"one that has just begun in another boot": {func(s *nodeagent.Snapshot) {
			s.ControlPlane.Signs = nodeagent.Signs{Uptime: time.Hour, Began: time.Hour - time.Second}
			s.Journal.Silence = ofBoot("boot-0", 3)
		}, false, 10*time.Minute - time.Second},
		"an answer long before it began to ask": {func(s *nodeagent.Snapshot) {
			s.ControlPlane.Signs = nodeagent.Signs{Uptime: time.Hour, Began: time.Hour - time.Minute, Answered: time.Second}
		}, false, 9 * time.Minute},
		"one that has begun anew and was answered": {func(s *nodeagent.Snapshot) {
			s.ControlPlane.Signs = nodeagent.Signs{Uptime: time.Hour, Began: time.Hour - time.Minute, Answered: time.Hour - time.Second}
			s.Journal.Silence = ofBoot("boot-1", 3)
		}, false, 10*time.Minute - time.Second},
		"a journal of the future": {func(s *nodeagent.Snapshot) {
			s.ControlPlane.Signs = nodeagent.Signs{Uptime: time.Hour, Began: 50 * time.Minute}
			s.Journal.Silence = ofBoot("boot-1", 1<<40)
		}, true, 0},
		"a folder that cannot be written": {func(s *nodeagent.Snapshot) { s.Folder.Fault = v1alpha1.StaticPodReadOnly }, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := silent(t)
			test.change(s)
			d := nodeagent.Decide(*s)
			want := ""
			if test.back {
				want = allBack
			}
			if got := strings.Join(moves(d), ", "); got != want {
				t.Errorf("moves %s, want %s", got, want)
			}
			if d.After != test.after {
				t.Errorf("decides again after %s, want %s", d.After, test.after)
			}
		})
	}
}

// Only what is away waits for an answer.
func TestSilenceIsWrittenDownWhileSomethingIsAway(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*nodeagent.Snapshot)
		want   int64
	}{
		"for ten minutes": {func(*nodeagent.Snapshot) {}, 3000},
		"for a blip": {func(s *nodeagent.Snapshot) {
			s.ControlPlane.Signs.Answered = time.Hour - 29*time.Second
		}, -1},
		"for half a minute": {func(s *nodeagent.Snapshot) {
			s.ControlPlane.Signs.Answered = time.Hour - 30*time.Second
		}, 3570},
		"from the first moment": {func(s *nodeagent.Snapshot) {
			s.ControlPlane.Signs = nodeagent.Signs{Uptime: time.Hour, Began: time.Hour}
		}, 3600},
		"with nothing but the proxy away": {func(s *nodeagent.Snapshot) {
			s.Folder.Files, s.Journal.Manifests = s.Folder.Files[4:], s.Journal.Manifests[4:]
		}, -1},
		"in the same boot, before": {func(s *nodeagent.Snapshot) {
			s.ControlPlane.Signs = nodeagent.Signs{Uptime: time.Hour, Began: time.Hour - time.Minute}
			s.Journal.Silence = &nodeagent.Silence{BootID: "boot-1", SinceSeconds: 3400}
		}, 3400},
	} {
		s := silent(t)
		test.change(s)
		d := nodeagent.Decide(*s)
		j := s.Journal
		if d.Journal != nil {
			j = *d.Journal
		}
		switch {
		case test.want < 0 && j.Silence != nil, test.want >= 0 && (j.Silence == nil || *j.Silence != nodeagent.Silence{BootID: "boot-1", SinceSeconds: test.want}):
			t.Errorf("%s: written down is %+v, want since %d", name, j.Silence, test.want)
		}
	}
}

// Its mirror pod may be there before anybody knows that the API answers: it is told of then.
func TestUnreportedResultsStayRecorded(t *testing.T) {
	s := silent(t)
	s.Journal = *nodeagent.Decide(*s).Journal
	for i, component := range programs {
		s.Folder.Files[i] = file(t, component+".yaml", partText(component), component)
		s.Pods = append(s.Pods, partMirror(component, "node-7"))
	}
	d := nodeagent.Decide(*s)
	if len(reasons(t, d)) > 0 || d.Journal == nil || len(d.Journal.Manifests) != 5 {
		t.Errorf("without an answer it tells %v and writes %+v", reasons(t, d), d.Journal)
	}
	s.Journal, s.ControlPlane.Signs.Answered = *d.Journal, s.ControlPlane.Signs.Uptime
	if d = nodeagent.Decide(*s); len(reasons(t, d)) != 4 || len(d.Journal.Manifests) != 1 {
		t.Errorf("with one it tells %v and writes %+v", reasons(t, d), d.Journal)
	}
}

// Somebody has written the file anew meanwhile: that one runs.
func TestForeignObjectsAreLeftAlone(t *testing.T) {
	s := silent(t)
	s.Folder.Files = append(s.Folder.Files, file(t, "etcd.yaml", partText("etcd"), "theirs"))
	if d := nodeagent.Decide(*s); strings.Contains(strings.Join(moves(d), ", "), "etcd") {
		t.Errorf("moves %v", moves(d))
	}
}

// Its file cannot be read any more, and the journal knows what it was.
func TestAPartThatCannotBeReadComesBackToo(t *testing.T) {
	s := silent(t)
	for i := range s.Folder.Files {
		s.Folder.Files[i].Manifest, s.Folder.Files[i].Fault = nil, "input/output error"
	}
	want := []string{back2("etcd"), back2("kube-apiserver"), back2("kube-controller-manager"), back2("kube-scheduler")}
	got := moves(nodeagent.Decide(*s))
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("moves %v, want %v", got, want)
	}
}

// What cannot be told now, or is not so any more, is told later, or not at all.
func TestUnrequestedReturnsAreReported(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*testing.T, *nodeagent.Snapshot)
		event  string
		untold bool
	}{
		"an API server answers": {func(*testing.T, *nodeagent.Snapshot) {}, v1alpha1.EventStaticPodRestored, false},
		"nobody knows the Node": {func(_ *testing.T, s *nodeagent.Snapshot) { s.Node = nil }, "", true},
		"nobody has answered since a moment after the start": {func(_ *testing.T, s *nodeagent.Snapshot) {
			s.ControlPlane.Signs = nodeagent.Signs{Uptime: 20 * time.Second, Began: time.Second}
		}, "", true},
		"nobody answers any more": {func(_ *testing.T, s *nodeagent.Snapshot) {
			s.ControlPlane.Signs.Answered = s.ControlPlane.Signs.Uptime - 30*time.Second
		}, "", true},
		"it was written down and then not done": {func(t *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files[3] = file(t, nodeagent.HeldName("etcd.yaml"), partText("etcd"), "etcd")
		}, "", false},
		"somebody has taken the file away": {func(_ *testing.T, s *nodeagent.Snapshot) {
			s.Folder.Files = s.Folder.Files[:3]
		}, v1alpha1.EventManifestGone, false},
	} {
		s := controlStory(t)
		putAside(t, s, 4, v1alpha1.StaticPodHeld)
		s.Folder.Files[3] = file(t, "etcd.yaml", partText("etcd"), "etcd")
		s.Journal.Manifests[0].Unanswered = true
		test.change(t, s)
		d := nodeagent.Decide(*s)
		j := s.Journal
		if d.Journal != nil {
			j = *d.Journal
		}
		words := strings.Join(reasons(t, d), ", ")
		if untold := j.Manifests[0].Unanswered; untold != test.untold || !strings.HasPrefix(words, test.event) || (words == "") != (test.event == "") {
			t.Errorf("%s: it is untold: %t, told: %s", name, untold, words)
		}
	}
}

// Whoever has lost the journal finds out what is part of the control plane.
func TestALostJournalKnowsTheControlPlane(t *testing.T) {
	s := silent(t)
	s.Journal = nodeagent.Journal{}
	for _, e := range nodeagent.Decide(*s).Journal.Manifests {
		if e.ControlPlane == (e.File == "proxy.yaml") {
			t.Errorf("%s is part of the control plane: %t", e.File, e.ControlPlane)
		}
	}
}

// The order is that of the programs, and not of their files.
func TestTheOrderIsNotThatOfFiles(t *testing.T) {
	s := silent(t)
	s.Journal = nodeagent.Journal{}
	s.Folder.Files = nil
	for i, component := range programs {
		s.Folder.Files = append(s.Folder.Files, file(t, nodeagent.HeldName(fmt.Sprintf("%d.yaml", i)), partText(component), component))
	}
	want := ".3.yaml.ebbtide-held → 3.yaml, .2.yaml.ebbtide-held → 2.yaml, .1.yaml.ebbtide-held → 1.yaml, .0.yaml.ebbtide-held → 0.yaml"
	if got := strings.Join(moves(nodeagent.Decide(*s)), ", "); got != want {
		t.Errorf("moves %s, want %s", got, want)
	}
}
