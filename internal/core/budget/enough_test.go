package budget_test

import (
	"fmt"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/internal/core/budget"
)

// of is a budget with the status that the disruption controller gives it while all
// of so many replicas are healthy.
func of(floor intstr.IntOrString, replicas int32) *policyv1.PodDisruptionBudget {
	b := healthy(replicas, status(1, 1, replicas, 0))
	b.Spec.MinAvailable = &floor
	desired := floor.IntVal
	if floor.Type == intstr.String {
		var percent int32
		_, _ = fmt.Sscanf(floor.StrVal, "%d%%", &percent)
		desired = (percent*replicas + 99) / 100
	}
	b.Status.DesiredHealthy, b.Status.DisruptionsAllowed = desired, max(replicas-desired, 0)
	return b
}

// Whatever a budget asks for, with the replicas that are named it allows a
// disruption, and with fewer it never does. Where none are named, none help.
func TestEnoughReplicasHaveABudgetAllowADisruption(t *testing.T) {
	t.Parallel()
	var floors []intstr.IntOrString
	for n := range 101 {
		floors = append(floors, intstr.FromString(fmt.Sprint(n, "%")), intstr.FromInt(n))
	}
	for _, floor := range floors {
		for replicas := int32(1); replicas <= 30; replicas++ {
			if _, never := budget.Never(of(floor, replicas)); never {
				checkEnough(t, floor, replicas)
			}
		}
	}
}

func checkEnough(t *testing.T, floor intstr.IntOrString, replicas int32) {
	t.Helper()
	enough, help := budget.Enough(of(floor, replicas))
	if !help {
		if floor.String() != "100%" {
			t.Errorf("no replicas help minAvailable %s with %d of them", floor.String(), replicas)
		}
		return
	}
	if allowed := of(floor, enough).Status.DisruptionsAllowed; allowed == 0 {
		t.Errorf("minAvailable %s with %d replicas: %d are said to be enough, and allow nothing", floor.String(), replicas, enough)
	}
	if _, never := budget.Never(of(floor, enough-1)); !never {
		t.Errorf("minAvailable %s with %d replicas: %d are said to be enough, and fewer are", floor.String(), replicas, enough)
	}
}

func TestReplicasThatDoNotHelp(t *testing.T) {
	t.Parallel()
	unavailable := status(1, 1, 3, 0)
	unavailable.Spec.MaxUnavailable = new(intstr.FromInt32(0))
	bare := of(intstr.FromString("50%"), 1)
	bare.Status.ExpectedPods, bare.Status.DisruptionsAllowed = 0, 0
	for name, b := range map[string]*policyv1.PodDisruptionBudget{
		"maxUnavailable 0":               unavailable,
		"minAvailable 100%":              of(intstr.FromString("100%"), 3),
		"pods without a controller":      bare,
		"more than anybody would run":    of(intstr.FromInt32(1<<31-1), 3),
		"more than a percentage ever is": of(intstr.FromString("250%"), 3),
	} {
		if replicas, help := budget.Enough(b); help {
			t.Errorf("%s: %d replicas are said to help", name, replicas)
		}
	}
}

func TestUncountable(t *testing.T) {
	t.Parallel()
	failed := metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason}
	exhausted := failed
	exhausted.Reason = policyv1.InsufficientPodsReason
	for name, tc := range map[string]struct {
		floor     intstr.IntOrString
		condition metav1.Condition
		want      bool
	}{
		"replicas":               {intstr.FromString("50%"), failed, true},
		"pods":                   {intstr.FromInt32(1), failed, false},
		"counted, and exhausted": {intstr.FromString("50%"), exhausted, false},
	} {
		b := of(tc.floor, 2)
		b.Status.Conditions = []metav1.Condition{tc.condition}
		if got := budget.Uncountable(b); got != tc.want {
			t.Errorf("%s: Uncountable = %t, want %t", name, got, tc.want)
		}
	}
}
