package nodemaintenance

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

func changed[T any](object *T, change func(*T)) *T {
	copied := *object
	change(&copied)
	return &copied
}

// watching is a reconciler whose last pass has read the pods of these nodes.
func watching(t *testing.T, nodes ...string) *reconciler {
	t.Helper()
	r := newWorld(t).manager()
	r.watched.set(nodes, sets.New(nodes...))
	pods := map[string][]maintenance.Pod{}
	for _, node := range nodes {
		r.schedule.setNode(aNode(node))
		pods[node] = []maintenance.Pod{{Object: aPod("any", node)}}
	}
	r.watched.namespaces(pods, false)
	return r
}

func TestWhichNodeEventsMatter(t *testing.T) {
	t.Parallel()
	node := aNode("one")
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	tests := map[string]struct {
		old, now *corev1.Node
		want     bool
	}{
		"a new node":     {now: node, want: true},
		"a deleted node": {old: node, want: true},
		"a heartbeat": {old: node, now: changed(node, func(n *corev1.Node) {
			n.ResourceVersion = "2"
			n.Status.Conditions = []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(noon),
			}}
		})},
		"a node that stops answering": {old: node, want: true, now: changed(node, func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		})},
		"another label": {old: node, want: true, now: changed(node, func(n *corev1.Node) {
			n.Labels = map[string]string{"pool": "new"}
		})},
		"a cordon": {old: node, want: true, now: changed(node, func(n *corev1.Node) { n.Spec.Unschedulable = true })},
		"a changed ledger": {old: node, want: true, now: changed(node, func(n *corev1.Node) {
			n.Annotations = map[string]string{v1alpha1.CordonAnnotation: "{}"}
		})},
		"other pods that stay away": {old: node, want: true, now: changed(node, func(n *corev1.Node) {
			n.Annotations = map[string]string{v1alpha1.DrainTargetsAnnotation: "[]"}
		})},
		"the switch of an autoscaler": {old: node, want: true, now: changed(node, func(n *corev1.Node) {
			n.Annotations = map[string]string{v1alpha1.KarpenterDoNotDisruptAnnotation: "true"}
		})},
		"our taint": {old: node, want: true, now: changed(node, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.DaemonSetTaint, Effect: corev1.TaintEffectNoSchedule}}
		})},
		"somebody else's taint": {old: node, now: changed(node, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.DaemonSetTaint, Effect: corev1.TaintEffectNoExecute}}
		})},
		"a node that was created again": {old: node, want: true, now: changed(node, func(n *corev1.Node) { n.UID = "other" })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := watching(t, "one")
			r.schedule.setMaintenance(aMaintenance("upgrade", "old"))
			if _, got := r.nodeMatters(test.old, test.now); slices.Contains(got, group.Node("one")) != test.want {
				t.Errorf("concerns %v, want the node %t", got, test.want)
			}
		})
	}
}

func TestWhichMaintenanceEventsMatter(t *testing.T) {
	t.Parallel()
	upgrade := aMaintenance("upgrade", "old")
	tests := map[string]struct {
		now  *v1alpha1.NodeMaintenance
		want bool
	}{
		"our own status write": {now: changed(upgrade, func(m *v1alpha1.NodeMaintenance) { m.Status.Summary = "draining" })},
		"a spec that changes":  {want: true, now: changed(upgrade, func(m *v1alpha1.NodeMaintenance) { m.Generation = 2 })},
		"a deletion": {want: true, now: changed(upgrade, func(m *v1alpha1.NodeMaintenance) {
			m.DeletionTimestamp = &metav1.Time{Time: noon}
		})},
		"a finalizer that was taken away": {want: true, now: changed(upgrade, func(m *v1alpha1.NodeMaintenance) {
			m.Finalizers = []string{"other"}
		})},
		"a hand-over":        {want: true, now: annotated(upgrade, v1alpha1.HandedOverAnnotation)},
		"a pause":            {want: true, now: annotated(upgrade, v1alpha1.BridgePausedAnnotation)},
		"it allows removal":  {want: true, now: annotated(upgrade, v1alpha1.AllowScaleDownAnnotation)},
		"another annotation": {now: annotated(upgrade, "example.com/note")},
		"one that is gone":   {want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := watching(t, "one")
			r.schedule.setMaintenance(upgrade)
			if _, got := r.maintenanceMatters(upgrade, test.now); len(got) > 0 != test.want {
				t.Errorf("concerns %v, want somebody %t", got, test.want)
			}
		})
	}
}

func annotated(m *v1alpha1.NodeMaintenance, key string) *v1alpha1.NodeMaintenance {
	return changed(m, func(m *v1alpha1.NodeMaintenance) { m.Annotations = map[string]string{key: "true"} })
}

func TestWhichPodEventsMatter(t *testing.T) {
	t.Parallel()
	here, elsewhere := aPod("shop-1", "one"), aPod("shop-2", "two")
	tests := map[string]struct {
		old, now *corev1.Pod
		want     bool
	}{
		"a new pod here":               {now: here, want: true},
		"a new pod elsewhere":          {now: elsewhere},
		"a pod here is gone":           {old: here, want: true},
		"a pod elsewhere is gone":      {old: elsewhere},
		"a pod that is scheduled here": {old: aPod("shop-1", ""), now: here, want: true},
		"a pod here terminates": {old: here, want: true, now: changed(here, func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: noon}
		})},
		"a pod elsewhere terminates": {old: elsewhere, now: changed(elsewhere, func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: noon}
		})},
		"a pod here changes in what the cache drops": {old: here, now: changed(here, func(p *corev1.Pod) { p.ResourceVersion = "2" })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, got := watching(t, "one").podMatters(test.old, test.now); len(got) > 0 != test.want {
				t.Errorf("concerns %v, want the node %t", got, test.want)
			}
		})
	}
}

func TestHowSoonEvacuationEventsMatter(t *testing.T) {
	t.Parallel()
	pod := aPod("shop-1", "one")
	ours := evacuation.New(pod, v1alpha1.NodeMaintenanceInstigator, nil)
	theirs := evacuation.New(pod, v1alpha1.InstigatorFinalizerPrefix+"autoscaler.example.com", nil)
	nowhere := theirs.DeepCopy()
	nowhere.Annotations = nil
	busy, idle := watching(t, "one"), watching(t)
	runRelevance(t, map[string]relevanceTest{
		"a request of ours comes":        {at(busy.evacuationMatters(nil, ours)), coalesce},
		"a request of another comes":     {at(busy.evacuationMatters(nil, theirs)), never},
		"somebody takes our request":     {at(busy.evacuationMatters(ours, theirs)), coalesce},
		"an evacuator reports to us":     {at(busy.evacuationMatters(ours, ours)), statusInterval},
		"an evacuator reports to them":   {at(busy.evacuationMatters(theirs, theirs)), never},
		"one vanishes during a drain":    {at(busy.evacuationMatters(theirs, nil)), coalesce},
		"one without a node changes":     {at(busy.evacuationMatters(nil, nowhere)), statusInterval},
		"one of others vanishes at rest": {at(idle.evacuationMatters(theirs, nil)), never},
	})
}

func TestWhichRuleAndNamespaceEventsMatter(t *testing.T) {
	t.Parallel()
	rule, elsewhere := aRule(ownNamespace, "skip", "shop"), aRule("fleet", "skip", "shop")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	busy, idle := watching(t, "one"), watching(t)
	runRelevance(t, map[string]relevanceTest{
		"a new rule":                   {at(busy.ruleMatters(nil, rule)), coalesce},
		"a rule that is gone":          {at(busy.ruleMatters(rule, nil)), coalesce},
		"a rule of Machines only":      {at(busy.ruleMatters(nil, elsewhere)), never},
		"one of these that is gone":    {at(busy.ruleMatters(elsewhere, nil)), never},
		"a rule when nobody drains":    {at(idle.ruleMatters(nil, rule)), never},
		"a rule that stays the same":   {at(busy.ruleMatters(rule, rule)), never},
		"a rule that changes":          {at(busy.ruleMatters(rule, changed(rule, func(r *v1alpha1.MachineDrainRule) { r.Generation++ }))), coalesce},
		"a new namespace":              {at(busy.namespaceMatters(nil, namespace)), coalesce},
		"a namespace that is gone":     {at(busy.namespaceMatters(namespace, nil)), coalesce},
		"a namespace when at rest":     {at(idle.namespaceMatters(nil, namespace)), never},
		"a namespace in another phase": {at(busy.namespaceMatters(namespace, namespace)), never},
		"a label of a namespace":       {at(busy.namespaceMatters(namespace, changed(namespace, func(n *corev1.Namespace) { n.Labels = map[string]string{"team": "sales"} }))), coalesce},
	})
}

// A burst of 1,000 pod events over 100 ms leads to the four passes that fit in
// it and one that sees the last event, none of them late.
func TestABurstOfPodEventsCostsAFewPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := watching(t, "one")
		r.clock = clock.RealClock{}
		queue := priorityqueue.New[group.Member]("burst")
		handler := handlerOf(r, r.podMatters)
		burst := func() {
			for range 1000 {
				handler.Create(t.Context(), event.TypedCreateEvent[*corev1.Pod]{Object: aPod("shop-1", "one")}, queue)
				time.Sleep(100 * time.Microsecond)
			}
		}
		go burst()
		passes := 0
		go func() {
			for item, shutdown := queue.Get(); !shutdown; item, shutdown = queue.Get() {
				passes += r.pretend(queue, item)
				queue.Done(item)
			}
		}()

		time.Sleep(time.Second)
		synctest.Wait()
		if passes < 1 || passes > 5 {
			t.Errorf("1,000 events led to %d passes, want 1 to 5", passes)
		}
		queue.ShutDown()
	})
}

// pretend runs an empty pass if one is due, and returns how many it ran.
func (r *reconciler) pretend(q queue, item group.Member) int {
	run, again := r.schedule.begin(r.clock.Now(), item)
	if run != nil {
		r.schedule.end(r.clock.Now(), run, 0, 0)
		return 1
	}
	if again > 0 {
		q.AddAfter(item, again)
	}
	return 0
}

// never is when a pass is due for an event that does not matter.
const never = 0

// relevanceTest compares when the pass is due for an event.
type relevanceTest struct{ got, want time.Duration }

// at returns when the pass is due.
func at(due time.Duration, concerned []group.Member) time.Duration {
	if len(concerned) == 0 {
		return never
	}
	return due
}

func runRelevance(t *testing.T, tests map[string]relevanceTest) {
	t.Helper()
	for name, test := range tests {
		if test.got != test.want {
			t.Errorf("%s: the pass is due in %s, want %s", name, test.got, test.want)
		}
	}
}
