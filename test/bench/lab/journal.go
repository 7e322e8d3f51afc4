package lab

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Journal holds what happens to the pods and nodes of a load while its nodes are maintained. It
// sees no more than any client of the API server.
type Journal struct {
	// Moves counts the pods that were told to go.
	Moves int
	// Apps are the Deployments by name.
	Apps map[string]*Readiness
	// Starts are the times between the end of a node's maintenance and the first pod of another
	// node that is told to go.
	Starts []time.Duration
	// HandedOver is called once for each node that is drained for somebody who waits for the label.
	HandedOver func(node string)

	pods  map[types.UID]podState
	nodes map[string]*corev1.Node
	// free are the times of nodes that were returned to service, until another is started.
	free []time.Time
	// started are the times in free that a cordoned node without a departure belongs to.
	started map[string]time.Time
}

// Readiness holds how many pods of a Deployment were ready.
type Readiness struct {
	Replicas, Ready int
	// Least is the lowest number of ready pods.
	Least int
	// Below is the longest time with fewer ready pods than replicas, and Without that with none.
	Below, Without time.Duration

	below, without time.Time
}

type podState struct{ ready, leaves bool }

// Watch follows the load until the context ends. It returns when the journal knows what there is.
func (l *Lab) Watch(ctx context.Context, load *Load, handedOver func(node string)) (journal *Journal, ended func() error, err error) {
	j := newJournal(load)
	j.HandedOver = handedOver
	pods, nodes := &corev1.PodList{}, &corev1.NodeList{}
	podChanges, err := l.watch(ctx, pods, client.InNamespace(load.Namespace))
	if err != nil {
		return nil, nil, err
	}
	nodeChanges, err := l.watch(ctx, nodes, client.MatchingLabels(load.labels()))
	if err != nil {
		podChanges.stop()
		return nil, nil, err
	}
	for i := range pods.Items {
		j.seePod(&pods.Items[i], false, time.Now())
	}
	for i := range nodes.Items {
		j.seeNode(&nodes.Items[i], time.Now())
	}
	for _, readiness := range j.Apps {
		readiness.Least = readiness.Ready
	}
	failure := make(chan error, 1)
	go func() { failure <- j.follow(ctx, podChanges, nodeChanges) }()
	return j, func() error { return <-failure }, nil
}

func newJournal(load *Load) *Journal {
	j := &Journal{Apps: map[string]*Readiness{}, pods: map[types.UID]podState{}, nodes: map[string]*corev1.Node{}, started: map[string]time.Time{}}
	for _, app := range load.apps {
		j.Apps[app.name] = &Readiness{Replicas: int(app.replicas)}
	}
	return j
}

// change is an event, and the time when it was seen.
type change struct {
	event watch.Event
	at    time.Time
}

// forward sends changes until the context ends, and returns why it ended.
func (c *changes) forward(ctx context.Context, to chan<- change) error {
	defer c.stop()
	for {
		event, err := c.next(ctx)
		if err != nil {
			return err
		}
		select {
		case to <- change{event, time.Now()}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow reads both watches until the context ends, which is no error.
func (j *Journal) follow(ctx context.Context, pods, nodes *changes) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	all, ended := make(chan change), make(chan error, 2)
	for _, changes := range []*changes{pods, nodes} {
		go func() { ended <- changes.forward(inner, all) }()
	}
	for {
		select {
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case one := <-all:
			j.see(one)
		}
	}
}

func (j *Journal) see(one change) {
	switch object := one.event.Object.(type) {
	case *corev1.Pod:
		j.seePod(object, one.event.Type == watch.Deleted, one.at)
	case *corev1.Node:
		j.seeNode(object, one.at)
	}
}

func (j *Journal) seePod(pod *corev1.Pod, gone bool, at time.Time) {
	app := j.Apps[pod.Labels[appLabel]]
	if app == nil {
		return
	}
	before := j.pods[pod.UID]
	now := podState{leaves: before.leaves || gone || pod.DeletionTimestamp != nil}
	now.ready = !now.leaves && isReady(pod)
	j.pods[pod.UID] = now
	if now.leaves && !before.leaves {
		j.Moves++
		if free, waits := j.started[pod.Spec.NodeName]; waits {
			j.Starts = append(j.Starts, at.Sub(free))
			delete(j.started, pod.Spec.NodeName)
		}
	}
	switch {
	case now.ready && !before.ready:
		app.Ready++
	case before.ready && !now.ready:
		app.Ready--
	}
	app.see(at)
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// see updates the times after a change of the number of ready pods.
func (r *Readiness) see(at time.Time) {
	r.Least = min(r.Least, r.Ready)
	lengthen(&r.Below, &r.below, r.Ready < r.Replicas, at)
	lengthen(&r.Without, &r.without, r.Ready == 0, at)
}

// lengthen raises longest to the time since a state began.
func lengthen(longest *time.Duration, since *time.Time, holds bool, at time.Time) {
	if !since.IsZero() {
		*longest = max(*longest, at.Sub(*since))
	}
	switch {
	case !holds:
		*since = time.Time{}
	case since.IsZero():
		*since = at
	}
}

func (j *Journal) seeNode(node *corev1.Node, at time.Time) {
	before := j.nodes[node.Name]
	j.nodes[node.Name] = node
	if before == nil {
		return
	}
	switch {
	case before.Spec.Unschedulable && !node.Spec.Unschedulable:
		j.free = append(j.free, at)
	case !before.Spec.Unschedulable && node.Spec.Unschedulable && len(j.free) > 0:
		j.started[node.Name] = j.free[0]
		j.free = j.free[1:]
	}
	if j.HandedOver != nil && node.Labels[v1alpha1.HandedOverLabel] != "" && before.Labels[v1alpha1.HandedOverLabel] == "" {
		j.HandedOver(node.Name)
	}
}
