package capi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/charts/helm"
)

// What the alerts of the chart go by is what managers show: which of them leads, and for how
// long a Machine has waited, also before this manager was there.
func TestLongWhatAlertsGoBy(t *testing.T) {
	w, leads := bareWorld(t)
	stands := w.c.StartReplica(t)
	node := w.bareNode(w.ns+"-elsewhere", "sandbox:///other", "infra", "other")
	machine := newMachine(w.ns, "worker", "sandbox:///worker")
	w.create(machine)
	w.waitsAtHooks(w.c.Client, machine, node.Name)
	w.must(w.c.Client.Status().Patch(w.ctx, machine, mergePatch(fmt.Sprintf(`{"status":{"deletion":{"waitForPreDrainHookStartTime":%q}}}`,
		time.Now().Add(-31*time.Minute).UTC().Format(time.RFC3339)))))
	w.awaitEvent(machine, v1alpha1.EventBridgeWaiting, "ebbtide-kubeconfigs")

	// It waits for as long as a manager that is there now says, whoever was there before.
	leads.Stop()
	w.await("the other manager to lead", func() (string, bool) { return stands.Tail(1), stands.Leads(t) })
	w.await("a wait of 31 minutes", func() (string, bool) {
		_, text := stands.Metrics(t, w.c.Config.BearerToken)
		shown := regexp.MustCompile(`(?m)^ebbtide_bridge_oldest_wait_seconds\{bridge="cluster-api"\} 18[6-9]\d|^ebbtide_bridge_oldest_wait_seconds\{bridge="cluster-api"\} 19\d\d`)
		return strings.Join(regexp.MustCompile(`(?m)^ebbtide_bridge.*$`).FindAllString(text, -1), "\n"), shown.MatchString(text)
	})
	_, text := stands.Metrics(t, w.c.Config.BearerToken)
	if !strings.Contains(text, `leader_election_master_status{name="ebbtide.dev"} 1`) {
		t.Error("the manager that leads does not show it")
	}
	for _, name := range alerted(t) {
		if !strings.Contains(text, "\n"+name+"{") && !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("an alert goes by %s, which nobody shows", name)
		}
	}
	w.letGoOf(machine)
}

// alerted are the metrics in the alerts of the chart.
func alerted(t *testing.T) (names []string) {
	t.Helper()
	rendered, err := helm.Render(t.Context(), helm.Release{Namespace: "tides", Values: map[string]any{
		"serviceMonitor": map[string]any{"enabled": true}, "alerts": map[string]any{"enabled": true}, "bridges": []any{"cluster-api"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := charts.Objects(rendered)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() == "PrometheusRule" {
			for _, found := range regexp.MustCompile(`(\w+)\{namespace=`).FindAllStringSubmatch(fmt.Sprint(o.Object), -1) {
				names = append(names, found[1])
			}
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"ebbtide_bridge_oldest_wait_seconds", "ebbtide_missing_rights", "ebbtide_webhook_certificate_expiry_timestamp_seconds", "leader_election_master_status"}) {
		t.Errorf("alerts go by %v", names)
	}
	return names
}
