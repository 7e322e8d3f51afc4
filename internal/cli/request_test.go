package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/fault"
)

// office is a cluster whose nodes are drained by people who type commands.
type office struct {
	t      *testing.T
	api    *fault.Server
	stderr strings.Builder
}

func newOffice(t *testing.T, nodes ...string) *office {
	var objects []client.Object
	for _, name := range nodes {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "a"}}})
	}
	return &office{t: t, api: fault.NewServer(t, objects...)}
}

// typed is what a person types. Nodes is a list, or labels if it has a "=".
type typed struct {
	nodes, name string
}

// drain creates a maintenance, or continues one, and returns its name.
func (f *office) drain(c typed) (string, error) {
	f.t.Helper()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	streams.ErrOut = &f.stderr
	o := &maintainOptions{IOStreams: streams, stage: v1alpha1.StageDrain, verb: "drain", reached: f.api.Manager, Name: c.name}
	o.connection.flags = pflag.NewFlagSet("", pflag.ContinueOnError)
	o.labels = labels.Everything()
	if strings.Contains(c.nodes, "=") {
		o.Selector, o.Yes = c.nodes, true
		o.labels, _ = labels.Parse(c.nodes)
	} else {
		o.Names = strings.Fields(c.nodes)
	}
	m, picked, err := o.planned(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	err = o.start(f.t.Context(), m, picked)
	return m.Name, err
}

func (f *office) wantDrain(c typed, want string) {
	f.t.Helper()
	if got, err := f.drain(c); err != nil || got != want {
		f.t.Errorf("drain %q is NodeMaintenance %q (%v), want %q", c.nodes, got, err, want)
	}
}

// change changes a maintenance as its controller or another person does.
func (f *office) change(name string, edit func(*v1alpha1.NodeMaintenance)) {
	f.t.Helper()
	m := &v1alpha1.NodeMaintenance{}
	if err := f.api.Get(f.t.Context(), client.ObjectKey{Name: name}, m); err != nil {
		f.t.Fatal(err)
	}
	edit(m)
	if err := f.api.Update(f.t.Context(), m); err != nil {
		f.t.Fatal(err)
	}
}

func (f *office) complete(name string) {
	f.change(name, func(m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageComplete })
}

func (f *office) count() int {
	list := &v1alpha1.NodeMaintenanceList{}
	if err := f.api.List(f.t.Context(), list); err != nil {
		f.t.Fatal(err)
	}
	return len(list.Items)
}

func TestRepeatedDrainContinuesTheSameMaintenance(t *testing.T) {
	t.Parallel()
	f := newOffice(t, "node-7", "node-8")
	for _, c := range []typed{{nodes: "node-7"}, {nodes: "node-7 node-8"}, {nodes: "pool=a"}} {
		first, err := f.drain(c)
		if err != nil || strings.Contains(f.stderr.String(), "already exists") {
			t.Errorf("drain %s: %v, %s", c.nodes, err, f.stderr.String())
		}
		f.wantDrain(c, first)
		if note := "NodeMaintenance " + first + " already exists with the same request\n"; !strings.HasSuffix(f.stderr.String(), note) {
			t.Errorf("drain %s again prints %s", c.nodes, f.stderr.String())
		}
		f.stderr.Reset()
	}
	first, _ := f.drain(typed{nodes: "node-7 node-8"})
	f.wantDrain(typed{nodes: "node-8 node-7"}, first)
	if got := f.count(); got != 3 {
		t.Errorf("there are %d NodeMaintenances, want 3", got)
	}
}

func TestDrainAfterCompletionTakesTheNextNumber(t *testing.T) {
	t.Parallel()
	f := newOffice(t, "node-7")
	c := typed{nodes: "node-7"}
	f.wantDrain(c, "drain-node-7")
	f.complete("drain-node-7")
	f.wantDrain(c, "drain-node-7-2")
	f.wantDrain(c, "drain-node-7-2")
	f.change("drain-node-7-2", func(m *v1alpha1.NodeMaintenance) { m.Finalizers = []string{"example.com/held"} })
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "drain-node-7-2"}}
	if err := f.api.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	f.wantDrain(c, "drain-node-7-3")
}

// A node may be called as another maintenance is.
func TestDrainLeavesMaintenanceOfOtherNodesAlone(t *testing.T) {
	t.Parallel()
	f := newOffice(t, "node-7", "node-7-2")
	f.wantDrain(typed{nodes: "node-7-2"}, "drain-node-7-2")
	f.wantDrain(typed{nodes: "node-7"}, "drain-node-7")
	f.complete("drain-node-7")
	f.wantDrain(typed{nodes: "node-7"}, "drain-node-7-3")
	f.wantDrain(typed{nodes: "node-7-2"}, "drain-node-7-2")
}

func TestDifferentRequestForTheSameNodeIsRefused(t *testing.T) {
	t.Parallel()
	for field, edit := range map[string]func(*v1alpha1.NodeMaintenance){
		"":                    func(m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageIdle },
		"spec.drainDepth":     func(m *v1alpha1.NodeMaintenance) { m.Spec.DrainDepth = v1alpha1.PodTypeDefault },
		"spec.inPlace":        func(m *v1alpha1.NodeMaintenance) { m.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60} },
		"spec.deadline":       func(m *v1alpha1.NodeMaintenance) { m.Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(noon)} },
		"spec.completeWhen":   func(m *v1alpha1.NodeMaintenance) { m.Spec.CompleteWhen = &v1alpha1.CompleteWhen{NewBoot: true} },
		"spec.completedNodes": func(m *v1alpha1.NodeMaintenance) { m.Spec.CompletedNodes = []v1alpha1.NodeReference{{Name: "any"}} },
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			f := newOffice(t, "node-7")
			f.wantDrain(typed{nodes: "node-7"}, "drain-node-7")
			f.change("drain-node-7", edit)
			want := "NodeMaintenance drain-node-7 already exists: "
			if field != "" {
				want = "NodeMaintenance drain-node-7 already exists with another " + field + ": "
			}
			if _, err := f.drain(typed{nodes: "node-7"}); err == nil || !strings.HasPrefix(err.Error(), want) || f.count() != 1 {
				t.Errorf("error %v, want %q, and %d NodeMaintenances", err, want, f.count())
			}
			f.wantDrain(typed{nodes: "node-7", name: "mine"}, "mine")
		})
	}
}

// A maintenance that --name names does not give way.
func TestNamedMaintenanceThatIsCompleteIsRefused(t *testing.T) {
	t.Parallel()
	f := newOffice(t, "node-7")
	f.wantDrain(typed{nodes: "node-7", name: "mine"}, "mine")
	f.complete("mine")
	if _, err := f.drain(typed{nodes: "node-7", name: "mine"}); err == nil || !strings.Contains(err.Error(), "delete it with") {
		t.Errorf("error %v", err)
	}
}

func TestSameDeadlineAndDowntimeAreTheSameRequest(t *testing.T) {
	t.Parallel()
	created, half := noon, 30*time.Minute
	until := func(at time.Time, action v1alpha1.DeadlineAction) *v1alpha1.Deadline {
		return &v1alpha1.Deadline{Time: metav1.NewTime(at), OnDeadline: action}
	}
	stored := until(created.Add(half), v1alpha1.DeadlineDelete)
	stored.DeleteBeforeSeconds = 60
	long := *stored
	long.DeleteBeforeSeconds = 600
	for name, tt := range map[string]struct {
		known, wanted *v1alpha1.Deadline
		relative      time.Duration
		want          bool
	}{
		"the same time":              {stored, until(created.Add(half), v1alpha1.DeadlineDelete), 0, true},
		"another time":               {stored, until(created.Add(time.Hour), v1alpha1.DeadlineDelete), 0, false},
		"another action":             {stored, until(created.Add(half), v1alpha1.DeadlineGiveBack), 0, false},
		"the default action":         {until(noon, v1alpha1.DeadlineWait), until(noon, ""), 0, true},
		"another lead":               {&long, until(created.Add(half), v1alpha1.DeadlineDelete), 0, false},
		"30m again, later":           {stored, until(created.Add(time.Hour), v1alpha1.DeadlineDelete), half, true},
		"20m instead":                {stored, until(created.Add(half), v1alpha1.DeadlineDelete), 20 * time.Minute, false},
		"30m, and it was postponed":  {until(created.Add(time.Hour), ""), until(created.Add(half), ""), half, false},
		"none any more":              {stored, nil, 0, false},
		"one that was not there yet": {nil, until(noon, ""), 0, false},
		"none":                       {nil, nil, 0, true},
	} {
		known, wanted := &v1alpha1.NodeMaintenance{}, &v1alpha1.NodeMaintenance{}
		known.CreationTimestamp = metav1.NewTime(created.Add(2 * time.Second))
		known.Spec.InPlace = &v1alpha1.InPlace{
			ExpectedDowntimeSeconds: 60, LockTimeoutSeconds: 300, OnLockTimeout: v1alpha1.LockTimeoutEvict, ExpectedRebootCount: new(int32(1)),
		}
		wanted.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60}
		known.Spec.Deadline, wanted.Spec.Deadline = tt.known, tt.wanted
		o := &maintainOptions{relative: tt.relative}
		if got := o.isSameRequest(known, wanted); got != tt.want {
			t.Errorf("%s: the same is %t, want %t", name, got, tt.want)
		}
		known.Spec.InPlace.ExpectedDowntimeSeconds = 61
		if o.isSameRequest(known, wanted) {
			t.Errorf("%s: another downtime is the same", name)
		}
	}
}

func TestUsualNamesAreShortAndUnique(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 60)
	names := map[string]bool{}
	for _, nodes := range [][]string{
		{"node-7"},
		{"ip-192-168-100-200.ap-southeast-1.compute.internal"},
		{long + "1"},
		{long + "2"},
		{strings.Repeat("a", 40) + "." + long},
		{"a", "b"},
		{"a", "c"},
		{"a", "b", "c"},
	} {
		name := usualName("drain", nodes, nodesNamed(nodes))
		if names[name] || len(name) > 60 || strings.Contains(name, ".-") {
			t.Errorf("%v: %q is %d long, known %t", nodes, name, len(name), names[name])
		}
		names[name] = true
	}
	if !names["drain-node-7"] || !names["drain-ip-192-168-100-200.ap-southeast-1.compute.internal"] {
		t.Errorf("names are %v", names)
	}
}

// Somebody creates or completes a maintenance of this name at the same time.
func TestNameThatIsTakenMeanwhileIsChosenAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		meanwhile func(*office, *v1alpha1.NodeMaintenance)
		want      string
	}{
		"the same request": {func(*office, *v1alpha1.NodeMaintenance) {}, "drain-node-7"},
		"it is complete":   {func(_ *office, m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageComplete }, "drain-node-7-2"},
		"another node":     {func(_ *office, m *v1alpha1.NodeMaintenance) { m.Spec.NodeSelector = nodesNamed([]string{"x"}) }, "drain-node-7-2"},
	} {
		f := newOffice(t, "node-7")
		raced := false
		f.api.Refuse = func(request string) error {
			if raced || request != "create NodeMaintenance drain-node-7" {
				return nil
			}
			raced = true
			theirs := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "drain-node-7"}}
			theirs.Spec.Stage, theirs.Spec.NodeSelector = v1alpha1.StageDrain, nodesNamed([]string{"node-7"})
			tt.meanwhile(f, theirs)
			if err := f.api.Create(t.Context(), theirs); err != nil {
				t.Error(err)
			}
			return nil
		}
		f.wantDrain(typed{nodes: "node-7"}, tt.want)
		if !raced {
			t.Errorf("%s: nothing was created meanwhile", name)
		}
	}
}

func TestDrainStopsWhenAllNumbersAreTaken(t *testing.T) {
	t.Parallel()
	f := newOffice(t, "node-7")
	for n := 1; n <= maxNumber; n++ {
		m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("drain-node-7-%d", n)}}
		if n == 1 {
			m.Name = "drain-node-7"
		}
		m.Spec.Stage = v1alpha1.StageComplete
		if err := f.api.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.drain(typed{nodes: "node-7"}); err == nil || !strings.Contains(err.Error(), "NodeMaintenances drain-node-7 to drain-node-7-100 exist") {
		t.Errorf("error %v", err)
	}
}

// A user who may create maintenances but not read them gets the usual name.
func TestDrainWithoutTheRightToReadUsesTheUsualName(t *testing.T) {
	t.Parallel()
	f := newOffice(t, "node-7")
	f.api.Refuse = func(request string) error {
		if strings.HasPrefix(request, "get NodeMaintenance") {
			return apierrors.NewForbidden(v1alpha1.SchemeGroupVersion.WithResource("nodemaintenances").GroupResource(), "any", nil)
		}
		return nil
	}
	f.wantDrain(typed{nodes: "node-7"}, "drain-node-7")
}
