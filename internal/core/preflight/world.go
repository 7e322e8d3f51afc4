package preflight

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/surge"
)

func (r *run) carryOut(d *maintenance.Decision) (asked []*pod) {
	for i := range d.Maintenances {
		m := *d.Maintenances[i].Maintenance
		m.Status = d.Maintenances[i].Status
		r.world.Maintenances[r.maintenances[m.Name]] = &m
	}
	for i := range d.Nodes {
		one := &d.Nodes[i]
		r.mark(one)
		for n := range one.Delete {
			r.expire(one.Delete[n].Pod)
		}
		for _, request := range one.Evacuate {
			p := r.pod(request.Pod)
			p.evacuation = r.ask(request)
			asked = append(asked, p)
			r.touch(p)
		}
	}
	return asked
}

// mark cordons a node, and announces what happens to it.
func (r *run) mark(d *maintenance.NodeDecision) {
	at, exists := r.nodes[d.Node.Name]
	if !exists || d.Cordon == nil && len(d.Conditions)+len(d.Retract) == 0 {
		return
	}
	node := *r.world.Nodes[at]
	r.world.Nodes[at] = &node
	if change := d.Cordon; change != nil {
		node.Spec.Unschedulable = change.Unschedulable
		node.Annotations = annotated(node.Annotations, map[string]string{
			v1alpha1.CordonAnnotation: change.Ledger, v1alpha1.DrainTargetsAnnotation: change.DrainTargets,
			v1alpha1.HandedOverByAnnotation: change.HandedOverBy,
		})
		if change.Unschedulable {
			r.placer.Cordon(node.Name)
		}
	}
	node.Status.Conditions = slices.DeleteFunc(slices.Clone(node.Status.Conditions), func(c corev1.NodeCondition) bool {
		return slices.Contains(d.Retract, c.Type) ||
			slices.ContainsFunc(d.Conditions, func(changed corev1.NodeCondition) bool { return changed.Type == c.Type })
	})
	node.Status.Conditions = append(node.Status.Conditions, d.Conditions...)
}

// annotated sets annotations; an empty value removes one.
func annotated(annotations, changes map[string]string) map[string]string {
	changed := maps.Clone(annotations)
	if changed == nil {
		changed = map[string]string{}
	}
	maps.Copy(changed, changes)
	maps.DeleteFunc(changed, func(key, value string) bool { _, of := changes[key]; return of && value == "" })
	return changed
}

func (r *run) ask(request maintenance.Request) *v1alpha1.Evacuation {
	if request.Evacuation != nil {
		joined := *request.Evacuation
		joined.Finalizers = append(slices.Clone(joined.Finalizers), v1alpha1.NodeMaintenanceInstigator)
		return &joined
	}
	evacuators, _ := surge.Evacuators(request.Pod, r.owners.deploymentOf(request.Pod), r.surgeMode())
	made := evacuation.New(request.Pod, v1alpha1.NodeMaintenanceInstigator, evacuators)
	made.CreationTimestamp = metav1.NewTime(r.world.Now)
	return made
}

func (r *run) surgeMode() surge.Mode {
	if r.Surge == "" {
		return surge.Annotated
	}
	return r.Surge
}

func (r *run) evacuating() (asked []*pod) {
	for _, node := range slices.Sorted(maps.Keys(r.world.Pods)) {
		for _, one := range r.world.Pods[node] {
			if one.Evacuation == nil || len(evacuation.Instigators(one.Evacuation)) == 0 || r.known(one.Object) {
				continue
			}
			p := r.pod(one.Object)
			p.evacuation = one.Evacuation
			asked = append(asked, p)
		}
	}
	return asked
}

func (r *run) pod(object *corev1.Pod) *pod {
	if known := r.pods[object]; known != nil {
		return known
	}
	p := &pod{object: object, shown: object, budgets: r.budgets.of(object)}
	r.pods[object] = p
	return p
}

func (r *run) known(object *corev1.Pod) bool { return r.pods[object] != nil }

func (r *run) touch(p *pod) {
	r.moved = true
	r.touched[p.object.Spec.NodeName] = true
}

// tidy takes those that have left from the world, and shows the others as they are.
func (r *run) tidy() {
	for node := range r.touched {
		left := make([]maintenance.Pod, 0, len(r.world.Pods[node]))
		for _, one := range r.world.Pods[node] {
			p := r.pods[one.Object]
			switch {
			case p == nil:
				left = append(left, one)
			case p.state != gone:
				r.pods[p.shown] = p
				left = append(left, maintenance.Pod{Object: p.shown, Evacuation: p.evacuation})
			}
		}
		r.world.Pods[node] = left
	}
	clear(r.touched)
}

func (r *run) node(name string) *corev1.Node {
	if at, exists := r.nodes[name]; exists {
		return r.world.Nodes[at]
	}
	return nil
}
