package maintenance_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// answers is who answers EvictionRequests, and whether they can be seen.
type answers struct {
	// possible is true in simulations of which some pods name responders.
	possible bool
	// known and served are what the API server has said; while it has not, nobody sees
	// the requests that there are.
	known, served bool
	// acting is true while Ebbtide answers, present while anybody does.
	acting, present bool
	// answered and unanswered are when a request had an answer last, and when one was
	// withdrawn for want of one.
	answered, unanswered time.Time
	// gone is when the pods of requests were seen to be gone.
	gone map[types.UID]time.Time
}

// cameOfRequests counts what has happened to the requests of all simulations.
var cameOfRequests = map[string]int{}

func newAnswers(seed uint64) answers {
	return answers{possible: seed >= simulations, known: true, served: true, present: seed%2 == 0, gone: map[types.UID]time.Time{}}
}

// lead has some pods name a responder.
func (s *simulation) lead(pod *corev1.Pod) {
	if s.answers.possible && s.chance(60) {
		led(pod)
	}
}

// snapshot is what a pass sees: requests only while they are known to be served.
func (s *simulation) snapshot() maintenance.Snapshot {
	if !s.answers.possible {
		return s.world.snapshot()
	}
	s.requester = s.answers.state(s.now)
	snapshot := s.world.snapshot()
	for _, node := range s.nodes {
		if s.requester.Served && s.asksOn(node.Name) && !slices.Contains(snapshot.Nodes, node) {
			snapshot.Nodes = append(snapshot.Nodes, node)
			snapshot.Pods[node.Name] = s.evacuated(node.Name)
		}
	}
	for _, pods := range snapshot.Pods {
		for i := range pods {
			if !s.requester.Served {
				pods[i].Request, pods[i].Eviction = nil, nil
			}
		}
	}
	return snapshot
}

// asksOn returns true if some pod of a node has a request of ours.
func (s *simulation) asksOn(node string) bool {
	return slices.ContainsFunc(s.pods[node], func(pod *corev1.Pod) bool { return s.requests[pod.UID] != nil })
}

func (a answers) state(now time.Time) evictionrequest.Availability {
	state := evictionrequest.Availability{Acting: a.acting, Answered: a.answered, Now: now}
	switch {
	case !a.known:
		state.Unknown = "Nobody has said so."
	case a.served:
		void := a.unanswered.After(a.answered) && now.Sub(a.unanswered) < time.Hour
		state.Served, state.Able = true, a.acting || !void
	}
	return state
}

// changeAnswers is what others do to requests, and to whether they are served.
func (s *simulation) changeAnswers() {
	if !s.answers.possible {
		return
	}
	a := &s.answers
	switch s.random.IntN(25) {
	case 0:
		a.known = false
	case 1, 2:
		a.served = false
	case 3, 4, 5, 6, 7, 8, 9, 10:
		a.known, a.served = true, true
	case 11:
		a.acting, a.present = true, true
	case 12:
		a.acting, a.present = false, s.chance(50)
	}
	s.answer()
	s.dispose()
	s.spare()
}

// spare has a pod stay that is asked to leave.
func (s *simulation) spare() {
	for _, node := range s.nodes {
		for _, pod := range s.pods[node.Name] {
			if s.requests[pod.UID] != nil && s.chance(3) {
				pod.Labels[v1alpha1.DrainLabel] = "skip"
				return
			}
		}
	}
}

// answer is what a controller, and people, do to each request.
func (s *simulation) answer() {
	for _, uid := range slices.Sorted(maps.Keys(s.requests)) {
		request := s.requests[uid].DeepCopy()
		switch {
		case s.chance(3):
			cameOfRequests["withdrawn by somebody"]++
			request.Spec.Intent = lifecyclev1alpha1.EvictionRequestIntentWithdrawn
			request.Generation++
		case evictionrequest.Failure(request) != nil && s.chance(20):
			cameOfRequests["deleted by hand"]++
			delete(s.requests, uid)
			continue
		case !s.answers.present || !s.chance(40):
			continue
		default:
			s.answerOne(request)
		}
		s.requests[uid] = request
	}
}

func (s *simulation) answerOne(request *lifecyclev1alpha1.EvictionRequest) {
	asked := request.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentEviction
	if asked && evictionrequest.AwaitsAnswer(request) {
		s.answers.answered = s.now
	}
	switch {
	case !asked, s.chance(5):
		answered(request, hasFailed("CanceledDueToNoRequesters"))
	case s.chance(10):
		cameOfRequests["failed"]++
		answered(request, hasFailed("NoFurtherResponder"))
	case evictionrequest.AwaitsAnswer(request):
		cameOfRequests["answered"]++
		answered(request)
	}
}

func hasFailed(reason string) metav1.Condition {
	return metav1.Condition{Type: "Failed", Status: metav1.ConditionTrue, Reason: reason}
}

// dispose clears requests away as the shell does, while it sees them.
func (s *simulation) dispose() {
	if !s.answers.state(s.now).Served {
		return
	}
	there := map[types.UID]bool{}
	for _, pods := range s.pods {
		for _, pod := range pods {
			there[pod.UID] = true
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(s.requests)) {
		disposal := evictionrequest.DecideCleanup(s.requests[uid], s.now, s.goneFor(uid, there[uid]))
		switch {
		case disposal.Record != nil:
			s.requests[uid] = disposal.Record
		case disposal.Delete:
			delete(s.requests, uid)
		}
	}
}

func (s *simulation) goneFor(pod types.UID, there bool) *time.Duration {
	if there {
		return nil
	}
	if _, seen := s.answers.gone[pod]; !seen {
		s.answers.gone[pod] = s.now
	}
	return new(s.now.Sub(s.answers.gone[pod]))
}

// moved returns true if the responders of a pod may have moved it.
func (s *simulation) moved(pod *corev1.Pod) bool {
	request := s.requests[pod.UID]
	return request != nil && evictionrequest.RequestStateOf(request, pod) == evictionrequest.Asked &&
		!evictionrequest.AwaitsAnswer(request) && evictionrequest.Failure(request) == nil
}

// checkWays: nobody is asked by one way while the other stands, or by none that it does not
// cover, as far as can be seen.
func (s *simulation) checkWays(d *maintenance.NodeDecision) {
	for _, asked := range d.Evacuate {
		pod, evacuated := asked.Pod, s.evacuations[asked.Pod.UID] != nil
		standing := evictionrequest.RequestStateOf(s.requests[pod.UID], pod)
		covered := s.requester.Able && evictionrequest.Requestable(pod)
		switch {
		case asked.EvictionRequest != nil && (!covered || evacuated || standing != evictionrequest.Unasked):
			s.t.Errorf("pod %s is asked by a request, with covered %t, evacuated %t, and the request before %q", pod.Name, covered, evacuated, standing)
		case asked.EvictionRequest == nil && evictionrequest.Requestable(pod) && s.requester.Unknown != "":
			s.t.Errorf("pod %s is evacuated while nobody knows whether it can be asked", pod.Name)
		case asked.EvictionRequest == nil && s.requester.Served && standing == evictionrequest.Asked:
			s.t.Errorf("pod %s is evacuated, and asked by a request", pod.Name)
		case asked.EvictionRequest == nil && covered && standing != evictionrequest.Unanswered:
			s.t.Errorf("pod %s is evacuated past its responders, and the request before is %q", pod.Name, standing)
		}
	}
	for _, w := range d.WithdrawRequests {
		reason := "withdrawn"
		if w.Unanswered != nil {
			reason = "unanswered"
			if s.answers.acting {
				s.t.Errorf("we do not answer ourselves: pod %s", w.Unanswered.Name)
			}
		}
		cameOfRequests[reason]++
	}
}

// actByWays does what was decided for a node. Nobody is asked both ways any more then, or
// in vain, as far as can be seen.
func (s *simulation) actByWays(d *maintenance.NodeDecision) {
	s.checkWays(d)
	s.act(d)
	s.actByRequests(d)
	for _, pod := range s.pods[d.Node.Name] {
		if evictionrequest.RequestStateOf(s.requests[pod.UID], pod) != evictionrequest.Asked {
			continue
		}
		switch twice := s.evacuations[pod.UID] != nil; {
		case !s.requester.Served:
			if twice {
				cameOfRequests["asked both ways, unseen"]++
			}
		case twice:
			s.t.Errorf("pod %s is asked both ways", pod.Name)
		case !s.wanted(d.Node.Name, pod):
			s.t.Errorf("pod %s is asked although nobody wants that", pod.Name)
		}
	}
}

// wanted returns true if a maintenance wants that a pod leaves.
func (s *simulation) wanted(node string, pod *corev1.Pod) bool {
	treatment := s.treatment(node, pod)
	evicted := treatment.Behavior == v1alpha1.DrainBehaviorDrain || treatment.Cause != ""
	return evicted && slices.ContainsFunc(s.maintenances, func(m *v1alpha1.NodeMaintenance) bool {
		return drains(m) && slices.Contains(s.matched(m), node) && s.waitsFor(m, node, pod)
	})
}

// actByRequests does what was decided about requests.
func (s *simulation) actByRequests(d *maintenance.NodeDecision) {
	for _, w := range d.WithdrawRequests {
		withdrawn := w.Withdrawn.DeepCopy()
		withdrawn.Generation++
		target, _ := evictionrequest.TargetOf(withdrawn)
		s.requests[target.UID] = withdrawn
		if w.Unanswered != nil {
			s.answers.unanswered = s.now
		}
	}
	for _, asked := range d.Evacuate {
		if asked.EvictionRequest == nil || s.requests[asked.Pod.UID] != nil {
			continue
		}
		cameOfRequests["asked"]++
		s.ask(asked.Pod, 0)
	}
}

// settleAnswers has the API be served, and who answers stay as it is.
func (s *simulation) settleAnswers() { s.answers.known, s.answers.served = true, true }

// patient lets time go by, in which nobody may answer, and what has failed is asked anew.
func (s *simulation) patient() {
	if s.answers.possible {
		s.now = s.now.Add(7 * time.Second)
		s.answer()
		s.dispose()
	}
}

// checkNobodyIsAsked: no request asks when all maintenances are over, and none is left a little later.
func (s *simulation) checkNobodyIsAsked() {
	for _, pods := range s.pods {
		for _, pod := range pods {
			if evictionrequest.RequestStateOf(s.requests[pod.UID], pod) == evictionrequest.Asked {
				s.t.Errorf("pod %s is still asked", pod.Name)
			}
		}
	}
	for range 3 {
		s.dispose()
		s.now = s.now.Add(evictionrequest.KeptFor)
	}
	if len(s.requests) > 0 {
		s.t.Errorf("%d requests are left", len(s.requests))
	}
}

// checkCameOfRequests: simulations in which nothing happens show nothing.
func checkCameOfRequests(t *testing.T, least int) {
	t.Helper()
	for _, what := range []string{
		"asked", "answered", "failed", "withdrawn", "unanswered", "withdrawn by somebody", "deleted by hand", "asked both ways, unseen",
	} {
		if cameOfRequests[what] < least {
			t.Errorf("only %d requests were %s", cameOfRequests[what], what)
		}
	}
	t.Logf("requests: %v", cameOfRequests)
}
