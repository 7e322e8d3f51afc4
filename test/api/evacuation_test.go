package api

import (
	"fmt"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const uid = "8f7cb2d0-5b3f-4c0e-9a55-0d1c2b3a4f5e"

// evacuation returns the Evacuation of a pod with these further lines in its spec.
func evacuation(pod, spec string) string {
	return evacuationNamed("name: "+uid+"-"+strings.TrimRight(pod[:min(len(pod), 150)], "-."), pod, spec)
}

func evacuationNamed(metadata, pod, spec string) string {
	return fmt.Sprintf(`
apiVersion: ebbtide.dev/v1alpha1
kind: Evacuation
metadata:
  %s
  namespace: default
spec:
  podRef: {name: %s, uid: %s}
%s`, metadata, pod, uid, indent(spec, "  "))
}

func evacuators(n int) string {
	lines := []string{"evacuators:"}
	for i := range n {
		lines = append(lines, fmt.Sprintf("- {evacuatorClass: e%d.example.com, priority: %d}", i, i))
	}
	return strings.Join(lines, "\n")
}

// Pods may carry odd registrations, with a warning only, and an Evacuation that cannot be created
// would let its pod down.
func TestEvacuationIsAcceptedOrRefused(t *testing.T) {
	const (
		oneMover = "evacuators: [{evacuatorClass: a.example.com, priority: 1}]"
		deadline = "spec.progressDeadlineSeconds"
	)
	class := refusal{"spec.evacuators[0].evacuatorClass": "evacuatorClass must be a DNS subdomain such as drainer.example.com"}
	once := refusal{"spec.evacuators": "evacuators are set once and then immutable"}
	immutable := refusal{deadline: "progressDeadlineSeconds is immutable"}
	kind(evacuation).play(t, map[string]row{
		"the controller's role with another priority": {spec: "evacuators: [{evacuatorClass: a.example.com, priority: 9, role: controller}]"},
		"the controller's priority without its role":  {spec: "evacuators: [{evacuatorClass: a.example.com, priority: 10000}]"},
		"two controllers":                  {spec: "evacuators: [{evacuatorClass: a.example.com, priority: 10000, role: controller}, {evacuatorClass: b.example.com, priority: 10000, role: controller}]"},
		"100 evacuators":                   {spec: evacuators(100)},
		"a class in capitals":              {spec: "evacuators: [{evacuatorClass: Drainer, priority: 1}]", refused: class},
		"a class that ends in a dot":       {spec: "evacuators: [{evacuatorClass: example.com., priority: 1}]", refused: class},
		"a class twice":                    {spec: "evacuators: [{evacuatorClass: a.example.com, priority: 1}, {evacuatorClass: a.example.com, priority: 2}]", refused: refusal{"spec.evacuators[1]": "Duplicate value"}},
		"another deadline":                 {"progressDeadlineSeconds: 600", "spec: {progressDeadlineSeconds: 601}", immutable},
		"no deadline any longer":           {"progressDeadlineSeconds: 600", "spec: {progressDeadlineSeconds: null}", immutable},
		"first evacuators":                 {"", "spec: {evacuators: [{evacuatorClass: a.example.com, priority: 10000, role: controller}]}", nil},
		"another evacuator":                {oneMover, "spec: {evacuators: [{evacuatorClass: b.example.com, priority: 1}]}", once},
		"no evacuators any longer":         {oneMover, "spec: {evacuators: null}", once},
		"an empty list of evacuators":      {oneMover, "spec: {evacuators: []}", once},
		"a negative counter":               {"", "status: {failedEvictionCounter: -1}", refusal{"status.failedEvictionCounter": "should be greater than or equal to 0"}},
		"a long message":                   {"", "status: {message: " + strings.Repeat("m", 32769) + "}", refusal{"status.message": "may not be more than 32768"}},
		"a cancellation that is no policy": {"", "status: {evacuationCancellationPolicy: Ask}", refusal{"status.evacuationCancellationPolicy": `supported values: "Allow", "Forbid"`}},
	})
}

func TestEvacuationOfAnotherNameIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	long := strings.Repeat("p", 151)
	const (
		must    = "metadata.name must be "
		byPod   = "<spec.podRef.uid>-<first 150 characters of spec.podRef.name>"
		ofEmpty = "{apiVersion: ebbtide.dev/v1alpha1, kind: Evacuation, metadata: {name: a, namespace: default}, spec: {podRef: {name: web, uid: ''}}}"
	)
	named := func(name string) refusal { return refusal{"metadata.name": must + uid + "-" + name + ","} }
	for metadata, want := range map[string]refusal{
		"name: web":                      {"metadata.name": must + uid + "-web, which is " + byPod},
		"name: " + uid + "-db":           named("web"),
		"name: " + uid + "-we":           named("web"),
		"name: " + uid + "-web-and-more": named("web"),
		"generateName: web-": {
			"metadata.name":         must + uid + "-web,",
			"metadata.generateName": "metadata.generateName is not supported: set metadata.name to " + byPod,
		},
	} {
		want.expect(t, try(t, c, evacuationNamed(metadata, "web", "")))
	}
	named(long[:150]).expect(t, try(t, c, evacuationNamed("name: "+uid+"-"+long, long, "")))
	refusal{"spec.podRef.uid": "should be at least 1 chars long", "metadata.name": must + "-web"}.expect(t, try(t, c, ofEmpty))
}

func TestDefaultsOfAnEvacuation(t *testing.T) {
	t.Parallel()
	c := server(t)
	got := read[v1alpha1.Evacuation](t, c, create(t, c, evacuation("defaults", ""))).Spec.ProgressDeadlineSeconds
	if got == nil || *got != v1alpha1.DefaultProgressDeadlineSeconds {
		t.Errorf("progressDeadlineSeconds is %v, want %d", got, v1alpha1.DefaultProgressDeadlineSeconds)
	}
}

func TestPodRefIsImmutable(t *testing.T) {
	t.Parallel()
	c := server(t)
	// Beyond 150 characters two pods have the same Evacuation name, so that only
	// the rule of podRef is broken.
	pod := strings.Repeat("p", 150)
	o := create(t, c, evacuation(pod+"a", ""))
	refusal{"spec.podRef": "podRef is immutable; create an Evacuation of its own for another pod"}.
		expect(t, patch(t, c, o, "spec: {podRef: {name: "+pod+"b}}"))
}

func TestFailedEvictionCounterOnlyGrows(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, evacuation("counter", ""))
	for _, count := range []int{1, 1, 3} {
		accepts(t, c, o, fmt.Sprintf("status: {failedEvictionCounter: %d}", count))
	}
	for _, count := range []string{"2", "null"} {
		refusal{"status.failedEvictionCounter": "failedEvictionCounter only grows; read the Evacuation again and count on from its value"}.
			expect(t, patch(t, c, o, "status: {failedEvictionCounter: "+count+"}"))
	}
}

// What Go cannot read would keep the controller from reading any Evacuation.
func TestTimeThatGoCannotReadIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, evacuation("times", ""))
	for at, words := range map[string]string{
		"2026-11-20T10:00:00Z": "", "2026-11-20T10:00:00.123456789+05:30": "",
		"2026-11-20t10:00:00z": "should match", "2026-11-20T10:00:00+25:00": "should match", "2026-11-20T10:00:00": "must be of type date-time",
	} {
		for field, status := range map[string]string{
			"status.evacuationProgressTimestamp":      "{evacuationProgressTimestamp: %q}",
			"status.expectedEvacuationFinishTime":     "{expectedEvacuationFinishTime: %q}",
			"status.conditions[0].lastTransitionTime": `{conditions: [{type: A, status: "True", reason: A, message: "", lastTransitionTime: %q}]}`,
		} {
			want := refusal{}
			if words != "" {
				want[field] = words
			}
			want.expect(t, patch(t, c, o, "status: "+fmt.Sprintf(status, at)))
		}
	}
}
