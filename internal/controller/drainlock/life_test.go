package drainlock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/test/fault"
)

type play struct {
	*world
	alive  *nodes
	budget *keeper
}

// newPlay is a world of records with the pods and the budgets that they name,
// whose manager dies after so many writes; it lives on if they are negative.
func newPlay(t *testing.T, dies int, records ...*v1alpha1.DrainRecord) *play {
	t.Helper()
	var objects []client.Object
	budgets := map[string]*policyv1.PodDisruptionBudget{}
	for _, record := range records {
		objects = append(objects, record, aNode(record.Name))
		for _, needed := range record.Spec.Budgets {
			objects = append(objects, aPod(needed.Name, record.Name))
			budgets[needed.Name] = aBudget(needed.Name, 1)
		}
	}
	for _, b := range budgets {
		objects = append(objects, b)
	}
	p := &play{world: newWorld(t, objects...)}
	p.api.KillAfter(dies)
	p.restart()
	return p
}

func (p *play) restart() { p.alive, p.budget = p.nodes(), p.keeper() }

// step reconciles everything once and returns whether there was a write, and when
// the next one is due. Errors are for the caller to know of: whatever fails is
// reconciled again in the next step.
func (p *play) step() (changed bool, due time.Duration) {
	p.t.Helper()
	before := len(p.api.Writes())
	note := func(result reconcile.Result, err error) {
		if errors.Is(err, fault.ErrKilled) {
			p.api.Revive()
			p.restart()
			changed = true
			return
		}
		if after := result.RequeueAfter; err == nil && after > 0 && (due == 0 || after < due) {
			due = after
		}
	}
	for _, record := range p.records() {
		note(p.alive.Reconcile(p.t.Context(), requestOf(record.Name)))
	}
	for _, b := range p.budgets() {
		note(p.budget.Reconcile(p.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&b)}))
	}
	return changed || len(p.api.Writes()) > before, due
}

func (p *play) until(what string, so func() bool) {
	p.t.Helper()
	for range 200 {
		changed, due := p.step()
		switch {
		case so():
			return
		case changed:
		case due > 0:
			p.clock.Step(due)
		default:
			p.t.Fatalf("%s: nothing will ever happen in\n%s", what, strings.Join(p.state(), "\n"))
		}
	}
	p.t.Fatalf("%s: it does not come to that in\n%s", what, strings.Join(p.state(), "\n"))
}

func (p *play) records() []v1alpha1.DrainRecord {
	p.t.Helper()
	var list v1alpha1.DrainRecordList
	p.must(p.api.List(p.t.Context(), &list))
	return list.Items
}

func (p *play) budgets() []policyv1.PodDisruptionBudget {
	p.t.Helper()
	var list policyv1.PodDisruptionBudgetList
	p.must(p.api.List(p.t.Context(), &list))
	return list.Items
}

func (p *play) held(node string) bool {
	p.t.Helper()
	record, there := read(p.world, aRecord(node))
	return there && core.Held(record)
}

// complete ends the maintenance of a node, whose pods are ready.
func (p *play) complete(node string) {
	p.t.Helper()
	record, there := read(p.world, aRecord(node))
	if !there {
		p.t.Fatalf("node %s has no record", node)
	}
	record.Spec.Complete = true
	record.Generation++
	p.must(p.api.Update(p.t.Context(), record))
}

func (p *play) gone() bool { return len(p.records()) == 0 }

// setReady changes the readiness of the pods of a node, and what their budgets
// allow, as the kubelet and the disruption controller do.
func (p *play) setReady(node string, ready bool) {
	p.t.Helper()
	var list corev1.PodList
	p.must(p.api.List(p.t.Context(), &list))
	status, allowed := corev1.ConditionTrue, int32(1)
	if !ready {
		status, allowed = corev1.ConditionFalse, 0
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Spec.NodeName != node {
			continue
		}
		pod.Status.Conditions[0].Status = status
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: pod.ResourceVersion}}
		if ready {
			pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
		}
		p.must(p.api.Status().Update(p.t.Context(), pod))
		p.allow(pod.Labels["app"], allowed)
	}
}

func (p *play) boot(node string) {
	p.t.Helper()
	booted, _ := read(p.world, aNode(node))
	booted.Status.NodeInfo.BootID += "-again"
	p.must(p.api.Status().Update(p.t.Context(), booted))
}

// allow changes what a budget allows.
func (p *play) allow(name string, disruptions int32) {
	p.t.Helper()
	b, _ := read(p.world, aBudget(name, 0))
	b.Status.DisruptionsAllowed = disruptions
	p.must(p.api.Status().Update(p.t.Context(), b))
}

func (p *play) state() []string {
	p.t.Helper()
	var state []string
	for _, record := range p.records() {
		state = append(state, fmt.Sprintf("record %s: %+v", record.Name, record.Status))
	}
	for _, b := range p.budgets() {
		state = append(state, fmt.Sprintf("budget %s: %q", b.Name, b.Annotations[v1alpha1.LockAnnotation]))
	}
	return append(state, "mutex: "+p.mutex())
}

func (p *play) mutex() string {
	p.t.Helper()
	mutex, there := read(p.world, aMutex())
	if !there || mutex.Spec.HolderIdentity == nil {
		return ""
	}
	return *mutex.Spec.HolderIdentity
}

func (p *play) locked() []string {
	p.t.Helper()
	var names []string
	for _, b := range p.budgets() {
		if b.Annotations[v1alpha1.LockAnnotation] != "" {
			names = append(names, b.Name)
		}
	}
	return names
}

func (p *play) live() {
	p.t.Helper()
	p.until("held", func() bool { return p.held("one") })
	if diff := cmp.Diff([]string{"db", "web"}, p.locked()); diff != "" {
		p.t.Errorf("locked budgets (-want +got):\n%s", diff)
	}
	p.setReady("one", false)
	p.boot("one")
	p.complete("one")
	for range 3 {
		p.step()
	}
	if diff := cmp.Diff([]string{"db", "web"}, p.locked()); diff != "" {
		p.t.Errorf("locked budgets while the pods are not ready (-want +got):\n%s", diff)
	}
	p.setReady("one", true)
	p.until("gone", p.gone)
}

var ended = []string{`budget db: ""`, `budget web: ""`, "mutex: "}

// A manager that dies behind any of its writes leaves a state from which the next
// one, which remembers nothing, comes to the same end.
func TestAManagerThatDiesBetweenAnyTwoWritesIsContinued(t *testing.T) {
	t.Parallel()
	undisturbed := newPlay(t, -1, aRecord("one", "db", "web"))
	undisturbed.live()
	for dies, write := range undisturbed.api.Writes() {
		t.Run(fmt.Sprintf("%d %s", dies+1, write), func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, dies+1, aRecord("one", "db", "web"))
			p.live()
			if diff := cmp.Diff(ended, p.state()); diff != "" {
				t.Errorf("left behind (-want +got):\n%s", diff)
			}
		})
	}
}

// Every write goes wrong once, and the next attempt comes to the same end: the API
// server has an error, or somebody else was faster.
func TestEveryWriteMayBeRefusedOnce(t *testing.T) {
	t.Parallel()
	undisturbed := newPlay(t, -1, aRecord("one", "db", "web"))
	undisturbed.live()
	for name, refusal := range map[string]error{
		"error":    apierrors.NewInternalError(errors.New("etcd has no leader")),
		"conflict": apierrors.NewConflict(policyv1.Resource("any"), "any", errors.New("the object has been modified")),
	} {
		for at, write := range undisturbed.api.Writes() {
			t.Run(fmt.Sprintf("%s %d %s", name, at+1, write), func(t *testing.T) {
				t.Parallel()
				p := newPlay(t, -1, aRecord("one", "db", "web"))
				p.refuseOnce(at, refusal)
				p.live()
				if diff := cmp.Diff(ended, p.state()); diff != "" {
					t.Errorf("left behind (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// refuseOnce refuses the write after so many others.
func (p *play) refuseOnce(after int, refusal error) {
	writes := 0
	p.api.Refuse = func(request string) error {
		if strings.HasPrefix(request, "get ") || strings.HasPrefix(request, "list ") {
			return nil
		}
		writes++
		if writes == after+1 {
			return refusal
		}
		return nil
	}
}
