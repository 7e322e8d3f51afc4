package node

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// Static pods are files that a kubelet runs. The agent renames them as the Node says, and
// these stories say it on the Node and in Evacuations, as the manager does.
func TestLongStaticPodsOnARealKubelet(t *testing.T) {
	s := newStatics(t, cluster.Spec{RealNodes: 1})
	play(t, s, []story[statics]{
		{"a pod leaves at its turn, with its grace period", (*statics).leaves},
		{"it stays away while kubelets and agents come and go", (*statics).staysAway},
		{"it comes back as it was, though its agent was dead at that time", (*statics).comesBack},
		{"the agent is killed right behind its rename", (*statics).killedBehindRename},
		{"somebody writes the manifest while it is aside", (*statics).writtenMeanwhile},
		{"the agent looks into another folder", (*statics).wrongFolder},
		{"somebody deletes the mirror pod of one that terminates", (*statics).mirrorDeleted},
		{"a NodeMaintenance takes it down and gives it back", (*statics).maintained},
		{"what the agent cannot take down is retained, and it says why", (*statics).unmanageable},
		{"somebody deletes the mirror pod of one that runs by force", (*statics).mirrorForced},
	})
}

func (s *statics) leaves(t *testing.T) {
	s.target(t, "-5")
	e := s.evacuate(t)
	time.Sleep(2 * time.Second)
	if _, there := s.has(staticFile); !there || s.agent == nil {
		t.Fatal("a pod above the target has left")
	}
	begin := time.Now()
	s.target(t, "0")
	s.aside(t, true)
	t.Logf("aside %s after the Node says so", time.Since(begin).Round(time.Millisecond))
	s.awaitState(t, v1alpha1.StaticPodHolding)
	patience.Eventually(t, "the program to be asked to end", func(context.Context) (string, bool) {
		return "it is not", len(s.diary.notes(t, "asked to end")) == 1
	})
	t.Logf("asked to end %s after the Node says so", s.diary.once(t, "asked to end").Sub(begin).Round(time.Millisecond))
	evacuation, want := &v1alpha1.Evacuation{}, "edge-"+s.node+" is terminating the pod due to node maintenance."
	patience.Eventually(t, fmt.Sprintf("the Evacuation to tell %q", want), func(ctx context.Context) (string, bool) {
		err := s.Client.Get(ctx, e, evacuation)
		return fmt.Sprintf("%+v %v", evacuation.Status, err), evacuation.Status.ExpectedEvacuationFinishTime != nil && evacuation.Status.Message == want
	})
	s.awaitState(t, v1alpha1.StaticPodHeld)
	took := time.Since(begin)
	t.Logf("held after %s", took.Round(time.Millisecond))
	if took < 3*time.Second || s.mirror(t.Context()) != nil {
		t.Errorf("held after %s, mirror %v; want the three seconds that the program takes, and no mirror", took, s.mirror(t.Context()))
	}
}

// kubeletRestarts is how often the kubelet is restarted while a pod is held.
var kubeletRestarts = flag.Int("kubelet-restarts", 3, "how often TestLongStaticPodsOnARealKubelet restarts the kubelet while a pod is held")

func (s *statics) staysAway(t *testing.T) {
	before := len(s.diary.notes(t, "serving"))
	for n := range *kubeletRestarts {
		restartKubelet(t, s.Cluster, s.node)
		if n%10 == 1 {
			s.agent.Kill()
			s.startAgent(s.dir)
		}
		// What a kubelet runs it starts within a second.
		time.Sleep(2 * time.Second)
		if pod := s.mirror(t.Context()); pod != nil {
			t.Fatalf("after restart %d of the kubelet there is a mirror pod: %+v", n, pod.Status)
		}
	}
	started := s.diary.notes(t, "serving")[before:]
	t.Logf("%d restarts of the kubelet, %d starts of the program", *kubeletRestarts, len(started))
	if len(started) > 0 {
		t.Errorf("the program was started while it was held: %v", started)
	}
	s.awaitState(t, v1alpha1.StaticPodHeld)
}

func (s *statics) comesBack(t *testing.T) {
	before, _ := s.has(heldFile)
	s.agent.Kill()
	s.target(t, "")
	time.Sleep(time.Second)
	if _, held := s.has(heldFile); !held {
		t.Fatal("without an agent somebody has brought the manifest back")
	}
	begin := time.Now()
	s.startAgent(s.dir)
	s.aside(t, false)
	s.awaitMirror(t, "to run again", isPodReady)
	t.Logf("it runs %s after its agent was started", time.Since(begin).Round(time.Millisecond))
	s.awaitState(t, v1alpha1.StaticPodRunning)
	if after, _ := s.has(staticFile); after != before {
		t.Errorf("the manifest had sum %s and has %s", before, after)
	}
	for _, reason := range []string{v1alpha1.EventStaticPodHeld, v1alpha1.EventStaticPodRestored} {
		patience.Eventually(t, "event "+reason, func(ctx context.Context) (string, bool) {
			events := &corev1.EventList{}
			err := s.Client.List(ctx, events, client.MatchingFields{"reason": reason, "involvedObject.name": s.node})
			return fmt.Sprint(len(events.Items), err), len(events.Items) > 0
		})
	}
}

// killedBehindRename kills the agent when it has done nothing but the rename.
func (s *statics) killedBehindRename(t *testing.T) {
	s.evacuate(t)
	s.target(t, "0")
	s.aside(t, true)
	s.agent.Kill()
	s.startAgent(s.dir)
	s.awaitState(t, v1alpha1.StaticPodHeld)
}

func (s *statics) writtenMeanwhile(t *testing.T) {
	s.write(t, staticText+"# anew\n")
	s.aside(t, true)
	wanted, _ := s.has(heldFile)
	s.target(t, "")
	s.aside(t, false)
	s.awaitState(t, v1alpha1.StaticPodRunning)
	s.awaitMirror(t, "to run again", isPodReady)
	data, err := os.ReadFile(filepath.Join(s.dir, staticFile))
	if sum, _ := s.has(staticFile); err != nil || sum != wanted || !strings.HasSuffix(string(data), "# anew\n") {
		t.Errorf("what was written last is not what is back: %v\n%s", err, data)
	}
}

// mirrorDeleted deletes the mirror pod while it terminates, which the API shows until it is
// down.
func (s *statics) mirrorDeleted(t *testing.T) {
	s.agent.Kill()
	s.startAgent(s.dir)
	s.awaitState(t, v1alpha1.StaticPodRunning)
	s.evacuate(t)
	s.target(t, "0")
	s.aside(t, true)
	if err := s.Client.Delete(t.Context(), s.mirror(t.Context())); err != nil {
		t.Fatal(err)
	}
	s.awaitState(t, v1alpha1.StaticPodHeld)
	if asked, ended := s.diary.notes(t, "asked to end"), s.diary.notes(t, "ended"); len(ended) < len(asked) {
		t.Errorf("held while the program still ends: asked at %v, ended at %v", asked, ended)
	}
	s.target(t, "")
	s.aside(t, false)
	s.awaitMirror(t, "to run again", isPodReady)
	s.awaitState(t, v1alpha1.StaticPodRunning)
}

// mirrorForced deletes the mirror pod by force while it runs. The kubelet takes a minute and
// more to make another one, and meanwhile the agent does not take the pod for gone.
func (s *statics) mirrorForced(t *testing.T) {
	running := s.awaitMirror(t, "to run", isPodReady)
	if err := s.Client.Delete(t.Context(), running, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, "the agent to tell that it runs on", func(context.Context) (string, bool) {
		told := s.awaitState(t, v1alpha1.StaticPodRunning)
		return fmt.Sprintf("%+v", told), told.Reason == v1alpha1.StaticPodNoMirror
	})
}

func (s *statics) wrongFolder(t *testing.T) {
	s.agent.Kill()
	wrong := t.TempDir()
	s.startAgent(wrong)
	told := s.awaitState(t, v1alpha1.StaticPodUnmanageable)
	want := "no file in " + wrong + " defines default/edge-" + s.node + ". Set --manifest-dir of the agent to the kubelet's staticPodPath."
	agent := &v1alpha1.NodeAgent{}
	if err := s.Client.Get(t.Context(), types.NamespacedName{Name: s.node}, agent); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(agent.Status.Conditions, v1alpha1.ConditionStaticPodsManageable)
	if told.Reason != v1alpha1.StaticPodNoManifest || told.Message != want || c == nil || c.Reason != v1alpha1.StaticPodNoManifest {
		t.Errorf("it tells %+v and %+v, want %q", told, c, want)
	}
}

// maintained leaves all to the manager: it asks for the pod at its turn, and takes the
// agent's word for its end.
func (s *statics) maintained(t *testing.T) {
	m := s.drain(t, "static")
	if told := s.awaitState(t, v1alpha1.StaticPodHeld); told.MaintenanceName != m.Name || s.mirror(t.Context()) != nil {
		t.Errorf("it is drained, and the agent tells %+v", told)
	}
	s.giveBack(t, m)
}

// drain has the manager drain the node of all.
func (s *statics) drain(t testing.TB, name string) *v1alpha1.NodeMaintenance {
	t.Helper()
	s.StartManager(t)
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeMaintenanceSpec{
		Reason: "a story", Stage: v1alpha1.StageDrain, DrainDepth: v1alpha1.PodTypeStatic,
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{s.node}},
		}}}},
	}}
	patience.Eventually(t, "the maintenance to be taken", func(ctx context.Context) (string, bool) {
		err := s.Client.Create(ctx, m)
		return fmt.Sprint(err), err == nil
	})
	begin := time.Now()
	patience.Eventually(t, "the node to be drained", func(ctx context.Context) (string, bool) {
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(m), m)
		return fmt.Sprintf("%+v %v", m.Status, err), meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained)
	})
	t.Logf("drained after %s", time.Since(begin).Round(time.Millisecond))
	return m
}

// giveBack completes a maintenance and waits until the pod runs.
func (s *statics) giveBack(t testing.TB, m *v1alpha1.NodeMaintenance) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"stage":"Complete"}}`))
	if err := s.Client.Patch(t.Context(), m, patch); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	s.awaitMirror(t, "to run again", isPodReady)
	t.Logf("it runs %s after Complete", time.Since(begin).Round(time.Millisecond))
	s.awaitState(t, v1alpha1.StaticPodRunning)
}
