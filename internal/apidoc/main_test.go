package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const crd = `
metadata: {name: ferries.example.com}
spec:
  names: {kind: Ferry, shortNames: [fe]}
  scope: Namespaced
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: Ferry crosses a river.
        x-kubernetes-validations:
        - {rule: "true", messageExpression: "'no ' + self.kind + '-' + ' crosses <here>'"}
        properties:
          metadata: {type: object}
          spec:
            type: object
            description: spec is what it takes.
            required: [seats]
            properties:
              seats: {type: integer, format: int32, minimum: 1, maximum: 2147483647, description: seats for people.}
              mood: {type: string, enum: [Calm, Wild], maxLength: 4, default: Calm, description: "mood is MoodCalm or else."}
              names:
                type: array
                description: names are painted on it.
                maxItems: 3
                items: {type: string, pattern: ^a|b$, x-kubernetes-validations: [{rule: "true", message: paint a or b}]}
              crew: {type: object, description: crew is who works on it., properties: {matchLabels: {type: object, additionalProperties: {type: string, maxLength: 63}, maxProperties: 16, description: matchLabels of people.}}}
          status:
            type: object
            description: status is where it is.
            properties:
              landed: {type: array, description: landed where, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [shore], items: {type: object, properties: {shore: {type: string, minLength: 1, description: shore of the river.}, landTime: {type: string, format: date-time, pattern: ^Z, description: landTime is when.}}}}
              conditions: {type: array, description: conditions of the ferry., items: {properties: {lastTransitionTime: {type: string}}}}
`

const constants = `package v1

import "example.com/river"

// Keys of ferries. They are wet.
const (
	// KeyPrefix begins a key
	// | of a ferry.
	KeyPrefix = "example.com/"
	// KeyDeck: goes with MoodCalm.
	KeyDeck = KeyPrefix + "deck"
	hidden  = river.Depth
)

// Mood is how it feels.
//
// +kubebuilder:validation:Enum=Calm;Wild
type Mood string

const (
	// MoodCalm is calm.
	MoodCalm Mood = "Calm"
)
`

const wantAPI = apiHead + `- [Ferry](#ferry)
- [LabelSelector](#labelselector)

## Ferry

` + "`ferries.example.com`, short `fe`" + `, namespaced.

Ferry crosses a river.

- *Refused otherwise:* no … crosses &lt;here&gt;

| field | type and limits | meaning |
|---|---|---|
| ` + "`spec`" + ` | object | spec is what it takes. |
| ` + "`spec.crew`" + ` | [LabelSelector](#labelselector) | crew is who works on it. |
| ` + "`spec.mood` | string, default `Calm`, one of `Calm`, `Wild` | mood is `Calm`" + ` or else. |
| ` + "`spec.names`" + ` | list of string, at most 3 entries, each matches ` + "`^a\\|b$`" + ` | names are painted on it.<br>*Refused otherwise:* paint a or b |
| ` + "`spec.seats`" + ` | int32, required, 1 to 2147483647 | seats for people. |
| ` + "`status`" + ` | object | status is where it is. |
| ` + "`status.conditions`" + ` | list of Condition | conditions of the ferry. |
| ` + "`status.landed` | list of object, merged by `shore`" + ` | landed where |
| ` + "`status.landed[].landTime`" + ` | time | landTime is when. |
| ` + "`status.landed[].shore`" + ` | string, at least 1 characters | shore of the river. |

## LabelSelector

The type of Kubernetes, within limits.

| field | type and limits | meaning |
|---|---|---|
| ` + "`matchLabels`" + ` | map of string, at most 16 entries, each at most 63 characters | matchLabels of people. |
`

const wantConstants = constantsHead + `## Keys of ferries

They are wet.

| value | in Go | meaning |
|---|---|---|
| ` + "`example.com/` | `KeyPrefix`" + ` | begins a key \| of a ferry. |
| ` + "`example.com/deck` | `KeyDeck` | goes with `Calm`" + `. |

## Mood

Mood is how it feels.

| value | in Go | meaning |
|---|---|---|
| ` + "`Calm` | `MoodCalm`" + ` | is calm. |
`

const metricSource = `package boat

var speed = prometheus.NewDesc("boat_speed", "Speed of the ferry | in knots.", []string{"ferry"}, nil)

func metrics() {
	trips := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "boat_trips_total", Help: "Trips."}, []string{"from", "to"})
	register(prometheus.NewRegistry(), trips, fmt.New("no metric"))
}
`

const wantMetrics = metricsHead + `| metric | type | labels | meaning |
|---|---|---|---|
| ` + "`boat_speed` | gauge | ferry | Speed of the ferry \\| in knots. |" + `
| ` + "`boat_trips_total` | counter | from, to | Trips. |" + `
`

func TestReferenceDescribesKindsConstantsAndMetrics(t *testing.T) {
	crds, code, sources := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(crds, "ferries.yaml"), crd)
	write(t, filepath.Join(code, "types.go"), constants)
	write(t, filepath.Join(sources, "metrics.go"), metricSource)
	got, err := reference(crds, code, sources)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"api.md": wantAPI, "constants.md": wantConstants, "metrics.md": wantMetrics}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reference (-want +got):\n%s", diff)
	}
}

func TestReferenceRefusesOtherKindsThanCRDs(t *testing.T) {
	crds := t.TempDir()
	write(t, filepath.Join(crds, "list.yaml"), "kind: List\n")
	if _, err := reference(crds, t.TempDir(), t.TempDir()); err == nil {
		t.Error("a list was taken for a CRD")
	}
}

func TestReferencePagesAreUpToDate(t *testing.T) {
	made, err := reference("../../charts/ebbtide/files/crds", "../../api/v1alpha1", "../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range made {
		kept, err := os.ReadFile(filepath.Join("../../docs/reference", name))
		if diff := cmp.Diff(string(kept), page); diff != "" {
			t.Errorf("docs/reference/%s is out of date, run make generate (-kept +made): %v\n%s", name, err, diff)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
