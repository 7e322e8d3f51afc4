package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// atOnce bounds concurrent requests.
	atOnce = 16
	// podNodes bounds the nodes whose pods are read, and maxAsked the Evacuations.
	podNodes, maxAsked = 8, 200
	maxBudgets         = 20
	maxRecords         = 50
)

// reading fills a snapshot. Objects that cannot be read are noted.
type reading struct {
	reached client.Client
	view.Snapshot

	mu sync.Mutex
}

// all reads what a table of maintenances shows, and counts the finished ones that are left out.
func (r *reading) all(ctx context.Context, finished bool) (leftOut int, err error) {
	r.Maintenances, err = pages(ctx, r.reached, &v1alpha1.NodeMaintenanceList{}, func(m *v1alpha1.NodeMaintenance) *v1alpha1.NodeMaintenance {
		if finished || !maintenance.Finished(m) {
			return m
		}
		leftOut++
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("list nodemaintenances: %w", err)
	}
	var together sync.WaitGroup
	together.Go(func() { r.readCordoned(ctx) })
	together.Go(func() { r.readDrained(ctx) })
	together.Go(func() { r.readBudgets(ctx) })
	together.Go(func() { r.readRollouts(ctx, finished) })
	together.Wait()
	return leftOut, nil
}

// one reads the nodes, pods, records and budgets of a maintenance.
func (r *reading) one(ctx context.Context, m *v1alpha1.NodeMaintenance) {
	r.Maintenances = []*v1alpha1.NodeMaintenance{m}
	if maintenance.Finished(m) {
		return
	}
	var together sync.WaitGroup
	together.Go(func() { r.readDrained(ctx) })
	together.Go(func() { r.readLeaving(ctx, m) })
	together.Go(func() {
		r.readRecords(ctx, m)
		r.readBudgets(ctx)
	})
	together.Wait()
}

// noteUnread notes what could not be read, unless it does not exist.
func (r *reading) noteUnread(what string, err error) {
	if err == nil || apierrors.IsNotFound(err) || lacksEbbtide(err) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	line := incomplete(what, err.Error())
	if len(r.Unread) < maxNamed && !slices.Contains(r.Unread, line) {
		r.Unread = append(r.Unread, line)
	}
}

// incomplete returns the line about an object that could not be read.
func incomplete(what, why string) string {
	return fmt.Sprintf("Incomplete: %s: %s", what, excerpt.Line(why, maxSaid))
}

// readDrained reads the drained nodes, where their times estimate the rest of a drain.
func (r *reading) readDrained(ctx context.Context) {
	var names []string
	for _, m := range r.Maintenances {
		var drained []string
		left := false
		for i := range m.Status.NodeStatuses {
			one := &m.Status.NodeStatuses[i]
			if one.State.IsDrained() {
				drained = append(drained, one.NodeRef.Name)
			}
			left = left || one.PodsEvacuating+one.PodsPendingEvacuation > 0
		}
		if maintenance.Stage(m) == v1alpha1.StageDrain && left && len(drained) > 1 {
			names = append(names, drained...)
		}
	}
	r.readNodes(ctx, names)
}

// readCordoned reads the unschedulable nodes, reduced to their cordons.
func (r *reading) readCordoned(ctx context.Context) {
	cordoned, err := pages(ctx, r.reached, &corev1.NodeList{}, func(node *corev1.Node) *corev1.Node {
		slim := &corev1.Node{Spec: corev1.NodeSpec{Taints: node.Spec.Taints}}
		slim.Name, slim.Annotations = node.Name, map[string]string{v1alpha1.CordonAnnotation: node.Annotations[v1alpha1.CordonAnnotation]}
		return slim
	}, client.MatchingFields{"spec.unschedulable": "true"})
	r.noteUnread("list nodes", err)
	r.Cordoned = cordoned
}

// readRollouts reads the rollouts, without those that have ended unless they are wanted.
func (r *reading) readRollouts(ctx context.Context, ended bool) {
	var err error
	r.Rollouts, err = pages(ctx, r.reached, &v1alpha1.NodeRolloutList{}, func(one *v1alpha1.NodeRollout) *v1alpha1.NodeRollout {
		if shown := view.RolloutOf(one); !ended && (shown.Succeeded() || shown.State == view.StateAborted && shown.Ended()) {
			return nil
		}
		return one
	})
	r.noteUnread("list noderollouts", err)
}

// readNodes reads nodes by name, or lists all if there are many.
func (r *reading) readNodes(ctx context.Context, names []string) {
	r.Nodes = map[string]*corev1.Node{}
	if len(names) <= maxListedNodes {
		readEach(ctx, r, "node", keysOf(names), func(node *corev1.Node) { r.Nodes[node.Name] = node })
		return
	}
	_, err := pages(ctx, r.reached, &corev1.NodeList{}, func(node *corev1.Node) *corev1.Node {
		r.Nodes[node.Name] = &corev1.Node{Status: corev1.NodeStatus{Conditions: node.Status.Conditions}}
		return nil
	})
	r.noteUnread("list nodes", err)
}

// locking returns the budgets that block pods by a lock or that nodes have locked, at most
// maxBudgets.
func (r *reading) locking() []client.ObjectKey {
	known := map[client.ObjectKey]bool{}
	for _, m := range r.Maintenances {
		for i := range m.Status.NodeStatuses {
			for _, b := range m.Status.NodeStatuses[i].Blockers {
				if b.Type == v1alpha1.BlockerPDBLocked && b.Object.Kind == "PodDisruptionBudget" {
					known[client.ObjectKey{Namespace: b.Object.Namespace, Name: b.Object.Name}] = true
				}
			}
		}
	}
	for _, record := range r.Records {
		for _, lock := range record.Status.Locks {
			known[client.ObjectKey{Namespace: lock.Namespace, Name: lock.Name}] = true
		}
	}
	keys := slices.SortedFunc(maps.Keys(known), func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
	return keys[:min(len(keys), maxBudgets)]
}

// readBudgets reads the locked budgets.
func (r *reading) readBudgets(ctx context.Context) {
	readEach(ctx, r, "poddisruptionbudget", r.locking(), func(b *policyv1.PodDisruptionBudget) { r.Budgets = append(r.Budgets, b) })
	slices.SortFunc(r.Budgets, func(a, b *policyv1.PodDisruptionBudget) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
}

// readRecords reads the locks of the nodes of an in-place maintenance.
func (r *reading) readRecords(ctx context.Context, m *v1alpha1.NodeMaintenance) {
	r.Records = map[string]*v1alpha1.DrainRecord{}
	if m.Spec.InPlace == nil {
		return
	}
	var names []string
	for i := range m.Status.NodeStatuses {
		names = append(names, m.Status.NodeStatuses[i].NodeRef.Name)
	}
	names = names[:min(len(names), maxRecords)]
	readEach(ctx, r, "drainrecord", keysOf(names), func(record *v1alpha1.DrainRecord) { r.Records[record.Name] = record })
}

// readEach reads objects by key. Keep is called for one at a time.
func readEach[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *reading, kind string, keys []client.ObjectKey, keep func(P)) {
	kube.Parallel(atOnce, len(keys), func(i int) {
		object := P(new(T))
		if err := r.reached.Get(ctx, keys[i], object); err != nil {
			r.noteUnread("get "+kind+" "+strings.TrimPrefix(keys[i].String(), "/"), err)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		keep(object)
	})
}

func keysOf(names []string) []client.ObjectKey {
	keys := make([]client.ObjectKey, len(names))
	for i, name := range names {
		keys[i].Name = name
	}
	return keys
}

// readLeaving reads the evacuating pods of the nodes that are shown with their pods.
func (r *reading) readLeaving(ctx context.Context, m *v1alpha1.NodeMaintenance) {
	r.Pods = map[string][]view.Leaving{}
	var names []string
	for _, node := range view.One(&view.Snapshot{Now: r.Now, Maintenances: []*v1alpha1.NodeMaintenance{m}}).Nodes {
		if node.PodsEvacuating > 0 && len(names) < podNodes {
			names = append(names, node.Name)
		}
	}
	kube.Parallel(atOnce, len(names), func(i int) { r.readLeavingOf(ctx, names[i]) })
}

// readLeavingOf reads the evacuating pods of a node.
func (r *reading) readLeavingOf(ctx context.Context, name string) {
	pods, err := podsOf(ctx, r.reached, name)
	r.noteUnread("list pods of node "+name, err)
	kube.Parallel(atOnce, min(len(pods), maxAsked/podNodes), func(i int) {
		pod, e := pods[i], &v1alpha1.Evacuation{}
		key := client.ObjectKey{Namespace: pod.Namespace, Name: evacuation.Name(pod)}
		if err := r.reached.Get(ctx, key, e); err != nil {
			r.noteUnread("get evacuations", err)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.Pods[name] = append(r.Pods[name], view.Leaving{Pod: pod, Evacuation: e})
	})
}

// podsOf returns the unfinished pods of a node by name.
func podsOf(ctx context.Context, reached client.Client, node string) ([]*corev1.Pod, error) {
	pods, err := pages(ctx, reached, &corev1.PodList{}, func(pod *corev1.Pod) *corev1.Pod {
		if podclass.Terminal(pod) {
			return nil
		}
		return pod
	}, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", node)})
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return pods, err
}

// timeOf returns the time of the cluster, or ours if that is unknown.
func timeOf(clock *clock) time.Time {
	if now, err := clock.now(); err == nil {
		return now
	}
	return time.Now()
}
