package rollout_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/calendar"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

// targets learns which hash stands for which target.
type targets map[string]string

func (s *simulation) learn(m *v1alpha1.NodeMaintenance) {
	owner, at := find(s.rollouts, m.Labels[v1alpha1.RolloutLabel])
	a := s.attempt(m)
	if at < 0 || a.UID != string(owner.UID) || s.targets[a.Target] != "" {
		return
	}
	s.targets[a.Target] = s.goal(owner)
}

// isFor returns true if an attempt is for the target that the rollout has now.
func (s *simulation) isFor(m *v1alpha1.NodeMaintenance, r *v1alpha1.NodeRollout) bool {
	return s.targets[s.attempt(m).Target] == s.goal(r)
}

// goal returns what a change of the spec must not touch for attempts to stay valid.
func (s *simulation) goal(r *v1alpha1.NodeRollout) string {
	text, err := json.Marshal([]any{r.Spec.Target, r.Spec.When, r.Spec.Reboot, r.Spec.Job})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// asks returns the condition by which a node asks for maintenance; nil if none.
func asks(r *v1alpha1.NodeRollout, n *corev1.Node) *corev1.NodeCondition {
	if r.Spec.When == nil {
		return nil
	}
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == v1alpha1.NodeRebootRequired && c.Status == "True" {
			return c
		}
	}
	return nil
}

// needs returns true if a node needs maintenance as far as it shows it.
func needs(r *v1alpha1.NodeRollout, n *corev1.Node) bool {
	if r.Spec.Target == nil && r.Spec.When == nil {
		return true
	}
	return r.Spec.Target != nil && r.Spec.Target.NewBoot || !hasVersion(r, n) || asks(r, n) != nil
}

func hasVersion(r *v1alpha1.NodeRollout, n *corev1.Node) bool {
	target := r.Spec.Target
	return target == nil || target.KernelVersion == "" || n.Status.NodeInfo.KernelVersion == target.KernelVersion
}

// completes returns true if a NodeMaintenance completes itself.
func completes(r *v1alpha1.NodeRollout) bool {
	return r.Spec.After != v1alpha1.AfterStayDrained && (r.Spec.Target != nil || r.Spec.Reboot || r.Spec.Job != nil)
}

func retries(r *v1alpha1.NodeRollout) int32 {
	if r.Spec.Failure.RetryCount != nil {
		return *r.Spec.Failure.RetryCount
	}
	return 1
}

// portion returns a number of nodes, or a percentage of all that is rounded down, at least 1.
func portion(of *intstr.IntOrString, all int) int {
	if of == nil {
		return 1
	}
	if of.Type == intstr.Int {
		return of.IntValue()
	}
	percent, _ := strconv.Atoi(strings.TrimSuffix(of.StrVal, "%"))
	return max(1, all*percent/100)
}

// isUnavailable returns true if a node serves nobody, whatever the reason.
func (o *oracle) isUnavailable(n *corev1.Node) bool {
	return !isReady(n) || n.Spec.Unschedulable || len(cordon.Holders(n)) > 0 || o.admitted[n.Name] || o.isStarted(n)
}

// isStarted returns true if a rollout has started a node, or may have.
func (o *oracle) isStarted(n *corev1.Node) bool {
	return len(o.live[n.Name]) > 0 || o.started[n.Name] || o.unknown[n.Name]
}

// counts returns true if a node counts against maxUnavailable.
func (o *oracle) counts(r *v1alpha1.NodeRollout, f fate) bool {
	switch f.what {
	case "failed", "skipped":
		return false
	case "done":
		soaks := !f.at.IsZero() && f.at.Add(time.Duration(r.Spec.SoakSeconds)*time.Second).After(o.view.Now)
		return soaks || o.isUnavailable(f.node) && !f.kept
	default:
		return o.isUnavailable(f.node)
	}
}

func number(fates []fate, what ...string) (count int) {
	for _, f := range fates {
		if slices.Contains(what, f.what) {
			count++
		}
	}
	return count
}

// forbids says why a rollout must start no node; empty if it may.
func (o *oracle) forbids(r *v1alpha1.NodeRollout, fates []fate) string {
	c, err := calendar.Read(r.Spec.Windows, r.Spec.Blackouts)
	failures := number(fates, "failed")
	switch {
	case err != nil:
		return err.Error()
	case r.DeletionTimestamp != nil:
		return "it is being deleted"
	case r.Spec.State != "" && r.Spec.State != v1alpha1.RolloutRunning:
		return "it is " + string(r.Spec.State)
	case o.view.ClockSkewed:
		return "the clock is skewed"
	case r.Status.CompletedGeneration == r.Generation:
		return "it is complete"
	case failures >= portion(r.Spec.Failure.MaxFailures, len(fates)):
		return fmt.Sprintf("%d nodes have failed", failures)
	case !c.At(o.view.Now).Open:
		return "no window is open"
	}
	return ""
}

// checkCounts checks how the decision counts the nodes.
func (o *oracle) checkCounts(d *rollout.RolloutDecision, fates []fate) {
	starts := len(d.Starts)
	waiting := number(fates, "waiting") - starts
	if d.Rollout.Status.CompletedGeneration == d.Rollout.Generation {
		waiting = 0
	}
	got := [5]int32{d.Status.DoneCount, d.Status.FailedCount, d.Status.SkippedCount, d.Status.WorkingCount, d.Status.WaitingCount}
	want := [5]int32{
		int32(number(fates, "done")), int32(number(fates, "failed")), int32(number(fates, "skipped")), int32(number(fates, "working", "unknown") + starts), int32(waiting),
	}
	if got != want {
		o.t.Errorf("%s has done, failed, skipped, working and waiting nodes %v, want %v", d.Rollout.Name, got, want)
	}
	if len(d.Status.Working) != int(d.Status.WorkingCount) {
		o.t.Errorf("%s lists %d of %d nodes under maintenance", d.Rollout.Name, len(d.Status.Working), d.Status.WorkingCount)
	}
}

// checkStart checks a start by its node.
func (o *oracle) checkStart(r *v1alpha1.NodeRollout, m *v1alpha1.NodeMaintenance, fates []fate) {
	fail := func(format string, args ...any) {
		o.t.Errorf("%s starts %s: %s", r.Name, nodeOf(m), fmt.Sprintf(format, args...))
	}
	at := slices.IndexFunc(fates, func(f fate) bool { return f.node.Name == nodeOf(m) })
	if at < 0 {
		fail("it is not selected")
		return
	}
	f := fates[at]
	if f.what != "waiting" || !isReady(f.node) || o.started[f.node.Name] || o.view.Refused[m.Name] != "" {
		fail("it is %s, Ready %v, started %v, refused %q", f.what, isReady(f.node), o.started[f.node.Name], o.view.Refused[m.Name])
	}
	for _, other := range o.live[f.node.Name] {
		if other != f.latest {
			fail("it has NodeMaintenance %s", other.Name)
		}
	}
	if o.admitted[f.node.Name] {
		fail("a user has it")
	}
	for _, holder := range cordon.Holders(f.node) {
		if f.latest == nil || holder != f.latest.Name {
			fail("%s holds it", holder)
		}
	}
	o.checkControlPlane(r, f, fates, fail)
	o.checkAttempt(r, m, f, fail)
}

func (o *oracle) checkControlPlane(r *v1alpha1.NodeRollout, f fate, fates []fate, fail func(string, ...any)) {
	_, isControlPlane := f.node.Labels[controlPlaneLabel]
	for _, other := range o.view.Nodes {
		if _, also := other.Labels[controlPlaneLabel]; isControlPlane && also && other.Name != f.node.Name && o.isUnavailable(other) {
			fail("control plane node %s is unavailable", other.Name)
		}
	}
	before := map[v1alpha1.ControlPlanePolicy]bool{v1alpha1.ControlPlaneFirst: true, v1alpha1.ControlPlaneLast: false}
	first, ordered := before[r.Spec.ControlPlane]
	if !ordered || isControlPlane == first {
		return
	}
	for _, other := range fates {
		if _, also := other.node.Labels[controlPlaneLabel]; also == first && slices.Contains([]string{"waiting", "working", "unknown"}, other.what) {
			fail("%s goes first", other.node.Name)
		}
	}
}

// checkAttempt checks that a node is started again only after a deadline or by a user.
func (o *oracle) checkAttempt(r *v1alpha1.NodeRollout, m *v1alpha1.NodeMaintenance, f fate, fail func(string, ...any)) {
	next := o.attempt(m)
	if f.latest == nil {
		if next.Attempt != 1 || next.Try != 1 {
			fail("its first attempt is %+v", next)
		}
		return
	}
	last := o.attempt(f.latest)
	if next.Attempt != last.Attempt+1 {
		fail("attempt %d follows %d", next.Attempt, last.Attempt)
	}
	if next.Try > 1 {
		o.seen.retries++
	}
	if next.Try > retries(r)+1 || next.Try > 1 && next.Try != last.Try+1 {
		fail("try %d follows %d", next.Try, last.Try)
	}
}

func (o *oracle) checkDomain(r *v1alpha1.NodeRollout, unavailable map[string]bool) {
	domains := map[string]bool{}
	for _, n := range o.view.Nodes {
		if unavailable[n.Name] {
			domains[n.Labels[r.Spec.TopologyKey]] = true
		}
	}
	if r.Spec.TopologyKey != "" && len(domains) > 1 {
		o.t.Errorf("%s: nodes of %d domains are unavailable", r.Name, len(domains))
	}
}

func (o *oracle) checkCanary(r *v1alpha1.NodeRollout, fates []fate, starts int) {
	canary := r.Spec.Canary
	if canary == nil {
		return
	}
	var ends []time.Time
	for _, f := range fates {
		if f.what == "done" && !f.at.IsZero() {
			ends = append(ends, f.at)
		}
	}
	most := int(canary.NodeCount)
	if len(ends) < most {
		if all := len(ends) + number(fates, "working", "unknown") + starts; all > most {
			o.t.Errorf("%s: %d nodes have started before %d canaries are done", r.Name, all, most)
		}
		return
	}
	slices.SortFunc(ends, time.Time.Compare)
	if until := ends[most-1].Add(time.Duration(canary.SoakSeconds) * time.Second); until.After(o.view.Now) {
		o.t.Errorf("%s starts before its canaries have soaked until %s", r.Name, until)
	}
	if canary.Approved != nil && !*canary.Approved {
		o.t.Errorf("%s starts before a user has approved", r.Name)
	}
}

// checkAttempts checks what the API server has: no node is under two maintenances of rollouts, and
// no attempt was created twice.
func (s *simulation) checkAttempts() {
	live := map[string]*v1alpha1.NodeMaintenance{}
	var controlPlanes []string
	for _, m := range s.maintenances {
		if m.Labels[v1alpha1.RolloutLabel] == "" {
			continue
		}
		s.learn(m)
		s.checkCreatedOnce(m)
		if !isLive(m) {
			continue
		}
		other := live[nodeOf(m)]
		if other != nil && !s.supersedes(m, other) && !s.supersedes(other, m) {
			s.t.Errorf("%s is under %s and %s", nodeOf(m), other.Name, m.Name)
		}
		if other == nil && s.isControlPlane(nodeOf(m)) {
			controlPlanes = append(controlPlanes, nodeOf(m))
		}
		live[nodeOf(m)] = m
	}
	if len(controlPlanes) > 1 {
		s.t.Errorf("control plane nodes %v are under maintenance", controlPlanes)
	}
}

func (s *simulation) checkCreatedOnce(m *v1alpha1.NodeMaintenance) {
	a := s.attempt(m)
	key := fmt.Sprint(a.UID, a.NodeUID, a.Attempt)
	if created, known := s.tries[key]; known && created != string(m.UID) {
		s.t.Errorf("attempt %d of %s was created twice", a.Attempt, nodeOf(m))
	}
	s.tries[key] = string(m.UID)
}

func (s *simulation) isControlPlane(node string) bool {
	n, at := find(s.nodes, node)
	if at < 0 {
		return false
	}
	_, is := n.Labels[controlPlaneLabel]
	return is
}

// supersedes returns true if an attempt replaces one that a user has forgiven.
func (s *simulation) supersedes(m, forgiven *v1alpha1.NodeMaintenance) bool {
	newer, older := s.attempt(m), s.attempt(forgiven)
	return newer.UID == older.UID && newer.NodeUID == older.NodeUID && newer.Attempt > older.Attempt
}
