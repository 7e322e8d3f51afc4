package evictionrequest

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
)

var led = flag.Int("led", 100, "pods with responders on the nodes of one maintenance")

const (
	// ledOnNode is how many of them are on one node.
	ledOnNode = 25
	// tried is how long a write that is forbidden rests at the least before it is tried again.
	tried = 6 * time.Second
	// allOf bounds a state of all of them.
	allOf = 20 * time.Minute
	// mostForLed is how many writes of the manager there are at the most for a pod that its
	// responder moves: one asks, seven answer and evict, the others are shared by many.
	mostForLed = 12
	// mostSaid is how many bytes a maintenance says at the most, however many nodes it has.
	mostSaid = 1 << 20
)

// crowd are nodes full of pods that name a responder, which one manager drains.
type crowd struct {
	*world

	manager cluster.Replica
	nodes   []string
	pods    []*corev1.Pod
	asked   *askedFor
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{world: bareWorld(t, cluster.Spec{EvictionRequests: true, OnlyAPIServer: true, Replicas: true, Audit: true})}
	c.manager = c.cluster.StartReplica(t)
	c.eventually("the manager to lead", func() (bool, any) { return c.manager.Leads(t), c.manager.Tail(1) })
	c.awaitState(c.manager, core.StateActive)
	for n := range (*led + ledOnNode - 1) / ledOnNode {
		c.nodes = append(c.nodes, fmt.Sprintf("%s-%d", c.ns, n))
	}
	c.cluster.ForgetNodes(t, c.nodes...)
	for _, name := range c.nodes {
		c.must(c.client.Create(c.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{cluster.PoolLabel: c.cluster.Pool()}}}))
	}
	c.pods = make([]*corev1.Pod, *led)
	cluster.Each(t, *led, func(n int) error {
		c.pods[n] = c.on(c.nodes[n/ledOnNode], fmt.Sprintf("led-%d", n), leader+" 20000")
		return c.client.Create(c.ctx, c.pods[n])
	})
	c.asked = c.followAsked()
	return c
}

// on is a pod of a node. It is gone as soon as it is evicted: there is no kubelet.
func (c *crowd) on(node, name string, responders ...string) *corev1.Pod {
	pod := c.newPod(name, responders...)
	pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = node, new(int64(0))
	return pod
}

// drainAll asks for a maintenance of all nodes.
func (c *crowd) drainAll() *v1alpha1.NodeMaintenance {
	c.t.Helper()
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: c.ns}, Spec: v1alpha1.NodeMaintenanceSpec{
		Stage: v1alpha1.StageDrain,
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: cluster.PoolLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{c.cluster.Pool()}},
		}}}},
	}}
	c.must(c.client.Create(c.ctx, m))
	c.t.Cleanup(func() { _ = c.client.Delete(c.ctx, m) })
	return m
}

// await waits for what takes longer with more pods.
func (c *crowd) await(what string, is func() (bool, any)) {
	c.t.Helper()
	for deadline := time.Now().Add(allOf); ; time.Sleep(100 * time.Millisecond) {
		done, seen := is()
		if done {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("waited %s for %s; there is: %v\n%s", allOf, what, seen, c.manager.Tail(20))
		}
	}
}

// refuse has the API server refuse every write of EvictionRequests, until it is called again.
func (c *crowd) refuse() (again func()) {
	c.t.Helper()
	meta := metav1.ObjectMeta{Name: c.ns}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"lifecycle.k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"evictionrequests"}},
			},
		}}},
		Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "no requests here"}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        c.ns,
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		MatchResources: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: c.ns}},
		},
	}}
	again = func() {
		c.must(client.IgnoreNotFound(c.client.Delete(c.ctx, binding)))
		c.must(client.IgnoreNotFound(c.client.Delete(c.ctx, policy)))
	}
	c.t.Cleanup(again)
	c.must(c.client.Create(c.ctx, policy))
	c.must(c.client.Create(c.ctx, binding))
	c.eventually("the policy to count", func() (bool, any) {
		err := c.client.Create(c.ctx, newRequest("example.com/probe", c.pods[0]), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "no requests here"), err
	})
	return again
}

// tries are when the manager has written something in the namespace, by method and object.
func (c *crowd) tries() map[string][]time.Time {
	c.t.Helper()
	all := map[string][]time.Time{}
	c.audited(func(one audited) {
		key := one.Verb + " " + one.ObjectRef.Resource + " " + one.ObjectRef.Name
		all[key] = append(all[key], one.RequestReceivedTimestamp.Time)
	})
	return all
}

// Every write of EvictionRequests is refused for a maintenance of many pods that name
// responders: all others leave, the status says what refuses, and each write is tried again by
// its back-off, and no sooner. When nobody refuses any more the pods are asked.
func TestLongNoRequestOfManyCanBeWritten(t *testing.T) {
	c := newCrowd(t)
	again := c.refuse()
	others := make([]*corev1.Pod, len(c.nodes))
	for n, node := range c.nodes {
		others[n] = c.on(node, fmt.Sprintf("other-%d", n))
		c.must(c.client.Create(c.ctx, others[n]))
	}
	began := time.Now()
	m := c.drainAll()
	for _, pod := range others {
		c.awaitGone(pod)
	}
	c.await("every pod to be asked twice in vain", func() (bool, any) {
		tries := c.requestTries()
		twice := 0
		for _, at := range tries {
			if len(at) > 1 {
				twice++
			}
		}
		return twice == *led, twice
	})
	took := time.Since(began)
	c.assertRefused(m, took)

	again()
	c.await("all pods to be asked", func() (bool, any) { return c.asked.count() == *led, c.asked.count() })
	t.Logf("%d pods, all refused at first, are asked after %s", *led, time.Since(began).Round(time.Second))
}

// requestTries are when each pod was asked.
func (c *crowd) requestTries() map[string][]time.Time {
	all := c.tries()
	for key := range all {
		if !strings.HasPrefix(key, "create evictionrequests ") {
			delete(all, key)
		}
	}
	return all
}

// assertRefused wants the maintenance to say on every node why its pods stay, in bounds, and
// no write to be tried again too soon.
func (c *crowd) assertRefused(m *v1alpha1.NodeMaintenance, took time.Duration) {
	c.t.Helper()
	c.eventually("every node to say what refuses", func() (bool, any) {
		c.must(c.client.Get(c.ctx, client.ObjectKeyFromObject(m), m))
		silent := slices.DeleteFunc(slices.Clone(m.Status.NodeStatuses), func(node v1alpha1.NodeMaintenanceNodeStatus) bool {
			return slices.ContainsFunc(node.Blockers, c.saysWhy)
		})
		return len(m.Status.NodeStatuses) == len(c.nodes) && len(silent) == 0, m.Status
	})
	count := c.assertBackOff()
	text, err := json.Marshal(m.Status)
	c.must(err)
	statuses, events := 0, 0
	c.auditedAnywhere(func(one audited) {
		switch {
		case one.ObjectRef.Namespace == c.ns && strings.HasPrefix(one.ObjectRef.Resource, "event"):
			events++
		case one.ObjectRef.Resource == "nodemaintenances" && one.ObjectRef.Name == m.Name:
			statuses++
		}
	})
	c.t.Logf("%d pods in %s: %d requests tried; %d writes of the maintenance, %d of events, a status of %d bytes",
		*led, took.Round(time.Millisecond), count, statuses, events, len(text))
	if limit := 10 + 2*int(took.Seconds()); statuses > limit {
		c.t.Errorf("the maintenance was written %d times in %s, want at most %d", statuses, took, limit)
	}
	if limit := 100 + len(c.nodes); events > limit || len(text) > mostSaid {
		c.t.Errorf("there were %d writes of events and a status of %d bytes, want at most %d and %d", events, len(text), limit, mostSaid)
	}
}

func (c *crowd) saysWhy(b v1alpha1.Blocker) bool {
	return b.Type == v1alpha1.BlockerEvacuationRefused && strings.Contains(b.Message, "The EvictionRequest of pod "+c.ns+"/led-") &&
		strings.Contains(b.Message, " is refused: ") && strings.Contains(b.Message, "no requests here")
}

// assertBackOff wants no pod to be asked again too soon, and returns how often all were.
func (c *crowd) assertBackOff() (count int) {
	c.t.Helper()
	for key, at := range c.requestTries() {
		count += len(at)
		slices.SortFunc(at, time.Time.Compare)
		for n := 1; n < len(at); n++ {
			if gap := at[n].Sub(at[n-1]); gap < tried {
				c.t.Errorf("%s is tried again after %s, want no sooner than %s", key, gap, tried)
			}
		}
	}
	return count
}

// A maintenance of many pods that name responders: each is asked, moved by its responder and
// evicted, by few writes.
func TestLongAMaintenanceOfManyPodsWithResponders(t *testing.T) {
	c := newCrowd(t)
	gone, active := c.respond()
	began := time.Now()
	m := c.drainAll()
	c.await("all pods to be asked", func() (bool, any) { return c.asked.count() == *led, c.asked.count() })
	asked := time.Since(began)
	c.await("all responders to have had their turn", func() (bool, any) { return active() == *led, active() })
	turns := time.Since(began)
	c.await("all pods to be gone", func() (bool, any) { return gone() == *led, gone() })
	over := time.Since(began)
	c.awaitDrained(m)
	drained := time.Since(began)
	_, metrics := c.manager.Metrics(t, c.cluster.Config.BearerToken)
	memory := metric(t, metrics, "process_resident_memory_bytes")
	writes, refused := c.writes()
	perPod := float64(writes) / float64(*led)
	t.Logf("%d pods: all asked after %s, in their turn after %s, gone after %s, drained after %s; %d MiB, %.2f writes for each pod, %d refused",
		*led, asked.Round(time.Millisecond), turns.Round(time.Millisecond), over.Round(time.Millisecond), drained.Round(time.Millisecond),
		int(memory)>>20, perPod, len(refused))
	if memory > 2*mostMemory || perPod > mostForLed || len(refused) > 0 {
		t.Errorf("want at most %d MiB and %d writes for each pod, and none refused: %v", 2*mostMemory>>20, mostForLed, refused[:min(5, len(refused))])
	}
}

// respond has the leader do its part as soon as it has its turn. It returns how many pods are
// gone, and how often it was its turn.
func (c *crowd) respond() (gone, active func() int) {
	c.t.Helper()
	var mu sync.Mutex
	away, began := map[string]bool{}, map[string]bool{}
	turns := make(chan string, *led)
	for range 32 {
		go func() {
			for name := range turns {
				if err := c.reports(name, leader, true); err != nil {
					c.t.Errorf("the leader reports: %v", err)
				}
			}
		}()
	}
	evictions, pods := &lifecyclev1alpha1.EvictionList{}, &corev1.PodList{}
	c.must(c.client.List(c.ctx, evictions, client.InNamespace(c.ns)))
	c.must(c.client.List(c.ctx, pods, client.InNamespace(c.ns)))
	c.cluster.Follow(c.t, evictions, func(_ watch.EventType, object client.Object) {
		e := object.(*lifecyclev1alpha1.Eviction)
		mu.Lock()
		defer mu.Unlock()
		if active := core.Active(&e.Status); !began[e.Name] && active != nil && active.Name == leader {
			began[e.Name] = true
			turns <- e.Name
		}
	}, client.InNamespace(c.ns))
	c.cluster.Follow(c.t, pods, func(kind watch.EventType, object client.Object) {
		mu.Lock()
		defer mu.Unlock()
		if kind == watch.Deleted {
			away[object.GetName()] = true
		}
	}, client.InNamespace(c.ns))
	count := func(of map[string]bool) func() int {
		return func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(of)
		}
	}
	return count(away), count(began)
}

// askedFor are the names of the requests that there have been.
type askedFor struct {
	mu  sync.Mutex
	all []string
}

func (w *world) followAsked() *askedFor {
	w.t.Helper()
	a, list := &askedFor{}, &lifecyclev1alpha1.EvictionRequestList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.ns)))
	w.cluster.Follow(w.t, list, func(kind watch.EventType, object client.Object) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if kind == watch.Added {
			a.all = append(a.all, object.GetName())
		}
	}, client.InNamespace(w.ns))
	return a
}

func (a *askedFor) names() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

func (a *askedFor) count() int { return len(a.names()) }
