package api

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	deadline       = `deadline: {time: "2036-03-01T22:00:00Z", onDeadline: Delete}`
	deadlineAction = "spec.deadline.onDeadline"
)

// late is the spec of a maintenance that deletes what is left at a deadline.
func late(stage string) string { return anyNode + "\nstage: " + stage + "\n" + deadline }

func TestADeadlineIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for title, test := range map[string]struct {
		deadline string
		want     refusal
	}{
		"without a time":           {`{onDeadline: Wait}`, refusal{"spec.deadline.time": "Required value"}},
		"a time that is none":      {`{time: tomorrow}`, refusal{"spec.deadline.time": `must be of type date-time: "tomorrow"`}},
		"a time without a zone":    {`{time: "2036-03-01T22:00:00"}`, refusal{"spec.deadline.time": "must be of type date-time"}},
		"something else to do":     {`{time: "2036-03-01T22:00:00Z", onDeadline: Evict}`, refusal{deadlineAction: `supported values: "Wait", "Delete"`}},
		"two seconds":              {`{time: "2036-03-01T22:00:00Z", deleteBeforeSeconds: 2}`, refusal{"spec.deadline.deleteBeforeSeconds": "should be greater than or equal to 3"}},
		"more than a day before":   {`{time: "2036-03-01T22:00:00Z", deleteBeforeSeconds: 86401}`, refusal{"spec.deadline.deleteBeforeSeconds": "should be less than or equal to 86400"}},
		"a deadline that is empty": {`{}`, refusal{"spec.deadline.time": "Required value"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			test.want.expect(t, try(t, c, maintenance("bad", anyNode+"\ndeadline: "+test.deadline)))
		})
	}
}

func TestADeadlineWaitsUnlessItSaysOtherwise(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, maintenance("deadline-defaults", anyNode+"\ndeadline: {time: \"2036-03-01T22:00:00+01:00\"}"))
	got, _, err := unstructured.NestedMap(o.Object, "spec", "deadline")
	if err != nil || got["onDeadline"] != "Wait" || got["deleteBeforeSeconds"] != int64(60) {
		t.Errorf("spec.deadline is %v (%v), want Wait and 60 seconds", got, err)
	}
	for _, change := range []string{
		`spec: {deadline: {time: "2036-03-01T23:00:00Z"}}`, `spec: {stage: Drain, deadline: {deleteBeforeSeconds: 3}}`, `spec: {deadline: null}`,
	} {
		if err := patch(t, c, o, change); err != nil {
			t.Errorf("%s is refused: %v", change, err)
		}
	}
}

// Who may only drain has pods deleted past their budgets neither by a deadline of their
// own nor by making somebody else's mean more.
func TestNobodyDeletesAtADeadlineWithoutItsVerb(t *testing.T) {
	t.Parallel()
	server, name, user := mayNotBypass(t)
	for _, stage := range []string{"Idle", "Cordon", "Drain", "Complete"} {
		err := try(t, user, maintenance("deadline-new", late(stage)))
		wantNoBypass(t, err, deadlineAction, name)
		if err != nil && !strings.Contains(err.Error(), "choose Wait, or ask an administrator") {
			t.Errorf("the refusal names no other way: %v", err)
		}
	}
	waits := strings.Replace(late("Drain"), "Delete", "Wait", 1)
	if err := try(t, user, maintenance("deadline-waits", waits)); err != nil {
		t.Errorf("Wait is refused: %v", err)
	}
	if err := try(t, user, maintenance("deadline-default", strings.Replace(late("Drain"), ", onDeadline: Delete", "", 1))); err != nil {
		t.Errorf("a deadline without an action is refused: %v", err)
	}
	_, allowed := server.User(t, ofEbbtide("nodemaintenances", "create"), bypasses)
	if err := try(t, allowed, maintenance("deadline-allowed", late("Drain"))); err != nil {
		t.Errorf("a user with the verb is refused: %v", err)
	}
	const allNodes = `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]}`
	for title, test := range map[string]struct {
		before, change string
		refused        bool
	}{
		"a deadline that deletes":      {anyNode + "\nstage: Drain", "spec: {" + deadline + "}", true},
		"wait to delete":               {waits, "spec: {deadline: {onDeadline: Delete}}", true},
		"an earlier time":              {late("Drain"), `spec: {deadline: {time: "2026-03-01T22:00:00Z"}}`, true},
		"a later time":                 {late("Drain"), `spec: {deadline: {time: "2046-03-01T22:00:00Z"}}`, true},
		"sooner before":                {late("Drain"), "spec: {deadline: {deleteBeforeSeconds: 86400}}", true},
		"idle to drain":                {late("Idle"), "spec: {stage: Drain}", true},
		"more nodes":                   {late("Drain"), "spec: {" + allNodes + "}", true},
		"a deeper drain":               {late("Drain") + "\ndrainDepth: Default", "spec: {drainDepth: Static}", true},
		"no more in place":             {late("Drain") + "\ninPlace: {expectedDowntimeSeconds: 60}", "spec: {inPlace: null}", true},
		"drain beside a label":         {late("Idle"), "metadata: {labels: {a: b}}\nspec: {stage: Drain}", true},
		"a label":                      {late("Drain"), "metadata: {labels: {a: b}}", false},
		"a reason":                     {late("Drain"), "spec: {reason: as agreed}", false},
		"complete":                     {late("Drain"), "spec: {stage: Complete}", false},
		"delete to wait":               {late("Drain"), "spec: {deadline: {onDeadline: Wait}}", false},
		"no deadline any more":         {late("Drain"), "spec: {deadline: null}", false},
		"wait, and another time":       {waits, `spec: {deadline: {time: "2026-03-01T22:00:00Z"}}`, false},
		"wait, and more nodes":         {late("Drain"), "spec: {deadline: {onDeadline: Wait}, " + allNodes + "}", false},
		"the status, with a deadline":  {late("Drain"), "status: {summary: none}", false},
		"the status of one that waits": {waits, "status: {summary: none, deadline: {onDeadline: Delete}}", false},
	} {
		t.Run(title, func(t *testing.T) {
			slug := "late-" + strings.Trim(notInName.ReplaceAllString(title, "-"), "-")
			o := create(t, server.Client, maintenance(slug, test.before))
			err := patch(t, user, o, test.change)
			if test.refused {
				wantNoBypass(t, err, deadlineAction, name)
			} else if err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
	o := create(t, server.Client, maintenance("late-deleted", late("Drain")))
	if err := user.Delete(t.Context(), o, client.DryRunAll); err != nil {
		t.Errorf("deletion is refused: %v", err)
	}
}

// Whoever has taken over the manager's account gives no maintenance a deadline.
func TestTheManagerChangesNoDeadline(t *testing.T) {
	t.Parallel()
	server, _, _ := mayNotBypass(t)
	manager := theManager(t, server, ofEbbtide("nodemaintenances", "get"), nil)
	m := create(t, server.Client, maintenance("late-by-the-manager", late("Drain")+"\nreason: none"))
	for _, change := range []string{
		`spec: {deadline: {time: "2026-03-01T22:00:00Z"}}`, "spec: {deadline: {onDeadline: Wait}}", "spec: {deadline: null}",
	} {
		// Two policies refuse the first of them, and either may be quoted.
		err := fmt.Sprint(patch(t, manager, m, change))
		if !strings.Contains(err, onlyEnds) && !strings.Contains(err, "does not have the verb") {
			t.Errorf("%s by the manager: error %s, want a refusal", change, err)
		}
	}
	if err := patch(t, manager, m, "metadata: {finalizers: ["+v1alpha1.MaintenanceCompletionFinalizer+"]}"); err != nil {
		t.Errorf("a finalizer is refused: %v", err)
	}
	if err := patch(t, server.Client, m, "metadata: {finalizers: []}"); err != nil {
		t.Error(err)
	}
}
