package validate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

func TestWarnings(t *testing.T) {
	const (
		all  = "spec.nodeSelector matches every node of the cluster (5); while they are drained no node is left for their pods"
		cps  = "spec.nodeSelector matches every control-plane node (2); drain them one after the other to keep the control plane available"
		none = "spec.nodeSelector matches no node now; nodes that it matches later are taken into maintenance as they come"
	)
	leaving := everything("Drain")
	leaving.DeletionTimestamp = &metav1.Time{}
	relabelled := everything("Drain")
	relabelled.Labels = map[string]string{"team": "infra"}
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeMaintenance
		nodes    []*corev1.Node
		want     []string
	}{
		"one rack":                    {nil, of("Drain", "rack", "1"), fleet(), nil},
		"all nodes":                   {nil, everything("Drain"), fleet(), []string{all}},
		"all nodes, only announced":   {nil, everything("Idle"), fleet(), []string{all}},
		"all of the control plane":    {nil, of("Drain", corev1.LabelHostname, "cp-1", "cp-2", "w-1"), fleet(), []string{cps}},
		"half of the control plane":   {nil, of("Drain", corev1.LabelHostname, "cp-1", "w-1"), fleet(), nil},
		"no node":                     {nil, of("Drain", "rack", "9"), fleet(), []string{none}},
		"no node in an empty cluster": {nil, everything("Drain"), nil, []string{none}},
		"a cluster without control plane": {nil, of("Drain", "rack", "2"), fleet()[:1:1], []string{
			"spec.nodeSelector matches every node of the cluster (1); while they are drained no node is left for their pods",
		}},
		"the next stage":          {everything("Cordon"), everything("Drain"), fleet(), []string{all}},
		"another selector":        {of("Drain", "rack", "1"), everything("Drain"), fleet(), []string{all}},
		"neither stage nor nodes": {everything("Drain"), relabelled, fleet(), nil},
		"completed":               {everything("Drain"), everything("Complete"), fleet(), nil},
		"deleted":                 {everything("Drain"), nil, fleet(), nil},
		"changed on its way out":  {everything("Cordon"), leaving, fleet(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := validate.MaintenanceChange{Old: tt.old, New: tt.new, Nodes: tt.nodes}.Warnings()
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// Somebody else drains some of the nodes, and nobody is kept from draining them, too.
func TestWarningsOfOtherDrains(t *testing.T) {
	for count, want := range map[int]string{
		0: "",
		1: "somebody else drains the node as well, and both drains go on: Kubectl drain drains node w-1 (condition DrainInProgress with reason KubectlDrainStarted).",
		5: "somebody else drains nodes w-1, w-2, w-3 and 2 more as well, and both drains go on: Kubectl drain drains node w-1 (condition DrainInProgress with reason KubectlDrainStarted).",
	} {
		var nodes []*corev1.Node
		for i := range 7 {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w-%d", i+1), Labels: map[string]string{"rack": fmt.Sprint(i / 6)}}}
			if i < count {
				node.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeDrainInProgress, Status: corev1.ConditionTrue, Reason: "KubectlDrainStarted"}}
			}
			nodes = append(nodes, node)
		}
		got := validate.MaintenanceChange{New: of("Cordon", "rack", "0"), Nodes: nodes}.Warnings()
		if strings.Join(got, "\n") != want {
			t.Errorf("with %d such nodes: %q, want %q", count, got, want)
		}
		done := validate.MaintenanceChange{Old: of("Cordon", "rack", "0"), New: of("Complete", "rack", "0"), Nodes: nodes}.Warnings()
		if len(done) > 0 {
			t.Errorf("completed, with %d such nodes: %q", count, done)
		}
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

func TestWarningsOfPodsThatStay(t *testing.T) {
	const (
		long = "spec.inPlace.expectedDowntimeSeconds is 301, and pods tolerate a node that is away for 300 seconds unless they say otherwise: those " +
			"without longer tolerations of node.kubernetes.io/not-ready and node.kubernetes.io/unreachable are drained, whatever their label ebbtide.dev/on-upgrade"
		deletes = "spec.inPlace.onLockTimeout is Delete: pods that would stay are deleted past their PodDisruptionBudget " +
			"if it cannot be locked within 600 seconds (lockTimeoutSeconds)"
		hasty = "spec.inPlace.lockTimeoutSeconds is 299, which is shorter than expectedDowntimeSeconds (300): a node gives up its locks before " +
			"the pods of an application are back that is down for as long elsewhere; give it more time"
		all   = "spec.nodeSelector matches every node of the cluster (5); while they are drained no node is left for their pods"
		plan0 = "spec.drainPlan[0].podSelector (podType Default, podPriority 0)"
		plan2 = "spec.drainPlan[2].podSelector (podType Default, podPriority 2000)"
		stay  = ": with spec.inPlace pods labelled ebbtide.dev/on-upgrade=stay stay; the plan orders only those of them that cannot"
	)
	ordinary := planned(labelled("stay"))
	ordinary.Spec.InPlace = nil
	everythingWrong := planned(labelled("stay"))
	everythingWrong.Spec.NodeSelector = everything("Drain").Spec.NodeSelector
	inPlace(everythingWrong, 301, "Delete")
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeMaintenance
		want     []string
	}{
		"nothing odd":                     {nil, inPlace(of("Drain", "rack", "1"), 300, "Evict"), nil},
		"gives up too soon":               {nil, hurried(inPlace(of("Drain", "rack", "1"), 300, "Evict"), 299), []string{hasty}},
		"deletes too soon":                {nil, hurried(inPlace(of("Drain", "rack", "1"), 300, "Delete"), 299), []string{hasty, strings.Replace(deletes, "600", "299", 1)}},
		"has just enough time":            {nil, hurried(inPlace(of("Drain", "rack", "1"), 300, "Evict"), 300), nil},
		"never gives up":                  {nil, hurried(inPlace(of("Drain", "rack", "1"), 300, "Wait"), 299), nil},
		"only announced":                  {nil, inPlace(of("Idle", "rack", "1"), 300, "Wait"), nil},
		"only cordoned":                   {nil, inPlace(of("Cordon", "rack", "1"), 300, "Wait"), nil},
		"away for long":                   {nil, inPlace(of("Drain", "rack", "1"), 301, "Wait"), []string{long}},
		"away for long, announced":        {nil, inPlace(of("Idle", "rack", "1"), 301, "Wait"), []string{long}},
		"deletes":                         {nil, inPlace(of("Drain", "rack", "1"), 300, "Delete"), []string{deletes}},
		"deletes from now on":             {inPlace(of("Drain", "rack", "1"), 300, "Wait"), inPlace(of("Drain", "rack", "1"), 300, "Delete"), []string{deletes}},
		"deletes as before":               {inPlace(of("Drain", "rack", "1"), 300, "Delete"), inPlace(of("Drain", "rack", "1"), 300, "Delete"), nil},
		"begins to delete":                {inPlace(of("Cordon", "rack", "1"), 300, "Delete"), inPlace(of("Drain", "rack", "1"), 300, "Delete"), []string{deletes}},
		"ends":                            {inPlace(of("Drain", "rack", "1"), 300, "Delete"), inPlace(of("Complete", "rack", "1"), 301, "Delete"), nil},
		"no more in place":                {inPlace(of("Drain", "rack", "1"), 301, "Delete"), of("Drain", "rack", "1"), nil},
		"all that is wrong":               {nil, everythingWrong, []string{all, long, deletes, plan0 + stay}},
		"a plan for those that stay":      {nil, planned(nil, nil, labelled("stay")), []string{plan2 + stay}},
		"in another case":                 {nil, planned(labelled("Stay")), []string{plan0 + stay}},
		"two entries":                     {nil, planned(labelled("stay"), nil, expressed("Exists")), []string{plan0 + ", " + plan2 + stay}},
		"one of several values":           {nil, planned(expressed("In", "go", "STAY")), []string{plan0 + stay}},
		"a plan for other values":         {nil, planned(labelled("go"), expressed("In", "go")), nil},
		"a plan for the others":           {nil, planned(expressed("NotIn", "stay"), expressed("DoesNotExist"), &metav1.LabelSelector{}), nil},
		"a plan for those of a team":      {nil, planned(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "stay"}}), nil},
		"the same plan, nothing in place": {nil, ordinary, nil},
		"the same plan, in place now":     {ordinary, planned(labelled("stay")), []string{plan0 + stay}},
	} {
		t.Run(name, func(t *testing.T) {
			got := besidesSeveral(validate.MaintenanceChange{Old: tt.old, New: tt.new, Nodes: fleet()}.Warnings())
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
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
func TestWarningsOfSeveralNodesInPlace(t *testing.T) {
	const several = "spec.inPlace.expectedRebootCount is 0 with 2 nodes: those whose pods stay under one PodDisruptionBudget wait for each other, " +
		"and each keeps its locks until somebody says that it is back (kubectl annotate drainrecord NODE ebbtide.dev/back=true) or the maintenance is complete"
	one := of("Drain", corev1.LabelHostname, "w-1")
	two := of("Drain", "rack", "1")
	reboots := func(m *v1alpha1.NodeMaintenance, count int32) *v1alpha1.NodeMaintenance {
		m = inPlace(m.DeepCopy(), 60, "Wait")
		m.Spec.InPlace.ExpectedRebootCount = &count
		return m
	}
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeMaintenance
		want     []string
	}{
		"two nodes that reboot":   {nil, inPlace(two.DeepCopy(), 60, "Wait"), nil},
		"two nodes, twice":        {nil, reboots(two, 2), nil},
		"two nodes that do not":   {nil, reboots(two, 0), []string{several}},
		"one node that does not":  {nil, reboots(one, 0), nil},
		"a second one":            {reboots(one, 0), reboots(two, 0), []string{several}},
		"they are as before":      {reboots(two, 0), reboots(two, 0), nil},
		"two nodes for good":      {nil, two.DeepCopy(), nil},
		"from now on they do not": {reboots(two, 1), reboots(two, 0), []string{several}},
	} {
		t.Run(name, func(t *testing.T) {
			got := validate.MaintenanceChange{Old: tt.old, New: tt.new, Nodes: fleet()}.Warnings()
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// called names a maintenance.
func called(name string, m *v1alpha1.NodeMaintenance) *v1alpha1.NodeMaintenance {
	m.Name = name
	return m
}

func TestWarningsOfMaintenancesThatShareNodes(t *testing.T) {
	const (
		both  = " in place: pods stay there only if they tolerate the longer expectedDowntimeSeconds of the two"
		leave = ", not in place: no pod stays there"
		taken = " in place: pods that stay there for it leave now"
	)
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
		want   []string
	}{
		"both in place":           {stays("Drain", "1"), []*v1alpha1.NodeMaintenance{called("other", stays("Drain", "1"))}, []string{"NodeMaintenance other also drains nodes cp-1, w-1" + both}},
		"one node of both":        {stays("Drain", "1", "3"), []*v1alpha1.NodeMaintenance{called("other", inPlace(of("Drain", corev1.LabelHostname, "w-3", "w-2"), 9, "Wait"))}, []string{"NodeMaintenance other also drains node w-3" + both}},
		"the other one takes all": {stays("Drain", "1"), []*v1alpha1.NodeMaintenance{called("other", of("Drain", "rack", "1"))}, []string{"NodeMaintenance other also drains nodes cp-1, w-1" + leave}},
		"this one takes all":      {of("Drain", "rack", "1"), []*v1alpha1.NodeMaintenance{called("other", stays("Drain", "1"))}, []string{"NodeMaintenance other also drains nodes cp-1, w-1" + taken}},
		"none is in place":        {of("Drain", "rack", "1"), []*v1alpha1.NodeMaintenance{called("other", of("Drain", "rack", "1"))}, nil},
		"other nodes":             {stays("Drain", "1"), []*v1alpha1.NodeMaintenance{called("other", stays("Drain", "2"))}, nil},
		"itself as it was":        {called("this", stays("Drain", "1")), []*v1alpha1.NodeMaintenance{called("this", of("Drain", "rack", "1"))}, nil},
		"this does not drain":     {stays("Cordon", "1"), []*v1alpha1.NodeMaintenance{called("other", stays("Drain", "1"))}, nil},
		"the other does not drain": {stays("Drain", "1"), []*v1alpha1.NodeMaintenance{
			called("idle", stays("Idle", "1")), called("cordoned", stays("Cordon", "1")), called("over", stays("Complete", "1")), leaving, broken,
		}, nil},
		"many nodes": {inPlace(of("Drain", corev1.LabelHostname, "cp-1", "w-1", "w-2", "w-3"), 9, "Wait"), []*v1alpha1.NodeMaintenance{called("other", stays("Drain", "1", "2", "3"))}, []string{
			"NodeMaintenance other also drains nodes cp-1, w-1, w-2 and 1 more" + both,
		}},
		"many others": {inPlace(of("Drain", corev1.LabelHostname, "w-1"), 9, "Wait"), []*v1alpha1.NodeMaintenance{
			called("a", stays("Drain", "1")), called("b", of("Drain", "rack", "1")), called("c", stays("Drain", "1")), called("d", stays("Drain", "1")), called("e", stays("Drain", "1")),
		}, []string{
			"NodeMaintenance a also drains node w-1" + both, "NodeMaintenance b also drains node w-1" + leave, "NodeMaintenance c also drains node w-1" + both,
			"2 more NodeMaintenances also drain some of these nodes",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := besidesSeveral(validate.MaintenanceChange{New: tt.new, Nodes: fleet(), Others: tt.others}.Warnings())
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// Nobody is told that a drain is alone on its nodes because nobody could look.
func TestAWarningSaysThatOthersAreUnknown(t *testing.T) {
	change := validate.MaintenanceChange{New: of("Drain", "rack", "1"), Nodes: fleet(), OthersUnknown: errors.New("no answer")}
	if got := strings.Join(change.Warnings(), "\n"); got != "could not look for other NodeMaintenances that drain the same nodes: no answer" {
		t.Errorf("warnings: %s", got)
	}
	change.New.Spec.Stage = v1alpha1.StageCordon
	if got := change.Warnings(); got != nil {
		t.Errorf("warnings where no others matter: %s", got)
	}
}
