package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// The obvious command is the safe one: several nodes are not emptied at the same time by
// mistake. Who types it is told what would be down, and how to do it one after the other.
func TestDrainEmptiesOneNodeAfterTheOther(t *testing.T) {
	d := newDesk(t)
	namespace := d.Namespace(t)
	for _, node := range []string{"a", "b"} {
		d.create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-" + node, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "uid", Controller: new(true)},
			}},
			Spec: corev1.PodSpec{NodeName: d.Pool() + "-" + node, Containers: []corev1.Container{{Name: "app", Image: "app"}}},
		})
	}
	d.create(object(t, maintenance(d.Pool()+"-plan", "nodeSelector:\n  nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: ["+d.Pool()+"]}]}]\nstage: Idle")))
	const down = ". These applications would be down, because all of their pods leave without a PodDisruptionBudget: POOL-ns ReplicaSet/web (2 pods).\n"
	const up = ". Applications with several pods stay up by ready replicas elsewhere or PodDisruptionBudgets.\n"
	const instead = "Drain one node after the other with this loop, where WORK is your command:\n  for node in %s; do kubectl ebbtide drain $node --kubeconfig CONFIG%s && WORK && " +
		"kubectl ebbtide complete $node --kubeconfig CONFIG || break; done\nTo drain all at the same time, add --all-at-once\n"
	for args, want := range map[string]string{
		"drain POOL-b POOL-a --reason kernel": "2 nodes would be drained at the same time: POOL-a and POOL-b" + down + fmt.Sprintf(instead, "POOL-a POOL-b", " --reason=kernel"),
		"drain POOL-c POOL-a":                 "2 nodes would be drained at the same time: POOL-a and POOL-c" + up + fmt.Sprintf(instead, "POOL-a POOL-c", ""),
		"drain -l pool=POOL,node!=c --in-place 5m": "2 nodes would be drained at the same time: POOL-a and POOL-b" + down +
			fmt.Sprintf(instead, "$(kubectl get nodes -l 'pool=POOL,node!=c' -o name --kubeconfig CONFIG)", " --in-place=5m0s"),
		"drain nm/POOL-plan": "3 nodes would be drained at the same time: POOL-a, POOL-b and POOL-c" + down + fmt.Sprintf(instead, "POOL-a POOL-b POOL-c", ""),
	} {
		got := d.run(strings.Fields(args)...)
		got.ErrOut = strings.ReplaceAll(got.ErrOut, strings.ReplaceAll(namespace, d.Pool(), "POOL"), "POOL-ns")
		if diff := cmp.Diff(printed{Code: 1, ErrOut: "error: " + want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
	if is := d.maintenances(); len(is) != 1 || is[0].Spec.Stage != v1alpha1.StageIdle {
		t.Errorf("something was done: %v", is)
	}
	if got := d.run("drain", "nm/POOL-plan", "--all-at-once", "--wait=false"); got.Code != 0 || d.maintenances()[0].Spec.Stage != v1alpha1.StageDrain {
		t.Errorf("with the flag: %+v", got)
	}
}

// losing runs two pods with data on node a, one of which nobody makes again.
func (d *desk) losing(namespace string) {
	d.t.Helper()
	for _, name := range []string{"debug", "web"} {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1.PodSpec{
				NodeName: d.Pool() + "-a", Containers: []corev1.Container{{Name: "app", Image: "app"}},
				Volumes: []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			},
		}
		if name == "web" {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "uid", Controller: new(true)}}
		}
		d.create(p)
	}
}

// What is told of them.
const (
	lostData  = "data lost with its pod: POOL-ns/debug (emptyDir volume cache), POOL-ns/web (emptyDir volume cache)\n"
	lostOwner = "not recreated: POOL-ns/debug\n"
	emptyDir  = "--delete-emptydir-data has no effect: emptyDir volumes are always deleted with their pods\n"
	force     = "--force has no effect: pods without a controller are always evicted, within their PodDisruptionBudgets, and not recreated\n"
)

// kubectl drain refuses to lose data until somebody agrees. Here it is said before anything
// is asked for, unless somebody has agreed by kubectl's flag.
func TestDrainSaysWhatIsLost(t *testing.T) {
	d := newDesk(t)
	namespace := d.Namespace(t)
	d.losing(namespace)
	for flags, want := range map[string]string{
		"": lostData + lostOwner, "--delete-emptydir-data": emptyDir + lostOwner, "--force": force + lostData, "--delete-emptydir-data --force": emptyDir + force,
	} {
		got := d.run(append([]string{"drain", "POOL-a", "--dry-run=client"}, strings.Fields(flags)...)...)
		if diff := cmp.Diff(want, strings.ReplaceAll(got.ErrOut, strings.ReplaceAll(namespace, d.Pool(), "POOL"), "POOL-ns")); diff != "" || got.Code != 0 {
			t.Errorf("%s: exit code %d (-want +got):\n%s", flags, got.Code, diff)
		}
	}
	if got := d.run("drain", "POOL-b", "--dry-run=client"); got.ErrOut != "" || got.Code != 0 {
		t.Errorf("of another node: %q", got.ErrOut)
	}
	reader, _ := d.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}})
	if got := d.run("drain", "POOL-a", "--dry-run=client", "--as", reader); got.Code != 0 || !strings.HasPrefix(got.ErrOut, "cannot determine whether pods lose data: pods is forbidden: ") {
		t.Errorf("who may not see pods: %+v", got)
	}
}

// Who refuses loss has nothing asked for where there is any, or where that is unknown.
func TestDrainRefusesLoss(t *testing.T) {
	d := newDesk(t)
	namespace := d.Namespace(t)
	d.losing(namespace)
	lossless := "error: refused because of the losses above; drain without --refuse-loss to accept them\n"
	got := d.run("drain", "POOL-a", "--refuse-loss", "--force", "--delete-emptydir-data")
	got.ErrOut = strings.ReplaceAll(got.ErrOut, strings.ReplaceAll(namespace, d.Pool(), "POOL"), "POOL-ns")
	if want := (printed{Code: 1, ErrOut: emptyDir + force + lostData + lostOwner + lossless}); got != want || len(d.maintenances()) > 0 {
		t.Errorf("what loses data is refused by %+v, want %+v, and nothing done: %v", got, want, d.maintenances())
	}
	d.create(object(t, maintenance(d.Pool()+"-plan", "nodeSelector:\n  nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: ["+d.Pool()+"-a]}]}]\nstage: Idle")))
	if got := d.run("drain", "nm/POOL-plan", "--refuse-loss"); got.Code != 1 || d.maintenances()[0].Spec.Stage != v1alpha1.StageIdle {
		t.Errorf("what is planned and loses data is refused by %+v", got)
	}
	if got := d.run("drain", "POOL-b", "--dry-run=client", "--refuse-loss"); got.ErrOut != "" || got.Code != 0 {
		t.Errorf("of another node: %+v", got)
	}
	reader, _ := d.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}})
	if got := d.run("drain", "POOL-a", "--dry-run=client", "--refuse-loss", "--as", reader); got.Code != 4 || !strings.HasPrefix(got.ErrOut, "error: cannot determine whether pods lose data, as --refuse-loss requires: ") {
		t.Errorf("who may not see pods, and refuses loss: %+v", got)
	}
}
