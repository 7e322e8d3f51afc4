package validate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

func TestMaintenanceOfTooManyOrNoNodesWarns(t *testing.T) {
	leaving := everything("Drain")
	leaving.DeletionTimestamp = &metav1.Time{}
	relabelled := everything("Drain")
	relabelled.Labels = map[string]string{"team": "infra"}
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeMaintenance
		nodes    []*corev1.Node
		want     int
	}{
		"all of the control plane":    {nil, of("Drain", corev1.LabelHostname, "cp-1", "cp-2", "w-1"), fleet(), 1},
		"no node in an empty cluster": {nil, everything("Drain"), nil, 1},
		"the next stage":              {everything("Cordon"), everything("Drain"), fleet(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			expectWarnings(t, tt.want, validate.MaintenanceChange{Old: tt.old, New: tt.new, Nodes: tt.nodes}.Warnings())
		})
	}
}

// Somebody else drains some of the nodes, and nobody is kept from draining them, too.
func TestMaintenanceOfNodesThatOthersDrainWarns(t *testing.T) {
	for _, count := range []int{0, 1, 5} {
		var nodes []*corev1.Node
		for i := range 7 {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w-%d", i+1), Labels: map[string]string{"rack": fmt.Sprint(i / 6)}}}
			if i < count {
				node.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeDrainInProgress, Status: corev1.ConditionTrue, Reason: "KubectlDrainStarted"}}
			}
			nodes = append(nodes, node)
		}
		expectWarnings(t, min(count, 1), validate.MaintenanceChange{New: of("Cordon", "rack", "0"), Nodes: nodes}.Warnings())
		expectWarnings(t, 0, validate.MaintenanceChange{Old: of("Cordon", "rack", "0"), New: of("Complete", "rack", "0"), Nodes: nodes}.Warnings())
	}
}

// inPlace makes a maintenance one in place.
func inPlace(m *v1alpha1.NodeMaintenance, downtime int32, action v1alpha1.LockTimeoutAction) *v1alpha1.NodeMaintenance {
	m.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: downtime, LockTimeoutSeconds: 600, OnLockTimeout: action}
	return m
}

// hurried waits for its locks for so long only.
func hurried(m *v1alpha1.NodeMaintenance, seconds int32) *v1alpha1.NodeMaintenance {
	m.Spec.InPlace.LockTimeoutSeconds = seconds
	return m
}

// planned gives a maintenance of a rack in place a plan with these selectors.
func planned(selectors ...*metav1.LabelSelector) *v1alpha1.NodeMaintenance {
	m := inPlace(of("Drain", "rack", "1"), 60, "Evict")
	for i, selector := range selectors {
		m.Spec.DrainPlan = append(m.Spec.DrainPlan, v1alpha1.DrainPlanEntry{PodType: "Default", PodPriority: int32(i * 1000), PodSelector: selector})
	}
	return m
}

func labelled(value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.OnUpgradeLabel: value}}
}

func expressed(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: v1alpha1.OnUpgradeLabel, Operator: operator, Values: values},
	}}
}

func TestMaintenanceInPlaceWarns(t *testing.T) {
	ordinary := planned(labelled("stay"))
	ordinary.Spec.InPlace = nil
	everythingWrong := planned(labelled("stay"))
	everythingWrong.Spec.NodeSelector = everything("Drain").Spec.NodeSelector
	inPlace(everythingWrong, 301, "Delete")
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeMaintenance
		want     int
	}{
		"deletes too soon":         {nil, hurried(inPlace(of("Drain", "rack", "1"), 300, "Delete"), 299), 2},
		"has just enough time":     {nil, hurried(inPlace(of("Drain", "rack", "1"), 300, "Evict"), 300), 0},
		"never gives up":           {nil, hurried(inPlace(of("Drain", "rack", "1"), 300, "Wait"), 299), 0},
		"away for long, announced": {nil, inPlace(of("Idle", "rack", "1"), 301, "Wait"), 1},
		"two entries":              {nil, planned(labelled("stay"), nil, expressed("Exists")), 1},
		"one of several values":    {nil, planned(expressed("In", "go", "STAY")), 1},
		"a plan for other values":  {nil, planned(labelled("go"), expressed("In", "go")), 0},
		"a plan for the others":    {nil, planned(expressed("NotIn", "stay"), expressed("DoesNotExist"), &metav1.LabelSelector{}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			expectWarnings(t, tt.want, besidesSeveral(validate.MaintenanceChange{Old: tt.old, New: tt.new, Nodes: fleet()}.Warnings()))
		})
	}
}

// besidesSeveral leaves out the warning that is about the number of nodes alone.
func besidesSeveral(warnings []string) (others []string) {
	for _, w := range warnings {
		if !strings.HasPrefix(w, "spec.inPlace with ") {
			others = append(others, w)
		}
	}
	return others
}

// Nodes of one maintenance in place give their locks on by themselves, unless it says
// that a reboot is no end of the work: who asks for that is told what to do instead.
func TestMaintenanceOfSeveralNodesWithoutRebootsWarns(t *testing.T) {
	one := of("Drain", corev1.LabelHostname, "w-1")
	two := of("Drain", "rack", "1")
	reboots := func(m *v1alpha1.NodeMaintenance, count int32) *v1alpha1.NodeMaintenance {
		m = inPlace(m.DeepCopy(), 60, "Wait")
		m.Spec.InPlace.ExpectedRebootCount = &count
		return m
	}
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeMaintenance
		want     int
	}{
		"two nodes, twice":        {nil, reboots(two, 2), 0},
		"one node that does not":  {nil, reboots(one, 0), 0},
		"a second one":            {reboots(one, 0), reboots(two, 0), 1},
		"from now on they do not": {reboots(two, 1), reboots(two, 0), 1},
	} {
		t.Run(name, func(t *testing.T) {
			expectWarnings(t, tt.want, validate.MaintenanceChange{Old: tt.old, New: tt.new, Nodes: fleet()}.Warnings())
		})
	}
}

// called names a maintenance.
func called(name string, m *v1alpha1.NodeMaintenance) *v1alpha1.NodeMaintenance {
	m.Name = name
	return m
}

func TestMaintenanceThatSharesNodesWarns(t *testing.T) {
	stays := func(stage v1alpha1.NodeMaintenanceStage, racks ...string) *v1alpha1.NodeMaintenance {
		return inPlace(of(stage, "rack", racks...), 60, "Evict")
	}
	leaving := called("other", stays("Drain", "1"))
	leaving.DeletionTimestamp = &metav1.Time{}
	broken := called("other", stays("Drain", "1"))
	broken.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"
	for name, tt := range map[string]struct {
		new    *v1alpha1.NodeMaintenance
		others []*v1alpha1.NodeMaintenance
		want   int
	}{
		"both in place":           {stays("Drain", "1"), []*v1alpha1.NodeMaintenance{called("other", stays("Drain", "1"))}, 1},
		"one node of both":        {stays("Drain", "1", "3"), []*v1alpha1.NodeMaintenance{called("other", inPlace(of("Drain", corev1.LabelHostname, "w-3", "w-2"), 9, "Wait"))}, 1},
		"the other one takes all": {stays("Drain", "1"), []*v1alpha1.NodeMaintenance{called("other", of("Drain", "rack", "1"))}, 1},
		"this one takes all":      {of("Drain", "rack", "1"), []*v1alpha1.NodeMaintenance{called("other", stays("Drain", "1"))}, 1},
		"none is in place":        {of("Drain", "rack", "1"), []*v1alpha1.NodeMaintenance{called("other", of("Drain", "rack", "1"))}, 0},
		"other nodes":             {stays("Drain", "1"), []*v1alpha1.NodeMaintenance{called("other", stays("Drain", "2"))}, 0},
		"itself as it was":        {called("this", stays("Drain", "1")), []*v1alpha1.NodeMaintenance{called("this", of("Drain", "rack", "1"))}, 0},
		"the other does not drain": {stays("Drain", "1"), []*v1alpha1.NodeMaintenance{
			called("idle", stays("Idle", "1")), called("cordoned", stays("Cordon", "1")), called("over", stays("Complete", "1")), leaving, broken,
		}, 0},
		"many nodes": {inPlace(of("Drain", corev1.LabelHostname, "cp-1", "w-1", "w-2", "w-3"), 9, "Wait"), []*v1alpha1.NodeMaintenance{called("other", stays("Drain", "1", "2", "3"))}, 1},
		"many others": {inPlace(of("Drain", corev1.LabelHostname, "w-1"), 9, "Wait"), []*v1alpha1.NodeMaintenance{
			called("a", stays("Drain", "1")), called("b", of("Drain", "rack", "1")), called("c", stays("Drain", "1")), called("d", stays("Drain", "1")), called("e", stays("Drain", "1")),
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			expectWarnings(t, tt.want, besidesSeveral(validate.MaintenanceChange{New: tt.new, Nodes: fleet(), Others: tt.others}.Warnings()))
		})
	}
}

// Nobody is told that a drain is alone on its nodes because nobody could look.
func TestMaintenanceWithUnknownOthersWarns(t *testing.T) {
	change := validate.MaintenanceChange{New: of("Drain", "rack", "1"), Nodes: fleet(), OthersUnknown: errors.New("no answer")}
	expectWarnings(t, 1, change.Warnings())
	change.New.Spec.Stage = v1alpha1.StageCordon
	expectWarnings(t, 0, change.Warnings())
}
