package evictionrequest_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/evictionrequest/said"
	"ebbtide.dev/ebbtide/test/golden"
)

var noon = time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)

// stage is a namespace in which the controller acts as it decides. It has no cache: what is
// written is seen.
type stage struct {
	t *testing.T
	// began is when the controller has become active.
	now, began time.Time
	pods       map[string]*corev1.Pod
	requests   map[string]*lifecyclev1alpha1.EvictionRequest
	evictions  []*lifecyclev1alpha1.Eviction
	ended      map[types.UID]time.Time
	// writes are how many the controller has made, left how many it may before it is
	// killed; negative is any number.
	writes, left int
	again        time.Duration
	uids         int
}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

func newStage(t *testing.T) *stage {
	return &stage{
		t: t, now: noon, began: noon, left: -1, ended: map[types.UID]time.Time{},
		pods: map[string]*corev1.Pod{}, requests: map[string]*lifecyclev1alpha1.EvictionRequest{},
	}
}

func (s *stage) uid() types.UID {
	s.uids++
	return types.UID(fmt.Sprintf("%08d-0000-4000-8000-000000000000", s.uids))
}

// pod makes a pod with responders such as "example.com/leader 20000".
func (s *stage) pod(name string, responders ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: s.uid(), CreationTimestamp: metav1.Time{Time: s.now}}}
	for _, one := range responders {
		var responder corev1.EvictionResponder
		responder.Priority = new(int32(0))
		if _, err := fmt.Sscan(one, &responder.Name, responder.Priority); err != nil {
			s.t.Fatal(err)
		}
		pod.Spec.EvictionResponders = append(pod.Spec.EvictionResponders, responder)
	}
	s.pods[name] = pod
	return pod
}

// ask makes a request of a requester for a pod.
func (s *stage) ask(requester string, pod *corev1.Pod) *lifecyclev1alpha1.EvictionRequest {
	request := &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: strings.NewReplacer("/", "-").Replace(requester) + "-" + pod.Name, UID: s.uid(), Generation: 1,
			CreationTimestamp: metav1.Time{Time: s.now.Truncate(time.Second)},
		},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID}},
			Requester: requester, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	}
	s.requests[request.Name] = request
	return request
}

func (s *stage) withdraw(request *lifecyclev1alpha1.EvictionRequest) {
	s.intend(request, lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
}

func (s *stage) intend(request *lifecyclev1alpha1.EvictionRequest, intent lifecyclev1alpha1.EvictionRequestIntent) {
	if request.Spec.Intent != intent {
		request.Spec.Intent = intent
		request.Generation++
	}
}

func (s *stage) snapshot() evictionrequest.Snapshot {
	snapshot := evictionrequest.Snapshot{Now: s.now, Acting: s.now.Sub(s.began), Evictions: slices.Clone(s.evictions), Ended: map[types.UID]time.Duration{}}
	for _, pod := range s.pods {
		snapshot.Pods = append(snapshot.Pods, pod)
	}
	for _, request := range s.requests {
		snapshot.Requests = append(snapshot.Requests, request)
	}
	for uid, since := range s.ended {
		snapshot.Ended[uid] = s.now.Sub(since)
	}
	return snapshot
}

// write reports whether the controller still lives to make a write.
func (s *stage) write() bool {
	if s.left == 0 {
		return false
	}
	s.left--
	s.writes++
	return true
}

// step decides once and writes; false if there is nothing to be written.
func (s *stage) step() bool {
	d := evictionrequest.Decide(s.snapshot())
	s.again = d.RequeueAfter
	for _, e := range d.Creations {
		if s.write() {
			created := e.DeepCopy()
			created.UID, created.Generation, created.CreationTimestamp = s.uid(), 1, metav1.Time{Time: s.now.Truncate(time.Second)}
			s.evictions = append(s.evictions, created)
		}
	}
	for _, whole := range d.Metadata {
		if s.write() {
			e := s.eviction(whole.Name)
			e.Labels, e.OwnerReferences = whole.Labels, whole.OwnerReferences
		}
	}
	for _, change := range d.Evictions {
		if s.write() {
			change.Eviction.Status = change.Status
		}
	}
	for _, change := range d.Requests {
		if s.write() {
			change.Request.Status = change.Status
		}
	}
	for _, uid := range d.Ended {
		if _, seen := s.ended[uid]; !seen {
			s.ended[uid] = s.now
		}
	}
	return !d.Empty()
}

// settle decides until nothing is to be written.
func (s *stage) settle() {
	s.t.Helper()
	for range 50 {
		if !s.step() {
			return
		}
		if s.left == 0 {
			// The next controller remembers nothing.
			s.left, s.ended = -1, map[types.UID]time.Time{}
		}
	}
	s.t.Fatal("the controller never comes to rest")
}

func (s *stage) pass(d time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(d)
	s.settle()
}

func (s *stage) eviction(name string) *lifecyclev1alpha1.Eviction {
	s.t.Helper()
	for _, e := range s.evictions {
		if e.Name == name {
			return e
		}
	}
	s.t.Fatalf("there is no Eviction %s", name)
	return nil
}

// report is what a responder says of itself.
func (s *stage) report(eviction, responder string, complete bool) {
	s.t.Helper()
	own := evictionrequest.ResponderOf(&s.eviction(eviction).Status, responder)
	own.HeartbeatTime = &metav1.Time{Time: s.now.Truncate(time.Second)}
	if complete {
		own.CompletionTime = own.HeartbeatTime
	}
}

var turns = said.Turns

// reasons returns conditions without messages.
func reasons(conditions []metav1.Condition) string {
	all := slices.Clone(conditions)
	for i := range all {
		all[i].Message = ""
	}
	return said.Conditions(all)
}

// reasons compares the reasons of conditions, and keeps their messages.
func (s *stage) reasons(what string, conditions []metav1.Condition, want string) {
	s.t.Helper()
	s.expect(what, reasons(conditions), want)
	for _, c := range conditions {
		if c.Message != "" {
			golden.Message(s.t, c.Reason, c.Message)
		}
	}
}

func (s *stage) expect(what, got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}
