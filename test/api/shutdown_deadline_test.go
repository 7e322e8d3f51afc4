package api

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	goesDown    = "stage: Drain\n" + deadline
	longAgo     = `deadline: {time: "2001-03-01T22:00:00Z", onDeadline: Delete}`
	asksNoMore  = "Ebbtide's manager cordons or drains a node that shuts down, and asks for nothing else"
	onlyThose   = "Ebbtide's manager creates and deletes NodeMaintenances of nodes that shut down and of NodeRollouts, and no others"
	stillToCome = "Ebbtide's manager gives a node that shuts down a deadline that is still to come, or none"
	onlyEnds    = "Ebbtide's manager changes of nodemaintenances only "
	hasNoVerb   = `does not have the verb "bypass-budgets" on nodemaintenances`
)

// wantRefusal wants an error in these words, or none if there are none. Where several
// policies refuse, any of them may be quoted.
func wantRefusal(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if len(words) == 0 {
		if err != nil {
			t.Errorf("%s: error %v, want it allowed", what, err)
		}
		return
	}
	for _, one := range words {
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), one) {
			return
		}
	}
	t.Errorf("%s: error %v, want %q", what, err, words)
}

// Who has taken the manager's account over, with no more rights than it has, gives a
// deadline that deletes to nodes that shut down, each for itself, and to nobody else.
func TestTheManagerMakesDeadlinesOfShutdownsOnly(t *testing.T) {
	t.Parallel()
	server, _, user := mayNotBypass(t)
	manager := theManager(t, server, ofEbbtide("nodemaintenances", "get", "create"), nil)
	const selector = "nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-9]}]}]}"
	for title, test := range map[string]struct {
		document string
		refusals []string
	}{
		"the deadline of a node that shuts down":     {ofShutdown("node-shutdown-node-9", "node-9", goesDown), nil},
		"one that waits":                             {ofShutdown("node-shutdown-node-9", "node-9", strings.Replace(goesDown, "Delete", "Wait", 1)), nil},
		"one of 25 years ago":                        {ofShutdown("node-shutdown-node-9", "node-9", "stage: Drain\n"+longAgo), []string{stillToCome}},
		"one of 25 years ago that waits":             {ofShutdown("node-shutdown-node-9", "node-9", "stage: Drain\n"+strings.Replace(longAgo, "Delete", "Wait", 1)), []string{stillToCome}},
		"in the name of another node":                {ofShutdown("node-shutdown-node-10", "node-9", goesDown), []string{onlyThose, hasNoVerb}},
		"of a maintenance of its own":                {maintenance("mine", selector+"\n"+goesDown), []string{onlyThose, hasNoVerb}},
		"without the label":                          {maintenance("node-shutdown-node-9", selector+"\n"+goesDown), []string{onlyThose, hasNoVerb}},
		"of all nodes":                               {strings.Replace(ofShutdown("node-shutdown-node-9", "node-9", goesDown), "matchFields: [{key: metadata.name, operator: In, values: [node-9]}]", "matchExpressions: [{key: pool, operator: Exists}]", 1), []string{onlyThose, hasNoVerb}},
		"of pods that stay":                          {ofShutdown("node-shutdown-node-9", "node-9", "stage: Drain\n"+deleteInPlace), []string{asksNoMore, hasNoVerb}},
		"of pods that stay, and of those that leave": {ofShutdown("node-shutdown-node-9", "node-9", goesDown+"\n"+deleteInPlace), []string{asksNoMore, hasNoVerb}},
	} {
		wantRefusal(t, "the manager makes "+title, client.NewDryRunClient(manager).Create(t.Context(), object(t, test.document)), test.refusals...)
	}
	// Nobody else may, whatever they call it.
	wantRefusal(t, "somebody makes one of a shutdown", try(t, user, ofShutdown("node-shutdown-node-9", "node-9", goesDown)), hasNoVerb)
}

// What it has made follows the node, and does nothing else. What somebody else has made is
// not changed, though it looks much alike.
func TestTheManagersShutdownsFollowTheirNodes(t *testing.T) {
	t.Parallel()
	server, _, user := mayNotBypass(t)
	manager := theManager(t, server, ofEbbtide("nodemaintenances", "get"), nil)
	const sooner = `spec: {deadline: {time: "2036-03-01T21:00:00Z"}}`
	made := 0
	play := func(document, change string, by client.Client, refusals ...string) {
		t.Helper()
		made++
		o := create(t, server.Client, strings.ReplaceAll(document, "node-7", fmt.Sprintf("node-7-%d", made)))
		wantRefusal(t, fmt.Sprintf("%s of%s", change, document), patch(t, by, o, strings.ReplaceAll(change, "node-7", fmt.Sprintf("node-7-%d", made))), refusals...)
	}
	drain, cordon := ofShutdown("node-shutdown-node-7", "node-7", goesDown), ofShutdown("node-shutdown-node-7", "node-7", "stage: Cordon")
	for _, change := range []string{
		sooner, `spec: {deadline: {time: "2046-03-01T21:00:00Z", deleteBeforeSeconds: 86400}}`, "spec: {deadline: {onDeadline: Wait}}", "spec: {deadline: null}",
		`spec: {reason: it shuts down}`,
	} {
		play(drain, change, manager)
	}
	play(cordon, "spec: {stage: Drain, "+deadline+"}", manager)
	for _, change := range []string{
		"spec: {" + longAgo + "}", "spec: {drainDepth: Default}", "spec: {" + deleteInPlace + "}", "spec: {inPlace: {expectedDowntimeSeconds: 60}}",
		"spec: {completeWhen: {newBoot: true}}", "spec: {completedNodes: [{name: any}]}", "spec: {stage: Complete}",
		`spec: {deadline: {time: "2036-03-01T21:00:00Z"}, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-8]}]}]}}`,
		`spec: {nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]}}`,
		`{metadata: {labels: {ebbtide.dev/created-by: null}}, spec: {deadline: {time: "2036-03-01T21:00:00Z"}}}`,
		`{metadata: {labels: {ebbtide.dev/a: b}}, spec: {deadline: {time: "2036-03-01T21:00:00Z"}}}`,
	} {
		play(drain, change, manager, onlyEnds, hasNoVerb)
	}
	const selector = "nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-7]}]}]}"
	for _, theirs := range []string{
		maintenance("theirs-node-7", selector+"\n"+goesDown), maintenance("node-shutdown-node-7", selector+"\n"+goesDown),
		ofShutdown("theirs-node-7", "node-7", goesDown), ofShutdown("node-shutdown-node-7", "node-8", goesDown),
		ofShutdown("node-shutdown-node-7", "node-7", "stage: Idle\n"+deadline), ofShutdown("node-shutdown-node-7", "node-7", "stage: Complete\n"+deadline),
	} {
		play(theirs, sooner, manager, onlyEnds, hasNoVerb)
	}
	play(ofShutdown("node-shutdown-node-7", "node-7", "stage: Idle\n"+deadline), "spec: {stage: Drain}", manager, onlyEnds, hasNoVerb)
	// Who may drain, and no more, makes no node go down sooner.
	play(drain, sooner, user, hasNoVerb)
	play(cordon, "spec: {stage: Drain, "+deadline+"}", user, hasNoVerb)
}
