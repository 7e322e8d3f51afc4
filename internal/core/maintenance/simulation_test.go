package maintenance_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/test/tier"
)

const (
	simulations = 200
	asking      = 100 // further ones in which pods may name responders
	fewer       = 5   // only each of so many in the first tier
	unrest      = 40  // passes during which everything may happen
	patience    = 400 // passes after which everything has to be drained
)

// A simulation lets things happen at random and a pass run after each, until
// nothing new comes. What must hold after every pass is in invariant_test.go.
type simulation struct {
	*world
	t      *testing.T
	random *rand.Rand
	// selectors is true if drain plans may have selectors.
	selectors bool
	// before is what nodes were before anybody touched them.
	before     map[string]bool
	returns    returns
	answers    answers
	lates      lates
	admissions admissions
	// freed is true if a maintenance went straight from Idle to Complete: that may
	// lift a person's cordon.
	freed bool
}

func TestSimulation(t *testing.T) { simulate(t, fewer) }

func TestLongSimulation(t *testing.T) {
	tier.Long(t)
	simulate(t, 1)
}

// simulate simulates each of so many.
func simulate(t *testing.T, each uint64) {
	t.Helper()
	for seed := uint64(0); seed < simulations+asking; seed += each {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newSimulation(t, seed)
			for range unrest {
				s.happen()
				s.changeReturns()
				s.changeDeadlines()
				s.changeNodeBudgets()
				s.changeRules()
				s.changeAnswers()
				s.step(true)
			}
			s.drainAll()
			s.completeAll()
		})
	}
	if returnedInSimulations < simulations/10/int(each) {
		t.Errorf("only %d maintenances have completed themselves", returnedInSimulations)
	}
	if givenBackInSimulations < simulations/10/int(each) {
		t.Errorf("only %d times nodes were given back at a deadline", givenBackInSimulations)
	}
	if heldInSimulations < simulations/int(each) {
		t.Errorf("only %d times nodes were held by budgets", heldInSimulations)
	}
	checkCameOfRequests(t, asking/20/int(each))
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{
		world: newWorld(t), t: t, random: rand.New(rand.NewPCG(seed, 4212)), selectors: seed%2 == 0,
		before: map[string]bool{}, returns: newReturns(seed), answers: newAnswers(seed), lates: newLates(seed), admissions: newAdmissions(seed),
	}
	s.runners.DaemonSets = s.random.IntN(2) == 0
	s.runners.Agents = map[string]maintenance.Agent{"node-0": {}}
	if seed%4 < 2 {
		s.rule()
	}
	for range 2 + s.random.IntN(4) {
		s.join()
	}
	s.budgetAll()
	for range 5 * len(s.nodes) {
		s.bear()
	}
	return s
}

func (s *simulation) chance(percent int) bool { return s.random.IntN(100) < percent }

func pick[T any](s *simulation, from []T) T { return from[s.random.IntN(len(from))] }

func (s *simulation) join() {
	node := s.node(fmt.Sprintf("node-%d", len(s.nodes)))
	node.Spec.Unschedulable = s.chance(20)
	s.before[node.Name] = node.Spec.Unschedulable
}

func (s *simulation) bear() {
	pod := s.run(pick(s, s.nodes).Name, 1, pick(s, []int32{-5, 0, 1000, 1000, 5000, 2000000000}))[0]
	pod.Labels = map[string]string{"app": pick(s, []string{"x", "y", "z"})}
	switch s.random.IntN(10) {
	case 0:
		ofDaemonSet(pod)
	case 1:
		static(pod)
	case 2:
		pod.Labels[v1alpha1.DrainLabel] = pick(s, []string{"skip", "wait-completed", "nonsense"})
	}
	s.lead(pod)
	s.settleDown(pod)
}

func (s *simulation) plan() []v1alpha1.DrainPlanEntry {
	var plan []v1alpha1.DrainPlanEntry
	for range s.random.IntN(5) {
		one := entry(pick(s, []v1alpha1.PodType{"", v1alpha1.PodTypeDefault, v1alpha1.PodTypeDaemonSet}), pick(s, []int32{-5, 0, 1000, 5000}))
		if s.selectors && s.chance(50) {
			one.PodSelector = pick(s, selectors).DeepCopy()
		}
		plan = append(plan, one)
	}
	return plan
}

func (s *simulation) someNodes() []string {
	var names []string
	for _, node := range s.nodes {
		if s.chance(60) {
			names = append(names, node.Name)
		}
	}
	return names
}

// happen is one thing that somebody else does.
func (s *simulation) happen() {
	stages := []v1alpha1.NodeMaintenanceStage{v1alpha1.StageIdle, v1alpha1.StageCordon, v1alpha1.StageDrain, v1alpha1.StageComplete}
	s.now = s.now.Add(time.Duration(s.random.IntN(90)) * time.Second)
	switch s.random.IntN(9) {
	case 0:
		if len(s.maintenances) < 4 {
			s.born++
			m := s.maintenance(fmt.Sprintf("m-%d", s.born), pick(s, stages[:3]), s.plan(), s.someNodes()...)
			m.CreationTimestamp = metav1.NewTime(s.now.Truncate(time.Minute))
			s.bringBack(m)
			m.Spec.DrainDepth = pick(s, []v1alpha1.PodType{"", v1alpha1.PodTypeDefault, v1alpha1.PodTypeDaemonSet, v1alpha1.PodTypeStatic})
		}
	case 1, 2:
		s.bear()
	case 3:
		s.kill(pick(s, s.nodes).Name)
	case 4:
		if node := pick(s, s.nodes); len(node.Annotations) > 0 {
			s.meddle(node)
		}
	case 5:
		if len(s.maintenances) > 0 {
			m := pick(s, s.maintenances)
			was := slices.Index(stages, m.Spec.Stage)
			m.Spec.Stage = stages[min(3, was+pick(s, []int{0, 1, 1, 1, 3}))]
			s.freed = s.freed || m.Spec.Stage == v1alpha1.StageComplete && !cordoned(m)
		}
	case 6:
		if len(s.maintenances) > 0 && s.chance(30) {
			pick(s, s.maintenances).Spec.NodeSelector = named(s.someNodes()...)
		}
	default:
		s.finish(50)
	}
	s.changeStays()
	if len(s.maintenances) > 0 && s.chance(3) {
		s.delete(pick(s, s.maintenances))
	}
}

func cordoned(m *v1alpha1.NodeMaintenance) bool {
	return slices.ContainsFunc(m.Status.StageStatuses, func(s v1alpha1.StageStatus) bool { return s.Name == v1alpha1.StageCordon })
}

// meddle changes what we have set on a node.
func (s *simulation) meddle(node *corev1.Node) {
	switch s.random.IntN(4) {
	case 0:
		node.Spec.Taints = nil
	case 1:
		delete(node.Annotations, v1alpha1.DrainTargetsAnnotation)
	case 2:
		node.Annotations[v1alpha1.DrainTargetsAnnotation] = pick(s, []string{"", "[]", "}"})
	default:
		node.Spec.Unschedulable, s.before[node.Name] = false, false
	}
}

// delete deletes as the API server does: an object with finalizers stays.
func (s *simulation) delete(m *v1alpha1.NodeMaintenance) {
	if m.DeletionTimestamp == nil {
		m.DeletionTimestamp = &metav1.Time{Time: s.now}
	}
	s.collect()
}

func (s *simulation) collect() {
	s.maintenances = slices.DeleteFunc(s.maintenances, func(m *v1alpha1.NodeMaintenance) bool {
		return m.DeletionTimestamp != nil && len(m.Finalizers) == 0
	})
}

func (s *simulation) kill(node string) {
	if len(s.pods[node]) == 0 {
		return
	}
	gone := pick(s, s.pods[node])
	delete(s.evacuations, gone.UID)
	s.pods[node] = slices.DeleteFunc(s.pods[node], func(pod *corev1.Pod) bool { return pod == gone })
}

// finish ends evacuations and waits for completion.
func (s *simulation) finish(percent int) {
	for _, name := range slices.Sorted(maps.Keys(s.before)) {
		s.pods[name] = slices.DeleteFunc(s.pods[name], func(pod *corev1.Pod) bool {
			_, evacuating := s.evacuations[pod.UID]
			waited := s.treatment(name, pod).Behavior == v1alpha1.DrainBehaviorWaitCompleted
			if gone := (evacuating || waited || s.moved(pod)) && s.chance(percent); !gone {
				return false
			}
			delete(s.evacuations, pod.UID)
			return true
		})
	}
}

// step is one pass. With failures on, statuses are written late, records fail
// and the manager stops in the middle.
func (s *simulation) step(failures bool) maintenance.Decision {
	s.t.Helper()
	snapshot := s.snapshot()
	decision := s.decide(snapshot)
	if again := maintenance.Decide(s.shuffled(snapshot)); !reflect.DeepEqual(decision, again) {
		s.t.Fatalf("the order of the snapshot makes a difference:\n%s", cmp.Diff(decision, again))
	}
	s.check(decision)
	s.checkDeadlines()
	failed := s.recordSome(decision, failures)
	for i := range decision.Nodes {
		d := &decision.Nodes[i]
		stopped := slices.ContainsFunc(d.Maintenances, func(name string) bool { return failed[name] })
		if !stopped && !(failures && s.chance(10)) {
			s.checkRecorded(d)
			s.actByWays(d)
			s.returns.acted(d)
			s.checkSuppressed(d)
		}
	}
	s.collect()
	return decision
}

// recordSome returns whose record has failed, or who was completed by it.
func (s *simulation) recordSome(decision maintenance.Decision, failures bool) map[string]bool {
	failed := map[string]bool{}
	for i := range decision.Maintenances {
		d := &decision.Maintenances[i]
		switch {
		case d.GiveBack != nil:
			failed[d.Maintenance.Name] = true
			s.lates.decided(s, d, failures)
		case failures && (d.Record || d.HandOver != nil) && s.chance(10):
			failed[d.Maintenance.Name] = true
		case failures && !d.Record && d.HandOver == nil && !d.DropFinalizer && s.chance(30): // written late
		default:
			s.record(d)
			failed[d.Maintenance.Name] = d.Returned
		}
	}
	return failed
}

// checkRecorded: what is evacuated is in the API before.
func (s *simulation) checkRecorded(d *maintenance.NodeDecision) {
	for _, pod := range requested(d.Evacuate) {
		if !s.history(d.Node.Name).Covers(pod) {
			s.t.Errorf("pod %s of node %s is evacuated without a record", pod.Name, d.Node.Name)
		}
	}
}

// decide decides and sees to it that the snapshot stays as it was.
func (s *simulation) decide(snapshot maintenance.Snapshot) maintenance.Decision {
	if !s.chance(20) {
		return maintenance.Decide(snapshot)
	}
	before := fingerprint(s.t, snapshot)
	decision := maintenance.Decide(snapshot)
	if after := fingerprint(s.t, snapshot); after != before {
		s.t.Fatalf("Decide changed its input:\n%s", cmp.Diff(before, after))
	}
	return decision
}

func (s *simulation) shuffled(snapshot maintenance.Snapshot) maintenance.Snapshot {
	shuffle := snapshot
	shuffle.Maintenances = shuffledSlice(s, snapshot.Maintenances)
	shuffle.Nodes = shuffledSlice(s, snapshot.Nodes)
	shuffle.Pods = map[string][]maintenance.Pod{}
	for node, pods := range snapshot.Pods {
		shuffle.Pods[node] = shuffledSlice(s, pods)
	}
	return shuffle
}

func shuffledSlice[T any](s *simulation, all []T) []T {
	all = slices.Clone(all)
	s.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func fingerprint(t *testing.T, snapshot maintenance.Snapshot) string {
	// Maps by a struct have no JSON, and DaemonSets are not asked about.
	text, err := json.Marshal(struct {
		maintenance.Snapshot
		Facts   map[string]map[string]string
		Refused string
	}{snapshot, snapshot.Facts.Namespaces, fmt.Sprint(snapshot.Refused)})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// drainAll lets the evacuations finish and nothing new come.
func (s *simulation) drainAll() {
	s.repairRules()
	s.settleAnswers()
	for range patience {
		s.admitAll()
		s.patient()
		decision := s.step(false)
		s.finish(50)
		s.lockSome(100)
		if s.allDrained(decision) {
			return
		}
	}
	for _, m := range s.maintenances {
		s.t.Logf("%s %s: %q", m.Name, m.Spec.Stage, lines(m))
	}
	s.t.Fatal("the drain does not end")
}

func (s *simulation) allDrained(decision maintenance.Decision) bool {
	return !slices.ContainsFunc(decision.Maintenances, func(d maintenance.MaintenanceDecision) bool {
		return drains(d.Maintenance) && d.Status.NodeCount > 0 && !isTrue(d.Status.Conditions, v1alpha1.ConditionDrained)
	})
}

// completeAll deletes every maintenance and expects all nodes back as they were.
func (s *simulation) completeAll() {
	for _, m := range slices.Clone(s.maintenances) {
		s.delete(m)
	}
	for range 10 {
		s.step(false)
		s.lockSome(100)
	}
	if len(s.records) > 0 {
		s.t.Errorf("%d records are left", len(s.records))
	}
	if len(s.maintenances) > 0 {
		s.t.Errorf("%d maintenances are left, the first is %s", len(s.maintenances), s.maintenances[0].Name)
	}
	if len(s.evacuations) > 0 {
		s.t.Errorf("%d evacuations are left", len(s.evacuations))
	}
	for _, node := range s.nodes {
		s.checkRestored(node)
	}
	s.checkNobodyIsAsked()
}
