package api

import (
	"fmt"
	"strings"
	"testing"
)

const uid = "8f7cb2d0-5b3f-4c0e-9a55-0d1c2b3a4f5e"

// evacuation is an Evacuation of the pod with these further lines in its spec.
func evacuation(name, pod, spec string) string {
	return fmt.Sprintf(`
apiVersion: ebbtide.dev/v1alpha1
kind: Evacuation
metadata:
  name: %s
  namespace: default
spec:
  podRef: {name: %s, uid: %s}
%s`, name, pod, uid, indent(spec, "  "))
}

const classSyntax = "evacuatorClass must be a DNS subdomain such as drainer.example.com"

var badEvacuations = map[string]struct {
	spec string
	want refusal
}{
	"a deadline below ten minutes": {
		"progressDeadlineSeconds: 599",
		refusal{"spec.progressDeadlineSeconds": "should be greater than or equal to 600"},
	},
	"a deadline above six hours": {
		"progressDeadlineSeconds: 21601",
		refusal{"spec.progressDeadlineSeconds": "should be less than or equal to 21600"},
	},
	"a negative evacuator priority": {
		"evacuators: [{evacuatorClass: a.example.com, priority: -1}]",
		refusal{"spec.evacuators[0].priority": "should be greater than or equal to 0"},
	},
	"an evacuator priority above 100,000": {
		"evacuators: [{evacuatorClass: a.example.com, priority: 100001}]",
		refusal{"spec.evacuators[0].priority": "should be less than or equal to 100000"},
	},
	"an evacuator without a class": {
		"evacuators: [{priority: 1}]",
		refusal{"spec.evacuators[0].evacuatorClass": "Required value"},
	},
	"an empty class": {
		`evacuators: [{evacuatorClass: "", priority: 1}]`,
		refusal{"spec.evacuators[0].evacuatorClass": "should be at least 1 chars long"},
	},
	"a class in capitals": {
		"evacuators: [{evacuatorClass: Drainer, priority: 1}]",
		refusal{"spec.evacuators[0].evacuatorClass": classSyntax},
	},
	"a class that ends in a dot": {
		"evacuators: [{evacuatorClass: example.com., priority: 1}]",
		refusal{"spec.evacuators[0].evacuatorClass": classSyntax},
	},
	"the same class twice": {
		"evacuators: [{evacuatorClass: a.example.com, priority: 1}, {evacuatorClass: a.example.com, priority: 2}]",
		refusal{"spec.evacuators[1]": "Duplicate value"},
	},
	"101 evacuators": {
		"evacuators:\n" + evacuators(101),
		refusal{"spec.evacuators": "must have at most 100 items"},
	},
}

func TestEvacuationIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, test := range badEvacuations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.expect(t, try(t, c, evacuation(uid+"-web", "web", test.spec)))
		})
	}
}

func evacuators(n int) string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf("- {evacuatorClass: e%d.example.com, priority: %d}", i, i))
	}
	return strings.Join(lines, "\n")
}

// Pods may carry such registrations, with a warning only, and an Evacuation that
// cannot be created would let its pod down.
func TestOddRolesAreAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	tests := map[string]string{
		"the controller's role with another priority": "evacuators: [{evacuatorClass: a.example.com, priority: 9, role: controller}]",
		"the controller's priority without its role":  "evacuators: [{evacuatorClass: a.example.com, priority: 10000}]",
		"two controllers": "evacuators: [{evacuatorClass: a.example.com, priority: 10000, role: controller}, {evacuatorClass: b.example.com, priority: 10000, role: controller}]",
		"100 evacuators":  "evacuators:\n" + evacuators(100),
	}
	for name, spec := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := try(t, c, evacuation(uid+"-odd", "odd", spec)); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func TestEvacuationNameIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	long := strings.Repeat("p", 151)
	const (
		name      = "metadata.name"
		generated = "metadata.generateName"
	)
	tests := map[string]struct {
		metadata, pod string
		want          refusal
	}{
		"another name":   {"name: web", "web", refusal{name: "metadata.name must be " + uid + "-web, which is <spec.podRef.uid>-<first 150 characters of spec.podRef.name>"}},
		"another pod":    {"name: " + uid + "-db", "web", refusal{name: "metadata.name must be " + uid + "-web,"}},
		"the whole name": {"name: " + uid + "-" + long, long, refusal{name: "metadata.name must be " + uid + "-" + long[:150] + ","}},
		"a shorter name": {"name: " + uid + "-we", "web", refusal{name: "metadata.name must be " + uid + "-web,"}},
		"a generated name": {"generateName: web-", "web", refusal{
			name:      "metadata.name must be " + uid + "-web,",
			generated: "metadata.generateName is not supported: set metadata.name to <spec.podRef.uid>-<first 150 characters of spec.podRef.name>",
		}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			document := strings.Replace(evacuation("NAME", test.pod, ""), "name: NAME", test.metadata, 1)
			test.want.expect(t, try(t, c, document))
		})
	}
}

func TestPodRefIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	tests := map[string]struct {
		podRef string
		want   refusal
	}{
		"no pod":        {"{}", refusal{"spec.podRef.name": "Required value", "spec.podRef.uid": "Required value"}},
		"no UID":        {"{name: web}", refusal{"spec.podRef.uid": "Required value"}},
		"an empty UID":  {`{name: web, uid: ""}`, refusal{"spec.podRef.uid": "should be at least 1 chars long", "metadata.name": "metadata.name must be -web"}},
		"an empty name": {`{name: "", uid: a}`, refusal{"spec.podRef.name": "should be at least 1 chars long"}},
		"a long UID":    {"{name: web, uid: " + strings.Repeat("u", 65) + "}", refusal{"spec.podRef.uid": "may not be more than 64"}},
		"a long name":   {"{name: " + strings.Repeat("n", 254) + ", uid: a}", refusal{"spec.podRef.name": "may not be more than 253"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := fmt.Sprintf("{apiVersion: ebbtide.dev/v1alpha1, kind: Evacuation, metadata: {name: a, namespace: default}, spec: {podRef: %s}}", test.podRef)
			test.want.expect(t, try(t, c, document))
		})
	}
}

func TestChangeOfEvacuationIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	const once = "evacuators are set once and then immutable"
	tests := map[string]struct {
		before, change string
		want           refusal
	}{
		"another deadline": {
			"progressDeadlineSeconds: 600", "spec: {progressDeadlineSeconds: 601}",
			refusal{"spec.progressDeadlineSeconds": "progressDeadlineSeconds is immutable"},
		},
		"the deadline taken away": {
			"progressDeadlineSeconds: 600", "spec: {progressDeadlineSeconds: null}",
			refusal{"spec.progressDeadlineSeconds": "progressDeadlineSeconds is immutable"},
		},
		"another evacuator": {
			"evacuators: [{evacuatorClass: a.example.com, priority: 1}]", "spec: {evacuators: [{evacuatorClass: b.example.com, priority: 1}]}",
			refusal{"spec.evacuators": once},
		},
		"the evacuators taken away": {
			"evacuators: [{evacuatorClass: a.example.com, priority: 1}]", "spec: {evacuators: null}",
			refusal{"spec.evacuators": once},
		},
		"a negative counter": {
			"", "status: {failedEvictionCounter: -1}",
			refusal{"status.failedEvictionCounter": "should be greater than or equal to 0"},
		},
		"a long message": {
			"", "status: {message: " + strings.Repeat("m", 32769) + "}",
			refusal{"status.message": "may not be more than 32768"},
		},
		"a policy that does not exist": {
			"", "status: {evacuationCancellationPolicy: Ask}",
			refusal{"status.evacuationCancellationPolicy": `supported values: "Allow", "Forbid"`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
			o := create(t, c, evacuation(uid+"-"+pod, pod, test.before))
			test.want.expect(t, patch(t, c, o, test.change))
		})
	}
}

func TestPodRefIsImmutable(t *testing.T) {
	t.Parallel()
	c := server(t)
	// Beyond 150 characters two pods have the same Evacuation name, so that only
	// the rule of podRef is broken.
	pod := strings.Repeat("p", 150)
	o := create(t, c, evacuation(uid+"-"+pod, pod+"a", ""))
	refusal{"spec.podRef": "podRef is immutable; create an Evacuation of its own for another pod"}.
		expect(t, patch(t, c, o, "spec: {podRef: {name: "+pod+"b}}"))
}

func TestEvacuatorsAreSetOnce(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, evacuation(uid+"-once", "once", ""))
	if err := patch(t, c, o, "spec: {evacuators: [{evacuatorClass: a.example.com, priority: 10000, role: controller}]}"); err != nil {
		t.Fatalf("the first evacuators are refused: %v", err)
	}
	refusal{"spec.evacuators": "evacuators are set once and then immutable"}.
		expect(t, patch(t, c, o, "spec: {evacuators: []}"))
}

func TestFailedEvictionCounterGrows(t *testing.T) {
	t.Parallel()
	c := server(t)
	const grows = "failedEvictionCounter only grows; read the Evacuation again and count on from its value"
	o := create(t, c, evacuation(uid+"-counter", "counter", ""))
	for _, count := range []int{1, 1, 3} {
		if err := patch(t, c, o, fmt.Sprintf("status: {failedEvictionCounter: %d}", count)); err != nil {
			t.Fatalf("%d failed evictions are refused: %v", count, err)
		}
	}
	refusal{"status.failedEvictionCounter": grows}.expect(t, patch(t, c, o, "status: {failedEvictionCounter: 2}"))
	refusal{"status.failedEvictionCounter": grows}.expect(t, patch(t, c, o, "status: {failedEvictionCounter: null}"))
}

// What Go cannot read would keep the controller from reading any Evacuation.
func TestTimesAreSpelledAsGoSpellsThem(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, evacuation(uid+"-times", "times", ""))
	for name, test := range map[string]struct{ at, words string }{
		"in UTC":                    {"2026-11-20T10:00:00Z", ""},
		"elsewhere, with fractions": {"2026-11-20T10:00:00.123456789+05:30", ""},
		"small letters":             {"2026-11-20t10:00:00z", "should match"},
		"an impossible zone":        {"2026-11-20T10:00:00+25:00", "should match"},
		"no zone":                   {"2026-11-20T10:00:00", "must be of type date-time"},
	} {
		for field, status := range map[string]string{
			"status.evacuationProgressTimestamp":      "{evacuationProgressTimestamp: %q}",
			"status.expectedEvacuationFinishTime":     "{expectedEvacuationFinishTime: %q}",
			"status.conditions[0].lastTransitionTime": `{conditions: [{type: A, status: "True", reason: A, message: "", lastTransitionTime: %q}]}`,
		} {
			err := patch(t, c, o, "status: "+fmt.Sprintf(status, test.at))
			if test.words != "" {
				refusal{field: test.words}.expect(t, err)
			} else if err != nil {
				t.Errorf("%s, %s: %v", field, name, err)
			}
		}
	}
}
