package main

import (
	"os"
	"path/filepath"
	"strings"
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
	target := document(t, `
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
	time := map[string]any{
		"type": "string", "format": "date-time", "pattern": timePattern,
		"x-kubernetes-validations": []any{map[string]any{"rule": timeRule, "message": "must be a time, such as 2026-03-01T22:00:00Z"}},
	}
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

// kubectl explain shows descriptions as they are, and breaks lines itself.
func TestDescriptionsHaveNoBreaksInSentences(t *testing.T) {
	target := document(t, `
spec:
  versions:
  - schema:
      openAPIV3Schema:
        description: "A NodeMaintenance asks\nfor nodes.\n\nIt has stages:\n- Idle\n- Drain"
        properties:
          description: {type: string, description: "description is what\npeople say."}
`)
	if err := apply(target, nil); err != nil {
		t.Fatal(err)
	}
	want := document(t, `
description: "A NodeMaintenance asks for nodes.\n\nIt has stages:\n- Idle\n- Drain"
properties:
  description: {type: string, description: "description is what people say."}
`)
	version := target["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	if diff := cmp.Diff(want, version["schema"].(map[string]any)["openAPIV3Schema"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Also in lists, but not in a status.
func TestEveryLabelSelectorOfASpecIsLimited(t *testing.T) {
	target := document(t, `
spec:
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          spec: {properties: {pods: {items: {properties: {selector: &selector {properties: {
            matchLabels: {additionalProperties: {type: string}},
            matchExpressions: {items: {properties: {key: {}, operator: {}, values: {items: {type: string}}}}}}}}}}}}
          status: {properties: {selector: *selector}}
`)
	if err := apply(target, nil); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"maxProperties":16`, `"maxItems":16`, `"maxItems":64`, "use one of the operators In, NotIn, Exists, DoesNotExist"} {
		if got := schema(t, target); strings.Count(got, part) != 1 {
			t.Errorf("%s is not there once: %s", part, got)
		}
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
			target := document(t, crd)
			got := ""
			if err := apply(target, document(t, test.overlay)); err != nil {
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

func TestEveryCRDOfAFolderIsCompleted(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	one, two := write("example.com_ones.yaml", crd), write("example.com_twos.yaml", crd)
	overlay := write("ones.yaml", "properties: {spec: {properties: {reason: {maxLength: 3}}}}")
	if err := run(folder, []string{overlay}); err != nil {
		t.Fatal(err)
	}
	for file, limited := range map[string]bool{one: true, two: false} {
		content, err := read(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := schema(t, content); strings.Contains(got, `"maxLength":3`) != limited {
			t.Errorf("%s: limited should be %v: %s", filepath.Base(file), limited, got)
		}
	}
	err := run(folder, []string{write("threes.yaml", "properties: {}")})
	if err == nil || !strings.Contains(err.Error(), "no CRD in "+folder+" for the overlay") {
		t.Errorf("got: %v, want the overlay without its CRD named", err)
	}
}

func TestApplyRefusesOtherKindsThanCRDs(t *testing.T) {
	if err := apply(document(t, "kind: Pod"), nil); err == nil || err.Error() != "not a CRD: spec.versions is empty" {
		t.Errorf("got: %v", err)
	}
}

func document(t *testing.T, text string) map[string]any {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
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
