package trace_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/trace"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/goal"
	"ebbtide.dev/ebbtide/test/golden"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

func judge(t *testing.T, object trace.Object, facts trace.Facts) (does []string) {
	t.Helper()
	facts.Now = now
	f, _ := trace.Of(object, facts)
	for _, note := range f.Notes {
		golden.Message(t, note)
	}
	return f.Does
}

func TestANodeIsGivenBack(t *testing.T) {
	const remove = "remove annotation ebbtide.dev/cordon"
	for name, tt := range map[string]struct {
		cordoned bool
		ledger   string
		want     []string
		after    bool
	}{
		"that was schedulable":                  {true, `{"wasUnschedulable":false,"holders":["m"]}`, []string{"make it schedulable", remove}, false},
		"that somebody had cordoned before":     {true, `{"wasUnschedulable":true,"holders":["m"]}`, []string{"leave it cordoned, as it was before its maintenance", remove}, true},
		"that somebody uncordoned meanwhile":    {false, `{"wasUnschedulable":true,"holders":["m"]}`, []string{remove}, false},
		"of which nobody knows what it was":     {true, `{"wasUnschedulable":false,"unknown":true,"holders":["m"]}`, []string{"leave it as it is", remove}, true},
		"whose ledger somebody has overwritten": {true, "\x1b[2J", []string{"leave it as it is", remove}, true},
		"that only a person has cordoned":       {true, "", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: tt.cordoned}}
			if tt.ledger != "" {
				node.Annotations = map[string]string{v1alpha1.CordonAnnotation: tt.ledger, "example.com/rack": "1"}
			}
			difference.None(t, "what is done", tt.want, judge(t, node, trace.Facts{}))
			assertBecomes(t, node, &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: tt.after}, ObjectMeta: annotated("example.com/rack", "1")})
		})
	}
}

// What autoscalers read is given back, too, unless somebody has said otherwise meanwhile.
func TestAutoscalersAreLetAtANodeAgain(t *testing.T) {
	const (
		karpenter = v1alpha1.KarpenterDoNotDisruptAnnotation
		scaleDown = v1alpha1.ScaleDownDisabledAnnotation
		ledger    = `{"wasUnschedulable":false,"holders":["m"],"protected":{"karpenter.sh/do-not-disrupt":{"was":"false"},"cluster-autoscaler.kubernetes.io/scale-down-disabled":{}}}`
	)
	node := &corev1.Node{ObjectMeta: annotated(v1alpha1.CordonAnnotation, ledger), Spec: corev1.NodeSpec{Unschedulable: true}}
	node.Annotations[karpenter], node.Annotations[scaleDown] = "true", "true"
	want := []string{
		"make it schedulable", "remove annotation ebbtide.dev/cordon",
		"remove annotation cluster-autoscaler.kubernetes.io/scale-down-disabled", `restore annotation karpenter.sh/do-not-disrupt to "false"`,
	}
	difference.None(t, "what is done", want, judge(t, node, trace.Facts{}))
	assertBecomes(t, node, &corev1.Node{ObjectMeta: annotated(karpenter, "false")})

	node.Annotations[scaleDown] = "no"
	node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.KarpenterDisruptedTaint, Effect: corev1.TaintEffectNoSchedule}}
	want = []string{"make it schedulable", "remove annotation ebbtide.dev/cordon", `restore annotation karpenter.sh/do-not-disrupt to "false"`}
	difference.None(t, "what is done", want, judge(t, node, trace.Facts{}))
}

func assertBecomes(t *testing.T, object, want trace.Object) {
	t.Helper()
	f, found := trace.Of(object, trace.Facts{})
	if !found {
		return
	}
	difference.None(t, "it becomes", want, f.Without)
	if again, found := trace.Of(f.Without, trace.Facts{}); found {
		t.Errorf("it still bears something: %v", again.Does)
	}
}

func TestTaintsAndConditionsOfOthersStay(t *testing.T) {
	theirs := corev1.Taint{Key: v1alpha1.DaemonSetTaint, Effect: corev1.TaintEffectNoExecute}
	node := &corev1.Node{
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: v1alpha1.DaemonSetTaint, Effect: corev1.TaintEffectNoSchedule}, theirs}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Reason: "KubeletReady"},
			{Type: v1alpha1.NodeDrained, Reason: v1alpha1.ReasonNodeMaintenance},
			{Type: v1alpha1.NodeMaintenancePlanned, Reason: "Somebody"},
		}},
	}
	f, _ := trace.Of(node, trace.Facts{})
	want := []string{"remove taint ebbtide.dev/daemonset-drain", "remove conditions Drained"}
	difference.None(t, "what is done", want, f.Does)
	difference.None(t, "taints", []corev1.Taint{theirs}, f.Without.(*corev1.Node).Spec.Taints)
}

func TestADetachedPodGoesBack(t *testing.T) {
	const record = `{"pod":"p","deployment":{"name":"web","uid":"d"},"replicaSet":{"name":"web-1","uid":"r"},"hash":"abc","since":"2026-03-01T11:59:00Z","need":2}`
	for name, tt := range map[string]struct {
		record, hash string
		facts        trace.Facts
		want         []string
		after        string
	}{
		"to its ReplicaSet":        {record, "detached-by-ebbtide", trace.Facts{}, []string{"return it to its ReplicaSet", "remove annotation ebbtide.dev/surge"}, "abc"},
		"a label that is its own":  {record, "abc", trace.Facts{}, []string{"remove annotation ebbtide.dev/surge"}, "abc"},
		"to one that is gone":      {record, "detached-by-ebbtide", trace.Facts{Homeless: true}, []string{"return it to its ReplicaSet", "remove annotation ebbtide.dev/surge"}, "abc"},
		"the copy of one":          {strings.Replace(record, `"p"`, `"q"`, 1), "detached-by-ebbtide", trace.Facts{}, []string{"remove label pod-template-hash", "remove annotation ebbtide.dev/surge"}, ""},
		"with a hash nobody could": {strings.Replace(record, "abc", "a b", 1), "detached-by-ebbtide", trace.Facts{}, []string{"remove label pod-template-hash", "remove annotation ebbtide.dev/surge"}, ""},
		"without a record":         {"", "detached-by-ebbtide", trace.Facts{}, []string{"remove label pod-template-hash"}, ""},
		"never detached":           {"", "abc", trace.Facts{}, nil, "abc"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p", Labels: map[string]string{"pod-template-hash": tt.hash, "app": "web"}}}
			if tt.record != "" {
				pod.Annotations = map[string]string{v1alpha1.SurgeAnnotation: tt.record}
			}
			difference.None(t, "what is done", tt.want, judge(t, pod, tt.facts))
			if f, found := trace.Of(pod, tt.facts); found {
				if got := f.Without.GetLabels(); got["pod-template-hash"] != tt.after || got["app"] != "web" || len(f.Without.GetAnnotations()) > 0 {
					t.Errorf("it becomes %v, %v", got, f.Without.GetAnnotations())
				}
			}
		})
	}
}

func TestPodThatMadeRoomCostsTheSame(t *testing.T) {
	const mark = `{"deployment":{"name":"web","uid":"d"},"for":"p"`
	for name, tt := range map[string]struct{ mark, cost, want string }{
		"something":                   {mark + `,"cost":"7"}`, "-2", "7"},
		"nothing":                     {mark + `}`, "-2", ""},
		"what no pod can cost":        {mark + `,"cost":"\u001b[2J"}`, "-2", "-2"},
		"nobody knows what":           {"{", "5", "5"},
		"more than a number can hold": {mark + `,"cost":"99999999999"}`, "-2", "-2"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: annotated(v1alpha1.SurgeReplacementAnnotation, tt.mark)}
			pod.Annotations[corev1.PodDeletionCost] = tt.cost
			f, _ := trace.Of(pod, trace.Facts{})
			if diff := cmp.Diff([]string{"remove annotation ebbtide.dev/surge-replacement"}, f.Does); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if got := f.Without.GetAnnotations(); got[corev1.PodDeletionCost] != tt.want || len(got) > 1 {
				t.Errorf("it becomes %q, want the cost %q", got, tt.want)
			}
		})
	}
}

func TestABudgetIsUnlocked(t *testing.T) {
	remove := []string{"remove annotation ebbtide.dev/lock"}
	const until = `"acquiredAt":"2026-03-01T11:55:00Z","expiresAt":"2026-03-01T12:05:00Z"}`
	for name, tt := range map[string]struct {
		lock string
		want []string
	}{
		"by a drain":               {`{"holder":"nodemaintenance/m/n",` + until, remove},
		"and its owner is told of": {`{"holder":"user/anna","reason":"moving\u001b[2J shards",` + until, remove},
		"that nobody can read":     {"yes", remove},
		"whose lock has ended":     {`{"holder":"user/anna","acquiredAt":"2026-03-01T10:55:00Z","expiresAt":"2026-03-01T11:05:00Z"}`, remove},
	} {
		t.Run(name, func(t *testing.T) {
			b := &policyv1.PodDisruptionBudget{ObjectMeta: annotated(v1alpha1.LockAnnotation, tt.lock)}
			b.Namespace, b.Name = "shop", "web"
			difference.None(t, "what is done", tt.want, judge(t, b, trace.Facts{}))
		})
	}
}

func TestAMaintenanceEnds(t *testing.T) {
	const drop = "remove finalizer nodemaintenance.k8s.io/maintenance-completion"
	stages := func(names ...v1alpha1.NodeMaintenanceStage) (all []v1alpha1.StageStatus) {
		for _, name := range names {
			all = append(all, v1alpha1.StageStatus{Name: name, StartTimestamp: &metav1.Time{Time: now}})
		}
		return all
	}
	for name, tt := range map[string]struct {
		stage v1alpha1.NodeMaintenanceStage
		ran   []v1alpha1.StageStatus
		held  bool
		want  []string
	}{
		"that drains":                        {v1alpha1.StageDrain, stages(v1alpha1.StageDrain), true, []string{"set stage Complete instead of Drain", drop}},
		"that nobody has begun to act on":    {v1alpha1.StageCordon, nil, false, []string{"set stage Complete instead of Cordon"}},
		"that is being completed":            {v1alpha1.StageComplete, stages(v1alpha1.StageDrain, v1alpha1.StageComplete), true, []string{"mark it as complete", drop}},
		"whose completion nobody has seen":   {v1alpha1.StageComplete, nil, false, []string{"mark it as complete"}},
		"unless it is history":               {v1alpha1.StageComplete, stages(v1alpha1.StageDrain, v1alpha1.StageComplete), false, nil},
		"unless it is planned":               {v1alpha1.StageIdle, nil, false, nil},
		"planned, with somebody's finalizer": {v1alpha1.StageIdle, nil, true, []string{drop}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.NodeMaintenance{Spec: v1alpha1.NodeMaintenanceSpec{Stage: tt.stage}, Status: v1alpha1.NodeMaintenanceStatus{StageStatuses: tt.ran}}
			if len(tt.ran) > 1 {
				m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Done"}}
			}
			if tt.held {
				m.Finalizers = []string{"example.com/theirs", v1alpha1.MaintenanceCompletionFinalizer}
			}
			f, _ := trace.Of(m, trace.Facts{Now: now, Why: "Released."})
			if diff := cmp.Diff(tt.want, f.Does); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			assertHistory(t, m, f)
		})
	}
}

// A rollout starts no node any more, and its records no longer keep their NodeMaintenances.
func TestARolloutGoesAndReleasesItsRecords(t *testing.T) {
	const drop = "remove finalizer ebbtide.dev/rollout"
	stays := metav1.ObjectMeta{Finalizers: []string{"example.com/theirs", v1alpha1.RolloutFinalizer}}
	over := v1alpha1.NodeMaintenanceStatus{
		StageStatuses: []v1alpha1.StageStatus{{Name: v1alpha1.StageComplete}},
		Conditions:    []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Done"}},
	}
	for name, tt := range map[string]struct {
		object trace.Object
		want   []string
	}{
		"a rollout":                  {&v1alpha1.NodeRollout{ObjectMeta: stays}, []string{"delete it", drop}},
		"one that was never started": {&v1alpha1.NodeRollout{}, []string{"delete it"}},
		"a record": {&v1alpha1.NodeMaintenance{
			ObjectMeta: stays, Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageComplete}, Status: over,
		}, []string{drop}},
		"a drain": {&v1alpha1.NodeMaintenance{
			ObjectMeta: stays, Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain},
		}, []string{"set stage Complete instead of Drain", drop}},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := trace.Of(tt.object, trace.Facts{Now: now})
			difference.None(t, "what is done", tt.want, f.Does)
			if f.Without != nil && len(f.Without.GetFinalizers()) != 1 {
				t.Errorf("finalizers %v are left, want that of others", f.Without.GetFinalizers())
			}
		})
	}
}

func assertHistory(t *testing.T, m *v1alpha1.NodeMaintenance, f trace.Finding) {
	t.Helper()
	if f.Status == nil {
		return
	}
	if f.Status.Summary != "Released." || len(f.Status.NodeStatuses) > 0 {
		t.Errorf("its status is %+v", f.Status)
	}
	// The API server takes neither twice.
	completions, outcomes := 0, 0
	for _, ran := range f.Status.StageStatuses {
		if ran.Name == v1alpha1.StageComplete {
			completions++
		}
	}
	for _, condition := range f.Status.Conditions {
		if condition.Type == v1alpha1.ConditionSucceeded {
			outcomes++
		}
	}
	if completions != 1 || outcomes != 1 {
		t.Errorf("it was completed %d times with %d outcomes: %+v", completions, outcomes, f.Status)
	}
	after := m.DeepCopy()
	if f.Without != nil {
		after = f.Without.(*v1alpha1.NodeMaintenance)
	}
	after.Status = *f.Status
	if again, found := trace.Of(after, trace.Facts{Now: now}); found {
		t.Errorf("there is still something to do: %v", again.Does)
	}
}

func TestFinalizersOfOthersStay(t *testing.T) {
	gone := &metav1.Time{Time: now}
	evacuation := &v1alpha1.Evacuation{ObjectMeta: finalizers(v1alpha1.NodeMaintenanceInstigator, v1alpha1.InstigatorFinalizerPrefix+"jane", "example.com/\x1b[2Jaudit")}
	evacuation.DeletionTimestamp = gone
	difference.None(t, "an Evacuation", []string{"delete it", "remove finalizer " + v1alpha1.NodeMaintenanceInstigator, "remove finalizer " + v1alpha1.InstigatorFinalizerPrefix + "jane"}, judge(t, evacuation, trace.Facts{}))
	machine := &v1alpha1.Machine{ObjectMeta: finalizers(v1alpha1.MachineFinalizer)}
	machine.DeletionTimestamp = gone
	difference.None(t, "a Machine", []string{"remove finalizer ebbtide.dev/machine"}, judge(t, machine, trace.Facts{}))
}

// Whatever somebody has written on an object, a decision is made, and what is said of it
// is one line that can be shown.
func TestWhateverIsWritten(t *testing.T) {
	nasty := "\x1b]0;owned\x07\n" + strings.Repeat("x", 1<<18)
	for _, object := range []trace.Object{
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.CordonAnnotation: nasty, v1alpha1.DrainTargetsAnnotation: nasty}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeConditionType(nasty), Reason: v1alpha1.ReasonNodeMaintenance}}},
		},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.SurgeAnnotation: nasty, v1alpha1.SurgeReplacementAnnotation: nasty}}},
		&policyv1.PodDisruptionBudget{ObjectMeta: annotated(v1alpha1.LockAnnotation, marshalled(t, map[string]any{"holder": nasty, "expiresAt": now.Add(time.Hour), "reason": nasty}))},
		&v1alpha1.Evacuation{ObjectMeta: finalizers(v1alpha1.InstigatorFinalizerPrefix+nasty, nasty)},
		&v1alpha1.NodeMaintenance{Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.NodeMaintenanceStage(nasty)}},
	} {
		got, found := trace.Of(object, trace.Facts{Now: now})
		if !found {
			t.Errorf("nothing is done about a %T", object)
		}
		for _, words := range append(got.Does, got.Notes...) {
			if strings.ContainsAny(words, "\x1b\x07\n") || len(words) > 500 {
				t.Errorf("a %T is told of in %d bytes: %.200q", object, len(words), words)
			}
		}
	}
}

func heldByMany() *v1alpha1.Evacuation {
	var many []string
	for n := range 20_000 {
		many = append(many, fmt.Sprintf("%sjane-%d", v1alpha1.InstigatorFinalizerPrefix, n), fmt.Sprintf("example.com/audit-%d", n))
	}
	return &v1alpha1.Evacuation{ObjectMeta: finalizers(many...)}
}

// BenchmarkThousandsOfFinalizers tells of an evacuation that users hold by as many as fit.
func BenchmarkThousandsOfFinalizers(b *testing.B) {
	e := heldByMany()
	goal.Time(b, time.Second)
	for b.Loop() {
		trace.Of(e, trace.Facts{})
	}
}

// Whoever may ask for an evacuation may do so by as many finalizers as fit into an object.
func TestThousandsOfFinalizersTakeFiveLines(t *testing.T) {
	f, _ := trace.Of(heldByMany(), trace.Facts{})
	golden.Message(t, f.Notes...)
	prefix := "remove finalizer " + v1alpha1.InstigatorFinalizerPrefix
	want := []string{"delete it", prefix + "jane-0", prefix + "jane-1", prefix + "jane-2", "remove 19997 more of these"}
	difference.None(t, "what is done", want, f.Does)
	if kept := f.Without.GetFinalizers(); len(kept) != 20_000 || kept[0] != "example.com/audit-0" {
		t.Errorf("it keeps %d finalizers, %.100q", len(kept), kept)
	}
}

// Nothing of what an agent says becomes a command of whoever copies the note.
func TestAgentThatKeepsPodsAwayIsReported(t *testing.T) {
	for name, tt := range map[string]struct {
		dir   string
		state v1alpha1.StaticPodState
	}{
		"one that keeps nothing away":         {"/etc/kubernetes/manifests", v1alpha1.StaticPodRunning},
		"one that keeps a pod away":           {"/etc/kubernetes/manifests", v1alpha1.StaticPodHeld},
		"one with a folder that is a command": {"/x; reboot", v1alpha1.StaticPodHolding},
	} {
		t.Run(name, func(t *testing.T) {
			agent := &v1alpha1.NodeAgent{Status: v1alpha1.NodeAgentStatus{
				ManifestDir: tt.dir, StaticPods: []v1alpha1.StaticPod{{Namespace: "kube-system", Name: "proxy", State: tt.state}},
			}}
			f, found := trace.Of(agent, trace.Facts{})
			golden.Message(t, f.Notes...)
			if !found || !f.Delete {
				t.Errorf("found %t, delete %t", found, f.Delete)
			}
		})
	}
}
