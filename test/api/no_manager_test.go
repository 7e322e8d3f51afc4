package api

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/cluster"
)

// Whoever asks how far a drain is hears that nobody acts, and what works nevertheless.
func TestThatNoManagerActsIsSaid(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	namespace, name := c.Namespace(t), c.Pool()+"-kernel"
	newDraining(t, c, name).becomes("Draining", "Draining", has(c.Pool()+"-node-1", 2))
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: kube.LeaderLease},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}},
	}
	if err := c.Client.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	verbs := [][]string{{"status"}, {"status", name}, {"why", "nodemaintenance/" + name}, {"watch", name, "--lines", "--timeout=1s"}}
	run := func(verb []string) (told string, code int) {
		_, told, code = plugin(t, c, verb[0], append(verb[1:], "--namespace", namespace)...)
		return told, code
	}
	for _, verb := range verbs {
		told, code := run(verb)
		for _, want := range []string{"No Ebbtide manager is active: the leader has not renewed for ", "kubectl drain", "kubectl get pods -n " + namespace} {
			if !strings.Contains(told, want) {
				t.Errorf("%v tells %q, want %q", verb, told, want)
			}
		}
		if scripts := verb[0] != "why"; scripts != (code == 3) {
			t.Errorf("%v ends with exit code %d", verb, code)
		}
	}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if err := c.Client.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	for _, verb := range verbs {
		if told, code := run(verb); strings.Contains(told, "No manager") || code == 3 {
			t.Errorf("a manager acts, and %v tells %q, exit code %d", verb, told, code)
		}
	}
}
