package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/test/fault"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// drainer evicts pods of nodes by a gate in memory.
type drainer struct {
	gate evictionGate
	api  *fault.Server
}

// newDrainer knows nodes one and two with a pod each.
func newDrainer(t *testing.T, options Options, existing ...client.Object) drainer {
	t.Helper()
	for _, name := range []string{"one", "two"} {
		pod := sample.Pod("shop", "on-"+name)
		pod.Spec.NodeName = name
		existing = append(existing, pod)
		if !slices.ContainsFunc(existing, func(o client.Object) bool { return o.GetName() == name }) {
			existing = append(existing, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	api := fault.NewServer(t, existing...)
	options.Now = trusted
	return drainer{newEvictionGate(registry{cached: api.Manager, live: api.Manager, surge: surge.Annotated}, api.Manager, api.Manager, options), api}
}

// call is an eviction from a node; it returns whether its author is told of NodeMaintenances.
func (d drainer) call(t *testing.T, user, node string, changes ...func(*admission.Request, *policyv1.Eviction)) bool {
	t.Helper()
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "shop", Name: "on-" + node, UserInfo: authenticationv1.UserInfo{Username: user},
	}}
	eviction := &policyv1.Eviction{}
	for _, change := range changes {
		change(&request, eviction)
	}
	raw, err := json.Marshal(eviction)
	must(t, err)
	request.Object = runtime.RawExtension{Raw: raw}
	answer := d.gate.Handle(t.Context(), request)
	if !answer.Allowed || len(answer.Warnings) > 1 {
		t.Errorf("allowed %v, warnings %q; want the eviction and one warning at most", answer.Allowed, answer.Warnings)
	}
	return len(answer.Warnings) == 1 && strings.Contains(answer.Warnings[0], "no NodeMaintenance selects node "+node)
}

func dry(request *admission.Request, _ *policyv1.Eviction) { request.DryRun = new(true) }

func forMachine(_ *admission.Request, eviction *policyv1.Eviction) {
	eviction.Annotations = map[string]string{v1alpha1.MachineDrainAnnotation: "true"}
}

// Dry runs evict nothing and count for nothing; programs are told once, since only
// their log reads it; a day later both have forgotten.
func TestNoticeOfNodeMaintenancesIsRateLimited(t *testing.T) {
	t.Parallel()
	const autoscaler = "system:serviceaccount:kube-system:cluster-autoscaler"
	d := newDrainer(t, Options{EvictionNotice: true})
	now := time.Now()
	d.gate.now = func() (time.Time, bool) { return now, false }
	for n, step := range []struct {
		user, node string
		told       bool
		after      time.Duration
		changes    []func(*admission.Request, *policyv1.Eviction)
	}{
		{user: "jane", node: "one", changes: []func(*admission.Request, *policyv1.Eviction){dry}},
		{user: "jane", node: "one", changes: []func(*admission.Request, *policyv1.Eviction){forMachine}},
		{user: "jane", node: "one", told: true},
		{user: "jane", node: "one"},
		{user: "jane", node: "two", told: true},
		{user: autoscaler, node: "one", told: true},
		{user: autoscaler, node: "one"},
		{user: autoscaler, node: "two"},
		{user: "jane", node: "one", after: 23 * time.Hour},
		{user: "jane", node: "one", after: time.Hour, told: true},
		{user: autoscaler, node: "two", told: true},
		{user: autoscaler, node: "one"},
	} {
		now = now.Add(step.after)
		if got := d.call(t, step.user, step.node, step.changes...); got != step.told {
			t.Errorf("step %d: %s is told: %v, want %v", n, step.user, got, step.told)
		}
	}
}

func TestCallersWithoutNotice(t *testing.T) {
	t.Parallel()
	held := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one", Annotations: map[string]string{v1alpha1.CordonAnnotation: "{}"}}}
	labelled := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{corev1.LabelHostname: "one"}}}
	for name, test := range map[string]struct {
		options  Options
		existing []client.Object
		fails    string
	}{
		"it is switched off":                  {},
		"the node is under maintenance":       {options: Options{EvictionNotice: true}, existing: []client.Object{held}},
		"a maintenance of it is planned":      {options: Options{EvictionNotice: true}, existing: []client.Object{labelled, sample.Maintenance("later", "one")}},
		"the node cannot be read":             {options: Options{EvictionNotice: true}, fails: "get Node"},
		"the maintenances of it are not read": {options: Options{EvictionNotice: true}, fails: "list NodeMaintenance"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrainer(t, test.options, test.existing...)
			d.api.Refuse = func(request string) error {
				if test.fails != "" && strings.HasPrefix(request, test.fails) {
					return errors.New("no cache")
				}
				return nil
			}
			if d.call(t, "jane", "one") {
				t.Error("jane is told of NodeMaintenances")
			}
		})
	}
}

// A drain that evicts all pods of a node at once is told once.
func TestNoticeReachesOneOfManyConcurrentEvictions(t *testing.T) {
	t.Parallel()
	d := newDrainer(t, Options{EvictionNotice: true})
	answers := make(chan bool)
	for range 50 {
		go func() { answers <- d.call(t, "jane", "one") }()
	}
	count := 0
	for range 50 {
		if <-answers {
			count++
		}
	}
	if count != 1 {
		t.Errorf("jane is told %d times, want once", count)
	}
}

// Whoever makes up users and nodes fills the memory and no more. What has to be
// remembered then is not, until there is room.
func TestAMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m, now := newMemory[string, int](time.Hour), time.Now()
	for n := range 2 * rememberedAtMost {
		m.first(fmt.Sprint(n), n, now)
	}
	if len(m.known) != rememberedAtMost {
		t.Errorf("%d are remembered, want %d", len(m.known), rememberedAtMost)
	}
	if m.first("late", 1, now) || m.recall("late", now) != 0 {
		t.Error("a memory that is full has room")
	}
	if m.note("0", 7, now); m.recall("0", now) != 7 {
		t.Error("what is remembered does not change in a memory that is full")
	}
	if !m.first("late", 1, now.Add(time.Hour)) || len(m.known) != 1 {
		t.Errorf("after an hour %d are remembered, want who came late", len(m.known))
	}
}
