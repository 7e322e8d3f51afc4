package scenario

import (
	"os"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// The single replica of docs/applications.md stays up under a drain.
func TestTheDeploymentOfTheDocumentsStaysUp(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/applications.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)<!-- example: drained in test/scenario -->\n```yaml\n(.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("docs/applications.md has no example of a Deployment")
	}
	w := newWorld(t)
	nodes, letNew := w.oldAndNew()
	w.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
	}})
	w.cluster.Apply(t, w.ns, string(example[1]))
	w.awaitServing(app{name: "web", replicas: 1})
	endpoints := w.cluster.WatchEndpoints(t, w.key("web"))
	letNew()

	w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])

	w.awaitDrained("upgrade")
	w.awaitPods("one pod on the new node", func(pods []corev1.Pod) bool {
		return readyPods(1)(pods) && pods[0].Spec.NodeName == nodes[1]
	})
	endpoints.AssertAtLeast(t, 1)
}
