package maintenance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// allAway is what a node suppresses at the end of every plan.
const allAway = `[{"podPriority":2147483647,"podType":"DaemonSet"},{"podPriority":2147483647,"podType":"Static"}]`

// shows is what a node shows of its suppression.
func shows(node *corev1.Node) string {
	shown := node.Annotations[v1alpha1.DrainTargetsAnnotation]
	if cordon.SuppressesAll(node) {
		shown += " and the taint"
	}
	return shown
}

// While a maintenance that cannot be understood any more holds a node, nothing is
// taken back, and another maintenance may add to it.
func TestSuppressionOfAnUnreadMaintenanceStays(t *testing.T) {
	w := newWorld(t, "one")
	w.runners.DaemonSets = true
	broken := w.maintenance("broken", drain, []v1alpha1.DrainPlanEntry{entry(v1alpha1.PodTypeDaemonSet, 500)}, "one")
	pod := w.run("one", 1, 500, ofDaemonSet)[0]
	w.pass()
	broken.Spec.NodeSelector = nil
	w.pass()
	if diff := cmp.Diff(`[{"podPriority":500,"podType":"DaemonSet"}]`, shows(w.find("one"))); diff != "" {
		t.Errorf("the node shows (-want +got):\n%s", diff)
	}
	w.remove(pod.UID)
	w.maintenance("other", drain, nil, "one")
	w.pass()
	if diff := cmp.Diff(allAway+" and the taint", shows(w.find("one"))); diff != "" {
		t.Errorf("with another maintenance, the node shows (-want +got):\n%s", diff)
	}
}

func TestReason(t *testing.T) {
	w := newWorld(t, "one")
	node := w.find("one")
	old := w.maintenance("old", drain, nil, "one")
	young := w.maintenance("young", drain, nil, "one")
	young.CreationTimestamp = metav1.NewTime(old.CreationTimestamp.Add(time.Minute))
	young.Spec.Reason = "OS upgrade"
	expect := func(when, want string) {
		t.Helper()
		if got := maintenance.Reason(node, w.maintenances); got != want {
			t.Errorf("%s, the reason is %q, want %q", when, got, want)
		}
	}
	expect("before the node is held", "")
	w.pass()
	expect("without a reason", "old")
	old.Spec.Reason = "new disks"
	expect("with a reason", "new disks")
	old.Spec.Stage = v1alpha1.StageComplete
	expect("when the older one is complete", "OS upgrade")
	node.Annotations[v1alpha1.CordonAnnotation] = strings.Repeat("}", 3)
	expect("with a broken ledger", "")
}
