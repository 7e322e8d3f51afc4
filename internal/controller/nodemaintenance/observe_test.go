package nodemaintenance

import (
	"context"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

func TestAReadThatFailsStopsThePassOverItsGroup(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ unreadable, want string }{
		"maintenances": {unreadable: "get NodeMaintenance upgrade", want: "get v1alpha1.NodeMaintenance upgrade: "},
		"nodes":        {unreadable: "get Node one", want: "get v1.Node one: "},
		"pods":         {unreadable: "list Pod", want: "list the pods of node one: "},
		"evacuations":  {unreadable: "list Evacuation", want: "list evacuations: "},
		"budgets":      {unreadable: "list PodDisruptionBudget", want: "list the budgets of namespace shop: "},
		"agents":       {unreadable: "get NodeAgent one", want: "get v1alpha1.NodeAgent one: "},
		"records":      {unreadable: "get DrainRecord one", want: "get v1alpha1.DrainRecord one: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, aMaintenance("upgrade", "old"), aNode("one"), aPod("shop-1", "one"))
			w.api.Refuse = refuseRead(test.unreadable)
			r := w.manager()
			w.tell(r)

			_, err := r.observeAll(w.t.Context(), &group.Group{Maintenances: []string{"upgrade"}, Nodes: []string{"one"}})

			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("observe = %v, want an error that begins with %q", err, test.want)
			}
			w.reconcile(r)
			if len(w.api.Writes()) != 0 {
				t.Errorf("the pass wrote %v on what it did not know", w.api.Writes())
			}
			if due := w.nextDue(r); due == 0 {
				t.Error("the pass is not tried again")
			}
		})
	}
}

// observeAll reads everything that the pass over a group decides on.
func (r *reconciler) observeAll(ctx context.Context, g *group.Group) (maintenance.Snapshot, error) {
	snapshot, err := r.observe(ctx, g)
	if err == nil {
		err = r.observePods(ctx, g, &snapshot)
	}
	return snapshot, err
}

func TestPodsAreReadOnlyWhereTheyMatter(t *testing.T) {
	t.Parallel()
	idle, cordon := aMaintenance("idle", "old"), aMaintenance("cordon", "old")
	idle.Spec.Stage, cordon.Spec.Stage = v1alpha1.StageIdle, v1alpha1.StageCordon
	w := newWorld(t, idle, cordon, aMaintenance("drain", "new"), aNode("one"), inPool("two", "new"), aPod("a", "one"), aPod("b", "two"))
	both := w.node("two")
	both.Labels["pool"] = "new"
	w.must(w.api.Update(w.t.Context(), both))
	r := w.manager()
	w.reconcile(r)

	if due, concerned := r.podMatters(nil, aPod("c", "one")); len(concerned) > 0 {
		t.Errorf("a pod on a node that is only cordoned asks for a pass over %v in %s", concerned, due)
	}
	if _, concerned := r.podMatters(nil, aPod("c", "two")); len(concerned) != 1 {
		t.Errorf("a pod on a node that drains asks for passes over %v, want its node", concerned)
	}
	r.schedule.touch(w.clock.Now(), 0, group.Node("one"))
	reads := 0
	w.api.Refuse = func(request string) error {
		if request == "list Pod" {
			reads++
		}
		return nil
	}
	if _, err := r.Reconcile(w.t.Context(), group.Node("one")); err != nil {
		t.Fatalf("reconcile: %v", err)
	}
	if reads != 0 {
		t.Errorf("the pods of nodes were read %d times for maintenances in Idle and Cordon", reads)
	}
}
