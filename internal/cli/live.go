package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/view"
)

// live is the model of the live view: maintenances with their nodes, and explanations of chosen ones.
type live struct {
	*following
	ctx      context.Context
	terminal terminal
	// explain explains a subject, with the evacuating pods of a node.
	explain func(context.Context, subject) explanation

	sight         sight
	list          view.StatusList
	rows          []row
	width, height int
	cursor        scroll
	// open are the open explanations, the last one on top.
	open []*explanation
	// end explains why the view has ended; errQuit if the user quit.
	end error
}

// row is a line of the view: a maintenance, or one of its nodes.
type row struct {
	status *view.Status
	node   *view.Node
}

// scroll is the selected line of a list, and the first visible one.
type scroll struct{ at, top int }

// explanation explains a subject in lines, and lists the pods that can be explained next.
type explanation struct {
	about     subject
	lines     []string
	pods      []view.Pod
	isLoading bool
	cursor    scroll
}

// errQuit is the error of a user who quit the view.
var errQuit = errors.New("quit")

// Messages of the view.
type (
	explainedMsg struct {
		of     *explanation
		result explanation
	}
	endedMsg struct{ error }
	tickMsg  struct{}
)

// tick is the interval at which times are redrawn.
const tick = time.Second

// liveView shows the maintenances on the terminal until they are drained or the user quits.
func (f *following) liveView(ctx context.Context, reached client.WithWatch, clock *clock) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	model := &live{following: f, ctx: ctx, terminal: terminalOf(f.Out), explain: f.explainer(reached, clock)}
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(f.In), tea.WithOutput(f.Out), tea.WithoutSignalHandler())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		err := f.watcher.run(ctx, func(s sight) error {
			if s.listed {
				f.synchronise(clock)
				s.manager, f.away = f.managerNotes(ctx, reached, clock, f.ebbtide())
			}
			program.Send(s)
			return nil
		})
		program.Send(endedMsg{err})
	}()
	_, err := program.Run()
	cause := context.Cause(ctx)
	cancel(nil)
	<-watched
	for i := range model.list.Items {
		one := &model.list.Items[i]
		fmt.Fprintln(f.Out, f.stamp(), one.Name+": "+one.Brief())
	}
	switch {
	case model.end != nil:
		return model.end
	case cause != nil:
		return cause
	}
	return err
}

// explainer returns a function that explains the shown subjects.
func (f *following) explainer(reached client.WithWatch, clock *clock) func(context.Context, subject) explanation {
	return func(ctx context.Context, s subject) explanation {
		a := &asker{reached: reached, clock: clock}
		lines, err := a.ask(ctx, s, s.namespace)
		found := explanation{about: s, lines: append(lines, a.notes...)}
		if err != nil {
			found.lines = append(found.lines, f.inWords(err).Error())
		}
		if s.kind == kindNode {
			r := &reading{reached: reached}
			r.Pods = map[string][]view.Leaving{}
			r.readLeavingOf(ctx, s.name)
			found.pods = view.PodsOf(r.Pods[s.name], a.blockers)
		}
		return found
	}
}

// Init implements tea.Model.
func (l *live) Init() tea.Cmd { return ticking() }

func ticking() tea.Cmd { return tea.Tick(tick, func(time.Time) tea.Msg { return tickMsg{} }) }

// Update implements tea.Model.
func (l *live) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case tea.WindowSizeMsg:
		l.width, l.height = m.Width, m.Height
	case sight:
		return l, l.update(m)
	case endedMsg:
		return l, l.quit(m.error)
	case tickMsg:
		if l.sight.maintenances != nil {
			l.show(l.statuses(l.sight))
		}
		return l, ticking()
	case explainedMsg:
		m.of.lines, m.of.pods, m.of.isLoading = m.result.lines, m.result.pods, false
	case tea.KeyPressMsg:
		return l, l.press(m.String())
	}
	return l, nil
}

// update takes a new state of the maintenances.
func (l *live) update(s sight) tea.Cmd {
	if l.sight = s; s.listed {
		l.manager = s.manager
	}
	if s.lost != nil {
		return nil
	}
	list := l.statuses(s)
	l.show(list)
	if err := l.conclude(list); err != nil {
		return l.quit(err)
	}
	return nil
}

func (l *live) quit(why error) tea.Cmd {
	if l.end == nil {
		l.end = why
	}
	return tea.Quit
}

// groups orders the nodes by state, so that lines do not move while pods leave.
var groups = map[view.State]int{view.StateBlocked: 0, view.StateDraining: 1, view.StateWaiting: 2, view.StateReturned: 4, view.StateDrained: 4}

func groupOf(node *view.Node) int {
	if group, known := groups[node.State]; known {
		return group
	}
	return 3
}

// show sets the rows. The cursor stays on its row.
func (l *live) show(list view.StatusList) {
	var chosen subject
	if l.cursor.at < len(l.rows) {
		chosen = l.rows[l.cursor.at].subject()
	}
	l.list, l.rows = list, nil
	for i := range list.Items {
		one := &list.Items[i]
		l.rows = append(l.rows, row{status: one})
		nodes := make([]*view.Node, len(one.Nodes))
		for n := range one.Nodes {
			nodes[n] = &one.Nodes[n]
		}
		slices.SortStableFunc(nodes, func(a, b *view.Node) int {
			// node-2 comes before node-10.
			return cmp.Or(groupOf(a)-groupOf(b), len(a.Name)-len(b.Name), strings.Compare(a.Name, b.Name))
		})
		for _, node := range nodes {
			l.rows = append(l.rows, row{one, node})
		}
	}
	if at := slices.IndexFunc(l.rows, func(r row) bool { return r.subject() == chosen }); at >= 0 {
		l.cursor.at = at
	}
}

// subject returns the object of a row.
func (r row) subject() subject {
	if r.node == nil {
		return subject{kind: kindMaintenance, name: r.status.Name}
	}
	return subject{kind: kindNode, name: r.node.Name}
}

// press handles a key.
func (l *live) press(key string) tea.Cmd {
	switch key {
	case "q", "ctrl+c", "ctrl+d":
		return l.quit(errQuit)
	case "esc", "left", "h", "backspace":
		if n := len(l.open); n > 0 {
			l.open = l.open[:n-1]
		}
		return nil
	case "enter", "right", "l":
		return l.explainSelected()
	}
	on, of := &l.cursor, len(l.rows)
	if top := l.top(); top != nil {
		on, of = &top.cursor, top.length(l.width)
	}
	on.move(key, of, max(1, l.height-frameLines))
	return nil
}

// move handles a key in a list of so many lines.
func (s *scroll) move(key string, of, page int) {
	switch key {
	case "up", "k":
		s.at--
	case "down", "j":
		s.at++
	case "pgup", "ctrl+b":
		s.at -= page
	case "pgdown", "ctrl+f", "space":
		s.at += page
	case "home", "g":
		s.at = 0
	case "end", "G":
		s.at = of - 1
	}
	s.at = max(0, min(s.at, of-1))
}

// visible returns the lines of a list that a page shows.
func (s *scroll) visible(of, page int) (first, last int) {
	s.at = max(0, min(s.at, of-1))
	s.top = max(min(s.top, s.at), s.at-page+1)
	s.top = max(0, min(s.top, of-page))
	return s.top, min(of, s.top+page)
}

func (l *live) top() *explanation {
	if len(l.open) == 0 {
		return nil
	}
	return l.open[len(l.open)-1]
}

// explainSelected opens the explanation of the selected line.
func (l *live) explainSelected() tea.Cmd {
	var about subject
	switch top := l.top(); {
	case top == nil && l.cursor.at < len(l.rows):
		about = l.rows[l.cursor.at].subject()
	case top != nil:
		pod, on := top.pod(l.width)
		if !on {
			return nil
		}
		about = subject{kind: kindPod, namespace: pod.Namespace, name: pod.Name}
	default:
		return nil
	}
	opened := &explanation{about: about, isLoading: true}
	l.open = append(l.open, opened)
	return func() tea.Msg { return explainedMsg{opened, l.explain(l.ctx, about)} }
}
