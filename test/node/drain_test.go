package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// load asks a Service again and again, a new connection each time, until stopped.
type load struct {
	stop func()
	done sync.WaitGroup

	asked  int
	failed []error
}

func startLoad(t *testing.T, c *cluster.Cluster, url string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{stop: cancel}
	t.Cleanup(cancel)
	l.done.Go(func() {
		for tick := time.NewTicker(10 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			// One that is under way when the load is stopped is answered, too.
			_, err := ask(context.WithoutCancel(ctx), c, url)
			l.asked++
			if err != nil {
				l.failed = append(l.failed, err)
			}
		}
	})
	return l
}

// The manager empties a node with programs that end in their own ways, and gives it back.
// An application that serves on for a moment after SIGTERM loses no request.
func TestANodeWithRealProgramsIsDrainedAndGivenBack(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{RealNodes: 3, NoMachines: true})
	importApp(t, c)
	c.StartManager(t)
	namespace := c.Namespace(t)
	applications := map[string][]string{"web": {"-linger=2s", "-graceful"}, "deaf": {"-deaf"}, "slow": {"-ready-after=3s"}}
	for name, args := range applications {
		// A replacement finds room on the nodes that are left.
		text := strings.ReplaceAll(deployment(name, 3, 5*time.Second, args...), "DoNotSchedule", "ScheduleAnyway")
		c.Apply(t, namespace, text)
	}
	for name := range applications {
		waitAvailable(t, c, namespace, name)
	}
	running, err := pods(t.Context(), c, namespace, "web")
	if err != nil || len(running) == 0 {
		t.Fatalf("web runs nowhere: %v", err)
	}
	node := running[c.Nodes[0]][0].Spec.NodeName
	url := address(t, c, namespace, "web")
	cluster.Eventually(t, "an answer of web", 30*time.Second, func(ctx context.Context) (string, bool) {
		_, err := ask(ctx, c, url)
		return fmt.Sprint(err), err == nil
	})

	requests := startLoad(t, c, url)
	begin := time.Now()
	maintenance := maintain(t, c, node)
	waitDrained(t, c, maintenance)
	t.Logf("%s was drained in %s", node, time.Since(begin).Round(10*time.Millisecond))
	if left := unfinished(t, c, namespace, node); len(left) > 0 {
		t.Errorf("%v are left on %s, want none", left, node)
	}
	if now, err := getNode(t.Context(), c, node); err != nil || !now.Spec.Unschedulable {
		t.Errorf("%s takes pods, want it cordoned; %v", node, err)
	}

	patch := []byte(`{"spec":{"stage":"Complete"}}`)
	if err := c.Client.Patch(t.Context(), maintenance, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, node+" to be given back", 30*time.Second, func(ctx context.Context) (string, bool) {
		now, err := getNode(ctx, c, node)
		return fmt.Sprintf("%+v, %v", now.Spec, err), err == nil && !now.Spec.Unschedulable
	})
	requests.stop()
	requests.done.Wait()
	t.Logf("%d requests in that time", requests.asked)
	if len(requests.failed) > 0 || requests.asked < 100 {
		t.Errorf("%d of %d requests failed, want none of at least 100: %v", len(requests.failed), requests.asked, requests.failed)
	}
}

// unfinished are the pods of a node that have not come to their end.
func unfinished(t *testing.T, c *cluster.Cluster, namespace, node string) (names []string) {
	t.Helper()
	list := &corev1.PodList{}
	if err := c.Client.List(t.Context(), list, client.InNamespace(namespace), client.MatchingFields{"spec.nodeName": node}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			names = append(names, pod.Name)
		}
	}
	return names
}

// maintain asks for a drain of one node.
func maintain(t *testing.T, c *cluster.Cluster, node string) *v1alpha1.NodeMaintenance {
	t.Helper()
	maintenance := &v1alpha1.NodeMaintenance{}
	maintenance.Name = "kernel-update"
	maintenance.Spec.Stage = v1alpha1.StageDrain
	maintenance.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}},
	}}
	if err := c.Client.Create(t.Context(), maintenance); err != nil {
		t.Fatal(err)
	}
	return maintenance
}

func waitDrained(t *testing.T, c *cluster.Cluster, maintenance *v1alpha1.NodeMaintenance) {
	t.Helper()
	cluster.Eventually(t, "the node to be drained", 2*time.Minute, func(ctx context.Context) (string, bool) {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(maintenance), maintenance)
		return fmt.Sprintf("%+v, %v", maintenance.Status.Conditions, err),
			err == nil && meta.IsStatusConditionTrue(maintenance.Status.Conditions, v1alpha1.ConditionDrained)
	})
}
