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
	"ebbtide.dev/ebbtide/test/golden"
)

func TestShutdownIsManageableWithEnoughDelay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*Snapshot)
		want string
	}{
		"with time enough": {func(*Snapshot) {}, "Drain true ShutdownWaits"},
		"with systemd's default": {
			func(s *Snapshot) { s.Logind.Delay = 5 * time.Second }, "Drain false DelayTooShort",
		},
		"with a second less than a grace period": {
			func(s *Snapshot) { s.Logind.Delay = 29 * time.Second }, "Drain false DelayTooShort",
		},
		"with a grace period": {
			func(s *Snapshot) { s.Logind.Delay = 30 * time.Second }, "Drain true ShutdownWaits",
		},
		"with a delay that logind does not take": {
			func(s *Snapshot) { s.Logind.DelayFault = "read-only file system" }, "Drain false DelayRefused",
		},
		"beside the kubelet's own": {
			func(s *Snapshot) { s.Logind.Kubelet, s.Logind.Delay = true, 2*time.Minute },
			"Report false KubeletShutdown",
		},
		"without logind":              {func(s *Snapshot) { s.Logind = Logind{Fault: "reach D-Bus: no such file"} }, "Off false NoLogind"},
		"where it is only to be told": {func(s *Snapshot) { s.Wish = v1alpha1.ShutdownModeReport }, "Report false ReportOnly"},
		"where it is left alone":      {func(s *Snapshot) { s.Wish = v1alpha1.ShutdownModeOff }, "Off false SwitchedOff"},
		"where nobody may hold it up": {func(s *Snapshot) { s.Refusal = "take an inhibitor: denied" }, "Drain false InhibitorRefused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWorld(t).Snapshot
			test.edit(&s)
			d := Decide(s)
			golden.Message(t, d.Manageable.Reason, d.Manageable.Message)
			if got := fmt.Sprintf("%s %t %s", d.Status.Mode, d.Manageable.OK, d.Manageable.Reason); got != test.want {
				t.Errorf("it is %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestMessageNamesPodsThatWereLeft(t *testing.T) {
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
	for _, left := range [][]*corev1.Pod{append(append(done, static...), agent...), append(pods("a"), done...), pods("a", "b"), pods("a", "b", "c", "d", "e", "f", "g")} {
		s := newWorld(t).Snapshot
		s.Pods = left
		golden.Message(t, s.left())
	}
}

// A drain of somebody else alone is no sign of Ebbtide's manager.
func TestShutdownIsNotHeldForOtherDrains(t *testing.T) {
	w := newWorld(t)
	setCondition(w.Node, corev1.NodeCondition{Type: v1alpha1.NodeDrainInProgress, Status: corev1.ConditionTrue, Reason: "KubectlDrainStarted"})
	w.prepare("reboot")
	w.after(10 * time.Second)
	if got := w.told[len(w.told)-1]; !strings.HasSuffix(got, "NodeShutdownReleased") || w.Held {
		t.Errorf("it is held: %t, and told is %q", w.Held, got)
	}
}
