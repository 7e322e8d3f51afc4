package api

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// runs puts a pod with data on a node. A ReplicaSet web owns it if its name begins with web.
func (d *desk) runs(namespace, name, node string) {
	d.t.Helper()
	p := withData(podOn(namespace, d.Pool()+"-"+node, name, "app"), "cache")
	if name[:3] == "web" {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "uid", Controller: new(true)}}
	}
	d.create(p)
}

// The obvious command is the safe one: several nodes are drained one after the other. A planned
// NodeMaintenance of several is refused, with what would be down.
func TestDrainEmptiesOneNodeAfterTheOther(t *testing.T) {
	d := newDesk(t)
	namespace := d.space()
	d.runs(namespace, "web-a", "a")
	d.runs(namespace, "web-b", "b")
	d.maintain("plan", "stage: Idle", "a", "b", "c")
	const dry = " --name POOL-x --dry-run=server"
	d.transcript("drain-several.txt", "drain POOL-b POOL-a --reason kernel"+dry, "drain POOL-c POOL-a --refuse-loss"+dry, "drain -l pool=POOL,node!=c --in-place 5m --max 2 -o yaml --name POOL-x --dry-run=client", "drain nm/POOL-plan")
	d.wantPlanned(1)
	if got := d.run("drain", "nm/POOL-plan", "--all-at-once", "--wait=false"); got.Code != 0 || d.maintenances()[0].Spec.Stage != v1alpha1.StageDrain {
		t.Errorf("with the flag: %+v", got)
	}
}
