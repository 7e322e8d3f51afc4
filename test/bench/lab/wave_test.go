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

// wavesSeen are three waves of two pods each of which so much was seen.
func wavesSeen(inTurn bool, all []seen) *waves {
	w := newWaves(newLoad("run", Work{Apps: 3, Pods: 2, InTurn: inTurn}))
	for _, app := range []string{"app-1", "app-2", "app-3"} {
		w.add(seen{app: app}.pod())
		w.add(seen{app: app}.pod())
	}
	start := time.Now()
	for _, s := range all {
		w.see(s.pod(), start.Add(time.Duration(s.ms)*time.Millisecond), s.what == "gone")
	}
	return w
}

func TestGapsAreFromTheLastPodOfAWaveToTheFirstOfTheNext(t *testing.T) {
	tests := map[string]struct {
		inTurn bool
		seen   []seen
		want   []time.Duration
	}{
		"three waves": {true, []seen{
			{0, "app-1", "told"},
			{5, "app-1", "told"},
			{9, "app-2", "changed"},
			{10, "app-1", "gone"},
			{20, "app-1", "gone"},
			{50, "app-2", "told"},
			{60, "app-2", "gone"},
			{70, "app-2", "gone"},
			{75, "app-3", "gone"},
			{80, "app-3", "gone"},
		}, []time.Duration{30 * time.Millisecond, 5 * time.Millisecond}},
		"no order": {false, []seen{{0, "app-2", "told"}, {10, "app-1", "gone"}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gaps, err := wavesSeen(test.inTurn, test.seen).gaps()
			if diff := cmp.Diff(test.want, gaps); diff != "" || err != nil {
				t.Errorf("error %v, gaps (-want +got):\n%s", err, diff)
			}
		})
	}
}
