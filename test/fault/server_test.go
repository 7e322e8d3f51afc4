package fault_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/fault"
)

func aPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: "one"}}
}

// pods are those of node one, as the index has them.
func pods(t *testing.T, c client.Client) []string {
	t.Helper()
	var list corev1.PodList
	if err := c.List(t.Context(), &list, client.MatchingFields{kube.PodNodeField: "one"}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

func TestOnlyTheManagerIsRefused(t *testing.T) {
	t.Parallel()
	s := fault.NewServer(t, aPod("a"), aPod("b"))
	guard := errors.New("the webhook of somebody else says no")
	var requests []string
	s.Refuse = func(request string) error {
		requests = append(requests, request)
		if request == "delete Pod a" {
			return guard
		}
		return nil
	}
	if got := pods(t, s.Manager); len(got) != 2 {
		t.Errorf("the manager sees %v, want both pods", got)
	}
	if err := s.Manager.Delete(t.Context(), aPod("a")); !errors.Is(err, guard) {
		t.Errorf("the manager's deletion ends with %v, want %v", err, guard)
	}
	if err := s.Delete(t.Context(), aPod("b")); err != nil {
		t.Errorf("somebody else's deletion ends with %v", err)
	}
	if diff := cmp.Diff([]string{"a"}, pods(t, s)); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"list Pod", "delete Pod a"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"delete Pod a"}, s.Writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestTheLastWriteOfAKilledManagerHappens(t *testing.T) {
	t.Parallel()
	s := fault.NewServer(t, aPod("a"), aPod("b"), aPod("c"))
	s.KillAfter(2)
	for _, step := range []struct {
		pod  string
		want error
	}{{"a", nil}, {"b", fault.ErrKilled}, {"c", fault.ErrKilled}} {
		if err := s.Manager.Delete(t.Context(), aPod(step.pod)); !errors.Is(err, step.want) {
			t.Errorf("deleting %s ends with %v, want %v", step.pod, err, step.want)
		}
	}
	if diff := cmp.Diff([]string{"c"}, pods(t, s)); diff != "" || !s.Killed() {
		t.Errorf("killed %v, pods (-want +got):\n%s", s.Killed(), diff)
	}
	s.Revive()
	if err := s.Manager.Delete(t.Context(), aPod("c")); err != nil {
		t.Errorf("the next manager's deletion ends with %v", err)
	}
	if diff := cmp.Diff([]string{"delete Pod a", "delete Pod b", "delete Pod c"}, s.Writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
