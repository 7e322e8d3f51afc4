package scenario

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bound gives a user that nobody has used before a ClusterRole, in the namespace of this world
// or in the whole cluster.
func (w *world) bound(role string, everywhere bool) (user string) {
	w.t.Helper()
	user, _ = w.cluster.User(w.t)
	meta := metav1.ObjectMeta{Name: user + "-" + role}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
	if !everywhere {
		meta.Namespace = w.ns
		binding = &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
	}
	w.create(binding)
	w.t.Cleanup(func() { w.must("take the role", client.IgnoreNotFound(w.client.Delete(w.ctx, binding))) })
	return user
}

// A colleague with the role for it drains a node, is told all there is to know, and gives it
// back. An application's owner is told why a pod of theirs does not leave.
func TestPeopleHaveRolesOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two")
	w.pods(nodes[0], pod{name: "web"}, pod{name: "db", neverEvicted: true})
	colleague, owner := w.bound("ebbtide-drain", true), w.bound("view", false)
	name := w.forgetting("kernel")

	w.eventually("the colleague to have the role", func() (bool, any) {
		got := w.plugin(w.ctx, "plan", nodes[0], "--as", colleague)
		return got.Code == 2 && !strings.Contains(got.Out, "\nUnknown:"), got
	})
	if got := w.plugin(w.ctx, "drain", nodes[0], "--name", name, "--wait=false", "--as", colleague); got.Code != 0 {
		t.Fatalf("the colleague may not drain: %+v", got)
	}
	w.eventually("the owner to be told", func() (bool, any) {
		got := w.plugin(w.ctx, "why", "db", "-n", w.ns, "--as", owner)
		return got.Code == 0 && strings.Contains(got.Out, "Its eviction is refused"), got
	})
	w.deleteBudget("db")
	if got := w.plugin(w.ctx, "watch", name, "--as", colleague); got.Code != 0 {
		t.Errorf("the colleague may not watch: %+v", got)
	}
	if got := w.plugin(w.ctx, "complete", nodes[0], "--as", colleague); got.Code != 0 || got.ErrOut != "" {
		t.Errorf("the colleague may not give the node back: %+v", got)
	}
}
