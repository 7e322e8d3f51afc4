package api

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/nodeshutdown"
)

// ofShutdown is the maintenance of a node that shuts down.
func ofShutdown(name, node, rest string) string {
	selector := fmt.Sprintf("nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [%s]}]}]}", node)
	return strings.Replace(maintenance(name, selector+"\n"+rest), "metadata:", "metadata:\n  labels: {ebbtide.dev/created-by: node-agent}", 1)
}

// Who has taken the manager's account over drains no nodes by labels, and ends nobody's
// maintenance: only those of shutdowns are its to make, one node each, by its name.
func TestTheManagersAccountMakesMaintenancesOfShutdownsOnly(t *testing.T) {
	t.Parallel()
	admin, manager := takenOver(t)
	const notOurs = "Ebbtide's manager creates and deletes NodeMaintenances of nodes that shut down and of NodeRollouts, and no others"
	const asksMore = "Ebbtide's manager cordons or drains a node that shuts down, and asks for nothing else"
	unlabelled := maintenance("node-shutdown-node-7", aNodeByName+"\nstage: Drain")
	dry := client.NewDryRunClient(manager)
	long := strings.Repeat("n", 250)
	for document, refusal := range map[string]string{
		ofShutdown("node-shutdown-node-7", "node-7", "stage: Drain"):  "",
		ofShutdown("node-shutdown-node-7", "node-7", "stage: Cordon"): "",
		ofShutdown(nodeshutdown.Name(long), long, "stage: Drain"):     "",
		unlabelled: notOurs,
		ofShutdown("node-shutdown-node-8", "node-7", "stage: Drain"):                                                        notOurs,
		ofShutdown(nodeshutdown.Name(long), "m"+long, "stage: Drain"):                                                       notOurs,
		strings.Replace(ofShutdown("node-shutdown-node-7", "node-7", "stage: Drain"), "operator: In", "operator: NotIn", 1): notOurs,
		strings.Replace(ofShutdown("node-shutdown-all", "node-7", "stage: Drain"), "matchFields: [{key: metadata.name, operator: In, values: [node-7]}]",
			"matchExpressions: [{key: pool, operator: In, values: [a]}]", 1): notOurs,
		strings.Replace(ofShutdown("node-shutdown-node-7", "node-7", "stage: Drain"), "}]}]}", "}]}, {matchFields: [{key: metadata.name, operator: In, values: [node-8]}]}]}", 1): notOurs,
		ofShutdown("node-shutdown-node-7", "node-7", "stage: Idle"):                                          asksMore,
		ofShutdown("node-shutdown-node-7", "node-7", "stage: Drain\ninPlace: {expectedDowntimeSeconds: 60}"): asksMore,
	} {
		err := dry.Create(t.Context(), object(t, document))
		if refusal == "" && err != nil || refusal != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refusal)) {
			t.Errorf("made%s\nerror %v, want %q", document, err, refusal)
		}
	}
	theirs, ours := create(t, admin, maintenance("theirs", aNodeByName)), create(t, admin, ofShutdown("node-shutdown-node-7", "node-7", "stage: Drain"))
	if err := manager.Delete(t.Context(), theirs); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), notOurs) {
		t.Errorf("deletes somebody's maintenance: %v, want %q", err, notOurs)
	}
	if err := manager.Delete(t.Context(), ours); err != nil {
		t.Errorf("deletes what it has made: %v", err)
	}
}
