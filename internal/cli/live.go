package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/view"
)

// live is one picture of maintenances and their nodes on a terminal, and the stories of
// those that a person chooses. It is a state that messages change, and that is drawn; it
// asks nobody itself.
type live struct {
	*following
	ctx      context.Context
	terminal terminal
	// asks answers why, with the pods of a node that were asked to leave.
	asks func(context.Context, question) story

	sight         sight
	list          view.StatusList
	rows          []row
	width, height int
	cursor        scroll
	// stories are those that are open, the last one on top.
	stories []*story
	// end is why the picture is over; errLeft if a person has left it.
	end error
}

// row is a line of the picture: a maintenance, or one of its nodes.
type row struct {
	status *view.Status
	node   *view.Node
}

// scroll is a place in a list of which a screen shows a part.
type scroll struct{ at, top int }

// story is why something is as it is, in lines, and the pods that can be asked about.
type story struct {
	about  question
	lines  []string
	pods   []view.Pod
	wait   bool
	cursor scroll
}

// errLeft says that a person has left the picture.
var errLeft = errors.New("left")

// Messages of the picture.
type (
	storyMsg struct {
		of *story
		is story
	}
	lostMsg struct{ error }
	tickMsg struct{}
)

// tick is how often times are drawn anew.
const tick = time.Second

// picture shows the maintenances on the terminal until they are drained, or somebody
// leaves.
func (f *following) picture(ctx context.Context, reached client.WithWatch, clock *clock) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	model := &live{following: f, ctx: ctx, terminal: terminalOf(f.Out), asks: f.asker(reached, clock)}
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(f.In), tea.WithOutput(f.Out), tea.WithoutSignalHandler())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		err := f.watcher.run(ctx, func(s sight) error {
			if s.listed {
				f.synchronise(clock)
				s.manager, f.away = f.ofManager(ctx, reached, clock, f.ebbtide())
			}
			program.Send(s)
			return nil
		})
		program.Send(lostMsg{err})
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

// asker answers questions about what is shown.
func (f *following) asker(reached client.WithWatch, clock *clock) func(context.Context, question) story {
	return func(ctx context.Context, q question) story {
		a := &asker{reached: reached, clock: clock}
		lines, err := a.ask(ctx, q, q.namespace)
		told := story{about: q, lines: append(lines, a.notes...)}
		if err != nil {
			told.lines = append(told.lines, f.inWords(err).Error())
		}
		if q.kind == kindNode {
			r := &reading{reached: reached}
			r.Pods = map[string][]view.Leaving{}
			r.leavingOf(ctx, q.name)
			told.pods = view.PodsOf(r.Pods[q.name], a.blockers)
		}
		return told
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
		return l, l.look(m)
	case lostMsg:
		return l, l.over(m.error)
	case tickMsg:
		if l.sight.maintenances != nil {
			l.show(l.see(l.sight))
		}
		return l, ticking()
	case storyMsg:
		m.of.lines, m.of.pods, m.of.wait = m.is.lines, m.is.pods, false
	case tea.KeyPressMsg:
		return l, l.press(m.String())
	}
	return l, nil
}

// look takes note of what has been seen.
func (l *live) look(s sight) tea.Cmd {
	if l.sight = s; s.listed {
		l.manager = s.manager
	}
	if s.lost != nil {
		return nil
	}
	list := l.see(s)
	l.show(list)
	if err := l.conclude(list); err != nil {
		return l.over(err)
	}
	return nil
}

func (l *live) over(why error) tea.Cmd {
	if l.end == nil {
		l.end = why
	}
	return tea.Quit
}

// groups are the order of nodes in the picture: it changes only when a state does, so that
// lines stay where they are while pods leave.
var groups = map[view.State]int{view.StateBlocked: 0, view.StateDraining: 1, view.StateWaiting: 2, view.StateReturned: 4, view.StateDrained: 4}

func groupOf(node *view.Node) int {
	if group, known := groups[node.State]; known {
		return group
	}
	return 3
}

// show makes the rows of what was seen. The cursor stays with its row.
func (l *live) show(list view.StatusList) {
	var chosen question
	if l.cursor.at < len(l.rows) {
		chosen = l.rows[l.cursor.at].question()
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
			if a, b := groupOf(a), groupOf(b); a != b {
				return a - b
			}
			return compareNames(a.Name, b.Name)
		})
		for _, node := range nodes {
			l.rows = append(l.rows, row{one, node})
		}
	}
	if at := slices.IndexFunc(l.rows, func(r row) bool { return r.question() == chosen }); at >= 0 {
		l.cursor.at = at
	}
}

// compareNames has node-2 before node-10.
func compareNames(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	if a < b {
		return -1
	}
	return 1
}

// question is what a row is asked about.
func (r row) question() question {
	if r.node == nil {
		return question{kind: kindMaintenance, name: r.status.Name}
	}
	return question{kind: kindNode, name: r.node.Name}
}

// press does what a key asks for.
func (l *live) press(key string) tea.Cmd {
	switch key {
	case "q", "ctrl+c", "ctrl+d":
		return l.over(errLeft)
	case "esc", "left", "h", "backspace":
		if n := len(l.stories); n > 0 {
			l.stories = l.stories[:n-1]
		}
		return nil
	case "enter", "right", "l":
		return l.open()
	}
	on, of := &l.cursor, len(l.rows)
	if top := l.top(); top != nil {
		on, of = &top.cursor, top.length(l.width)
	}
	on.move(key, of, max(1, l.height-frameLines))
	return nil
}

// move moves a place in a list of so many lines.
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

// part is which lines of a list a page shows, so that the place is on it.
func (s *scroll) part(of, page int) (first, last int) {
	s.at = max(0, min(s.at, of-1))
	s.top = max(min(s.top, s.at), s.at-page+1)
	s.top = max(0, min(s.top, of-page))
	return s.top, min(of, s.top+page)
}

func (l *live) top() *story {
	if len(l.stories) == 0 {
		return nil
	}
	return l.stories[len(l.stories)-1]
}

// open asks about what the cursor is on.
func (l *live) open() tea.Cmd {
	var about question
	switch top := l.top(); {
	case top == nil && l.cursor.at < len(l.rows):
		about = l.rows[l.cursor.at].question()
	case top != nil:
		pod, on := top.pod(l.width)
		if !on {
			return nil
		}
		about = question{kind: kindPod, namespace: pod.Namespace, name: pod.Name}
	default:
		return nil
	}
	opened := &story{about: about, wait: true}
	l.stories = append(l.stories, opened)
	return func() tea.Msg { return storyMsg{opened, l.asks(l.ctx, about)} }
}
