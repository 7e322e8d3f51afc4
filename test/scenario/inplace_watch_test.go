package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/test/cluster"
)

// outages notes, from outside, which replicas of applications are down: not ready,
// on their way out, or missing.
type outages struct {
	t        *testing.T
	follower *cluster.Follower
	// up are the pods that serve, by application.
	up map[string]map[string]bool
	// most are the replicas that were down at once.
	most    map[string]int
	history []string
}

// watchOutages begins to watch applications whose replicas are all ready.
func (w *world) watchOutages(apps ...string) *outages {
	w.t.Helper()
	o := &outages{t: w.t, up: map[string]map[string]bool{}, most: map[string]int{}}
	for _, app := range apps {
		o.up[app] = map[string]bool{}
	}
	list := &corev1.PodList{}
	w.must("list pods", w.client.List(w.ctx, list, client.InNamespace(w.ns)))
	for i := range list.Items {
		o.note(watch.Added, &list.Items[i])
	}
	clear(o.most)
	o.follower = w.cluster.Follow(w.t, list, func(kind watch.EventType, object client.Object) { o.note(kind, object.(*corev1.Pod)) }, client.InNamespace(w.ns))
	return o
}

func (o *outages) note(kind watch.EventType, p *corev1.Pod) {
	app := p.Labels["name"]
	up, watched := o.up[app]
	if !watched {
		return
	}
	delete(up, p.Name)
	if kind != watch.Deleted && available(p) {
		up[p.Name] = true
	}
	o.most[app] = max(o.most[app], replicas-len(up))
	o.history = append(o.history, fmt.Sprintf("%s %s on %s, deleted %t: up are %v",
		time.Now().Format("15:04:05.000"), p.Name, p.Spec.NodeName, kind == watch.Deleted, slices.Sorted(maps.Keys(up))))
}

// assertOneAtATime ends the watch. It wants each application to have lost a replica,
// and never two at once.
func (o *outages) assertOneAtATime() {
	o.t.Helper()
	o.follower.Stop(o.t)
	for app := range o.up {
		if o.most[app] != 1 {
			o.t.Errorf("%d replicas of %s were down at once, want 1:\n%s", o.most[app], app, strings.Join(o.history, "\n"))
		}
	}
}

// lockings notes who has the locks of budgets.
type lockings struct {
	t        *testing.T
	follower *cluster.Follower
	// holders are those that each budget had, one after the other; "" is nobody.
	holders map[string][]string
}

// watchLocks begins to watch all budgets of this world.
func (w *world) watchLocks() *lockings {
	w.t.Helper()
	l := &lockings{t: w.t, holders: map[string][]string{}}
	list := &policyv1.PodDisruptionBudgetList{}
	w.must("list budgets", w.client.List(w.ctx, list, client.InNamespace(w.ns)))
	l.follower = w.cluster.Follow(w.t, list, func(_ watch.EventType, object client.Object) {
		l.note(object.(*policyv1.PodDisruptionBudget))
	}, client.InNamespace(w.ns))
	return l
}

func (l *lockings) note(b *policyv1.PodDisruptionBudget) {
	all := l.holders[b.Name]
	if holder := holderOf(b); len(all) == 0 || all[len(all)-1] != holder {
		l.holders[b.Name] = append(all, holder)
	}
}

// assertHolders ends the watch and wants these holders of a lock, one after the
// other.
func (l *lockings) assertHolders(want map[string][]string) {
	l.t.Helper()
	l.follower.Stop(l.t)
	for name, holders := range want {
		had := l.holders[name]
		if len(had) > 0 && had[0] == "" {
			had = had[1:] // something else was changed before
		}
		if diff := cmp.Diff(holders, had); diff != "" {
			l.t.Errorf("holders of the lock of budget %s (-want +got):\n%s", name, diff)
		}
	}
}

// holderOf is the holder of the lock that a budget bears, "" for none, and the
// whole annotation if it has no holder.
func holderOf(b *policyv1.PodDisruptionBudget) string {
	text := b.Annotations[v1alpha1.LockAnnotation]
	var lock budget.Lock
	if err := json.Unmarshal([]byte(text), &lock); err != nil || lock.Holder == "" {
		return text
	}
	return lock.Holder
}
