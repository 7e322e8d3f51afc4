package maintenance_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/test/tier"
)

// These are the messages of KEP-4212, "Pod Selection and DrainTargets Example", found
// out by brute force: what a plan or a target selects is asked of pods, real ones and
// specimens, and every maintenance is compared with every other one.

// drainer is a maintenance in Drain.
type drainer struct {
	*v1alpha1.NodeMaintenance
	s *simulation
	// created is its place in the order of creation, began since when it drains.
	created int
	began   metav1.Time
	plan    []v1alpha1.DrainPlanEntry
	// position is its place in the plan, through is true if no counted pod is left.
	position int
	through  bool
	nodes    map[string]*v1alpha1.NodeMaintenanceNodeStatus
}

var allSpecimens = specimens()

// chooses is what one entry says of a pod.
func chooses(e v1alpha1.DrainPlanEntry, pod *corev1.Pod) bool {
	podType := cmp.Or(e.PodType, v1alpha1.PodTypeDefault)
	return podclass.Priority(pod) <= e.PodPriority && podclass.Type(pod) == podType && slices.Contains(apps(e), pod.Labels["app"])
}

// apps are those that an entry selects: simulations select by one label.
func apps(e v1alpha1.DrainPlanEntry) []string {
	switch s := e.PodSelector; {
	case s == nil:
		return []string{"", "x", "y", "z"}
	case len(s.MatchExpressions) > 0:
		return slices.Sorted(slices.Values(s.MatchExpressions[0].Values))
	default:
		return []string{s.MatchLabels["app"]}
	}
}

func anyChooses(entries []v1alpha1.DrainPlanEntry, pod *corev1.Pod) bool {
	return slices.ContainsFunc(entries, func(e v1alpha1.DrainPlanEntry) bool { return chooses(e, pod) })
}

// within is whether everything that an entry selects is among what others select.
func within(e v1alpha1.DrainPlanEntry, others []v1alpha1.DrainPlanEntry) bool {
	return !slices.ContainsFunc(allSpecimens, func(pod *corev1.Pod) bool { return chooses(e, pod) && !anyChooses(others, pod) })
}

// order is that of entries: by pod type, by priority, with a selector before without.
func order(a, b v1alpha1.DrainPlanEntry) int {
	types := []v1alpha1.PodType{v1alpha1.PodTypeDefault, v1alpha1.PodTypeDaemonSet, v1alpha1.PodTypeStatic}
	place := func(e v1alpha1.DrainPlanEntry) int {
		return slices.Index(types, cmp.Or(e.PodType, v1alpha1.PodTypeDefault))
	}
	broad := func(e v1alpha1.DrainPlanEntry) int { return map[bool]int{true: 1}[e.PodSelector == nil] }
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.PodPriority, b.PodPriority), cmp.Compare(broad(a), broad(b)))
}

func sameEntry(a, b v1alpha1.DrainPlanEntry) bool {
	return order(a, b) == 0 && slices.Equal(apps(a), apps(b))
}

// greatest are the greatest of some entries.
func greatest(entries []v1alpha1.DrainPlanEntry) []v1alpha1.DrainPlanEntry {
	if len(entries) == 0 {
		return nil
	}
	most := slices.MaxFunc(entries, order)
	return slices.DeleteFunc(slices.Clone(entries), func(e v1alpha1.DrainPlanEntry) bool { return order(e, most) != 0 })
}

func (d *drainer) entry() v1alpha1.DrainPlanEntry { return d.plan[d.position] }

func (d *drainer) reachedEntries() []v1alpha1.DrainPlanEntry { return d.plan[:d.position+1] }

func (d *drainer) counted(node string) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(d.s.pods[node]), func(pod *corev1.Pod) bool { return !d.s.waitsFor(d.NodeMaintenance, node, pod) })
}

// drainers reads all maintenances in Drain, the first created first.
func (s *simulation) drainers(decision maintenance.Decision) []*drainer {
	var all []*drainer
	for created, d := range decision.Maintenances {
		if !drains(d.Maintenance) {
			continue
		}
		one := &drainer{NodeMaintenance: d.Maintenance, s: s, created: created, nodes: s.unheld(&d)}
		one.plan = slices.DeleteFunc(drainplan.Normalise(d.Maintenance.Spec.DrainPlan), func(e v1alpha1.DrainPlanEntry) bool {
			return !slices.ContainsFunc(allSpecimens, func(pod *corev1.Pod) bool { return chooses(e, pod) && reachesDownTo(d.Maintenance, pod) })
		})
		for _, stage := range d.Status.StageStatuses {
			if stage.Name == v1alpha1.StageDrain {
				one.began = *stage.StartTimestamp
			}
		}
		one.advance()
		all = append(all, one)
	}
	return all
}

func (d *drainer) advance() {
	for d.position = range d.plan {
		for node := range d.nodes {
			if slices.ContainsFunc(d.counted(node), func(pod *corev1.Pod) bool { return chooses(d.entry(), pod) }) {
				return
			}
		}
	}
	d.through = true
}

// less is whether a maintenance asks for less than another one.
func (d *drainer) less(other *drainer) bool {
	if d.through != other.through {
		return other.through
	}
	entries := order(d.entry(), other.entry())
	if d.through {
		entries = -entries
	}
	return cmp.Or(entries, cmp.Compare(d.created, other.created)) < 0
}

func least(all []*drainer) *drainer {
	var least *drainer
	for _, d := range all {
		if least == nil || d.less(least) {
			least = d
		}
	}
	return least
}

// on are the maintenances of a node.
func on(all []*drainer, node string) []*drainer {
	return slices.DeleteFunc(slices.Clone(all), func(d *drainer) bool { return d.nodes[node] == nil })
}

// limiter is who keeps the target of a node behind a maintenance: the oldest at the top
// of the target that is no further itself, else the least.
func (d *drainer) limiter(all []*drainer, node string) *drainer {
	target := d.nodes[node].DrainTargets
	missing := slices.DeleteFunc(slices.Clone(d.reachedEntries()), func(e v1alpha1.DrainPlanEntry) bool { return within(e, target) })
	if len(missing) == 0 {
		return nil
	}
	for _, other := range on(all, node) {
		atTop := slices.ContainsFunc(greatest(target), func(e v1alpha1.DrainPlanEntry) bool {
			return order(e, other.entry()) == 0 && within(other.entry(), []v1alpha1.DrainPlanEntry{e})
		})
		further := slices.ContainsFunc(missing, func(e v1alpha1.DrainPlanEntry) bool { return within(e, other.reachedEntries()) })
		if atTop && !further && !other.through && other.less(d) {
			return other
		}
	}
	return least(on(all, node))
}

// forwarder is the older drain that has brought a target further than the maintenance.
func (d *drainer) forwarder(all []*drainer, node string) string {
	ahead := slices.DeleteFunc(slices.Clone(d.nodes[node].DrainTargets), func(e v1alpha1.DrainPlanEntry) bool {
		return within(e, d.reachedEntries()) || order(e, d.plan[len(d.plan)-1]) > 0 && e.PodType != d.plan[len(d.plan)-1].PodType
	})
	older := slices.DeleteFunc(on(all, node), func(other *drainer) bool { return byBeginning(other, d) >= 0 })
	slices.SortFunc(older, byBeginning)
	was := d.recorded(node)
	if was.FastForwardedBy == "" {
		ahead = slices.DeleteFunc(ahead, func(e v1alpha1.DrainPlanEntry) bool { return within(e, was.DrainTargets) })
	}
	if len(ahead) == 0 {
		return ""
	}
	if slices.ContainsFunc(older, func(other *drainer) bool { return other.Name == was.FastForwardedBy }) {
		return was.FastForwardedBy
	}
	for _, other := range older {
		if slices.ContainsFunc(greatest(ahead), func(e v1alpha1.DrainPlanEntry) bool { return sameEntry(e, other.entry()) }) {
			return other.Name
		}
	}
	come := func(reached func(*drainer) []v1alpha1.DrainPlanEntry) []*drainer {
		return slices.DeleteFunc(slices.Clone(older), func(other *drainer) bool {
			return !slices.ContainsFunc(greatest(ahead), func(e v1alpha1.DrainPlanEntry) bool { return within(e, reached(other)) })
		})
	}
	if far := least(come((*drainer).reachedEntries)); far != nil {
		return far.Name
	}
	for _, other := range come(func(other *drainer) []v1alpha1.DrainPlanEntry { return other.recorded(node).DrainTargets }) {
		if within(greatest(ahead)[0], other.plan) {
			return other.Name
		}
	}
	return ""
}

// recorded is what the status of a maintenance said of a node before.
func (d *drainer) recorded(node string) v1alpha1.NodeMaintenanceNodeStatus {
	for _, status := range d.Status.NodeStatuses {
		if status.NodeRef.Name == node {
			return status
		}
	}
	return v1alpha1.NodeMaintenanceNodeStatus{}
}

// byBeginning orders drains by when they began, those that begin now last.
func byBeginning(a, b *drainer) int {
	now := func(d *drainer) int {
		return map[bool]int{false: 1}[slices.ContainsFunc(d.Status.StageStatuses, func(s v1alpha1.StageStatus) bool { return s.Name == v1alpha1.StageDrain })]
	}
	return cmp.Or(now(a)-now(b), a.began.Compare(b.began.Time), cmp.Compare(a.created, b.created))
}

// under are the counted pods of a node that its target covers, beyond those that it
// does not although the maintenance has come to them.
func (d *drainer) under(node string) (under, beyond int) {
	for _, pod := range d.counted(node) {
		switch {
		case anyChooses(d.nodes[node].DrainTargets, pod):
			under++
		case anyChooses(d.reachedEntries(), pod):
			beyond++
		}
	}
	return under, beyond
}

// waitsOn is whose nodes a maintenance waits for, by node.
func (d *drainer) waitsOn(all []*drainer) map[string]*drainer {
	found := map[string]*drainer{}
	for node := range d.nodes {
		if under, _ := d.under(node); under > 0 {
			found[node] = d
		}
	}
	if len(found) > 0 {
		return found
	}
	for node := range d.nodes {
		if _, beyond := d.under(node); beyond > 0 {
			for name, other := range d.limiter(all, node).waitsOn(all) {
				if known := found[name]; known == nil || other.created < known.created {
					found[name] = other
				}
			}
		}
	}
	return found
}

// says is what a status has to say of a node with counted pods.
func (d *drainer) says(all []*drainer, node string) string {
	limiter, forwarder := d.limiter(all, node), d.forwarder(all, node)
	under, beyond := d.under(node)
	switch {
	case under == 0 && limiter != nil:
		return waitingWords(limiter.waitsOn(all), d)
	case under == 0:
		return waitingWords(d.waitsOn(all), d)
	case beyond > 0 || limiter != nil && forwarder == "":
		return fmt.Sprintf("Evacuating (limited by %s)", limiter.Name)
	case forwarder != "":
		return fmt.Sprintf("Evacuating (fast-forwarded by older %s)", forwarder)
	default:
		return "Evacuating"
	}
}

// waitingWords names three nodes, and whose they are unless they are one's own. All
// simulations have so few nodes that the words fit.
func waitingWords(answer map[string]*drainer, d *drainer) string {
	owners := map[string]bool{}
	for _, other := range answer {
		owners[other.Name] = true
	}
	whose := func(node string) string {
		return map[bool]string{false: " (" + answer[node].Name + ")"}[answer[node] == d]
	}
	var words []string
	for _, node := range slices.Sorted(maps.Keys(answer)) {
		if len(owners) > 1 {
			words = append(words, node+whose(node))
		} else {
			words = append(words, node)
		}
	}
	text := "Waiting for node" + map[bool]string{true: "s"}[len(words) > 1] + " " + strings.Join(words[:min(3, len(words))], ", ")
	if len(words) > 3 {
		text += fmt.Sprintf(" and %d more", len(words)-3)
	}
	if len(owners) == 1 {
		text += whose(slices.Sorted(maps.Keys(answer))[0])
	}
	return text + "."
}

// held is what is said in the place of "Evacuating" where nothing leaves.
var held = regexp.MustCompile("^Waiting for (blocked pods|pods to complete)")

// checkMessages compares what is said of every node that still has counted pods.
func (s *simulation) checkMessages(decision maintenance.Decision) {
	all := s.drainers(decision)
	for _, d := range all {
		for node, status := range d.nodes {
			if got, want := status.FastForwardedBy, d.forwarder(all, node); got != want {
				s.t.Errorf("%s: node %s is fast-forwarded by %q, want %q", d.Name, node, got, want)
			}
			if len(d.counted(node)) == 0 {
				continue
			}
			got, _, _ := strings.Cut(status.DrainMessage, ". Pods of order ")
			got = held.ReplaceAllString(got, "Evacuating")
			if want := d.says(all, node); got != want {
				s.t.Errorf("%s says of node %s %q, want %q", d.Name, node, got, want)
			}
		}
	}
}

// Many drains that share nodes, and come one after the other, get into each other's
// way more often than in other simulations.
func TestMessagesOfDrainsThatShareNodes(t *testing.T) { shareNodes(t, 16) }

func TestLongMessagesOfDrainsThatShareNodes(t *testing.T) {
	tier.Long(t)
	shareNodes(t, 80)
}

func shareNodes(t *testing.T, simulations uint64) {
	t.Helper()
	for seed := range simulations {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := &simulation{
				world: newWorld(t), t: t, random: rand.New(rand.NewPCG(seed, 5683)), selectors: seed%2 == 0, before: map[string]bool{},
			}
			for range 3 {
				s.join()
			}
			for range 40 {
				s.intersect()
				s.step(false)
			}
		})
	}
}

// intersect is one thing that happens to drains that share nodes.
func (s *simulation) intersect() {
	s.now = s.now.Add(time.Second)
	stages := []v1alpha1.NodeMaintenanceStage{v1alpha1.StageIdle, v1alpha1.StageDrain}
	switch s.random.IntN(6) {
	case 0:
		if len(s.maintenances) < 6 {
			m := s.maintenance(fmt.Sprintf("m-%d", len(s.maintenances)), pick(s, stages), s.plan(), s.someNodes()...)
			m.Spec.DrainDepth = pick(s, []v1alpha1.PodType{v1alpha1.PodTypeDefault, v1alpha1.PodTypeStatic, v1alpha1.PodTypeStatic})
		}
	case 1:
		if len(s.maintenances) > 0 {
			pick(s, s.maintenances).Spec.Stage = v1alpha1.StageDrain
		}
	case 2:
		s.finish(40)
	case 3:
		if len(s.maintenances) > 0 && s.chance(20) {
			pick(s, s.maintenances).Spec.NodeSelector = named(s.someNodes()...)
		}
	default:
		for range 3 {
			s.run(pick(s, s.nodes).Name, 1, pick(s, []int32{-5, 0, 1000, 5000, 2000000000}), labelled("app", pick(s, []string{"x", "y", "z"})))
		}
	}
}
