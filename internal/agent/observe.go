//go:build linux

package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/agent/host"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// maxFollowed limits the watched Evacuations and the maintenances that are read.
const (
	maxFollowed = 256
	maxHolders  = 8
)

// +kubebuilder:rbac:groups="",resources=nodes;pods,verbs=list;watch
// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodeagents;evacuations,verbs=list;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list;watch,namespace=kube-node-lease

// feeds are the watches of an agent: its node, pods, kubelet Lease and NodeAgent, and the
// Evacuations of pods that must leave.
type feeds struct {
	node, pods, lease, agent *feed
	evacuations              map[types.NamespacedName]*feed
	// Feeds of the control plane; nil if no pod of it can be taken down.
	servers, members, claim *feed
}

func (f *feeds) start(ctx context.Context, a *Agent) {
	node := a.Self.Node
	f.evacuations = map[types.NamespacedName]*feed{}
	f.node = follow(ctx, a.Client, topic{
		object: &corev1.Node{}, list: func() client.ObjectList { return &corev1.NodeList{} }, field: metav1.ObjectNameField, value: node,
	}, func() {
		a.poke()
		if a.Shutdown != nil {
			a.Shutdown.Wake()
		}
		if a.Reboot != nil {
			a.Reboot.Wake()
		}
	})
	f.pods = follow(ctx, a.Client, topic{
		object: &corev1.Pod{}, list: func() client.ObjectList { return &corev1.PodList{} }, field: "spec.nodeName", value: node,
	}, a.poke)
	f.agent = follow(ctx, a.Client, topic{
		object: &v1alpha1.NodeAgent{}, list: func() client.ObjectList { return &v1alpha1.NodeAgentList{} }, field: metav1.ObjectNameField, value: node,
	}, a.poke)
	// The first renewal matters, later ones do not.
	var seen sync.Once
	f.lease = follow(ctx, a.Client, topic{
		object: &coordinationv1.Lease{}, list: func() client.ObjectList { return &coordinationv1.LeaseList{} },
		namespace: corev1.NamespaceNodeLease, field: metav1.ObjectNameField, value: node,
	}, func() { seen.Do(a.poke) })
	f.followControlPlane(ctx, a)
}

// observe reads the folder and the feeds. What they have not shown is unknown.
func (a *Agent) observe(ctx context.Context) core.Snapshot {
	s := core.Snapshot{
		Now: time.Now(), Self: a.Self, Folder: a.Manifests.List(), Journal: a.journal, Failures: a.failures,
	}
	a.observeControlPlane(&s)
	f := &a.feeds
	if !f.node.known() || !f.pods.known() || !f.agent.known() {
		return s
	}
	node, found := only[*corev1.Node](f.node)
	if !found {
		a.logTrouble(fmt.Errorf("there is no Node %s: nothing is done until there is. If this node has another name, set --node-name", a.Self.Node))
		return s
	}
	s.Node, s.Pods = node, objects[*corev1.Pod](f.pods)
	s.Agent, _ = only[*v1alpha1.NodeAgent](f.agent)
	if lease, found := only[*coordinationv1.Lease](f.lease); found && lease.Spec.RenewTime != nil {
		s.KubeletSeen = lease.Spec.RenewTime.Time
	}
	a.followEvacuations(ctx, s)
	for _, e := range f.evacuations {
		if one, found := only[*v1alpha1.Evacuation](e); found {
			s.Evacuations = append(s.Evacuations, one)
		}
	}
	return s
}

// followEvacuations watches only those of static pods that the Node lists.
func (a *Agent) followEvacuations(ctx context.Context, s core.Snapshot) {
	targets, err := cordon.Suppressed(s.Node)
	wanted := map[types.NamespacedName]bool{}
	for _, pod := range s.Pods {
		if podclass.Mirror(pod) && err == nil && targets.Covers(pod) && len(wanted) < maxFollowed {
			wanted[types.NamespacedName{Namespace: pod.Namespace, Name: evacuation.Name(pod)}] = true
		}
	}
	for name, f := range a.feeds.evacuations {
		if !wanted[name] {
			f.end()
			delete(a.feeds.evacuations, name)
		}
	}
	for name := range wanted {
		if a.feeds.evacuations[name] == nil {
			a.feeds.evacuations[name] = follow(ctx, a.Client, topic{
				object: &v1alpha1.Evacuation{}, list: func() client.ObjectList { return &v1alpha1.EvacuationList{} },
				namespace: name.Namespace, field: metav1.ObjectNameField, value: name.Name,
			}, a.poke)
		}
	}
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=get

// observeLive reads from the API server what a cache may show wrongly, and the maintenances for
// messages.
func (a *Agent) observeLive(ctx context.Context, s core.Snapshot) (core.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	node, pods := &corev1.Node{}, &corev1.PodList{}
	err := a.Client.Get(ctx, client.ObjectKey{Name: a.Self.Node}, node)
	a.heard(err)
	if err != nil {
		return s, fmt.Errorf("get node %s: %w", a.Self.Node, err)
	}
	if err := a.Client.List(ctx, pods, client.MatchingFields{"spec.nodeName": a.Self.Node}); err != nil {
		return s, fmt.Errorf("list the pods of node %s: %w", a.Self.Node, err)
	}
	if a.ControlPlane.may() {
		seen, err := host.Read(ctx, a.Client, a.ControlPlane.Namespace)
		if err != nil {
			return s, err
		}
		a.show(&s, seen)
	}
	s.Live, s.Node, s.Now, s.Pods = true, node, time.Now(), nil
	for i := range pods.Items {
		s.Pods = append(s.Pods, &pods.Items[i])
	}
	holders := cordon.Holders(node)
	for _, name := range holders[:min(len(holders), maxHolders)] {
		m := &v1alpha1.NodeMaintenance{}
		if err := a.Client.Get(ctx, client.ObjectKey{Name: name}, m); err == nil {
			s.Maintenances = append(s.Maintenances, m)
		}
	}
	return s, nil
}
