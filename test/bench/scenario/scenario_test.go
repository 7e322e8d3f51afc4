package scenario

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/test/bench/report"
)

func TestCollectRotatesAndKeepsWhatFailed(t *testing.T) {
	var order []string
	var progress strings.Builder
	options := Options{Contenders: []string{"a", "b", "c"}, Repeat: 2, Progress: &progress}
	runs := options.collect(func(contender string, run *report.Run) error {
		order = append(order, contender)
		if contender == "b" && len(order) > 3 {
			return errors.New("stuck")
		}
		run.Values = append(run.Values, float64(len(order)))
		return nil
	})

	if got := fmt.Sprint(order); got != "[a b c b c a]" {
		t.Errorf("order = %s, want that of the second round to begin with b", got)
	}
	want := []report.Run{
		{Contender: "a", Values: []float64{1, 6}},
		{Contender: "b", Values: []float64{2}, Failure: "round 2: stuck"},
		{Contender: "c", Values: []float64{3, 5}},
	}
	if diff := cmp.Diff(want, runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if !strings.Contains(progress.String(), "round 2: b FAILED: round 2: stuck") {
		t.Errorf("the failure is not told:\n%s", progress.String())
	}
}
