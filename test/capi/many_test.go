package capi

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

var many = flag.Int("machines", 1000, "Machines that are there at once; the design is for 5,000")

const (
	// hookedIn, beginsIn and mostMemory are bounds for 5,000 Machines on a busy machine; what
	// it takes is printed.
	hookedIn, beginsIn = 3 * time.Minute, 10 * time.Second
	mostMemory         = 500 << 20
	// idle is for how long nothing is to be written.
	idle = 20 * time.Second
)

// Thousands of Machines get their hooks by one write each when their Cluster opts in.
// Nothing is written from then on, also while Cluster API writes their status, and the
// drain of one among them begins at once.
func TestLongThousandsOfMachines(t *testing.T) {
	w, replica := bareWorld(t)
	w.label(w.named(clusterKind, "prod"), v1alpha1.DrainOptLabel, "false")
	node := w.bareNode(w.ns+"-worker", "sandbox:///worker-17", w.ns, "worker-17")
	cluster.Each(w.t, *many, func(n int) error {
		name := fmt.Sprintf("worker-%d", n)
		return w.c.Client.Create(w.ctx, newMachine(w.ns, name, "sandbox:///"+name))
	})
	others := len(w.written())
	begin := time.Now()
	w.label(w.named(clusterKind, "prod"), v1alpha1.DrainOptLabel, "true")
	patience.Eventually(t, "all hooks", func(context.Context) (string, bool) {
		hooks := w.hooks()
		return strconv.Itoa(hooks), hooks == *many
	})
	took := time.Since(begin)
	memory := w.memory(replica)

	before := len(w.written())
	cluster.Each(w.t, *many, func(n int) error {
		return w.c.Client.Status().Patch(w.ctx, w.named(machineKind, fmt.Sprintf("worker-%d", n)), mergePatch(`{"status":{"phase":"Running"}}`))
	})
	time.Sleep(idle)
	written := w.written()
	if more := written[before:]; len(more) > 0 {
		t.Errorf("%d writes though nothing was to be done, such as %s", len(more), more[0])
	}
	if perMachine := float64(before-others) / float64(*many); perMachine > 1.1 {
		t.Errorf("%.2f writes for each Machine, want one", perMachine)
	}

	one := w.named(machineKind, "worker-17")
	w.must(w.c.Client.Get(w.ctx, client.ObjectKeyFromObject(one), one))
	w.waitsAtHooks(w.c.Client, one, node.Name)
	begin = time.Now()
	patience.Eventually(t, "the node to be cordoned", func(context.Context) (string, bool) { return "", w.isCordoned(node.Name) })
	t.Logf("%d Machines: all hooks after %s, the manager has %d MiB then and %d MiB later, the node of one that waits is cordoned after %s",
		*many, took.Round(time.Millisecond), memory>>20, w.memory(replica)>>20, time.Since(begin).Round(time.Millisecond))
	if memory > mostMemory {
		t.Errorf("that is more than %d MiB", mostMemory>>20)
	}
	w.awaitEvent(one, v1alpha1.EventBridgeDone, node.Name+" is drained; the hook is removed")
	w.forgetMachines()
	w.delete(node)
	w.awaitNoMaintenance("worker-17")
}

func (w *world) hooks() (count int) {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(machineKind)
	w.must(w.c.Client.List(w.ctx, list, client.InNamespace(w.ns)))
	for i := range list.Items {
		if hooked(&list.Items[i]) {
			count++
		}
	}
	return count
}

// memory is what a manager has, in bytes.
func (w *world) memory(of cluster.Replica) int {
	w.t.Helper()
	_, text := of.Metrics(w.t, w.c.Config.BearerToken)
	found := regexp.MustCompile(`(?m)^process_resident_memory_bytes (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		w.t.Fatal("the manager does not say what memory it has")
	}
	bytes, err := strconv.ParseFloat(found[1], 64)
	w.must(err)
	return int(bytes)
}

// forgetMachines deletes all Machines of the story.
func (w *world) forgetMachines() {
	w.t.Helper()
	cluster.Each(w.t, *many, func(n int) error {
		m := w.named(machineKind, fmt.Sprintf("worker-%d", n))
		if err := client.IgnoreNotFound(w.c.Client.Patch(w.ctx, m, mergePatch(`{"metadata":{"finalizers":null}}`))); err != nil {
			return err
		}
		return client.IgnoreNotFound(w.c.Client.Delete(w.ctx, m))
	})
}
