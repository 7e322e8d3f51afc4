package evictionrequest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	lifecycleac "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

var steps = flag.Int("steps", 300, "random steps that are played on an API server")

// playedAtOnce is how many plays go on at the same time.
const playedAtOnce = 4

// drama is a pod, up to three requesters and four responders that do as they like.
type drama struct {
	*stage
	random   *rand.Rand
	name     string
	pod      *corev1.Pod
	requests map[string]*lifecyclev1alpha1.EvictionRequest
}

func newDrama(s *stage, seed uint64) *drama {
	d := &drama{stage: s, random: rand.New(rand.NewPCG(seed, 11)), name: fmt.Sprintf("web-%d", seed), requests: map[string]*lifecyclev1alpha1.EvictionRequest{}}
	var responders []string
	for n := range d.random.IntN(5) {
		responders = append(responders, fmt.Sprintf("r%d.%s/x %d", n, []string{"example.com", "a.example.com"}[d.random.IntN(2)], 1000+d.random.IntN(3)))
	}
	d.pod = s.pod(d.name, responders...)
	d.asks("a")
	return d
}

func (d *drama) asks(who string) {
	d.t.Helper()
	d.requests[who] = d.ask(who+"-"+d.name, who+".example.com/x", d.pod)
}

// intends changes what a requester wants.
func (d *drama) intends(who string, intent lifecyclev1alpha1.EvictionRequestIntent) {
	d.t.Helper()
	d.must(d.client.Patch(d.ctx, d.requests[who].DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"intent":%q}}`, intent))))
}

// happens is one thing that somebody does.
func (d *drama) happens() {
	d.t.Helper()
	who := string(rune('a' + d.random.IntN(3)))
	asked := d.requests[who] != nil
	switch choice := d.random.IntN(24); {
	case choice < 3 && !asked:
		d.asks(who)
	case choice < 5 && asked:
		d.intends(who, lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
	case choice < 7 && asked:
		d.intends(who, lifecyclev1alpha1.EvictionRequestIntentEviction)
	case choice == 7 && asked:
		d.must(d.client.Delete(d.ctx, d.requests[who]))
		delete(d.requests, who)
	case choice < 14:
		d.responds()
	case choice < 20:
		d.passes(time.Duration(d.random.Int64N(int64(25 * time.Minute))))
	case choice == 20:
		d.passes(time.Duration(d.random.IntN(9)) * time.Second)
	case choice == 21 && d.random.IntN(4) == 0:
		d.must(client.IgnoreNotFound(d.client.Delete(d.ctx, d.pod, client.GracePeriodSeconds(0))))
	case choice == 22 && d.random.IntN(4) == 0:
		d.must(client.IgnoreNotFound(d.client.Status().Patch(d.ctx, d.pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`)))))
	default:
		// Another manager remembers nothing.
		d.r.ended, d.r.written = newEnded(), newWritten()
	}
}

// evictions are those of the pod.
func (d *drama) evictions() []lifecyclev1alpha1.Eviction {
	d.t.Helper()
	list := &lifecyclev1alpha1.EvictionList{}
	d.must(d.client.List(d.ctx, list, client.InNamespace(d.ns)))
	return matching(list.Items, func(e *lifecyclev1alpha1.Eviction) bool { return e.Spec.Target.Pod.UID == d.pod.UID })
}

func (d *drama) passes(by time.Duration) {
	d.t.Helper()
	for _, e := range d.evictions() {
		d.pass(e.Name, by)
	}
}

// responds is a report of whoever has the turn, but for the default evictor.
func (d *drama) responds() {
	d.t.Helper()
	for _, e := range d.evictions() {
		own := core.Active(&e.Status)
		if own != nil && own.Name != evictor && own.CompletionTime == nil && !core.Final(&e.Status) {
			d.must(d.reports(e.Name, own.Name, d.random.IntN(2) == 0))
		}
	}
}

// evicts has the default evictor say what it has to say, but for what refuses an eviction.
func (d *drama) evicts() {
	d.t.Helper()
	for _, e := range d.evictions() {
		pod := &corev1.Pod{}
		err := d.client.Get(d.ctx, client.ObjectKeyFromObject(d.pod), pod)
		d.must(client.IgnoreNotFound(err))
		if err != nil {
			pod = nil
		}
		report := core.DecideEvictor(core.EvictorSnapshot{Now: time.Now(), Eviction: &e, Pod: pod}).Report
		if report == nil {
			continue
		}
		own := lifecycleac.ResponderStatus().WithName(report.Name).WithMessage(*report.Message).WithHeartbeatTime(*report.HeartbeatTime)
		own.CompletionTime = report.CompletionTime
		applied := lifecycleac.Eviction(e.Name, d.ns).WithUID(e.UID).WithResourceVersion(e.ResourceVersion).
			WithStatus(lifecycleac.EvictionStatus().WithResponders(own))
		d.must(d.client.Status().Apply(d.ctx, applied, client.FieldOwner(core.EvictorFieldManager), client.ForceOwnership))
		d.statuses++
	}
}

// holds checks that one Eviction goes on at the most, with one turn.
func (d *drama) holds() {
	d.t.Helper()
	going := 0
	for _, e := range d.evictions() {
		active := matching(e.Status.TargetResponders, func(one *lifecyclev1alpha1.TargetResponder) bool {
			return one.State == lifecyclev1alpha1.ResponderStateActive
		})
		if !core.Final(&e.Status) {
			going++
		}
		if len(active) > 1 || core.Final(&e.Status) && len(active) > 0 {
			d.t.Fatalf("%s has the turns %s and says %s", e.Name, turns(&e), tells(e.Status.Conditions))
		}
	}
	if going > 1 {
		d.t.Fatalf("%d Evictions of %s go on", going, d.name)
	}
}

// plays one pod from the first request on.
func (d *drama) plays(count int) {
	d.t.Helper()
	for range count {
		d.happens()
		d.settle(d.name)
		d.evicts()
		d.settle(d.name)
		d.holds()
	}
}

// Whatever requesters, responders, the pod and crashes do, and however long it takes them,
// the API server takes every status that the controller and its evictor write.
func TestRandomStepsAreTakenByTheAPIServer(t *testing.T) {
	t.Parallel()
	for n := range playedAtOnce {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			played := 0
			for seed := uint64(n); played < *steps/playedAtOnce; seed += playedAtOnce {
				d := newDrama(s, seed)
				count := 5 + d.random.IntN(40)
				d.plays(count)
				played += count
				// What is over need not be listed again.
				d.must(d.client.DeleteAllOf(d.ctx, &lifecyclev1alpha1.Eviction{}, client.InNamespace(d.ns)))
				d.must(d.client.DeleteAllOf(d.ctx, &lifecyclev1alpha1.EvictionRequest{}, client.InNamespace(d.ns)))
			}
			t.Logf("%d steps, of whose statuses %d were written and none refused", played, s.statuses)
		})
	}
}

// The API server would refuse what is wrong: a controller that erred would be noticed above.
func TestWhatIsWrongIsRefusedByTheAPIServer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.ask("upgrade", "example.com/upgrade", s.pod("web-0", leader+" 20000"))
	s.r.now = func() time.Time { return time.Now().Add(time.Minute) }
	var err error
	for range 3 {
		if err = s.step("web-0"); err != nil {
			break
		}
	}
	if err == nil {
		t.Errorf("a clock that is a minute ahead is taken: %+v", s.eviction("pod-1-web-0").Status)
	}
	s.r.now = time.Now
	s.settle("web-0")
	s.must(s.reports("pod-1-web-0", leader, false))
	early := lifecycleac.EvictionStatus().
		WithTargetResponders(
			lifecycleac.TargetResponder().WithName(leader).WithPriority(20000).WithState(lifecyclev1alpha1.ResponderStateInterrupted),
			lifecycleac.TargetResponder().WithName(evictor).WithPriority(100).WithState(lifecyclev1alpha1.ResponderStateActive)).
		WithResponders(lifecycleac.ResponderStatus().WithName(evictor).WithStartTime(metav1.Now()))
	err = s.client.Status().Apply(s.ctx, lifecycleac.Eviction("pod-1-web-0", s.ns).WithStatus(early), client.FieldOwner(core.FieldManager), client.ForceOwnership)
	if err == nil {
		t.Error("a turn is taken from who has just reported")
	}
}
