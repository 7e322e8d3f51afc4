package scenario

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// webReplicas is how many pods serve the application that surges.
const webReplicas = 3

// fleet is a world with several managers of which one leads, and all that they do at
// once: a node whose pods are held, one whose application surges, and two that are
// rebooted under replicas of one application.
type fleet struct {
	*world
	mu       sync.Mutex
	managers []cluster.Replica // the first one leads, at first
	held     string
	old      string
	letNew   func()
	reboots  []rolling
	// What is to be as before, and what has to hold all the time.
	marks     []string
	endpoints *cluster.Endpoints
	outages   *outages
	locks     *lockings
	detached  func() int
	served    map[string]bool // every pod of the application that surges
	stop      func()
	// late is how many pods came in the middle, besides those of the beginning.
	late int
	// leaders is how many managers may lead at a time: two where somebody takes the Lease
	// away, for the 2 s at the most until the first one would renew it. Both may evict a pod
	// then. The second eviction takes nothing from a budget, as the pod terminates already.
	leaders int
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	return newFleetIn(t, cluster.Spec{Replicas: true})
}

func newFleetIn(t *testing.T, spec cluster.Spec) *fleet {
	t.Helper()
	c := cluster.Start(t, spec)
	ns := c.Namespace(t)
	f := &fleet{world: &world{t: t, ctx: context.WithoutCancel(t.Context()), client: c.Client, cluster: c, prefix: ns + "-", ns: ns}, leaders: 1}
	f.managers = []cluster.Replica{c.StartReplica(t)}
	f.awaitLeads(f.managers[0])
	f.managers = append(f.managers, c.StartReplica(t))

	stay := f.nodes("one", "two", "three")
	f.world.replicated(myApp)
	f.reboots = []rolling{{"reboot-one", stay[0]}, {"reboot-two", stay[1]}}
	f.held = f.nodes("held")[0]
	f.pods(f.held, pod{name: "free"}, pod{name: "stuck", held: true})
	f.serveWeb()

	f.marks = f.leftovers()
	f.endpoints = c.WatchEndpoints(t, f.key("web"))
	f.outages, f.locks, f.detached = f.watchOutages(myApp), f.watchLocks(), f.watchDetached()
	f.served = map[string]bool{}
	f.stop = f.watchPods(func(_ watch.EventType, p *corev1.Pod) {
		if p.Labels["name"] == "web" {
			f.served[p.Name] = true
		}
	})
	return f
}

// serveWeb creates the application that surges, on one of two nodes that are for it.
func (f *fleet) serveWeb() {
	f.t.Helper()
	pool := map[string]string{"example.com/pool": "web"}
	f.old = f.name("old")
	next := f.name("new")
	f.cluster.NamedNodes(f.t, pool, f.old, next)
	f.cordon(next, true)
	f.letNew = func() { f.cordon(next, false) }
	f.serve(app{name: "web", replicas: webReplicas, ready: "1s", edit: func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector = pool
	}})
	f.createBudget("web", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(webReplicas))})
}

// begins brings everything into the middle: pods that are held, a surge without a place
// for the replacement, and a node that is down while the next one waits for its lock.
func (f *fleet) begins() {
	f.t.Helper()
	first, second := f.reboots[0], f.reboots[1]
	f.maintain("empty", v1alpha1.StageDrain, []string{f.held})
	f.maintain("replace", v1alpha1.StageDrain, []string{f.old})
	f.maintainInPlace(first.maintenance, minutes, first.node)
	f.awaitDrained(first.maintenance)
	f.goDown(first.node)
	f.maintainInPlace(second.maintenance, minutes, second.node)
	f.awaitWaits(second.maintenance, second.node, "is locked by "+f.holder(first.maintenance, first.node))
	f.awaitGone("free")
	f.awaitPods("a pod that surges", func(pods []corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Annotations[v1alpha1.SurgeAnnotation] != "" })
	})
}

// goesOn lets go all that was held, whoever may lead by now.
func (f *fleet) goesOn() {
	f.t.Helper()
	f.letNew()
	f.release("stuck")
	f.returns(f.reboots[0])
}

// returns is the end of the reboot of a node that is down.
func (f *fleet) returns(r rolling) {
	f.t.Helper()
	f.boot(r.node)
	f.setStage(r.maintenance, v1alpha1.StageComplete)
	f.recover(r.node)
}

// ends wants all to come to its end as if there had only been one manager.
func (f *fleet) ends() {
	f.t.Helper()
	f.awaitDrained("empty")
	f.awaitDrained("replace")
	second := f.reboots[1]
	f.awaitDrained(second.maintenance)
	f.goDown(second.node)
	f.returns(second)
	f.awaitNothingLocked(f.reboots[0].node, second.node)
	for _, name := range []string{"empty", "replace", "reboot-one", "reboot-two"} {
		f.forget(name)
	}
	f.awaitNoEvacuations()
	f.assertKept()
	f.assertNothingLeft()
	f.assertDoneOnce()
}

// assertKept wants every application to have served all the time as it is promised.
func (f *fleet) assertKept() {
	f.t.Helper()
	f.endpoints.AssertAtLeast(f.t, webReplicas)
	f.outages.assertOneAtATime()
	one, two := f.holder("reboot-one", f.reboots[0].node), f.holder("reboot-two", f.reboots[1].node)
	f.locks.assertHolders(map[string][]string{myApp: {one, "", two, ""}})
}

// assertNothingLeft wants all objects to carry what they carried before.
func (f *fleet) assertNothingLeft() {
	f.t.Helper()
	var diff string
	f.eventually("nothing left", func() (bool, any) {
		diff = cmp.Diff(f.marks, f.leftovers())
		return diff == "", diff
	})
	records := &v1alpha1.DrainRecordList{}
	f.must("list records", f.client.List(f.ctx, records))
	for _, record := range records.Items {
		if strings.HasPrefix(record.Name, f.prefix) {
			f.t.Errorf("record %s is left", record.Name)
		}
	}
}

// leftovers is one line for each object that managers write to, with all that they could
// have left there. Pods that leave have other names and nodes then.
func (f *fleet) leftovers() []string {
	f.t.Helper()
	var lines []string
	note := func(what string, object metav1.Object, more ...any) {
		lines = append(lines, fmt.Sprint(what, " ", object.GetAnnotations(), object.GetLabels(), object.GetFinalizers(), len(object.GetOwnerReferences()), more))
	}
	for _, p := range f.podList() {
		switch app := p.Labels["name"]; app {
		case myApp:
			note("pod of "+app, &p, p.UID, p.Spec.NodeName, p.Spec.SchedulingGates, available(&p))
		case "web":
			delete(p.Annotations, "kwok.x-k8s.io/initialized")
			note("pod of "+app, &p, p.Spec.SchedulingGates, available(&p))
		}
	}
	budgets, nodes, sets, deployment := &policyv1.PodDisruptionBudgetList{}, &corev1.NodeList{}, &appsv1.ReplicaSetList{}, &appsv1.Deployment{}
	f.must("list budgets", f.client.List(f.ctx, budgets, client.InNamespace(f.ns)))
	f.must("list nodes", f.client.List(f.ctx, nodes, client.MatchingLabels{cluster.PoolLabel: f.cluster.Pool()}))
	f.must("list ReplicaSets", f.client.List(f.ctx, sets, client.InNamespace(f.ns)))
	f.get(deployment, "web")
	note("Deployment", deployment, deployment.Generation)
	for _, set := range sets.Items {
		note("ReplicaSet "+set.Name, &set, set.Generation)
	}
	for _, b := range budgets.Items {
		note("budget "+b.Name, &b)
	}
	for _, n := range nodes.Items {
		var conditions []string
		for _, c := range n.Status.Conditions {
			conditions = append(conditions, string(c.Type))
		}
		// One is cordoned by the test at first; the taint follows by itself.
		taints := slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
		note("node "+n.Name, &n, n.Spec.Unschedulable && n.Name != f.name("new"), taints, conditions)
	}
	slices.Sort(lines)
	return lines
}

func (f *fleet) podList() []corev1.Pod {
	f.t.Helper()
	list := &corev1.PodList{}
	f.must("list pods", f.client.List(f.ctx, list, client.InNamespace(f.ns)))
	return list.Items
}

// assertDoneOnce wants nobody to have done a second time what was done already: each pod
// was asked to leave once, and replaced by one.
func (f *fleet) assertDoneOnce() {
	f.t.Helper()
	f.stop()
	if got := f.detached(); got != 1 {
		f.t.Errorf("%d pods were detached at a time, want 1", got)
	}
	if len(f.served) != 2*webReplicas {
		f.t.Errorf("there were pods %v of web, want %d and one in place of each", slices.Sorted(maps.Keys(f.served)), webReplicas)
	}
	evicted, asked := f.done("pods", "eviction"), f.done("evacuations", "")
	// The pods of web, free and stuck.
	if want := webReplicas + 2 + f.late; len(evicted) != want || len(asked) != want {
		f.t.Errorf("managers evicted %v and asked for %v, want %d of each", evicted, asked, want)
	}
	f.assertAtMost("asked for", asked, 1)
	f.assertAtMost("evicted", evicted, f.leaders)
}

func (f *fleet) assertAtMost(what string, acts map[string]int, most int) {
	f.t.Helper()
	for name, times := range acts {
		if times > most {
			f.t.Errorf("%s was %s %d times, want %d at the most", name, what, times, most)
		}
	}
}

// done is what managers have created in this world, and how often, from the audit log.
func (f *fleet) done(resource, subresource string) map[string]int {
	f.t.Helper()
	file, err := os.Open(f.cluster.AuditLog)
	f.must("open the audit log", err)
	defer func() { _ = file.Close() }()
	done := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var act struct {
			Verb      string `json:"verb"`
			ObjectRef struct {
				Resource, Subresource, Namespace, Name string
			} `json:"objectRef"`
			ResponseStatus struct {
				Code int `json:"code"`
			} `json:"responseStatus"`
		}
		f.must("read the audit log", json.Unmarshal(lines.Bytes(), &act))
		ref := act.ObjectRef
		if act.Verb == "create" && act.ResponseStatus.Code == 201 && ref.Namespace == f.ns && ref.Resource == resource && ref.Subresource == subresource {
			done[ref.Name]++
		}
	}
	f.must("read the audit log", lines.Err())
	return done
}
