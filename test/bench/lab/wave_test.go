package lab

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// seen is what the watch tells of a pod, so many milliseconds after the beginning.
type seen struct {
	ms   int
	app  string
	what string
}

func (s seen) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: s.app + "-pod", Labels: map[string]string{appLabel: s.app}}}
	if s.what == "told" {
		pod.DeletionTimestamp = new(metav1.Now())
	}
	return pod
}

func TestGapsAreFromTheLastPodOfAWaveToTheFirstOfTheNext(t *testing.T) {
	tests := map[string]struct {
		inTurn    bool
		seen      []seen
		want      []time.Duration
		wantError string
	}{
		"three waves": {true, []seen{
			{0, "app-1", "told"}, {5, "app-1", "told"}, {9, "app-2", "changed"}, {10, "app-1", "gone"}, {20, "app-1", "gone"},
			{50, "app-2", "told"}, {60, "app-2", "gone"}, {70, "app-2", "gone"},
			{75, "app-3", "gone"}, {80, "app-3", "gone"},
		}, []time.Duration{30 * time.Millisecond, 5 * time.Millisecond}, ""},
		"a pod that is told before its turn": {true, []seen{
			{0, "app-1", "told"}, {10, "app-1", "gone"}, {15, "app-2", "told"}, {20, "app-1", "gone"},
		}, nil, "pod app-2-pod of wave 2 was told to go before 1 pods of wave 1 had gone"},
		"a wave that is left out": {true, []seen{
			{0, "app-1", "gone"}, {10, "app-1", "gone"}, {15, "app-3", "told"},
		}, nil, "pod app-3-pod of wave 3 was told to go before 2 pods of wave 2 had gone"},
		"no order": {false, []seen{{0, "app-2", "told"}, {10, "app-1", "gone"}}, nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWaves(newLoad("run", Work{Apps: 3, Pods: 2, InTurn: test.inTurn}))
			for _, app := range []string{"app-1", "app-2", "app-3"} {
				w.add(seen{app: app}.pod())
				w.add(seen{app: app}.pod())
			}
			start := time.Now()
			for _, s := range test.seen {
				w.see(s.pod(), start.Add(time.Duration(s.ms)*time.Millisecond), s.what == "gone")
			}

			gaps, err := w.gaps()
			if diff := cmp.Diff(test.want, gaps); diff != "" {
				t.Errorf("gaps (-want +got):\n%s", diff)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.wantError {
				t.Errorf("error = %q, want %q", got, test.wantError)
			}
		})
	}
}
