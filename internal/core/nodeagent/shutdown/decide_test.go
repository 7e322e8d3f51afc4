package shutdown

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

func TestWhatCanBeDoneAboutAShutdown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*Snapshot)
		want string
	}{
		"with time enough": {func(*Snapshot) {}, "Drain true ShutdownWaits: a shutdown waits for up to 1m0s until the pods have left."},
		"with systemd's default": {
			func(s *Snapshot) { s.Logind.Delay = 5 * time.Second }, "Drain false DelayTooShort: 5s is too short to drain; set --shutdown-delay",
		},
		"with a second less than a grace period": {
			func(s *Snapshot) { s.Logind.Delay = 29 * time.Second }, "Drain false DelayTooShort: 29s is too short to drain; set --shutdown-delay",
		},
		"with a grace period": {
			func(s *Snapshot) { s.Logind.Delay = 30 * time.Second }, "Drain true ShutdownWaits: a shutdown waits for up to 30s until the pods have left.",
		},
		"with a delay that logind does not take": {
			func(s *Snapshot) { s.Logind.DelayFault = "read-only file system" }, "Drain false DelayRefused: read-only file system",
		},
		"beside the kubelet's own": {
			func(s *Snapshot) { s.Logind.Kubelet, s.Logind.Delay = true, 2*time.Minute },
			"Report false KubeletShutdown: the kubelet has its own graceful shutdown on (2m0s), which stops all pods at once. " +
				"Set its shutdownGracePeriod to 0 to let Ebbtide drain, or use shutdown -r +15.",
		},
		"without logind":              {func(s *Snapshot) { s.Logind = Logind{Fault: "reach D-Bus: no such file"} }, "Off false NoLogind: nobody tells of shutdowns: reach D-Bus: no such file"},
		"where it is only to be told": {func(s *Snapshot) { s.Wish = v1alpha1.ShutdownModeReport }, "Report false ReportOnly: the agent runs with --shutdown=report."},
		"where it is left alone":      {func(s *Snapshot) { s.Wish = v1alpha1.ShutdownModeOff }, "Off false SwitchedOff: the agent runs with --shutdown=off."},
		"where nobody may hold it up": {func(s *Snapshot) { s.Refusal = "take an inhibitor: denied" }, "Drain false InhibitorRefused: take an inhibitor: denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWorld(t).Snapshot
			test.edit(&s)
			d := Decide(s)
			if got := fmt.Sprintf("%s %t %s: %s", d.Status.Mode, d.Manageable.OK, d.Manageable.Reason, d.Manageable.Message); got != test.want {
				t.Errorf("it is %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestWhichPodsWereLeft(t *testing.T) {
	t.Parallel()
	pods := func(names ...string) (all []*corev1.Pod) {
		for _, name := range names {
			all = append(all, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
		}
		return all
	}
	done, static, agent := pods("done"), pods("static"), pods("agent")
	done[0].Status.Phase = corev1.PodSucceeded
	podclass.MakeMirror(static[0], "node")
	agent[0].Labels = map[string]string{v1alpha1.DrainLabel: "skip"}
	for want, left := range map[string][]*corev1.Pod{
		"no pods were left":                append(append(done, static...), agent...),
		"1 pod was left: shop/a":           append(pods("a"), done...),
		"2 pods were left: shop/a, shop/b": pods("a", "b"),
		"7 pods were left: shop/a, shop/b, shop/c, shop/d, shop/e and 2 more": pods("a", "b", "c", "d", "e", "f", "g"),
	} {
		s := newWorld(t).Snapshot
		if s.Pods = left; s.left() != want {
			t.Errorf("it says %q, want %q", s.left(), want)
		}
	}
}

// A drain of somebody else alone is no sign of Ebbtide's manager.
func TestADrainOfSomebodyElseHoldsUpNothing(t *testing.T) {
	w := newWorld(t)
	setCondition(w.Node, corev1.NodeCondition{Type: v1alpha1.NodeDrainInProgress, Status: corev1.ConditionTrue, Reason: "KubectlDrainStarted"})
	w.prepare("reboot")
	w.after(10 * time.Second)
	const want = "released after 10s without a sign of Ebbtide's manager; 1 pod was left: shop/db-0"
	if got := w.told[len(w.told)-1]; !strings.HasSuffix(got, want) || w.Held {
		t.Errorf("it is held: %t, and told is %q, want %q", w.Held, got, want)
	}
}
