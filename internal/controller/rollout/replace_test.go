package rollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

// machineFleet is a fleet whose nodes have Machines, and are replaced.
func machineFleet(t *testing.T, nodes, limit int) *fleet {
	t.Helper()
	f := newFleet(t, nodes, limit)
	f.resting, f.provide = true, func() { f.replaceNodes() }
	r := f.rollout("kernel")
	r.Spec.After = v1alpha1.AfterReplace
	f.must(f.api.Update(t.Context(), r))
	for _, n := range f.nodes() {
		f.must(f.api.Create(t.Context(), machineFor(n)))
	}
	return f
}

func machineFor(n *corev1.Node) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "of-" + n.Name, UID: "machine-" + n.UID}}
	m.Status.NodeRef = &v1alpha1.MachineNodeReference{Name: n.Name, UID: n.UID}
	return m
}

func (f *fleet) nodes() []*corev1.Node {
	f.t.Helper()
	var list corev1.NodeList
	f.must(f.api.List(f.t.Context(), &list))
	return kube.Pointers(list.Items)
}

func (f *fleet) machines() (names []string) {
	f.t.Helper()
	var list v1alpha1.MachineList
	f.must(f.api.List(f.t.Context(), &list))
	for i := range list.Items {
		names = append(names, strings.TrimPrefix(list.Items[i].Name, "of-"))
	}
	return names
}

// replaceNodes has a node go whose Machine was deleted, and another one of its name come.
func (f *fleet) replaceNodes() {
	f.t.Helper()
	machines := f.machines()
	for _, n := range f.nodes() {
		if slices.Contains(machines, n.Name) {
			continue
		}
		f.must(f.api.Delete(f.t.Context(), n))
		next := aNode(n.Name)
		next.UID, next.CreationTimestamp = types.UID("next-"+string(n.UID)), metav1.NewTime(f.clock.Now())
		next.Status.NodeInfo.KubeletVersion = "v1.37.1"
		f.must(f.api.Create(f.t.Context(), next))
		f.must(f.api.Create(f.t.Context(), machineFor(next)))
		return
	}
}

// The manager may be killed behind every write of replacements: each machine is deleted once.
func TestManagerKilledBehindEveryWriteOfReplacements(t *testing.T) {
	t.Parallel()
	assertKilledBehindEveryWrite(t, "4 of 4 nodes done", func(t *testing.T) *fleet {
		t.Helper()
		return machineFleet(t, 4, 2)
	})
}

func TestEachMachineIsDeletedOnce(t *testing.T) {
	t.Parallel()
	f := machineFleet(t, 4, 2)
	f.run()
	var deleted []string
	for _, write := range f.api.Writes() {
		if machine, found := strings.CutPrefix(write, "delete Machine "); found {
			deleted = append(deleted, machine)
		}
	}
	if slices.Sort(deleted); len(deleted) != 4 || len(slices.Compact(deleted)) != 4 {
		t.Errorf("deleted %q", deleted)
	}
	for _, n := range f.nodes() {
		if !strings.HasPrefix(string(n.UID), "next-") {
			t.Errorf("node %s was not replaced", n.Name)
		}
	}
}

// drainedFleet returns a fleet whose only node is drained, which is recorded, and its manager.
func drainedFleet(t *testing.T) (*fleet, *replica) {
	t.Helper()
	f := machineFleet(t, 1, 1)
	m := f.manager(nil)
	for range 2 {
		m.pass()
		f.advance(all)
		m.sync()
	}
	return f, m
}

// refuse has the API server refuse requests that begin so.
func (f *fleet) refuse(begins string, err error) {
	f.api.Refuse = func(request string) error {
		if strings.HasPrefix(request, begins) {
			return err
		}
		return nil
	}
}

// passes has a manager decide and write a few times.
func (m *replica) passes() {
	m.w.t.Helper()
	for range 3 {
		m.pass()
		m.sync()
	}
}

func (f *fleet) failure() v1alpha1.RolloutNode {
	f.t.Helper()
	failed := f.rollout("kernel").Status.Failed
	if len(failed) != 1 {
		f.t.Fatalf("status is %+v", f.rollout("kernel").Status)
	}
	return failed[0]
}

// What the API server refuses, or the manager cannot verify, is shown and tried again.
func TestMachineThatIsNotDeletedIsShownAndTriedAgain(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "of-node-000", errors.New("no role"))
	for name, test := range map[string]struct {
		breaks, mends func(f *fleet)
		reason        string
	}{
		"the API server refuses it": {
			func(f *fleet) { f.refuse("delete Machine", forbidden) },
			func(f *fleet) { f.api.Refuse = nil }, v1alpha1.RolloutNodeReplaceRefused,
		},
		"it is not readable": {
			func(f *fleet) { f.refuse("get Machine", forbidden) },
			func(f *fleet) { f.api.Refuse = nil }, v1alpha1.RolloutNodeReplaceRefused,
		},
		"no Machine names the node": {
			func(f *fleet) { f.editMachine(func(m *v1alpha1.Machine) { m.Status.NodeRef = nil }) },
			func(f *fleet) {
				f.editMachine(func(m *v1alpha1.Machine) { m.Status.NodeRef = machineFor(aNode("node-000")).Status.NodeRef })
			}, v1alpha1.RolloutNodeNoMachine,
		},
		"the Machine is that of a node of this name in another cluster": {
			func(f *fleet) { f.editMachine(func(m *v1alpha1.Machine) { m.Status.NodeRef.UID = "elsewhere" }) },
			func(f *fleet) {
				f.editMachine(func(m *v1alpha1.Machine) { m.Status.NodeRef = machineFor(aNode("node-000")).Status.NodeRef })
			}, v1alpha1.RolloutNodeNoMachine,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, m := drainedFleet(t)
			test.breaks(f)
			m.passes()
			if failed := f.failure(); failed.Reason != test.reason || len(f.machines()) != 1 {
				t.Errorf("failed with %s, %s; Machines %q", failed.Reason, failed.Message, f.machines())
			}
			before := len(f.api.Writes())
			test.mends(f)
			m.pass()
			if written := f.api.Writes()[before:]; len(written) > 0 {
				t.Errorf("it does not rest: %q", written)
			}
			f.clock.Step(lastPause)
			m.passes()
			if machines := f.machines(); len(machines) > 0 {
				t.Errorf("Machines %q remain", machines)
			}
		})
	}
}

func (f *fleet) editMachine(change func(*v1alpha1.Machine)) {
	f.t.Helper()
	m := &v1alpha1.Machine{}
	f.must(f.api.Get(f.t.Context(), client.ObjectKey{Namespace: "infra", Name: "of-node-000"}, m))
	change(m)
	f.must(f.api.Status().Update(f.t.Context(), m))
}

// Between the decision and the deletion, a user may have given the node back, or paused the rollout.
func TestMachineIsNotDeletedAfterAChangeThatTheCacheLacks(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *fleet){
		"the node is given back": func(f *fleet) {
			var list v1alpha1.NodeMaintenanceList
			f.must(f.api.List(f.t.Context(), &list))
			f.setStage(&list.Items[0], v1alpha1.StageComplete)
		},
		"the rollout is paused": func(f *fleet) {
			r := f.rollout("kernel")
			r.Spec.State = v1alpha1.RolloutPaused
			f.must(f.api.Update(f.t.Context(), r))
		},
		"the node is another one": func(f *fleet) {
			f.must(f.api.Delete(f.t.Context(), aNode("node-000")))
			next := aNode("node-000")
			next.UID = "next"
			f.must(f.api.Create(f.t.Context(), next))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, m := drainedFleet(t)
			f.refuse("delete Machine", errors.New("it is asked for"))
			change(f)
			m.pass()
			if len(f.machines()) != 1 || len(f.rollout("kernel").Status.Failed) > 0 {
				t.Errorf("the Machine was to be deleted: %+v", f.rollout("kernel").Status)
			}
		})
	}
}

// A deletion that hangs ends, and delays no other rollout meanwhile.
func TestDeletionOfAMachineThatHangsDelaysNoOther(t *testing.T) {
	t.Parallel()
	f := machineFleet(t, 2, 2)
	m := f.manager(nil)
	for range 2 {
		m.pass()
		f.advance(all)
		m.sync()
	}
	hang, released := make(chan struct{}), false
	defer func() {
		if !released {
			close(hang)
		}
	}()
	m.reconciler.client = hanging{m.reconciler.client, "of-node-000", hang}
	m.decideOnce()
	f.await("the other Machine to be deleted", func() bool { return slices.Equal(f.machines(), []string{"node-000"}) })
	close(hang)
	released = true
	m.flights.wait()
	if machines := f.machines(); len(machines) > 0 {
		t.Errorf("Machines %q remain", machines)
	}
}

// hanging is a client whose deletion of one object hangs until the channel is closed.
type hanging struct {
	client.Client
	name string
	hang chan struct{}
}

func (h hanging) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if object.GetName() == h.name {
		<-h.hang
	}
	return h.Client.Delete(ctx, object, options...)
}

func TestReplacementsAreForgottenWhenNobodyAsksForThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReplacements(w.clock)
	asked := []core.RolloutDecision{{Replacements: []core.Replacement{{Maintenance: aMaintenance("a")}}}}
	r.settle("a", errors.New("no"))
	r.settle("b", nil)
	r.keep(asked)
	all, due := r.unreplaced()
	if len(all) != 1 || all["a"].Reason != v1alpha1.RolloutNodeReplaceRefused || due != firstPause || !r.rests("a") || r.rests("b") {
		t.Errorf("%v are left, due in %s", all, due)
	}
	w.clock.Step(time.Second)
	r.settle("a", errChanged)
	if all, _ = r.unreplaced(); all["a"].Message != "no" {
		t.Errorf("%v are left after a change", all)
	}
	r.keep(nil)
	if all, due = r.unreplaced(); len(all) > 0 || due != 0 {
		t.Errorf("%v are left", all)
	}
}

// Machines of other projects are deleted by their own kinds.
func TestMachineOfEachKindIsDeleted(t *testing.T) {
	t.Parallel()
	const id = "fake:///1"
	annotations := map[string]string{"cluster.x-k8s.io/machine": "m", "cluster.x-k8s.io/cluster-namespace": "infra", "cluster.x-k8s.io/cluster-name": "east"}
	for kind, mark := range map[core.MachineKind]func(*corev1.Node){
		core.ClusterAPI: func(n *corev1.Node) { n.Annotations = annotations },
		core.OpenShift:  func(n *corev1.Node) { n.Annotations = map[string]string{"machine.openshift.io/machine": "infra/m"} },
		core.Karpenter: func(n *corev1.Node) {
			n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "m", UID: "m"}}
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f, m := drainedFleet(t)
			f.must(f.api.Delete(t.Context(), machineFor(aNode("node-000"))))
			machine := &unstructured.Unstructured{Object: map[string]any{
				"spec":   map[string]any{"providerID": id, "clusterName": "east"},
				"status": map[string]any{"nodeRef": map[string]any{"name": "node-000"}, "nodeName": "node-000", "providerID": id},
			}}
			machine.SetGroupVersionKind(kind.GVK())
			machine.SetName("m")
			if kind != core.Karpenter {
				machine.SetNamespace("infra")
			}
			machine.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "MachineSet", Name: "set", UID: "set", Controller: new(true)}})
			f.must(f.api.Create(t.Context(), machine))
			node := &corev1.Node{}
			f.must(f.api.Get(t.Context(), client.ObjectKey{Name: "node-000"}, node))
			mark(node)
			node.Spec.ProviderID = id
			f.must(f.api.Update(t.Context(), node))
			m.sync()
			m.passes()
			err := f.api.Get(t.Context(), client.ObjectKeyFromObject(machine), machine.DeepCopy())
			if !apierrors.IsNotFound(err) || len(f.rollout("kernel").Status.Failed) > 0 {
				t.Errorf("the machine is still there: %v, %+v", err, f.rollout("kernel").Status)
			}
		})
	}
}

// The kubelet of a node names the Machine of another one, of Cluster API.
func TestMachineOfAnotherNodeIsNotDeleted(t *testing.T) {
	t.Parallel()
	f, m := drainedFleet(t)
	f.must(f.api.Delete(t.Context(), machineFor(aNode("node-000"))))
	victim := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"providerID": "fake:///victim", "clusterName": "east"},
		"status": map[string]any{"nodeRef": map[string]any{"name": "victim"}},
	}}
	victim.SetGroupVersionKind(core.ClusterAPI.GVK())
	victim.SetNamespace("infra")
	victim.SetName("victim")
	victim.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "MachineSet", Name: "set", UID: "set", Controller: new(true)}})
	f.must(f.api.Create(t.Context(), victim))
	for what, forge := range map[string]func(*corev1.Node){
		"annotations": func(n *corev1.Node) {
			n.Annotations = map[string]string{"cluster.x-k8s.io/machine": "victim", "cluster.x-k8s.io/cluster-namespace": "infra", "cluster.x-k8s.io/cluster-name": "east"}
		},
		"provider ID": func(n *corev1.Node) { n.Spec.ProviderID = "fake:///victim" },
	} {
		node := &corev1.Node{}
		f.must(f.api.Get(t.Context(), client.ObjectKey{Name: "node-000"}, node))
		forge(node)
		f.must(f.api.Update(t.Context(), node))
		f.clock.Step(lastPause)
		m.sync()
		m.passes()
		if err := f.api.Get(t.Context(), client.ObjectKeyFromObject(victim), victim.DeepCopy()); err != nil {
			t.Errorf("with forged %s the Machine of another node was deleted: %v", what, err)
		}
	}
	if failed := f.failure(); failed.Reason != v1alpha1.RolloutNodeReplaceRefused || !strings.Contains(failed.Message, `"victim"`) {
		t.Errorf("failed with %s: %s", failed.Reason, failed.Message)
	}
}
