package api

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/version"
	"ebbtide.dev/ebbtide/test/cluster"
)

// Whoever asks for the version learns that of the managers, too, and which of them leads.
func TestTheVersionOfTheManager(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	namespace := c.Namespace(t)
	says := func(want string, args ...string) {
		t.Helper()
		out, told, code := plugin(t, c, "version", append(args, "--namespace", namespace)...)
		if want = version.Line("kubectl-ebbtide") + "\n" + want; out != want || code != 0 || (told == "") != (len(args) == 0) {
			t.Errorf("exit code %d, %q and\n%s, want\n%s", code, told, out, want)
		}
	}
	says("no pods of the manager in namespace " + namespace + "\n")
	for name, number := range map[string]string{"ebbtide-a": "0.1.0", "ebbtide-b": "0.1.0", "ebbtide-c": "0.2.0"} {
		pod := podOn(namespace, "", name, "manager")
		pod.Labels = map[string]string{"app.kubernetes.io/name": "ebbtide", "app.kubernetes.io/version": number}
		must(t, c.Client.Create(t.Context(), pod))
	}
	must(t, c.Client.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: kube.LeaderLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("ebbtide-b_5d4f"), RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}))
	says("manager 0.1.0: 2 pods in namespace " + namespace + "\nmanager 0.2.0: 1 pod in namespace " + namespace + "\nebbtide-b leads\n")
	nobody, _ := c.User(t)
	says("", "--as", nobody)
}
