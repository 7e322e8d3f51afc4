package scenario

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// account is what the ServiceAccount of a kubeconfig and its role are called.
const account = "ebbtide-remote"

// A user of a kubeconfig lacks rights. Each is named when it is missing, nothing
// is skipped for it, and the deletion goes on when it is given.
func TestARightThatIsMissingIsNamedUntilItIsGiven(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	east := w.elsewhere("east")
	rights := []rbacv1.PolicyRule{
		right("", "get,list,watch", "nodes", "pods", "namespaces", "persistentvolumeclaims", "persistentvolumes"),
		right("apps", "get,list,watch", "daemonsets"),
		right("policy", "get,list,watch", "poddisruptionbudgets"),
	}
	role := east.account(rights...)
	east.store(east.accountKubeconfig())
	name := east.found("m", func(m *v1alpha1.Machine) { m.Spec.Deletion.NodeDeletionTimeoutSeconds = new(int32(0)) })
	east.pods(name, pod{name: "web"})
	w.deleteMachines(name)
	give := func(rule rbacv1.PolicyRule) {
		t.Helper()
		east.change(role, role.Name, func() { role.Rules = append(role.Rules, rule) })
	}

	attachments := `cannot list resource "volumeattachments" in API group "storage.k8s.io"`
	east.awaitLost(attachments)
	east.awaitStuck(name, attachments)
	give(right("storage.k8s.io", "get,list,watch", "volumeattachments"))
	east.awaitBack()
	w.awaitStep(name, v1alpha1.ReasonDrainingNode, `cannot patch resource "nodes"`)
	east.awaitPod("web", "still running", running)
	give(right("", "patch", "nodes"))
	w.awaitStep(name, v1alpha1.ReasonDrainingNode, "Pods with eviction failed", `cannot create resource "pods/eviction"`)
	east.awaitPod("web", "still running", running)
	give(right("", "create", "pods/eviction"))
	east.awaitGone("web")
	w.awaitStep(name, v1alpha1.ReasonDeletingNode, `cannot delete resource "nodes"`)
	give(right("", "delete", "nodes"))
	east.awaitNothingOf(name)
}

func right(group, verbs string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: strings.Split(verbs, ",")}
}

// account creates a ServiceAccount with these rights in the whole cluster.
func (r *remote) account(rights ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	r.t.Helper()
	meta := metav1.ObjectMeta{Name: r.ns}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rights}
	r.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.ns, Name: account}})
	for _, object := range []client.Object{role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.ns},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.ns, Name: account}},
	}} {
		r.create(object)
		r.t.Cleanup(func() { r.must("delete "+object.GetName(), r.client.Delete(r.ctx, object)) })
	}
	return role
}

// accountKubeconfig is that of the ServiceAccount, through the proxy.
func (r *remote) accountKubeconfig() []byte {
	r.t.Helper()
	own, err := clientcmd.LoadFromFile(r.cluster.ServiceAccountKubeconfig(r.t, r.ns, account))
	r.must("read the kubeconfig", err)
	token := own.AuthInfos[account].Token
	return r.kubeconfig(func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Token = token })
}
