package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const crd = `
spec:
  versions:
  - name: v1alpha1
    schema:
      openAPIV3Schema:
        properties:
          metadata: {type: object}
          spec:
            type: object
            properties:
              reason: {type: string}
`

// Also in lists and in types that are not ours.
func TestTimesAreSpelledAsGoSpellsThem(t *testing.T) {
	target := decode(t, `
spec:
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          at: {type: string, format: date-time}
          conditions:
            items: {properties: {since: {type: string, format: date-time}, count: {type: integer, format: int32}}}
`)
	if err := apply(target, nil); err != nil {
		t.Fatal(err)
	}
	time := map[string]any{"type": "string", "format": "date-time", "pattern": timePattern}
	want := map[string]any{"properties": map[string]any{
		"at": time,
		"conditions": map[string]any{"items": map[string]any{"properties": map[string]any{
			"since": time, "count": map[string]any{"type": "integer", "format": "int32"},
		}}},
	}}
	version := target["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	if diff := cmp.Diff(want, version["schema"].(map[string]any)["openAPIV3Schema"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestApply(t *testing.T) {
	tests := map[string]struct {
		overlay string
		want    string
	}{
		"a limit is added": {
			"properties: {spec: {properties: {reason: {maxLength: 3}}}}",
			`{"properties":{"metadata":{"type":"object"},"spec":{"properties":{"reason":{"maxLength":3,"type":"string"}},"type":"object"}}}`,
		},
		"a rule is added": {
			"properties: {spec: {x-kubernetes-validations: [{rule: 'true'}]}}",
			`{"properties":{"metadata":{"type":"object"},"spec":{"properties":{"reason":{"type":"string"}},"type":"object","x-kubernetes-validations":[{"rule":"true"}]}}}`,
		},
		"metadata gets its properties": {
			"properties: {metadata: {properties: {name: {type: string}}}}",
			`{"properties":{"metadata":{"properties":{"name":{"type":"string"}},"type":"object"},"spec":{"properties":{"reason":{"type":"string"}},"type":"object"}}}`,
		},
		"a property that is gone is an error": {
			"properties: {spec: {properties: {cause: {maxLength: 3}}}}",
			".properties.spec.properties.cause: the generated schema has no such property",
		},
		"what a marker says is not overruled": {
			"properties: {spec: {properties: {reason: {type: integer}}}}",
			".properties.spec.properties.reason.type: the generated schema sets it already",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			target := decode(t, crd)
			got := ""
			if err := apply(target, decode(t, test.overlay)); err != nil {
				got = err.Error()
			} else {
				got = schema(t, target)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyRefusesWhatIsNoCRD(t *testing.T) {
	if err := apply(decode(t, "kind: Pod"), nil); err == nil || err.Error() != "not a CRD: spec.versions is empty" {
		t.Errorf("got: %v", err)
	}
}

func decode(t *testing.T, document string) map[string]any {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(document), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// schema is the schema of the first version as one line of JSON.
func schema(t *testing.T, crd map[string]any) string {
	t.Helper()
	spec := crd["spec"].(map[string]any)
	version := spec["versions"].([]any)[0].(map[string]any)
	data, err := yaml.Marshal(version["schema"].(map[string]any)["openAPIV3Schema"])
	if err != nil {
		t.Fatal(err)
	}
	line, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}
