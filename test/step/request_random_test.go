package step

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	lifecycleac "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/evictionrequest/said"
	"ebbtide.dev/ebbtide/test/evictionrequest/stage"
)

var steps = flag.Int("steps", 300, "random steps that are played on an API server")

// playedAtOnce is how many plays go on at the same time.
const playedAtOnce = 4

// drama is a pod, up to three requesters and four responders that do as they like.
type drama struct {
	*requests
	random *rand.Rand
	name   string
	target *corev1.Pod
	asked  map[string]*lifecyclev1alpha1.EvictionRequest
}

func newDrama(s *requests, seed uint64) *drama {
	d := &drama{requests: s, random: rand.New(rand.NewPCG(seed, 11)), name: fmt.Sprintf("web-%d", seed), asked: map[string]*lifecyclev1alpha1.EvictionRequest{}}
	var responders []string
	for n := range d.random.IntN(5) {
		responders = append(responders, fmt.Sprintf("r%d.%s/x %d", n, []string{"example.com", "a.example.com"}[d.random.IntN(2)], 1000+d.random.IntN(3)))
	}
	d.target = s.Pod(d.name, responders...)
	d.asks("a")
	return d
}

func (d *drama) asks(who string) {
	d.T.Helper()
	d.asked[who] = d.Ask(who+"-"+d.name, who+".example.com/x", d.target)
}

// intends changes what a requester wants.
func (d *drama) intends(who string, intent lifecyclev1alpha1.EvictionRequestIntent) {
	d.T.Helper()
	d.Must(d.Client.Patch(d.Ctx, d.asked[who].DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"intent":%q}}`, intent))))
}

// happens is one thing that somebody does.
func (d *drama) happens() {
	d.T.Helper()
	who := string(rune('a' + d.random.IntN(3)))
	is := d.asked[who] != nil
	switch choice := d.random.IntN(24); {
	case choice < 3 && !is:
		d.asks(who)
	case choice < 5 && is:
		d.intends(who, lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
	case choice < 7 && is:
		d.intends(who, lifecyclev1alpha1.EvictionRequestIntentEviction)
	case choice == 7 && is:
		d.Must(d.Client.Delete(d.Ctx, d.asked[who]))
		delete(d.asked, who)
	case choice < 14:
		d.responds()
	case choice < 20:
		d.passes(time.Duration(d.random.Int64N(int64(25 * time.Minute))))
	case choice == 20:
		d.passes(time.Duration(d.random.IntN(9)) * time.Second)
	case choice == 21 && d.random.IntN(4) == 0:
		d.Must(client.IgnoreNotFound(d.Client.Delete(d.Ctx, d.target, client.GracePeriodSeconds(0))))
	case choice == 22 && d.random.IntN(4) == 0:
		d.Must(client.IgnoreNotFound(d.Client.Status().Patch(d.Ctx, d.target.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`)))))
	default:
		// Another manager remembers nothing.
		d.Restart()
	}
}

// evictions are those of the pod.
func (d *drama) evictions() []lifecyclev1alpha1.Eviction {
	d.T.Helper()
	list := &lifecyclev1alpha1.EvictionList{}
	d.Must(d.Client.List(d.Ctx, list, client.InNamespace(d.Namespace)))
	return stage.Matching(list.Items, func(e *lifecyclev1alpha1.Eviction) bool { return e.Spec.Target.Pod.UID == d.target.UID })
}

func (d *drama) passes(by time.Duration) {
	d.T.Helper()
	for _, e := range d.evictions() {
		d.pass(e.Name, by)
	}
}

// responds is a report of whoever has the turn, but for the default evictor.
func (d *drama) responds() {
	d.T.Helper()
	for _, e := range d.evictions() {
		own := core.Active(&e.Status)
		if own != nil && own.Name != core.DefaultEvictor && own.CompletionTime == nil && !core.Final(&e.Status) {
			d.Must(d.Reports(e.Name, own.Name, d.random.IntN(2) == 0))
		}
	}
}

// evicts has the default evictor say what it has to say.
func (d *drama) evicts() {
	d.T.Helper()
	for _, e := range d.evictions() {
		pod := &corev1.Pod{}
		err := d.Client.Get(d.Ctx, client.ObjectKeyFromObject(d.target), pod)
		d.Must(client.IgnoreNotFound(err))
		if err != nil {
			pod = nil
		}
		report := core.DecideResponse(core.ResponseSnapshot{Now: time.Now(), Clock: time.Now(), Eviction: &e, Pod: pod, Responder: core.DefaultEvictor}).Report
		if report == nil {
			continue
		}
		own := lifecycleac.ResponderStatus().WithName(report.Name).WithMessage(*report.Message).WithHeartbeatTime(*report.HeartbeatTime)
		own.CompletionTime = report.CompletionTime
		applied := lifecycleac.Eviction(e.Name, d.Namespace).WithUID(e.UID).WithResourceVersion(e.ResourceVersion).
			WithStatus(lifecycleac.EvictionStatus().WithResponders(own))
		d.Must(d.Client.Status().Apply(d.Ctx, applied, client.FieldOwner(core.EvictorFieldManager), client.ForceOwnership))
		d.Statuses++
	}
}

// holds checks that one Eviction goes on at the most, with one turn.
func (d *drama) holds() {
	d.T.Helper()
	going := 0
	for _, e := range d.evictions() {
		active := stage.Matching(e.Status.TargetResponders, func(one *lifecyclev1alpha1.TargetResponder) bool {
			return one.State == lifecyclev1alpha1.ResponderStateActive
		})
		if !core.Final(&e.Status) {
			going++
		}
		if len(active) > 1 || core.Final(&e.Status) && len(active) > 0 {
			d.T.Fatalf("%s has the turns %s and says %s", e.Name, said.Turns(&e), said.Conditions(e.Status.Conditions))
		}
	}
	if going > 1 {
		d.T.Fatalf("%d Evictions of %s go on", going, d.name)
	}
}

// plays one pod from the first request on.
func (d *drama) plays(count int) {
	d.T.Helper()
	for range count {
		d.happens()
		d.Settle(d.name)
		d.evicts()
		d.Settle(d.name)
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
			s := newRequests(t)
			played := 0
			for seed := uint64(n); played < *steps/playedAtOnce; seed += playedAtOnce {
				d := newDrama(s, seed)
				count := 5 + d.random.IntN(40)
				d.plays(count)
				played += count
				// What is over need not be listed again.
				d.Must(d.Client.DeleteAllOf(d.Ctx, &lifecyclev1alpha1.Eviction{}, client.InNamespace(d.Namespace)))
				d.Must(d.Client.DeleteAllOf(d.Ctx, &lifecyclev1alpha1.EvictionRequest{}, client.InNamespace(d.Namespace)))
			}
			t.Logf("%d steps, of whose statuses %d were written and none refused", played, s.Statuses)
		})
	}
}
