package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/test/goal"
)

// newPicture is a picture of so many columns and lines at noon.
func newPicture(width, height int) *live {
	f := &following{connection: &connection{}, clock: func() time.Time { return noon }}
	f.before, f.over = map[string]*view.Status{}, map[string]bool{}
	l := &live{following: f, ctx: context.Background()}
	l.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return l
}

// keys presses keys and returns what the last one has asked for.
func (l *live) keys(keys ...string) (asked tea.Msg) {
	codes := map[string]tea.Key{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "down": {Code: tea.KeyDown}, "up": {Code: tea.KeyUp},
		"end": {Code: tea.KeyEnd}, "home": {Code: tea.KeyHome}, "pgdown": {Code: tea.KeyPgDown}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
		"q": {Code: 'q', Text: "q"}, "j": {Code: 'j', Text: "j"},
	}
	for _, key := range keys {
		asked = nil
		if _, command := l.Update(tea.KeyPressMsg(codes[key])); command != nil {
			asked = command()
		}
	}
	return asked
}

// draws wants this frame; blanks at the ends of lines do not count.
func (l *live) draws(t *testing.T, want string) {
	t.Helper()
	lines := strings.Split(l.View().Content, "\n")
	for i := range lines {
		if ansi.StringWidth(lines[i]) > l.width {
			t.Errorf("line %d is %d wide: %q", i, ansi.StringWidth(lines[i]), lines[i])
		}
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	if len(lines) > l.height {
		t.Errorf("%d lines on %d", len(lines), l.height)
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), strings.Join(lines, "\n")); diff != "" {
		t.Errorf("frame (-want +got):\n%s", diff)
	}
}

func seen(maintenances ...*v1alpha1.NodeMaintenance) sight { return sight{maintenances: maintenances} }

func TestThePictureOfADrain(t *testing.T) {
	t.Parallel()
	l := newPicture(100, 12)
	l.draws(t, `
Loading…
    NODE  PROGRESS      LEFT  BLOCKED  BLOCKERS OR STATUS








12:00:00Z
up, down: select   enter: explain   q: quit (the drain continues)`)
	first := kernelUpdate()
	first.Status.NodeStatuses[0].PodsEvacuating = 14
	l.Update(seen(first))
	l.Update(seen(kernelUpdate()))
	l.draws(t, `
1 NodeMaintenance, 2/5 nodes drained, 12 pods left, 3 blocked
    NODE    PROGRESS      LEFT  BLOCKED  BLOCKERS OR STATUS
> kernel-update: stage Drain, blocked, 2 of 5 nodes drained, 12 pods left, 3 blocked (New kernel)
    node-1  ######......     7        3  PDBExhausted PodDisruptionBudget/shop/web, PDBLocked PodDi…
    node-5  ............     1        -  Evacuating
    node-2  ............     4        -  Waiting for node node-1.
    node-3  ############     -        -  Drained.
    node-4  ############     -        -  Drained.


12:00:00Z
up, down: select   enter: explain   q: quit (the drain continues)`)
	l.Update(sight{maintenances: l.sight.maintenances, lost: errors.New("connection refused")})
	l.Update(tea.WindowSizeMsg{Width: 60, Height: 7})
	l.keys("end")
	l.draws(t, `
1 NodeMaintenance, 2/5 nodes drained, 12 pods left, 3 block…
    NODE    PROGRESS      LEFT  BLOCKED  BLOCKERS OR STATUS
    node-2  ............     4        -  Waiting for node n…
    node-3  ############     -        -  Drained.
>   node-4  ############     -        -  Drained.
4-6 of 6 lines. 12:00:00Z connection lost, retrying: connec…
up, down: select   enter: explain   q: quit (the drain cont…`)
}

// A picture that does not change may do so because nobody acts.
func TestPictureShowsThatNoManagerRuns(t *testing.T) {
	t.Parallel()
	l := newPicture(80, 8)
	l.Update(sight{maintenances: []*v1alpha1.NodeMaintenance{maintenanceOf("kernel", "")}, listed: true, manager: []string{"No manager acts."}})
	l.Update(sight{maintenances: l.sight.maintenances})
	if frame := l.View().Content; !strings.Contains(frame, "12:00:00Z No manager acts.") {
		t.Errorf("it is not said in\n%s", frame)
	}
	l.Update(sight{maintenances: l.sight.maintenances, listed: true})
	if frame := l.View().Content; strings.Contains(frame, "No manager acts.") {
		t.Errorf("one acts again, and it is said in\n%s", frame)
	}
}

func TestTheStoryOfANodeAndOfItsPods(t *testing.T) {
	t.Parallel()
	l := newPicture(70, 12)
	l.explain = func(_ context.Context, q subject) explanation {
		if q.kind == kindPod {
			return explanation{lines: []string{q.namespace + "/" + q.name + " is on node node-1.", "Its eviction is refused (PDBExhausted): The budget web needs 11 healthy pods and has 11."}}
		}
		return explanation{lines: []string{"Node " + q.name + " is cordoned."}, pods: []view.Pod{
			{Namespace: "shop", Name: "web-1", State: view.PodRefused, Message: "It is used up."}, {Namespace: "shop", Name: "web-2", State: view.PodTerminating},
		}}
	}
	l.Update(seen(kernelUpdate()))
	answer := l.keys("j", "enter")
	l.draws(t, `
Why node/node-1

  Loading…







12:00:00Z
up, down: scroll   esc: back   q: quit (the drain continues)`)
	l.Update(answer)
	l.draws(t, `
Why node/node-1

> Node node-1 is cordoned.

  Evacuating pods:
  shop/web-1 refused It is used up.
  shop/web-2 terminating



12:00:00Z
up, down: select   enter: explain a pod   esc: back   q: quit (the dr…`)
	if asked := l.keys("enter"); asked != nil {
		t.Errorf("a line that is no pod is asked about: %v", asked)
	}
	l.Update(l.keys("end", "up", "enter"))
	l.draws(t, `
Why pod/shop/web-1

  shop/web-1 is on node node-1.
  Its eviction is refused (PDBExhausted): The budget web needs 11
  healthy pods and has 11.





12:00:00Z
up, down: scroll   esc: back   q: quit (the drain continues)`)
	l.keys("esc", "esc", "esc")
	if frame := l.View().Content; !strings.HasPrefix(frame, "1 NodeMaintenance") || !strings.Contains(frame, ">   node-1") {
		t.Errorf("back at the picture there is\n%s", frame)
	}
}

func TestThePictureEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after func(l *live) tea.Msg
		want  error
	}{
		"somebody leaves":             {func(l *live) tea.Msg { return l.keys("q") }, errQuit},
		"somebody leaves with Ctrl-C": {func(l *live) tea.Msg { return l.keys("ctrl+c") }, errQuit},
		"somebody leaves a story":     {func(l *live) tea.Msg { l.explain = noExplanation; return l.keys("enter", "q") }, errQuit},
		"the cluster refuses":         {func(l *live) tea.Msg { return after(l.Update(endedMsg{errTimeout})) }, errTimeout},
		"all are drained": {func(l *live) tea.Msg {
			m := kernelUpdate()
			m.Status.Conditions[0].Type = v1alpha1.ConditionDrained
			return after(l.Update(seen(m)))
		}, errEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newPicture(80, 10)
			l.Update(seen(kernelUpdate()))
			if message := test.after(l); message != tea.Quit() || !errors.Is(l.end, test.want) {
				t.Errorf("it ends with %v and %v, want %v", message, l.end, test.want)
			}
		})
	}
}

func noExplanation(context.Context, subject) explanation { return explanation{} }

func after(_ tea.Model, command tea.Cmd) tea.Msg { return command() }

// A thousand nodes are scrolled, and lines stay under the cursor when others change.
// ofAThousandNodes is a maintenance that drains them all.
func ofAThousandNodes() *v1alpha1.NodeMaintenance {
	m := maintenanceOf("all", "")
	for i := range 1000 {
		m.Status.NodeStatuses = append(m.Status.NodeStatuses, v1alpha1.NodeMaintenanceNodeStatus{
			NodeRef: v1alpha1.NodeReference{Name: fmt.Sprintf("node-%d", i)}, PodsEvacuating: 20, State: v1alpha1.NodeStateDraining, DrainMessage: "Evacuating",
		})
	}
	m.Status.NodeCount = 1000
	return m
}

// BenchmarkAChangeOfAThousandNodes is a change and the frame that shows it.
func BenchmarkAChangeOfAThousandNodes(b *testing.B) {
	l, m := newPicture(80, 24), ofAThousandNodes()
	goal.Time(b, time.Second)
	for b.Loop() {
		l.Update(seen(m))
		_ = l.View()
	}
}

func TestAThousandNodesAreScrolled(t *testing.T) {
	t.Parallel()
	m, l := ofAThousandNodes(), newPicture(80, 24)
	l.Update(seen(m))
	l.keys("pgdown", "pgdown", "j")
	if frame := l.View().Content; !strings.Contains(frame, ">   node-40 ") || !strings.Contains(frame, "23-42 of 1001 lines. ") {
		t.Errorf("after two pages there is\n%s", frame)
	}
	changed := m.DeepCopy()
	changed.Status.NodeStatuses[900].Blockers = []v1alpha1.Blocker{blockedBy(v1alpha1.BlockerPDBExhausted, "web", 1, "It is used up.", "Wait.")}
	changed.Status.NodeStatuses[3].State, changed.Status.NodeStatuses[3].PodsEvacuating = v1alpha1.NodeStateDrained, 0
	l.Update(seen(changed))
	if frame := l.View().Content; !strings.Contains(frame, ">   node-40 ") {
		t.Errorf("after a change there is\n%s", frame)
	}
	l.keys("home", "j")
	if frame := l.View().Content; !strings.Contains(frame, ">   node-900 ") {
		t.Errorf("the node that is held up is not the first:\n%s", frame)
	}
	for _, size := range [][2]int{{1, 1}, {0, 0}, {10, 3}, {300, 200}} {
		l.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		if lines := strings.Split(l.View().Content, "\n"); len(lines) > max(1, size[1]) {
			t.Errorf("%d lines on a screen of %d", len(lines), size[1])
		}
	}
}
