package view_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/test/difference"
)

// A volume is stranded only if every node on which it can be used is held.
func TestAVolumeIsStrandedOnHeldNodes(t *testing.T) {
	t.Parallel()
	local := func(zone string) *corev1.PersistentVolume {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
		if zone != "" {
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
			}}}}
		}
		return v
	}
	node := func(name, zone, holders string) *metav1.PartialObjectMetadata {
		n := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
		if holders != "" {
			n.Annotations = map[string]string{v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":[` + holders + `]}`}
		}
		return n
	}
	nodes := []*metav1.PartialObjectMetadata{
		node("one", "a", `"kernel"`), node("two", "b", `"kernel","disk"`), node("three", "b", `"disk"`), node("four", "c", `"kernel"`), node("five", "c", ""),
	}
	for name, test := range map[string]struct {
		volume *corev1.PersistentVolume
		want   *view.Stranded
	}{
		"its only node is held":     {local("a"), &view.Stranded{Claim: "data", Volume: "pv", Nodes: []string{"one"}, Holders: []string{"kernel"}}},
		"all of its nodes are held": {local("b"), &view.Stranded{Claim: "data", Volume: "pv", Nodes: []string{"two", "three"}, Holders: []string{"disk", "kernel"}}},
		"one of its nodes is not":   {local("c"), nil},
		"it has no node":            {local("d"), nil},
		"any node will do":          {local(""), nil},
	} {
		difference.None(t, name, test.want, view.StrandedOf("data", test.volume, nodes))
	}
}
