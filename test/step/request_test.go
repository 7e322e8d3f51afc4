package step

import (
	"testing"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/evictionrequest/said"
	"ebbtide.dev/ebbtide/test/evictionrequest/stage"
)

const exampleLeader = "example.com/leader"

// requests is a stage on the real API server, where that serves EvictionRequests.
type requests struct {
	*stage.Stage
	cluster *cluster.Cluster
}

func newRequests(t *testing.T) *requests {
	t.Helper()
	if err := sandbox.CheckEvictionRequests(sandbox.RequestedVersion()); err != nil {
		t.Skip(err)
	}
	c := startServer(t)
	return &requests{stage.New(t, c.Client, c.Namespace(t)), c}
}

// pass makes everything older that counts for the turns of an Eviction.
func (s *requests) pass(name string, by time.Duration) {
	s.T.Helper()
	at := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	cluster.Rewrite(s.T, s.cluster, at, func(e *lifecyclev1alpha1.Eviction) { stage.Age(e, by) })
	s.Later(by)
}

// A responder that says nothing for 20 minutes loses its turn, whether it has ever said
// anything or not. The API server, which judges by its own clock, lets it be taken.
func TestATurnEndsBySilence(t *testing.T) {
	t.Parallel()
	s := newRequests(t)
	pod := s.Pod("web-0", "example.com/first 20000", "example.com/second 10000")
	request := s.Ask("upgrade", "example.com/upgrade", pod)
	s.Settle("web-0")
	s.Must(s.Reports("pod-1-web-0", "example.com/first", false))
	s.pass("pod-1-web-0", evictionrequest.HeartbeatDeadline-time.Minute)
	s.Settle("web-0")
	s.Expect("after 19 minutes", said.Turns(s.Eviction("pod-1-web-0")), "example.com/first Active, example.com/second Inactive, "+evictionrequest.DefaultEvictor+" Inactive")
	if s.Again <= 0 || s.Again > time.Minute {
		t.Errorf("it looks again after %s, want the minute that is left", s.Again)
	}
	s.pass("pod-1-web-0", time.Minute)
	s.Settle("web-0")
	s.Expect("after 20 minutes", said.Turns(s.Eviction("pod-1-web-0")), "example.com/first Interrupted, example.com/second Active, "+evictionrequest.DefaultEvictor+" Inactive")
	s.pass("pod-1-web-0", evictionrequest.HeartbeatDeadline)
	s.Settle("web-0")
	s.Expect("after 20 more", said.Turns(s.Eviction("pod-1-web-0")), "example.com/first Interrupted, example.com/second Interrupted, "+evictionrequest.DefaultEvictor+" Active")
	s.Expect("the request", s.Says(request), said.Awaiting)
}

// Who may create Evictions and nothing else gives one of another pod the name of the next one of
// a victim, which is asked for all the same, by the next number.
func TestANameOfAnEvictionIsTaken(t *testing.T) {
	t.Parallel()
	s := newRequests(t)
	victim, own := s.Pod("web-0", exampleLeader+" 20000"), s.Pod("own")
	_, mallory := s.cluster.User(t, rbacv1.PolicyRule{APIGroups: []string{"lifecycle.k8s.io"}, Resources: []string{"evictions"}, Verbs: []string{"create"}})
	for _, name := range []string{"pod-1-web-0", "pod-7-web-0"} {
		s.Must(mallory.Create(s.Ctx, &lifecyclev1alpha1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
			Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: own.Name, UID: own.UID}}},
		}))
	}
	request := s.Ask("upgrade", "example.com/upgrade", victim)
	s.Settle("web-0")
	s.Expect("the request", s.Says(request), said.Awaiting)
	s.Expect("its Eviction", said.Turns(s.Eviction("pod-8-web-0")), exampleLeader+" Active, "+evictionrequest.DefaultEvictor+" Inactive")
	// Theirs is decided about with their own pod.
	s.Expect("the Eviction that took the name", said.Turns(s.Eviction("pod-1-web-0")), "")
}
