package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// joinRandomly adds a node.
func (s *simulation) joinRandomly(name string, isControlPlane bool) {
	s.join(name, labelled(poolLabel, pick(s, []string{"a", "a", "b"})), func(n *corev1.Node) {
		if s.chance(80) {
			n.Labels[zoneLabel] = pick(s, []string{"1", "2", "3"})
		}
		if isControlPlane {
			n.Labels[controlPlaneLabel] = ""
		}
		if s.chance(10) {
			n.Status.NodeInfo.KernelVersion = newKernel
		}
		n.Spec.Unschedulable = s.chance(4)
		setReady(n, !s.chance(3))
	})
	s.sticky[name], s.broken[name], s.forgetful[name] = s.chance(5), s.chance(4), s.chance(10)
}

// startRandomly creates a rollout.
func (s *simulation) startRandomly() {
	s.start(fmt.Sprintf("r%d", s.born), func(spec *v1alpha1.NodeRolloutSpec) {
		*spec = v1alpha1.NodeRolloutSpec{
			NodeSelector: s.someSelector(), Target: s.someTarget(), MaxUnavailable: s.someShare(5),
			ControlPlane: pick(s, []v1alpha1.ControlPlanePolicy{"", v1alpha1.ControlPlaneExclude, v1alpha1.ControlPlaneFirst, v1alpha1.ControlPlaneLast}),
			SoakSeconds:  pick(s, []int32{0, 0, 0, 600}),
			Failure: v1alpha1.RolloutFailure{
				DrainTimeoutSeconds: pick(s, []*int32{nil, new(int32(0)), new(int32(600))}), WorkTimeoutSeconds: pick(s, []*int32{nil, nil, new(int32(0))}),
				RetryCount: pick(s, []*int32{nil, new(int32(0)), new(int32(2))}), MaxFailures: s.someShare(8),
			},
		}
		switch s.random.IntN(10) {
		case 0, 1:
			spec.After = v1alpha1.AfterStayDrained
		case 2, 3:
			spec.Reboot = true
		case 4, 5:
			spec.Reboot, spec.Job = s.chance(50), s.someJob()
		}
		if s.chance(40) {
			spec.When = &v1alpha1.RolloutWhen{RebootRequired: true}
		}
		if s.chance(30) && (spec.Target != nil || spec.When != nil) {
			spec.Mode = v1alpha1.RolloutContinuous
		}
		if s.chance(30) {
			spec.TopologyKey = zoneLabel
		}
		if s.chance(40) {
			spec.Canary = &v1alpha1.RolloutCanary{
				NodeCount: 1 + s.random.Int32N(3), SoakSeconds: pick(s, []int32{0, 3600}), Approved: pick(s, []*bool{nil, new(false), new(false), new(true)}),
			}
		}
		s.someCalendar(spec)
	})
}

func (s *simulation) someSelector() *corev1.NodeSelector {
	if s.chance(20) {
		var names []string
		for range 1 + s.random.IntN(10) {
			names = append(names, pick(s, s.nodes).Name)
		}
		// A field of a selector has one value.
		return &corev1.NodeSelector{NodeSelectorTerms: terms(names)}
	}
	return pool(pick(s, [][]string{{"a"}, {"b"}, {"a", "b"}})...)
}

func terms(names []string) (terms []corev1.NodeSelectorTerm) {
	for _, name := range names {
		terms = append(terms, named(name).NodeSelectorTerms[0])
	}
	return terms
}

func (s *simulation) someTarget() *v1alpha1.CompleteWhen {
	return pick(s, []*v1alpha1.CompleteWhen{nil, {NewBoot: true}, {KernelVersion: newKernel}, {KernelVersion: newKernel}, {KernelVersion: "6.12.10", NewBoot: true}})
}

func (s *simulation) someShare(most int) *intstr.IntOrString {
	if s.chance(30) {
		return new(intstr.FromString(fmt.Sprintf("%d%%", 1+s.random.IntN(40))))
	}
	return new(intstr.FromInt(1 + s.random.IntN(most)))
}

func (s *simulation) someCalendar(spec *v1alpha1.NodeRolloutSpec) {
	hour := func() string { return fmt.Sprintf("%02d:%02d", s.random.IntN(24), 30*s.random.IntN(2)) }
	for range pick(s, []int{0, 0, 1, 2}) {
		spec.Windows = append(spec.Windows, v1alpha1.MaintenanceWindow{
			Days: pick(s, [][]v1alpha1.Weekday{nil, {"mon", "tue", "wed", "thu", "fri"}, {"mon", "wed", "fri", "sun"}}), From: hour(), To: hour(),
			TimeZone: pick(s, []string{"", "Europe/Berlin", "America/New_York"}),
		})
	}
	if s.chance(20) {
		from := s.now.Add(time.Duration(s.random.IntN(24)) * time.Hour)
		spec.Blackouts = []v1alpha1.Blackout{{StartTime: metav1.NewTime(from), EndTime: metav1.NewTime(from.Add(time.Duration(1+s.random.IntN(24)) * time.Hour))}}
	}
}

// happen is what people and machines do beside the work on nodes.
func (s *simulation) happen() {
	s.now = s.now.Add(time.Duration(s.random.IntN(25*60)) * time.Second)
	if s.chance(10) {
		s.now = s.now.Add(time.Duration(s.random.IntN(10)) * time.Hour)
	}
	s.skewed = s.chance(3)
	for _, name := range slices.Sorted(maps.Keys(s.refused)) { // A seed is always the same story.
		if s.random.IntN(2) == 0 {
			delete(s.refused, name)
		}
	}
	if len(s.rollouts) < 4 && s.chance(8) {
		s.startRandomly()
	}
	s.happenToJobs()
	s.happenToNodes()
	s.happenToRollouts()
	s.happenToMaintenances()
	s.happenToBudgets()
}

func (s *simulation) happenToNodes() {
	if s.chance(20) {
		s.editNode(pick(s, s.nodes).Name, func(n *corev1.Node) { setReady(n, false) })
	}
	for _, n := range slices.Clone(s.nodes) {
		if !isReady(n) && s.chance(25) {
			s.editNode(n.Name, func(n *corev1.Node) { setReady(n, true) })
		}
	}
	if s.chance(20) {
		s.report(pick(s, s.nodes).Name, v1alpha1.NodeRebootRequired, pick(s, []corev1.ConditionStatus{"True", "True", "False"}))
	}
	node := pick(s, s.nodes).Name
	switch s.random.IntN(20) {
	case 0, 1:
		s.editNode(node, func(n *corev1.Node) {
			if cordon.Of(n) == nil {
				n.Spec.Unschedulable = !n.Spec.Unschedulable
			}
		})
	case 2:
		s.editNode(node, func(n *corev1.Node) { n.Labels[poolLabel] = pick(s, []string{"a", "b", "c"}) })
		s.cachedBudgets = slices.Clone(s.budgets)
	case 3:
		s.cachedBudgets = slices.Clone(s.budgets)
		n, _ := find(s.nodes, node)
		_, isControlPlane := n.Labels[controlPlaneLabel]
		if s.deleteNode(node); s.chance(70) || len(s.nodes) == 0 {
			s.joinRandomly(node, isControlPlane)
		}
	case 4:
		s.joinRandomly(fmt.Sprintf("x%d", s.born), false)
	}
}

func isReady(n *corev1.Node) bool { return n.Status.Conditions[0].Status == corev1.ConditionTrue }

func (s *simulation) happenToRollouts() {
	if len(s.rollouts) == 0 {
		return
	}
	r := pick(s, s.rollouts)
	if s.chance(1) {
		s.deleteRollout(r.Name)
		return
	}
	s.unblock(r)
	s.repair(r, 10)
	if !s.chance(12) {
		return
	}
	s.editSpec(r.Name, func(spec *v1alpha1.NodeRolloutSpec) {
		switch s.random.IntN(9) {
		case 8:
			if spec.After != v1alpha1.AfterStayDrained {
				spec.Job = s.someJob()
			}
		case 7:
			spec.Windows = append(slices.Clone(spec.Windows), v1alpha1.MaintenanceWindow{From: "10:00", To: "12:00", TimeZone: "Mars"})
		case 0:
			spec.Target = s.someTarget()
		case 1:
			spec.NodeSelector = s.someSelector()
		case 2:
			spec.MaxUnavailable = s.someShare(5)
		case 3:
			s.decideAbout(spec, v1alpha1.RolloutNodeSpec{Name: pick(s, s.nodes).Name, Skip: s.chance(50)})
		case 4, 5:
			if spec.State != v1alpha1.RolloutAborted {
				spec.State = v1alpha1.RolloutPaused
			}
		case 6:
			if s.chance(20) {
				spec.State = v1alpha1.RolloutAborted
			}
		}
	})
}

// unblock approves, continues or mends a rollout.
func (s *simulation) unblock(r *v1alpha1.NodeRollout) {
	if r.Spec.Canary != nil && r.Spec.Canary.Approved != nil && s.chance(10) {
		s.editSpec(r.Name, func(spec *v1alpha1.NodeRolloutSpec) { spec.Canary.Approved = new(true) })
	}
	if r.Spec.State == v1alpha1.RolloutPaused && s.chance(30) {
		s.editSpec(r.Name, func(spec *v1alpha1.NodeRolloutSpec) { spec.State = v1alpha1.RolloutRunning })
	}
	if s.chance(30) {
		s.makeValid(r)
	}
}

func isInvalid(w v1alpha1.MaintenanceWindow) bool { return w.TimeZone == "Mars" }

// makeValid removes the windows of an invalid time zone.
func (s *simulation) makeValid(r *v1alpha1.NodeRollout) {
	if !slices.ContainsFunc(r.Spec.Windows, isInvalid) {
		return
	}
	s.editSpec(r.Name, func(spec *v1alpha1.NodeRolloutSpec) { spec.Windows = slices.DeleteFunc(spec.Windows, isInvalid) })
}

// repair forgives or skips failed nodes.
func (s *simulation) repair(r *v1alpha1.NodeRollout, percent int) {
	for _, failed := range r.Status.Failed {
		if !s.chance(percent) {
			continue
		}
		decision := v1alpha1.RolloutNodeSpec{Name: failed.Name, ForgivenAttemptCount: failed.AttemptCount}
		if s.chance(20) {
			decision = v1alpha1.RolloutNodeSpec{Name: failed.Name, Skip: true}
		}
		s.editSpec(r.Name, func(spec *v1alpha1.NodeRolloutSpec) { s.decideAbout(spec, decision) })
	}
}

// decideAbout replaces the decision about a node.
func (s *simulation) decideAbout(spec *v1alpha1.NodeRolloutSpec, decision v1alpha1.RolloutNodeSpec) {
	spec.Nodes = append(slices.DeleteFunc(slices.Clone(spec.Nodes), func(n v1alpha1.RolloutNodeSpec) bool { return n.Name == decision.Name }), decision)
}

func (s *simulation) happenToMaintenances() {
	if s.chance(15) {
		s.request(fmt.Sprintf("mine-%d", s.born), pick(s, s.nodes).Name)
	}
	s.requestRandomly()
	if len(s.maintenances) == 0 {
		return
	}
	m := pick(s, s.maintenances)
	switch s.random.IntN(40) {
	case 0:
		s.deleteMaintenance(m.Name)
	case 1:
		if isLive(m) {
			s.complete(m.Name)
		}
	}
}

func isLive(m *v1alpha1.NodeMaintenance) bool { return !maintenance.Finished(m) }

// work is what the controller of NodeMaintenances and administrators do.
func (s *simulation) work(percent int) {
	s.runJobs(percent)
	for _, m := range slices.Clone(s.maintenances) {
		ends := maintenance.Stage(m) == v1alpha1.StageComplete
		switch {
		case !isLive(m):
		case isTeams(m):
			s.workForTeam(m, percent)
		case ends && s.chance(2*percent):
			s.finish(m.Name)
		case ends:
		case !isAccepted(m):
			if s.chance(2*percent) && !s.isHeld(m, nodeOf(m), percent) {
				s.accept(m.Name)
			}
		case !isDrained(m):
			s.drainOrGiveBack(m, percent)
		case s.chance(percent):
			s.workOn(m, percent)
		}
	}
}

func (s *simulation) drainOrGiveBack(m *v1alpha1.NodeMaintenance, percent int) {
	_, exists := find(s.nodes, nodeOf(m))
	switch deadline := m.Spec.Deadline; {
	case deadline != nil && !s.now.Before(deadline.Time.Time) && !s.skewed:
		s.giveBack(m.Name)
	case exists >= 0 && !s.sticky[nodeOf(m)] && s.chance(percent):
		s.editMaintenance(m.Name, s.handOver)
		s.drain(m.Name)
	}
}

// workOn ends the work on a drained node.
func (s *simulation) workOn(m *v1alpha1.NodeMaintenance, percent int) {
	_, exists := find(s.nodes, nodeOf(m))
	owner, _ := find(s.rollouts, m.Labels[v1alpha1.RolloutLabel])
	switch {
	case owner != nil && owner.Spec.After == v1alpha1.AfterStayDrained:
		if s.chance(5) && percent < 100 {
			s.complete(m.Name)
		}
	case s.broken[nodeOf(m)]:
	case m.Spec.CompleteWhen == nil && s.job(m).CronJob == "" || exists < 0:
		s.complete(m.Name)
	case s.chance(4) && percent < 100:
		s.complete(m.Name)
	case !s.job(m).Awaited():
		kernel := oldKernel
		if when := m.Spec.CompleteWhen; when != nil && when.KernelVersion != "" {
			kernel = when.KernelVersion
		}
		s.bootWith(m.Name, kernel)
	}
}

// bootWith has a node boot with a kernel. Its agent reports afterwards whether a reboot is required.
func (s *simulation) bootWith(name, kernel string) {
	m, _ := find(s.maintenances, name)
	if s.chance(90) || s.forgetful[nodeOf(m)] {
		s.now = s.now.Add(time.Second)
		s.report(nodeOf(m), v1alpha1.NodeRebootRequired, map[bool]corev1.ConditionStatus{true: "True", false: "False"}[s.forgetful[nodeOf(m)]])
	}
	s.comeBack(name, kernel)
}

// heal has people repair what they can, and do no more harm.
func (s *simulation) heal() {
	s.skewed = false
	clear(s.refused)
	clear(s.refusedBudgets)
	s.makeBudgetsValid()
	clear(s.refusedJobs)
	stubborn := s.chance(30)
	for _, n := range slices.Clone(s.nodes) {
		if !stubborn {
			s.sticky[n.Name], s.broken[n.Name], s.forgetful[n.Name] = false, false, false
		}
		s.editNode(n.Name, func(n *corev1.Node) { setReady(n, true) })
	}
	for _, r := range slices.Clone(s.rollouts) {
		s.makeValid(r)
		s.editSpec(r.Name, func(spec *v1alpha1.NodeRolloutSpec) {
			if spec.State == v1alpha1.RolloutPaused {
				spec.State = v1alpha1.RolloutRunning
			}
			if spec.Canary != nil && spec.Canary.Approved != nil {
				spec.Canary.Approved = new(true)
			}
			if spec.Mode == v1alpha1.RolloutContinuous && spec.Target != nil && spec.Target.KernelVersion != "" {
				spec.Target.KernelVersion = newKernel // Two that disagree have no end.
			}
		})
		s.repair(r, 50)
	}
}

// uncordon has people uncordon the nodes that they have cordoned.
func (s *simulation) uncordon() {
	for _, n := range slices.Clone(s.nodes) {
		if n.Spec.Unschedulable && cordon.Of(n) == nil {
			s.editNode(n.Name, func(n *corev1.Node) { n.Spec.Unschedulable = false })
		}
	}
}
