package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/test/golden"
)

// aRollout is a rollout of pool a that is in progress.
func aRollout(name string, edits ...func(*v1alpha1.NodeRollout)) *v1alpha1.NodeRollout {
	r := &v1alpha1.NodeRollout{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec:       v1alpha1.NodeRolloutSpec{NodeSelector: nodesNamed([]string{"a-1", "a-2", "a-3", "a-4", "a-5"}), After: v1alpha1.AfterGiveBack},
		Status: v1alpha1.NodeRolloutStatus{
			ObservedGeneration: 1, Summary: "1 of 5 nodes done, 1 under maintenance, 1 failed; 2 waiting: 1 node failed, and failure.maxFailures is 1.", NodeCount: 5, DoneCount: 1, WorkingCount: 1, FailedCount: 1, WaitingCount: 2,
			Working: []v1alpha1.RolloutNode{{Name: "a-2", NodeMaintenanceName: name + "-a-2-1", AttemptCount: 1, Reason: v1alpha1.RolloutNodeDraining, Message: "Its pods are leaving."}},
			Failed:  []v1alpha1.RolloutNode{{Name: "a-3", NodeMaintenanceName: name + "-a-3-2", AttemptCount: 2, Reason: v1alpha1.RolloutNodeDrainTimedOut, Message: "The node did not drain in time and was given back. To try it again: kubectl ebbtide rollout retry NAME a-3"}},
			Waiting: []v1alpha1.RolloutWait{{
				Reason: v1alpha1.RolloutWaitsForFailures, Message: "1 node failed, and failure.maxFailures is 1.", NodeCount: 2, Nodes: []v1alpha1.NodeReference{{Name: "a-4"}, {Name: "a-5"}},
			}},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionRolloutDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.RolloutWaitsForFailures}},
		},
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

// completed ends a rollout whose nodes are all done.
func completed(r *v1alpha1.NodeRollout) {
	r.Status = v1alpha1.NodeRolloutStatus{
		ObservedGeneration: 1, CompletedGeneration: 1, Summary: "5 of 5 nodes done", NodeCount: 5, DoneCount: 5,
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionRolloutComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRolloutComplete}},
	}
}

func poolA(t *testing.T) *memory {
	t.Helper()
	m := newMemory(t, nodeNamed("cp-1", podclass.ControlPlaneLabel+"=", "pool=a"), nodeNamed("b-1", "pool=b"))
	for i := range 5 {
		m.put(nodeNamed(fmt.Sprintf("a-%d", i+1), "pool=a"))
	}
	return m
}

// What is asked for is what is typed.
func TestRolloutStartDryRunShowsTheNodeRollout(t *testing.T) {
	t.Parallel()
	m := poolA(t)
	var all transcript
	for _, args := range [][]string{
		{"-l", "pool=a", "--until", "kernel=6.12.9", "--dry-run=client", "-o", "yaml"},
		{"a-1", "node/a-2", "--until", "kubelet=1.37.1", "--until=newBoot", "--until=readySeconds=60", "--max", "25%", "--canary=2", "--canary-soak=1h", "--canary-approval", "--soak=5m", "--zone-by", "zone", "--window", "mon-fri 22:00-04:00 Europe/Berlin", "--window=sat 8:00-12:00", "--dry-run=client", "-o", "yaml"},
		{
			"a-1", "cp-1", "--name=night", "--control-plane", "last", "--stay-drained", "--drain-timeout=0", "--work-timeout=2h", "--retries=3", "--max-failures=10%", "--depth=daemonset", "--in-place=5m", "--reason",
			"New kernel", "--dry-run=client", "-o", "yaml",
		},
		{"-l", "pool=a", "--when", "reboot-required", "--when=KernelDeadlock", "--reboot", "--continuous", "--dry-run=client", "-o", "yaml"},
		{"-l", "pool=a", "--job=ops/patch", "--reboot", "--dry-run=client", "-o", "yaml"},
		{"-l", "pool=a", "--require=noloss,Room", "--require=Room", "--gate-prometheus", `healthy=min(up{job="api"}) > bool 0`, "--gate-prometheus=quiet=1", "--dry-run=client", "-o", "yaml"},
		{"-l", "pool=b", "--until=reboot", "--dry-run=server"},
		{"-l", "pool=b", "--until=reboot", "--wait=false"},
		{"-l", "pool=b", "--until=reboot", "--wait=false"},
		{"-l", "pool=b", "--until=reboot", "--wait=false", "--max=2"},
		{"cp-1"},
		{"-l", "pool=c"},
	} {
		args = append([]string{"rollout", "start"}, args...)
		all.add(args, m.run(args...))
	}
	golden.Equal(t, "rollout-start.txt", all.String())
}

func TestRolloutFlagsRejectInvalidValues(t *testing.T) {
	t.Parallel()
	m := poolA(t)
	var all transcript
	for _, flags := range []string{
		"", "a-1 -l pool=a", "a-1 --max=0", "a-1 --max=101%", "a-1 --max=two", "a-1 --until=kernel", "a-1 --until=java=21", "a-1 --until=os=a --until=readySeconds=soon", "a-1 --until=os=a --until=osImage=b", "a-1 --canary=0",
		"a-1 --canary-soak=1h", "a-1 --control-plane=middle", "a-1 --retries=11", "a-1 --soak=1.5s", "a-1 --drain-timeout=-1s", "a-1 --in-place=2h", "a-1 --depth=all",
		"a-1 --wait=false --timeout=1m", "a-1 --window=night", "a-1 --continuous", "a-1 --reboot --stay-drained", "a-1 --replace --stay-drained", "a-1 --replace --reboot", "a-1 --job=ops/patch --stay-drained", "a-1 --job=patch", "a-1 --job=ops/Patch", "a-1 --when=a/b/c", "a-1 --name=A", "a-1 -o wide", "a-1 --name=" + strings.Repeat("a", 64),
		"a-1 --require=Luck", "a-1 --gate-prometheus=up", "a-1 --gate-prometheus=A=up", "a-1 --gate-prometheus=a=", "a-1 --gate-prometheus=a=1 --gate-prometheus=a=2",
	} {
		args := append([]string{"rollout", "start"}, strings.Fields(flags)...)
		got := m.run(args...)
		if got.Code != codeError || got.Out != "" {
			t.Errorf("%v: %+v", args, got)
		}
		all.add(args, got)
	}
	golden.Equal(t, "rollout-invalid.txt", all.String())
}

// The same command continues the same rollout. One that is over is followed by another.
func TestRolloutStartAgainContinuesTheSameRollout(t *testing.T) {
	t.Parallel()
	m := poolA(t)
	start := []string{"rollout", "start", "-l", "pool=b", "--until=reboot", "--wait=false", "-o", "name"}
	first := m.run(start...)
	if again := m.run(start...); again.Out != first.Out || first.Code != 0 || !strings.Contains(again.ErrOut, "already exists") {
		t.Errorf("first %+v, again %+v", first, again)
	}
	name := strings.TrimSpace(strings.TrimPrefix(first.Out, "noderollout.ebbtide.dev/"))
	r := &v1alpha1.NodeRollout{}
	m.get(name, r)
	completed(r)
	m.put(r)
	if next := m.run(start...); next.Out != "noderollout.ebbtide.dev/"+name+"-2\n" {
		t.Errorf("after the end: %+v", next)
	}
	if got := m.run(append(start, "--name", name)...); got.Code != codeError || !strings.Contains(got.ErrOut, "is over") {
		t.Errorf("with the name of one that is over: %+v", got)
	}
}

func TestRolloutAsPeopleReadIt(t *testing.T) {
	t.Parallel()
	running := func(r *v1alpha1.NodeRollout) {
		end := metav1.NewTime(noon.Add(80 * time.Minute))
		r.Status.EstimatedCompletionTime, r.Status.Conditions, r.Status.Failed, r.Status.FailedCount = &end, nil, nil, 0
		r.Status.Summary = "1 of 40 nodes done, 1 under maintenance; 38 waiting: No window is open until 22:00 UTC."
		r.Status.NodeCount, r.Status.WaitingCount = 40, 38
		r.Status.Waiting[0] = v1alpha1.RolloutWait{Reason: v1alpha1.RolloutWaitsForWindow, Message: "No window is open until 22:00 UTC.", NodeCount: 38, Nodes: r.Status.Waiting[0].Nodes}
		r.Spec.Maintenance.Reason = "New kernel"
		r.Annotations = map[string]string{v1alpha1.RequestedByAnnotation: "anna"}
	}
	drained := func(r *v1alpha1.NodeRollout) { r.Spec.After = v1alpha1.AfterStayDrained }
	paused := func(r *v1alpha1.NodeRollout) { r.Spec.State = v1alpha1.RolloutPaused }
	idle := func(r *v1alpha1.NodeRollout) { r.Status.Working, r.Status.WorkingCount = nil, 0 }
	m := newMemory(t, aRollout("stopped"), aRollout("ended", idle), aRollout("running", running), aRollout("done", drained, completed), aRollout("paused", running, paused),
		ofRollout("done", "a-1", v1alpha1.StageDrain), aRollout("returned", drained, completed), ofRollout("returned", "a-1", v1alpha1.StageComplete), aRollout("new", func(r *v1alpha1.NodeRollout) { r.Status = v1alpha1.NodeRolloutStatus{} }), nodeNamed("a-3"), nodeNamed("a-4"), nodeNamed("a-1"))
	var all transcript
	for _, line := range []string{
		"rollout list", "rollout list -o wide", "rollout list -o name", "rollout status stopped", "rollout status running", "rollout status running -o yaml", "rollout status noderollout/done",
		"rollout status returned", "why nro/returned", "rollout status paused", "rollout status new", "rollout status runningg", "rollout status", "rollout watch ended", "rollout watch done", "watch nro/done", "watch done nro/done", "rollout watch running --timeout=1s",
	} {
		all.add(strings.Fields(line), m.run(strings.Fields(line)...))
	}
	golden.Equal(t, "rollout-status.txt", all.String())
}

// States and decisions about nodes are written into the spec, and nothing else is.
func TestRolloutIsChangedByVerbs(t *testing.T) {
	t.Parallel()
	m := newMemory(t, aRollout("night"), aRollout("other", completed))
	for i := range 5 {
		m.put(nodeNamed(fmt.Sprintf("a-%d", i+1)))
	}
	var all transcript
	for _, line := range []string{
		"rollout pause night --dry-run=client", "rollout pause night", "rollout pause night -o name", "rollout resume noderollout/night", "rollout retry a-4", "rollout retry night a-3 --dry-run=server",
		"rollout retry node/a-3", "rollout skip a-4 a-5", "rollout retry night node/a-4", "rollout skip b-1", "rollout skip noderollout/nigt a-1", "rollout skip noderollout/night", "rollout skip a-1 nro/night", "rollout approve night", "rollout skip", "rollout abort night",
		"rollout skip a-1", "rollout skip night a-1", "rollout abort", "rollout pause a b",
	} {
		all.add(strings.Fields(line), m.run(strings.Fields(line)...))
		r := &v1alpha1.NodeRollout{}
		m.get("night", r)
		fmt.Fprintf(&all, "state %q, nodes %v\n", r.Spec.State, r.Spec.Nodes)
	}
	golden.Equal(t, "rollout-change.txt", all.String())
}

func TestRolloutApprove(t *testing.T) {
	t.Parallel()
	m := newMemory(t, aRollout("night", func(r *v1alpha1.NodeRollout) {
		r.Spec.Canary = &v1alpha1.RolloutCanary{NodeCount: 2, Approved: new(false)}
	}))
	for _, want := range []string{"", "NodeRollout night is already approved\n"} {
		if got := m.run("rollout", "approve", "night"); got.Code != codeDone || got.ErrOut != want {
			t.Errorf("got %+v, want %q", got, want)
		}
		r := &v1alpha1.NodeRollout{}
		if m.get("night", r); !*r.Spec.Canary.Approved || r.Spec.Canary.NodeCount != 2 {
			t.Errorf("the canary is %+v", r.Spec.Canary)
		}
	}
}

func TestRolloutWatchEndsWhenTheRolloutIsComplete(t *testing.T) {
	t.Parallel()
	m := newMemory(t, aRollout("night", func(r *v1alpha1.NodeRollout) {
		r.Spec.MaxUnavailable = new(intstr.IntOrString)
		r.Status.Conditions = nil
	}))
	watched := make(chan result)
	go func() { watched <- m.run("rollout", "watch", "night") }()
	r := &v1alpha1.NodeRollout{}
	m.get("night", r)
	completed(r)
	m.put(r)
	got := <-watched
	if got.Code != codeDone || got.Out != "NodeRollout night is complete: 5 of 5 nodes done\n" {
		t.Errorf("got %+v", got)
	}
}

// The cache of the API server may be behind the first read: what it shows then is no news.
func TestRolloutWatchIgnoresAnOlderState(t *testing.T) {
	t.Parallel()
	f := &rolloutFollowing{rolloutOptions: &rolloutOptions{IOStreams: genericiooptions.NewTestIOStreamsDiscard()}, lines: &following{}}
	printed := &strings.Builder{}
	f.ErrOut = printed
	newer := aRollout("night")
	older := newer.DeepCopy()
	older.Status = v1alpha1.NodeRolloutStatus{}
	f.update(newer)
	before := printed.String()
	if f.update(older); printed.String() != before || f.last.DoneCount != int(newer.Status.DoneCount) {
		t.Errorf("after an older state it has printed %q, and knows of %d nodes that are done", printed.String()[len(before):], f.last.DoneCount)
	}
}

// ofRollout is a NodeMaintenance of a rollout for one node.
func ofRollout(rollout, node string, stage v1alpha1.NodeMaintenanceStage) *v1alpha1.NodeMaintenance {
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: rollout + "-" + node, Labels: map[string]string{v1alpha1.RolloutLabel: rollout}}}
	m.Spec = v1alpha1.NodeMaintenanceSpec{Stage: stage, NodeSelector: nodesNamed([]string{node})}
	if stage == v1alpha1.StageComplete {
		m.Status.StageStatuses = []v1alpha1.StageStatus{{Name: stage, StartTimestamp: &metav1.Time{Time: noon}}}
	}
	return m
}

// One command gives back all nodes of a rollout. One that is not complete ends.
func TestCompleteEndsTheMaintenancesOfARollout(t *testing.T) {
	t.Parallel()
	m := newMemory(t, aRollout("night"), aRollout("done", completed), aRollout("drain-a-1"), nodeNamed("a-1"), nodeNamed("a-2"), nodeNamed("a-3"),
		ofRollout("night", "a-1", v1alpha1.StageDrain), ofRollout("night", "a-2", v1alpha1.StageComplete), ofRollout("done", "a-3", v1alpha1.StageDrain))
	var all transcript
	for _, line := range []string{
		"complete noderollout/night --dry-run=client", "complete noderollout/night --wait=false", "complete done --wait=false -o name", "complete nro/none", "complete noderollout/done --timeout=1s", "complete drain-a-1 --wait=false",
	} {
		all.add(strings.Fields(line), m.run(strings.Fields(line)...))
		for _, name := range []string{"night", "done", "drain-a-1"} {
			r := &v1alpha1.NodeRollout{}
			m.get(name, r)
			fmt.Fprintf(&all, "%s is %q\n", name, r.Spec.State)
		}
	}
	golden.Equal(t, "rollout-complete.txt", all.String())
	left := &v1alpha1.NodeMaintenance{}
	if m.get("done-a-3", left); left.Spec.Stage != v1alpha1.StageComplete {
		t.Errorf("done-a-3 is in stage %s", left.Spec.Stage)
	}
}

// status, status of a maintenance and why give the same verdict.
func TestRolloutIsShownByOtherVerbs(t *testing.T) {
	t.Parallel()
	m := newMemory(t, aRollout("night"), aRollout("done", completed), nodeNamed("a-2"), nodeNamed("a-4"), ofRollout("night", "a-2", v1alpha1.StageDrain))
	var all transcript
	for _, line := range []string{"status", "status --all -o name", "status night", "status night-a-2", "why node/a-4", "why node/a-2", "why noderollout/night", "why nro/nigth"} {
		all.add(strings.Fields(line), m.run(strings.Fields(line)...))
	}
	golden.Equal(t, "rollout-elsewhere.txt", all.String())
}

// Several nodes are drained by a rollout, and the same command continues it.
func TestDrainOfSeveralNodesCreatesARollout(t *testing.T) {
	t.Parallel()
	m := poolA(t)
	held := nodeNamed("a-5", "pool=a")
	held.Annotations = map[string]string{v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":["disk"]}`}
	m.put(held)
	var all transcript
	for _, line := range []string{
		"drain a-2 a-1 --dry-run=client -o yaml --name two", "drain -l pool=a --max=2 --depth=Default --reason=kernel --dry-run=server -o yaml", "drain a-2 a-1 --wait=false", "drain a-1 a-2 --wait=false",
		"drain a-1 a-2 --wait=false --max=2", "drain a-1 a-2 --deadline=1h", "drain a-1 a-2 --max=2 --all-at-once", "drain a-1 a-2 --max=0", "drain -l pool=b --wait=false",
		"drain a-1 a-2 --all-at-once --wait=false --dry-run=client", "drain a-1 --max=2 --dry-run=client",
	} {
		all.add(strings.Fields(line), m.run(strings.Fields(line)...))
	}
	golden.Equal(t, "rollout-drain.txt", all.String())
}

// A drain that is complete is continued while its nodes are drained, and begins again when all were
// given back.
func TestDrainOfSeveralNodesAgainAfterItsEnd(t *testing.T) {
	t.Parallel()
	m := poolA(t)
	drain := []string{"drain", "a-1", "a-2", "--wait=false", "-o", "name"}
	name := strings.TrimSpace(strings.TrimPrefix(m.run(drain...).Out, "noderollout.ebbtide.dev/"))
	r := &v1alpha1.NodeRollout{}
	m.get(name, r)
	completed(r)
	m.put(r)
	holdBy := func(node string, holders ...string) {
		object := nodeNamed(node, "pool=a")
		if len(holders) > 0 {
			object.Annotations = map[string]string{v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":["` + strings.Join(holders, `","`) + `"]}`}
		}
		m.put(object)
	}
	m.put(ofRollout(name, "a-1", v1alpha1.StageDrain))
	m.put(ofRollout(name, "a-2", v1alpha1.StageDrain))
	holdBy("a-1", name+"-a-1")
	holdBy("a-2", name+"-a-2")
	if got := m.run(drain...); got.Out != "noderollout.ebbtide.dev/"+name+"\n" {
		t.Errorf("while both are drained: %+v", got)
	}
	holdBy("a-2")
	m.put(ofRollout(name, "a-2", v1alpha1.StageComplete))
	if got := m.run(drain...); got.Code != codeError || !strings.Contains(got.ErrOut, "a-2 were given back since") {
		t.Errorf("with one given back: %+v", got)
	}
	holdBy("a-1")
	m.put(ofRollout(name, "a-1", v1alpha1.StageComplete))
	if got := m.run(drain...); got.Out != "noderollout.ebbtide.dev/"+name+"-2\n" {
		t.Errorf("with both given back: %+v", got)
	}
}

// A plan is made by the decision of the manager, and writes nothing.
func TestRolloutPlanListsNodesInTheirOrder(t *testing.T) {
	t.Parallel()
	ready := func(name string, having ...string) client.Object {
		node := nodeNamed(name, having...)
		node.UID, node.Status.Conditions = types.UID(name), []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.Status.NodeInfo = corev1.NodeSystemInfo{KernelVersion: "6.1.0", KubeletVersion: "v1.36.0"}
		return node
	}
	silent := nodeNamed("b-3", "pool=b")
	patched := nodeNamed("b-4", "pool=b")
	patched.UID, patched.Status.NodeInfo.KernelVersion = "b-4", "6.12.9"
	patched.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	m := newMemory(t, ready("b-1", "pool=b", "zone=x"), ready("b-2", "pool=b", "zone=y"), ready("b-5", "pool=b", "zone=x"), silent, patched, ready("cp-1", "pool=b", podclass.ControlPlaneLabel+"="))
	m.put(&v1alpha1.NodeRollout{ObjectMeta: metav1.ObjectMeta{Name: "paused", UID: "paused", Generation: 1}, Spec: v1alpha1.NodeRolloutSpec{
		NodeSelector: nodesNamed([]string{"b-1"}), State: v1alpha1.RolloutPaused,
	}})
	var all transcript
	for _, line := range []string{
		"rollout plan -l pool=b --until kernel=6.12.9", "rollout plan -l pool=b --until kernel=6.12.9 --max=2", "rollout plan -l pool=b --until kernel=6.12.9 --max=2 --zone-by zone --each 10m --control-plane=first", "rollout plan b-1 b-2 b-5 --stay-drained --max 2",
		"rollout plan b-1 b-2 --window=22:00-04:00 -o yaml", "rollout plan b-1 --require=Room --gate-prometheus=quiet=1", "rollout plan paused", "rollout plan noderollout/pausd", "rollout plan nro/paused b-1", "rollout plan b-1 --each=0", "rollout plan",
	} {
		all.add(strings.Fields(line), m.run(strings.Fields(line)...))
	}
	for _, b := range []struct{ name, most string }{{"shared", "2"}, {"tight", "1"}} {
		m.put(&v1alpha1.NodeBudget{ObjectMeta: metav1.ObjectMeta{Name: b.name}, Spec: v1alpha1.NodeBudgetSpec{
			NodeSelector: nodesNamed([]string{"b-1", "b-2", "b-5"}), MaxUnavailable: new(intstr.Parse(b.most)),
		}})
		line := []string{"rollout", "plan", "b-1", "b-2", "b-5", "--until", "kernel=6.12.9", "--max=3"}
		all.add(line, m.run(line...))
		line = append(line, "--stay-drained")
		all.add(line, m.run(line...))
	}
	golden.Equal(t, "rollout-plan.txt", all.String())
	if len(m.objects) != 9 {
		t.Errorf("it has written: %v", m.objects)
	}
}
