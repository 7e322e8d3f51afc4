package step

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/patience"
)

// The user of a kubeconfig may no longer evict. That is what the refusals say while there is no
// other kubeconfig; when there is one it is used, whoever else is still allowed to watch.
func TestAKubeconfigThatIsRotatedIsUsedAfterARefusal(t *testing.T) {
	t.Parallel()
	w := startRemotes(t, workload.Options{Pace: &quick})
	name, _ := w.User(t, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}})
	c := w.remote(t, "east", w.kubeconfig(t, func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		user.Impersonate, user.ImpersonateGroups = name, []string{"system:authenticated"}
	}))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
	if err := w.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	first := w.connect(t, c)
	first.Evictions.Want(usingMachine, []*corev1.Pod{pod}, nil)
	patience.Eventually(t, "the eviction to be forbidden", func(context.Context) (string, bool) {
		said := first.Evictions.Refusals(usingMachine)[pod.UID].Message
		return said, strings.Contains(said, `cannot create resource "pods/eviction"`)
	})
	if again := w.connect(t, c); again != first {
		t.Error("it was connected anew by the same kubeconfig")
	}

	w.secret(t, "east", map[string][]byte{"value": w.kubeconfig(t, same)})

	patience.Eventually(t, "the other kubeconfig to be used", func(ctx context.Context) (string, bool) {
		connection, err := w.registry.Use(c, usingMachine)
		if err != nil || connection == first {
			return fmt.Sprint("connection of before, or ", err), false
		}
		connection.Evictions.Want(usingMachine, []*corev1.Pod{pod}, nil)
		err = w.Client.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{})
		return fmt.Sprint(err, connection.Evictions.Refusals(usingMachine)), apierrors.IsNotFound(err)
	})
}
