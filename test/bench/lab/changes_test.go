package lab

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestAWatchThatTheAPIServerEndsGoesOnWhereItEnded(t *testing.T) {
	var from []string
	first, second := watch.NewFakeWithChanSize(1, false), watch.NewFakeWithChanSize(1, false)
	first.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "41"}})
	first.Stop()
	second.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b", ResourceVersion: "42"}})
	l := &Lab{Client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			all := &client.ListOptions{}
			all.ApplyOptions(options)
			from = append(from, all.AsListOptions().ResourceVersion)
			if len(from) == 1 {
				return first, nil
			}
			return second, nil
		},
	}).Build()}

	changes, err := l.watch(t.Context(), &corev1.NodeList{})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.stop()
	for _, want := range []string{"a", "b"} {
		event, err := changes.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if node, isNode := event.Object.(*corev1.Node); !isNode || node.Name != want {
			t.Errorf("change of %v, want node %s", event.Object, want)
		}
	}
	if len(from) != 2 || from[1] != "41" {
		t.Errorf("watched from the versions %q, want the second to be 41", from)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := changes.next(stopped); err == nil {
		t.Error("who gives up waiting is told of a change")
	}
}
