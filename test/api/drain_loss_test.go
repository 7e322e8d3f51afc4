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

// The obvious command is the safe one: several nodes are not emptied at the same time by
// mistake. The refusal says what would be down, and how to do it one after the other.
func TestDrainEmptiesOneNodeAfterTheOther(t *testing.T) {
	d := newDesk(t)
	namespace := d.space()
	d.runs(namespace, "web-a", "a")
	d.runs(namespace, "web-b", "b")
	d.maintain("plan", "stage: Idle", "a", "b", "c")
	d.transcript("drain-several.txt", "drain POOL-b POOL-a --reason kernel", "drain POOL-c POOL-a", "drain -l pool=POOL,node!=c --in-place 5m", "drain nm/POOL-plan")
	d.wantPlanned(1)
	if got := d.run("drain", "nm/POOL-plan", "--all-at-once", "--wait=false"); got.Code != 0 || d.maintenances()[0].Spec.Stage != v1alpha1.StageDrain {
		t.Errorf("with the flag: %+v", got)
	}
}

// kubectl drain refuses to lose data until you agree. Here it is printed before anything is asked
// for, unless you have agreed by kubectl's flag. With --refuse-loss nothing is asked for where
// there is loss, or where that is unknown.
func TestDrainSaysWhatIsLostAndRefusesLoss(t *testing.T) {
	d := newDesk(t)
	namespace := d.space()
	d.runs(namespace, "debug", "a")
	d.runs(namespace, "web", "a")
	d.maintain("plan", "stage: Idle", "a")
	d.reader("nodes")
	const drain = "drain POOL-a --name POOL-x --dry-run=client"
	d.transcript("drain-loss.txt",
		drain, drain+" --delete-emptydir-data", drain+" --force", drain+" --delete-emptydir-data --force", drain+" --as READER",
		drain+" --refuse-loss --as READER", "drain POOL-b --name POOL-x --dry-run=client", "drain POOL-b --name POOL-x --dry-run=client --refuse-loss",
		"drain POOL-a --refuse-loss --force --delete-emptydir-data", "drain nm/POOL-plan --refuse-loss")
	d.wantPlanned(1)
}
