package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// faulty is a cluster in which the nth list goes wrong as is said, and every watch breaks
// off after one change.
type faulty struct {
	client.WithWatch
	lists  int
	errors map[int]error
}

func (f *faulty) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	f.lists++
	maintenances, _ := list.(*v1alpha1.NodeMaintenanceList)
	maintenances.Items = []v1alpha1.NodeMaintenance{*maintenanceOf("kernel", "")}
	return f.errors[f.lists]
}

func (f *faulty) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	changes := make(chan watch.Event, 1)
	changes <- watch.Event{Type: watch.Modified, Object: maintenanceOf("kernel", "changed")}
	close(changes)
	return watch.NewProxyWatcher(changes), nil
}

func (s sight) inWord() string {
	switch {
	case s.lost != nil:
		return "lost"
	case s.listed:
		return fmt.Sprint(len(s.maintenances), " listed")
	}
	return fmt.Sprint(len(s.maintenances), " ", s.maintenances[0].Spec.Reason)
}

func TestAWatchThatBreaksOffIsBegunAgain(t *testing.T) {
	t.Parallel()
	refused := errors.New("connection refused")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodemaintenances"}, "", errors.New("no more"))
	for name, test := range map[string]struct {
		errors map[int]error
		want   []string
		ends   error
	}{
		"at first there is no answer": {map[int]error{1: refused}, nil, refused},
		"then there is none for a while": {map[int]error{2: refused}, []string{
			"1 listed", "1 changed", "lost", "lost", "1 listed",
		}, errEnded},
		"then it is forbidden": {map[int]error{2: forbidden}, []string{"1 listed", "1 changed", "lost"}, forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []string
			w := &watcher{reached: &faulty{errors: test.errors}}
			err := w.run(t.Context(), func(s sight) error {
				told = append(told, s.inWord())
				if len(told) == len(test.want) && errors.Is(test.ends, errEnded) {
					return errEnded
				}
				return nil
			})
			if !errors.Is(err, test.ends) {
				t.Errorf("it ends with %v, want %v", err, test.ends)
			}
			if diff := cmp.Diff(test.want, told); diff != "" {
				t.Errorf("it sees (-want +got):\n%s", diff)
			}
		})
	}
}
