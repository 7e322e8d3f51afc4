package nodemaintenance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// aDatabase is a pod of another application than the shop.
func aDatabase() *corev1.Pod {
	pod := aPod("db-1", "one")
	pod.Labels["app"] = "db"
	return pod
}

// refuseRead makes something unreadable.
func refuseRead(unreadable string) func(request string) error {
	return func(request string) error {
		if request == unreadable {
			return errRefused
		}
		return nil
	}
}

// reconcileAnew runs passes of a new manager, which remembers nothing.
func (w *world) reconcileAnew() {
	w.t.Helper()
	w.reconcile(w.manager())
}

func TestRulesOfOurNamespaceCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aMaintenance("upgrade", "old"), aNode("one"), aPod("shop-1", "one"), aDatabase(),
		aRule(ownNamespace, "skip", "shop"), aRule("fleet", "skip", "db"))
	w.reconcileAnew()
	if diff := cmp.Diff([]string{"db-1"}, w.evacuatedPods()); diff != "" {
		t.Errorf("evacuated pods (-want +got):\n%s", diff)
	}
	if retained := w.maintenance("upgrade").Status.NodeStatuses[0].PodsRetained; retained != 1 {
		t.Errorf("%d pods are retained, want 1", retained)
	}
}

// What cannot be read stops only the pods for which it makes a difference.
func TestUnreadRulesAndNamespaces(t *testing.T) {
	t.Parallel()
	bySales := aRule(ownNamespace, "skip", "shop")
	bySales.Spec.Pods[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "sales"}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "buyers"}}}
	tests := map[string]struct {
		unreadable string
		want       []string
	}{
		"rules": {
			unreadable: "list MachineDrainRule", want: nil,
		},
		"namespaces": {
			unreadable: "get Namespace shop", want: []string{"db-1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			skipped := aPod("agent-1", "one")
			skipped.Labels[v1alpha1.DrainLabel] = "skip"
			w := newWorld(t, aMaintenance("upgrade", "old"), aNode("one"), aPod("shop-1", "one"), aDatabase(), skipped, bySales, namespace)
			w.api.Refuse = refuseRead(test.unreadable)

			w.reconcileAnew()
			if diff := cmp.Diff(test.want, w.evacuatedPods()); diff != "" {
				t.Errorf("evacuated pods (-want +got):\n%s", diff)
			}
			if got := w.blockersOf("upgrade"); !strings.HasPrefix(got, "DrainRuleUnclear: ") || !strings.Contains(got, errRefused.Error()) {
				t.Errorf("blockers are %q, want DrainRuleUnclear with the cause", got)
			}
			if !w.node("one").Spec.Unschedulable {
				t.Error("the node is not cordoned, which is no matter of rules")
			}

			w.api.Refuse = nil
			w.reconcileAnew()
			if diff := cmp.Diff([]string{"db-1", "shop-1"}, w.evacuatedPods()); diff != "" {
				t.Errorf("evacuated pods when everything can be read (-want +got):\n%s", diff)
			}
		})
	}
}
