package rollout_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/golden"
)

const machineID = "fake:///1"

// nodeOfMachine returns a node as the controllers of machines leave it.
func nodeOfMachine(kind rollout.MachineKind) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}, Spec: corev1.NodeSpec{ProviderID: machineID}}
	switch kind {
	case rollout.ClusterAPI:
		n.Annotations = map[string]string{"cluster.x-k8s.io/machine": "m", "cluster.x-k8s.io/cluster-namespace": "ns", "cluster.x-k8s.io/cluster-name": "east"}
	case rollout.OpenShift:
		n.Annotations = map[string]string{"machine.openshift.io/machine": "ns/m"}
	case rollout.Karpenter:
		n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "m"}}
	}
	return n
}

// machineOf returns the object that owns the machine of that node.
func machineOf(kind rollout.MachineKind) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"providerID": machineID, "clusterName": "east"},
		"status": map[string]any{"nodeRef": map[string]any{"name": "a", "uid": "u"}, "nodeName": "a", "providerID": machineID},
	}}
	m.SetGroupVersionKind(kind.GVK())
	m.SetName("m")
	if kind != rollout.Karpenter {
		m.SetNamespace("ns")
		m.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "MachineSet", Name: "set", Controller: new(true)}})
	}
	return m
}

func TestMachineIsDeletedOnlyForTheNodeThatItNames(t *testing.T) {
	t.Parallel()
	set := func(value string, path ...string) func(*unstructured.Unstructured) {
		return func(m *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(m.Object, value, path...); err != nil {
				t.Error(err)
			}
		}
	}
	for _, kind := range rollout.AllMachineKinds() {
		for name, change := range map[string]func(*unstructured.Unstructured){
			"": func(*unstructured.Unstructured) {},
			"of another node": func(m *unstructured.Unstructured) {
				set("b", "status", "nodeRef", "name")(m)
				set("b", "status", "nodeName")(m)
			},
			"of another instance": func(m *unstructured.Unstructured) {
				set("x", "spec", "providerID")(m)
				set("x", "status", "providerID")(m)
				set("x", "status", "nodeRef", "uid")(m)
			},
			"of a node that is unknown": func(m *unstructured.Unstructured) { delete(m.Object, "status") },
		} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				t.Parallel()
				m := machineOf(kind)
				change(m)
				err := kind.Check(m, nodeOfMachine(kind))
				if (err == nil) != (name == "") {
					t.Errorf("it is checked with %v", err)
				}
				if err != nil {
					golden.Message(t, err.Error())
				}
			})
		}
	}
	alone := machineOf(rollout.ClusterAPI)
	alone.SetOwnerReferences(nil)
	if err := rollout.ClusterAPI.Check(alone, nodeOfMachine(rollout.ClusterAPI)); err == nil {
		t.Error("a Machine without a set is deleted")
	}
}

func TestNodeHasOneOwnerOfItsMachine(t *testing.T) {
	t.Parallel()
	own := []rollout.Machine{{Kind: rollout.OwnMachine, Namespace: "ns", Name: "m"}}
	all := rollout.AllMachineKinds()
	claimed := nodeOfMachine(rollout.ClusterAPI)
	claimed.OwnerReferences = nodeOfMachine(rollout.Karpenter).OwnerReferences
	for name, test := range map[string]struct {
		kinds rollout.MachineKinds
		node  *corev1.Node
		own   []rollout.Machine
		want  string
	}{
		"ours":             {all, nodeOfMachine(rollout.OwnMachine), own, "Machine ns/m of ebbtide.dev"},
		"of Cluster API":   {all, nodeOfMachine(rollout.ClusterAPI), nil, "Machine ns/m of cluster.x-k8s.io"},
		"of OpenShift":     {all, nodeOfMachine(rollout.OpenShift), nil, "Machine ns/m of machine.openshift.io"},
		"of Karpenter":     {all, nodeOfMachine(rollout.Karpenter), nil, "NodeClaim m of karpenter.sh"},
		"none":             {all, nodeOfMachine(rollout.OwnMachine), nil, ""},
		"two":              {all, claimed, nil, ""},
		"ours and another": {all, nodeOfMachine(rollout.ClusterAPI), own, ""},
		"not enabled":      {rollout.MachineKinds{rollout.Karpenter}, nodeOfMachine(rollout.ClusterAPI), nil, ""},
		"nothing enabled":  {nil, nodeOfMachine(rollout.ClusterAPI), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machine, err := test.kinds.MachineOf(test.node, test.own)
			if (err != nil) != (test.want == "") || err == nil && machine.String() != test.want {
				t.Errorf("the owner is %v, %v, want %s", machine, err, test.want)
			}
			if err != nil {
				golden.Message(t, err.Error())
			}
		})
	}
}

func TestMachineKindsAreParsed(t *testing.T) {
	t.Parallel()
	kinds, err := rollout.ParseMachineKinds("karpenter, machines,karpenter")
	if err != nil || len(kinds) != 2 || kinds[0] != rollout.OwnMachine || kinds[1] != rollout.Karpenter {
		t.Errorf("kinds %v, %v", kinds, err)
	}
	if kinds, err = rollout.ParseMachineKinds(" "); err != nil || kinds != nil {
		t.Errorf("kinds %v, %v", kinds, err)
	}
	_, err = rollout.ParseMachineKinds("cluster-api,vsphere")
	if err == nil {
		t.Fatal("an unknown kind is accepted")
	}
	golden.Message(t, err.Error())
}
