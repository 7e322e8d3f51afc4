package blocker_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
)

func blocking(object string, pods int32, since *metav1.Time, message string) v1alpha1.Blocker {
	return v1alpha1.Blocker{Type: v1alpha1.BlockerPDBExhausted, Object: v1alpha1.BlockerObject{Kind: "PodDisruptionBudget", Name: object}, PodCount: pods, SinceTime: since, Message: message}
}

func TestSumIsByTypeAndObject(t *testing.T) {
	input := []v1alpha1.Blocker{
		blocking("b", 1, ago(time.Minute), "newer"),
		blocking("a", 1, nil, "unknown since"),
		blocking("b", 2, ago(time.Hour), "older"),
		blocking("c", 1, ago(time.Second), "alone"),
		{Type: v1alpha1.BlockerEvictionError, Object: v1alpha1.BlockerObject{Kind: "PodDisruptionBudget", Name: "b"}, PodCount: 1, Message: "another type"},
	}
	want := []v1alpha1.Blocker{
		blocking("b", 3, ago(time.Hour), "older"),
		{Type: v1alpha1.BlockerEvictionError, Object: v1alpha1.BlockerObject{Kind: "PodDisruptionBudget", Name: "b"}, PodCount: 1, Message: "another type"},
		blocking("a", 1, nil, "unknown since"),
		blocking("c", 1, ago(time.Second), "alone"),
	}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		random.Shuffle(len(input), func(i, j int) { input[i], input[j] = input[j], input[i] })
		if diff := cmp.Diff(want, blocker.Sum(input)); diff != "" {
			t.Fatalf("order %d: sum (-want +got):\n%s", seed, diff)
		}
	}
}

func TestSumKeepsThoseOfMostPods(t *testing.T) {
	var input []v1alpha1.Blocker
	for i := range 12 {
		input = append(input, blocking(fmt.Sprintf("budget-%02d", i), int32(i+1), nil, "no"))
	}
	got := blocker.Sum(input)
	if len(got) != 10 || got[0].Object.Name != "budget-11" || got[9].Object.Name != "budget-02" {
		t.Errorf("got %d blockers from %s to %s, want 10 from budget-11 to budget-02", len(got), got[0].Object.Name, got[len(got)-1].Object.Name)
	}
	if blocker.Sum(nil) != nil {
		t.Error("nothing sums up to something")
	}
}

// Who names a budget that is gone by now and who still saw it mean the same one.
func TestSumIgnoresUnknownUID(t *testing.T) {
	named, seen := blocking("web", 1, ago(time.Hour), "gone"), blocking("web", 2, ago(time.Minute), "seen")
	seen.Object.UID = "4c5d"
	got := blocker.Sum([]v1alpha1.Blocker{seen, named})
	if want := []v1alpha1.Blocker{blocking("web", 3, ago(time.Hour), "gone")}; !cmp.Equal(want, got) {
		t.Errorf("sum (-want +got):\n%s", cmp.Diff(want, got))
	}
}
