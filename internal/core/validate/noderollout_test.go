package validate_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/skew"
	"ebbtide.dev/ebbtide/internal/core/validate"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

// rollout is a running rollout over the nodes that a maintenance selects, with changes.
func rollout(m *v1alpha1.NodeMaintenance, changes ...func(*v1alpha1.NodeRollout)) *v1alpha1.NodeRollout {
	r := &v1alpha1.NodeRollout{Spec: v1alpha1.NodeRolloutSpec{NodeSelector: m.Spec.NodeSelector, State: v1alpha1.RolloutRunning}}
	for _, change := range changes {
		change(r)
	}
	return r
}

func aborted(r *v1alpha1.NodeRollout) { r.Spec.State = v1alpha1.RolloutAborted }
func paused(r *v1alpha1.NodeRollout)  { r.Spec.State = v1alpha1.RolloutPaused }
func canary(r *v1alpha1.NodeRollout)  { r.Spec.Canary = &v1alpha1.RolloutCanary{NodeCount: 1} }
func deleted(r *v1alpha1.NodeRollout) { r.DeletionTimestamp = &metav1.Time{} }
func teamed(r *v1alpha1.NodeRollout)  { r.Labels = map[string]string{"team": "a"} }

func skips(nodes ...string) func(*v1alpha1.NodeRollout) {
	return func(r *v1alpha1.NodeRollout) {
		for _, node := range nodes {
			r.Spec.Nodes = append(r.Spec.Nodes, v1alpha1.RolloutNodeSpec{Name: node, Skip: true})
		}
	}
}

func atMost(value string) func(*v1alpha1.NodeRollout) {
	return func(r *v1alpha1.NodeRollout) { r.Spec.MaxUnavailable = new(intstr.Parse(value)) }
}

func inHours(from, to string) func(*v1alpha1.NodeRollout) {
	return func(r *v1alpha1.NodeRollout) {
		r.Spec.Windows = append(r.Spec.Windows, v1alpha1.MaintenanceWindow{From: from, To: to})
	}
}

// exceptUntil adds a blackout that ends so long after the evening.
func exceptUntil(after time.Duration) func(*v1alpha1.NodeRollout) {
	return func(r *v1alpha1.NodeRollout) {
		end := evening.Add(after)
		r.Spec.Blackouts = append(r.Spec.Blackouts, v1alpha1.Blackout{StartTime: metav1.NewTime(end.Add(-time.Hour)), EndTime: metav1.NewTime(end)})
	}
}

func withControlPlane(order v1alpha1.ControlPlanePolicy) func(*v1alpha1.NodeRollout) {
	return func(r *v1alpha1.NodeRollout) { r.Spec.ControlPlane = order }
}

func TestRolloutAffectsWhatItSelectsBeforeAndAfter(t *testing.T) {
	byLabel, named := of("", "rack", "3"), byName("", "w-1", "w-9")
	all := []string{"cp-1", "cp-2", "w-1", "w-2", "w-3"}
	for name, tt := range map[string]struct {
		old, new    *v1alpha1.NodeRollout
		later, ends bool
		affected    []string
	}{
		"by labels":                       {nil, rollout(byLabel), true, false, []string{"w-3"}},
		"by names, one of them not there": {nil, rollout(named), false, false, []string{"w-1", "w-9"}},
		"control plane nodes, left out":   {nil, rollout(everything("")), true, false, all},
		"nodes that are skipped":          {nil, rollout(named, skips("w-1")), false, false, []string{"w-1", "w-9"}},
		"widened":                         {rollout(byLabel), rollout(everything("")), true, false, all},
		"other nodes":                     {rollout(byLabel), rollout(named), false, false, []string{"w-1", "w-3", "w-9"}},
		"faster":                          {rollout(byLabel), rollout(byLabel, atMost("9")), true, false, []string{"w-3"}},
		"continued":                       {rollout(byLabel, paused), rollout(byLabel), true, false, []string{"w-3"}},
		"a node is tried again":           {rollout(byLabel), rollout(byLabel, skips("w-3")), true, false, []string{"w-3"}},
		"only its labels":                 {rollout(byLabel), rollout(byLabel, teamed), false, false, []string{"w-3"}},
		"aborted":                         {rollout(byLabel), rollout(byLabel, aborted), false, true, []string{"w-3"}},
		"aborted, by names":               {rollout(named), rollout(named, aborted), false, true, []string{"w-1"}},
		"being deleted":                   {rollout(byLabel), rollout(byLabel, deleted), false, true, []string{"w-3"}},
		"deleted":                         {rollout(byLabel), nil, false, true, []string{"w-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			change := validate.RolloutChange{Old: tt.old, New: tt.new, Nodes: fleet()}
			affected, err := change.Affected()
			if err != nil {
				t.Fatal(err)
			}
			difference.None(t, "affected nodes", tt.affected, affected)
			if later, ends := change.TakesLaterNodes(), change.Ends(); later != tt.later || ends != tt.ends {
				t.Errorf("takes later nodes %v and ends %v, want %v and %v", later, ends, tt.later, tt.ends)
			}
		})
	}
	rights := validate.NodeRights{User: "jane", Kind: "NodeRollout", Later: true}
	expectRefusal(t, true, rights.Refusal())
}

func TestInvalidRolloutIsRefusedWithItsFields(t *testing.T) {
	near := of("", "rack", "1")
	near.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"
	target := func(target v1alpha1.CompleteWhen) func(*v1alpha1.NodeRollout) {
		return func(r *v1alpha1.NodeRollout) { r.Spec.Target = &target }
	}
	plan := func(entry v1alpha1.DrainPlanEntry) func(*v1alpha1.NodeRollout) {
		return func(r *v1alpha1.NodeRollout) {
			r.Spec.Maintenance.DrainPlan = []v1alpha1.DrainPlanEntry{{PodType: v1alpha1.PodTypeDefault}, entry}
		}
	}
	odd := plan(v1alpha1.DrainPlanEntry{PodPriority: 1, PodType: v1alpha1.PodTypeDefault, PodSelector: wants("app", "Near", "web")})
	inZone := func(name string) func(*v1alpha1.NodeRollout) {
		return func(r *v1alpha1.NodeRollout) {
			r.Spec.Windows = []v1alpha1.MaintenanceWindow{{From: "22:00", To: "04:00", TimeZone: name}}
		}
	}
	stays := func(r *v1alpha1.NodeRollout) { r.Spec.After = v1alpha1.AfterStayDrained }
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeRollout
		fields   []string
	}{
		"a valid one":                   {new: rollout(rack(""), target(v1alpha1.CompleteWhen{KubeletVersion: ">=1.37.0"}))},
		"a target that stays":           {new: rollout(rack(""), target(v1alpha1.CompleteWhen{NewBoot: true}), stays)},
		"no selector":                   {new: &v1alpha1.NodeRollout{}, fields: []string{"spec.nodeSelector: "}},
		"an operator that there not":    {new: rollout(near), fields: []string{"spec.nodeSelector.nodeSelectorTerms[0]"}},
		"a range that is none":          {new: rollout(rack(""), target(v1alpha1.CompleteWhen{KubeletVersion: ">=1.x"})), fields: []string{"spec.target.kubeletVersion: "}},
		"an empty target":               {new: rollout(rack(""), target(v1alpha1.CompleteWhen{})), fields: []string{"spec.target: "}},
		"a selector of pods":            {new: rollout(rack(""), odd), fields: []string{"spec.maintenance.drainPlan[1].podSelector"}},
		"a zone that there is not":      {new: rollout(rack(""), inZone("Europe/Atlantis")), fields: []string{"spec.windows[0].timeZone: "}},
		"two of these":                  {new: rollout(near, odd), fields: []string{"spec.nodeSelector.nodeSelectorTerms[0]", "spec.maintenance.drainPlan[1].podSelector"}},
		"changed, and still invalid":    {old: rollout(near), new: rollout(near, paused), fields: []string{"spec.nodeSelector.nodeSelectorTerms[0]"}},
		"labelled, and still invalid":   {old: rollout(near), new: rollout(near, teamed)},
		"aborted, and still invalid":    {old: rollout(near), new: rollout(near, aborted)},
		"an invalid one that goes away": {old: rollout(near)},
	} {
		t.Run(name, func(t *testing.T) {
			refusals := validate.RolloutChange{Old: tt.old, New: tt.new, Nodes: fleet()}.Refusals()
			if len(refusals) != len(tt.fields) {
				t.Fatalf("refused for %q, want the fields %q", refusals, tt.fields)
			}
			for i, field := range tt.fields {
				golden.Message(t, refusals[i])
				if !strings.HasPrefix(refusals[i], field) {
					t.Errorf("refusal %q, want one that begins with %q", refusals[i], field)
				}
			}
		})
	}
}

func TestApprovalIsWithdrawnWithOtherNodesOrAnotherTarget(t *testing.T) {
	approved := func(is bool) func(*v1alpha1.NodeRollout) {
		return func(r *v1alpha1.NodeRollout) { r.Spec.Canary = &v1alpha1.RolloutCanary{NodeCount: 1, Approved: &is} }
	}
	boot := func(r *v1alpha1.NodeRollout) { r.Spec.Target = &v1alpha1.CompleteWhen{NewBoot: true} }
	reboots := func(r *v1alpha1.NodeRollout) { r.Spec.Reboot = true }
	replaces := func(r *v1alpha1.NodeRollout) { r.Spec.After = v1alpha1.AfterReplace }
	whenBroken := func(r *v1alpha1.NodeRollout) {
		r.Spec.When = &v1alpha1.RolloutWhen{Conditions: []string{"KernelDeadlock"}}
	}
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeRollout
		want     bool
	}{
		"new":                           {nil, rollout(rack(""), approved(true)), false},
		"deleted":                       {rollout(rack(""), approved(true)), nil, false},
		"approved":                      {rollout(rack(""), approved(false)), rollout(rack(""), approved(true)), false},
		"approved with other nodes":     {rollout(rack(""), approved(false)), rollout(everything(""), approved(true)), true},
		"other nodes":                   {rollout(rack(""), approved(true)), rollout(everything(""), approved(true)), true},
		"another target":                {rollout(rack(""), approved(true)), rollout(rack(""), approved(true), boot), true},
		"a reboot":                      {rollout(rack(""), approved(true)), rollout(rack(""), approved(true), reboots), true},
		"a replacement":                 {rollout(rack(""), approved(true)), rollout(rack(""), approved(true), replaces), true},
		"another reason":                {rollout(rack(""), approved(true)), rollout(rack(""), approved(true), whenBroken), true},
		"other nodes, not approved yet": {rollout(rack(""), approved(false)), rollout(everything(""), approved(false)), false},
		"another speed":                 {rollout(rack(""), approved(true)), rollout(rack(""), approved(true), atMost("9")), false},
		"no approval needed":            {rollout(rack(""), canary), rollout(everything(""), canary), false},
		"no canary":                     {rollout(rack("")), rollout(everything("")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (validate.RolloutChange{Old: tt.old, New: tt.new}).WithdrawsApproval(); got != tt.want {
				t.Errorf("withdrawn is %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRolloutWarnsOfLikelyMistakes(t *testing.T) {
	five, workers := everything(""), of("", corev1.LabelHostname, "w-1", "w-2", "w-3")
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeRollout
		skewed   bool
		want     int
	}{
		"no mistake":                          {new: rollout(workers, atMost("1"), inHours("22:00", "04:00"), exceptUntil(time.Hour))},
		"no node":                             {new: rollout(of("", "rack", "9")), want: 1},
		"control plane nodes, left out":       {new: rollout(five), want: 1},
		"control plane nodes, last":           {new: rollout(five, withControlPlane(v1alpha1.ControlPlaneLast))},
		"half of them":                        {new: rollout(workers, atMost("50%"))},
		"all at once":                         {new: rollout(workers, atMost("3")), want: 1},
		"all of them in percent":              {new: rollout(workers, atMost("100%")), want: 1},
		"all but the control plane":           {new: rollout(five, atMost("3")), want: 2},
		"one of one":                          {new: rollout(byName("", "w-1"), atMost("1"))},
		"a window of 29 minutes":              {new: rollout(workers, inHours("23:45", "00:14")), want: 1},
		"a window of half an hour":            {new: rollout(workers, inHours("23:45", "00:15"))},
		"a window of a day":                   {new: rollout(workers, inHours("22:00", "22:00"))},
		"a window that cannot be read":        {new: rollout(workers, inHours("25:00", "26:00"))},
		"two blackouts, one of which is over": {new: rollout(workers, exceptUntil(-time.Hour), exceptUntil(time.Hour)), want: 1},
		"one that is over, by a wrong clock":  {new: rollout(workers, exceptUntil(-time.Hour)), skewed: true},
		"changed":                             {old: rollout(workers, atMost("3")), new: rollout(workers, atMost("3"), canary), want: 1},
		"continued":                           {old: rollout(workers, atMost("3"), paused), new: rollout(workers, atMost("3"))},
		"a node is skipped":                   {old: rollout(workers, atMost("3")), new: rollout(workers, atMost("3"), skips("w-1"))},
		"aborted":                             {old: rollout(workers), new: rollout(workers, atMost("3"), aborted)},
		"deleted":                             {old: rollout(workers, atMost("3"))},
	} {
		t.Run(name, func(t *testing.T) {
			change := validate.RolloutChange{Old: tt.old, New: tt.new, Nodes: fleet(), Now: skew.Earliest(evening, tt.skewed)}
			expectWarnings(t, tt.want, change.Warnings())
		})
	}
}
