package lifecycle

import (
	"strings"
	"testing"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/lifecycle"
	"k8s.io/kubernetes/pkg/apis/lifecycle/validation"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// The validation sees what is wrong: a controller that erred would be noticed above.
func TestInvalidInputIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		errs func(*lifecyclev1alpha1.EvictionStatus)
		want string
	}{
		"a turn is taken away": {func(s *lifecyclev1alpha1.EvictionStatus) {
			s.TargetResponders[0].State, s.TargetResponders[1].State = "Inactive", "Active"
		}, "this responder must reach a final state"},
		"it is handed over too early": {func(s *lifecyclev1alpha1.EvictionStatus) {
			s.TargetResponders[0].State, s.TargetResponders[1].State = "Interrupted", "Active"
			s.Responders[1].StartTime = &metav1.Time{Time: noon}
		}, "must stay Active because the responder is in progress"},
		"our clock is a minute ahead": {func(s *lifecyclev1alpha1.EvictionStatus) {
			s.Responders[0].HeartbeatTime = &metav1.Time{Time: noon.Add(time.Minute)}
		}, "must be set to the present time"},
		"somebody has no turn and reports": {func(s *lifecyclev1alpha1.EvictionStatus) {
			s.Responders[1].Message = new("here I am")
		}, "field is immutable"},
		"a turn goes on behind the end": {func(s *lifecyclev1alpha1.EvictionStatus) {
			s.Conditions[0].Status = metav1.ConditionTrue
		}, "the eviction request has finished processing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			writes := 0
			s := newStage(t, 1, &writes)
			s.skew = 0
			for s.decide() {
			}
			status := *s.evictions[0].Status.DeepCopy()
			tc.errs(&status)
			if faults := s.validate(s.evictions[0], status); len(faults) == 0 || !strings.Contains(faults.ToAggregate().Error(), tc.want) {
				t.Errorf("%v, want it to be refused with %q", faults.ToAggregate(), tc.want)
			}
		})
	}
}

// FuzzSort compares the order of responders with that of the API server.
func FuzzSort(f *testing.F) {
	f.Add(int32(1000), "b.example.com/x", int32(1000), "a.example.com/x", int32(100), "example.com/x")
	f.Add(int32(1), "a.b/c", int32(1), "a.b", int32(1), "b/c/d")
	f.Fuzz(func(t *testing.T, p1 int32, n1 string, p2 int32, n2 string, p3 int32, n3 string) {
		// The API takes 0 to 100000.
		bound := func(p int32) *int32 { return new(int32(uint32(p) % 100_001)) }
		ours := []lifecyclev1alpha1.TargetResponder{{Name: n1, Priority: bound(p1)}, {Name: n2, Priority: bound(p2)}, {Name: n3, Priority: bound(p3)}}
		var theirs []lifecycle.TargetResponder
		for _, one := range ours {
			theirs = append(theirs, lifecycle.TargetResponder{Name: one.Name, Priority: one.Priority})
		}
		evictionrequest.Sort(ours)
		validation.SortTargetResponders(theirs)
		for i := range ours {
			if ours[i].Name != theirs[i].Name {
				t.Fatalf("we have %v, the API server %v", ours, theirs)
			}
		}
	})
}
