package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
)

// sized is a node with four cores.
func sized(name string) *corev1.Node {
	node := aNode(name)
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
	return node
}

// aPod is a pod of a controller that takes cores of a node.
func aPod(node, name, cores, owner string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores)}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if owner != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: owner, Name: "of-" + name, UID: types.UID("owner-of-" + name), Controller: new(true)}}
	}
	return pod
}

func claiming(pod *corev1.Pod, claim string) *corev1.Pod {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	return pod
}

// boundTo returns a claim and its volume, which can be used on one node.
func boundTo(name, node string) []client.Object {
	return []client.Object{
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: name},
		},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{
			Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			}}}},
		}}},
	}
}

func TestNodeIsCheckedByTheAPIServer(t *testing.T) {
	t.Parallel()
	room := core.Question{Requirement: v1alpha1.RequiresRoom, Node: "one"}
	loss := core.Question{Requirement: v1alpha1.RequiresNoLoss, Node: "one"}
	beside := core.Question{Requirement: v1alpha1.RequiresRoom, Node: "one", Leaving: "two"}
	job := func(limit int32) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "of-import", UID: "owner-of-import"}, Spec: batchv1.JobSpec{BackoffLimit: &limit}}
	}
	scratch := func(pod *corev1.Pod) *corev1.Pod {
		pod.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		return pod
	}
	import1 := aPod("one", "import", "1", "Job")
	for name, test := range map[string]struct {
		question core.Question
		objects  []client.Object
		refuse   string
		want     core.Verdict
	}{
		"no pods have room":           {room, nil, "", core.Yes},
		"room":                        {room, []client.Object{aPod("one", "web", "3", "ReplicaSet"), aPod("two", "api", "1", "ReplicaSet")}, "", core.Yes},
		"no room":                     {room, []client.Object{aPod("one", "web", "3", "ReplicaSet"), aPod("two", "api", "2", "ReplicaSet")}, "", core.No},
		"the other leaves":            {beside, []client.Object{aPod("one", "web", "1", "ReplicaSet")}, "", core.No},
		"a pod waits for the room":    {room, []client.Object{aPod("one", "web", "3", "ReplicaSet"), aPod("", "api", "2", "ReplicaSet")}, "", core.No},
		"a volume on this node":       {room, append(boundTo("data", "one"), claiming(aPod("one", "db", "1", "StatefulSet"), "data")), "", core.No},
		"a volume on the other":       {room, append(boundTo("data", "two"), claiming(aPod("one", "db", "1", "StatefulSet"), "data")), "", core.Yes},
		"a claim that is not there":   {room, []client.Object{claiming(aPod("one", "db", "1", "StatefulSet"), "data")}, "", core.No},
		"unread nodes":                {room, nil, "list Node", core.Unknown},
		"unread pods":                 {room, nil, "list Pod", core.Unknown},
		"unread namespaces":           {room, nil, "list Namespace", core.Unknown},
		"unread classes":              {room, nil, "list StorageClass", core.Unknown},
		"unread claims":               {room, append(boundTo("data", "two"), claiming(aPod("one", "db", "1", "StatefulSet"), "data")), "get PersistentVolumeClaim", core.Unknown},
		"unread volumes":              {room, append(boundTo("data", "two"), claiming(aPod("one", "db", "1", "StatefulSet"), "data")), "get PersistentVolume ", core.Unknown},
		"unread claims of others":     {room, append(boundTo("data", "two"), claiming(aPod("two", "db", "1", "StatefulSet"), "data")), "get PersistentVolumeClaim", core.Yes},
		"nothing to lose":             {loss, []client.Object{aPod("one", "web", "1", "ReplicaSet"), aPod("two", "bare", "1", "")}, "", core.Yes},
		"a bare pod":                  {loss, []client.Object{aPod("one", "bare", "1", "")}, "", core.No},
		"local data":                  {loss, []client.Object{scratch(aPod("one", "web", "1", "ReplicaSet"))}, "", core.No},
		"a Job without retries":       {loss, []client.Object{import1, job(0)}, "", core.No},
		"a Job with retries":          {loss, []client.Object{import1, job(3)}, "", core.Yes},
		"an unread Job":               {loss, []client.Object{import1, job(3)}, "get Job", core.Unknown},
		"unread pods of the node":     {loss, nil, "list Pod", core.Unknown},
		"a Job that is not there now": {loss, []client.Object{import1}, "", core.Yes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, append(test.objects, sized("one"), labelled(sized("two")))...)
			if test.refuse != "" {
				w.refuse(test.refuse, errForbidden)
			}
			got, text := (&check{live: w.api.Manager}).respond(t.Context(), test.question)
			if got != test.want || (text != "") != (got == core.Unknown) {
				t.Errorf("the answer is %d: %s, want %d", got, text, test.want)
			}
		})
	}
}

func labelled(node *corev1.Node) *corev1.Node {
	node.Labels[corev1.LabelHostname] = node.Name
	return node
}

// A cluster is read once for all questions of a batch, and no more than a bounded number of objects by
// name.
func TestChecksReadABoundedNumberOfObjects(t *testing.T) {
	t.Parallel()
	objects := []client.Object{sized("one"), sized("two")}
	for i := range 2 * maxNamed {
		objects = append(objects, claiming(aPod("one", fmt.Sprint("db-", i), "1m", "StatefulSet"), fmt.Sprint("data-", i)))
	}
	w := newWorld(t, objects...)
	var gets, lists int
	w.api.Refuse = func(request string) error {
		switch {
		case strings.HasPrefix(request, "get"):
			gets++
		case strings.HasPrefix(request, "list"):
			lists++
		}
		return nil
	}
	c := &check{live: w.api.Manager}
	first, text := c.respond(t.Context(), core.Question{Requirement: v1alpha1.RequiresRoom, Node: "one"})
	second, _ := c.respond(t.Context(), core.Question{Requirement: v1alpha1.RequiresRoom, Node: "two"})
	if first != core.Unknown || text == "" || second != core.Yes || gets != maxNamed || lists != 4 {
		t.Errorf("answers %d (%s) and %d by %d reads and %d lists", first, text, second, gets, lists)
	}
}

// Two starts in one decision do not take the same room: the second is checked with the first one
// drained.
func TestRoomIsNotGivenTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, roomy(2)...)
	m := w.manager(nil)
	for range 4 {
		m.settle()
		w.clock.Step(checkTimeout)
	}
	if got := w.rollout("kernel").Status; got.WorkingCount != 1 || len(got.Waiting) != 1 || got.Waiting[0].Reason != v1alpha1.RolloutWaitsForRoom {
		t.Errorf("works on %d nodes, waits for %+v", got.WorkingCount, got.Waiting)
	}
}

// roomy is a rollout over nodes of which three may be unavailable. All are half full, but for one.
func roomy(full int) (objects []client.Object) {
	r := aRollout("kernel")
	r.Spec.Target = &v1alpha1.CompleteWhen{KubeletVersion: ">=1.37.0"}
	r.Spec.Requires = []v1alpha1.RolloutRequirement{v1alpha1.RequiresRoom, v1alpha1.RequiresNoLoss}
	r.Spec.MaxUnavailable = new(intstr.FromInt32(3))
	objects = append(objects, r)
	for i := range full {
		node := sized(fmt.Sprint("node-", i))
		objects = append(objects, node, aPod(node.Name, fmt.Sprint("web-", i), "3", "ReplicaSet"))
	}
	return append(objects, sized("empty"))
}

// A check that hangs delays rollouts that require it, and no others.
func TestHangingCheckDelaysNoOtherRollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, append(gatedRollout("other"), roomy(1)...)...)
	m := w.manager(nil)
	stuck := make(chan struct{})
	m.questions.check = func() respond {
		return func(context.Context, core.Question) (core.Verdict, string) {
			<-stuck
			return core.Unknown, "no answer."
		}
	}
	w.await("the other rollout", func() bool {
		m.sync()
		m.pass()
		return w.working("other") == 1
	})
	if w.working("kernel") > 0 {
		t.Error("a node has started unchecked")
	}
	close(stuck)
	m.settle()
}

// Checks end with their time, and rest four times as long as they took.
func TestChecksRest(t *testing.T) {
	t.Parallel()
	clk := testingclock.NewFakeClock(noon)
	q := newQuestions(nil, clk)
	q.now = func() (time.Time, bool) { return clk.Now(), false }
	q.check = func() respond {
		return func(context.Context, core.Question) (core.Verdict, string) {
			clk.Step(checkTimeout / 4)
			return core.No, ""
		}
	}
	nodes := []core.Question{{Requirement: v1alpha1.RequiresRoom, Node: "one"}, {Requirement: v1alpha1.RequiresRoom, Node: "two"}}
	if due := q.ask(t.Context(), nodes, func() {}); due != 0 {
		t.Errorf("the first check is due in %s", due)
	}
	q.wait()
	if due := q.ask(t.Context(), nodes, func() {}); due != 2*checkTimeout || len(q.all()) != 2 {
		t.Errorf("the second check is due in %s, after %d answers", due, len(q.all()))
	}
}

func TestReasonOfAnUnreadableKindIsStable(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"the pods cannot be read (Timeout)": fmt.Errorf("list: %w", context.DeadlineExceeded), "the pods cannot be read (Forbidden)": errForbidden,
		"the pods cannot be read (no answer)": errors.Join(errCut, errors.New("at 12:00:01")),
	} {
		if got := unreadable("the pods", err).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
