package arch

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var (
	// integers are those that are neither counts nor seconds. The KEP has named
	// the last four, or what they go with.
	integers = []string{
		"observedGeneration", "completedGeneration", "priority", "podPriority", "order",
		"podsPendingEvacuation", "podsEvacuating", "podsRetained", "failedEvictionCounter",
	}
	// timestamps are the times that the KEP has named, and the one of a deadline.
	timestamps = []string{"startTimestamp", "evacuationProgressTimestamp", "time"}
	// things are what a string can only name, and an object refer to.
	things = regexp.MustCompile(`(?i)(^|[a-z])(object|pod|node|machine|cluster|budget|maintenance|evacuation|secret|rule|ref)s?$`)
	// foreign are fields whose types belong to Kubernetes, and so do their docs.
	foreign = []string{"metadata", "nodeSelector", "conditions"}
)

// field is a property of a schema.
type field struct {
	path, name string
	schema     apiextensionsv1.JSONSchemaProps
}

// crdOf reads a source as a CRD of ours; nil if it is none.
func crdOf(s source) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if !strings.HasPrefix(s.path, "charts/ebbtide/files/crds/") || yaml.Unmarshal([]byte(s.text), crd) != nil {
		return nil
	}
	return crd
}

// conventions finds fields of a CRD that the conventions of the Kubernetes API
// would name, type or document in another way.
func conventions(s source) (violations []string) {
	crd := crdOf(s)
	if crd == nil {
		return nil
	}
	for _, version := range crd.Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema
		visit(crd.Spec.Names.Kind, schema, func(f field) {
			for _, fault := range faults(f) {
				violations = append(violations, f.path+" "+fault)
			}
		})
		for _, column := range version.AdditionalPrinterColumns {
			if !resolves(schema, column.JSONPath) {
				violations = append(violations, fmt.Sprintf("column %s of %s shows %s, which does not exist", column.Name, crd.Spec.Names.Kind, column.JSONPath))
			}
		}
	}
	return violations
}

// visit visits the fields below a schema that are ours, in order of their names.
func visit(path string, schema *apiextensionsv1.JSONSchemaProps, see func(field)) {
	if schema.Items != nil {
		visit(path, schema.Items.Schema, see)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		f := field{path: path + "." + name, name: name, schema: schema.Properties[name]}
		see(f)
		if !slices.Contains(foreign, name) && f.schema.Properties["matchLabels"].Type == "" {
			visit(f.path, &f.schema, see)
		}
	}
}

// faults are what is wrong with one field.
func faults(f field) (faults []string) {
	schema := f.schema
	if first, _, _ := strings.Cut(strings.ReplaceAll(schema.Description, ":", " "), " "); first != f.name && !topLevel(f) {
		faults = append(faults, "has no description that begins with its name")
	}
	if schema.Type == "array" {
		if schema.XListType == nil {
			faults = append(faults, "does not say how the list merges")
		}
		schema = *schema.Items.Schema
	}
	switch {
	case schema.Type == "integer" && !slices.Contains(integers, f.name) && !strings.HasSuffix(f.name, "Count") && !strings.HasSuffix(f.name, "Seconds"):
		faults = append(faults, "is a number and ends neither in Count nor in Seconds")
	case schema.Format == "date-time" && !slices.Contains(timestamps, f.name) && !strings.HasSuffix(f.name, "Time"):
		faults = append(faults, "is a time and does not end in Time")
	case schema.Type == "string" && things.MatchString(f.name):
		faults = append(faults, "refers to something by a string that is no name")
	case strings.HasSuffix(f.name, "Ref") && schema.Properties["name"].Type != "string":
		faults = append(faults, "is a reference without a name")
	case f.name == "type" && len(schema.Enum) > 0:
		faults = append(faults, "is closed by an enum, so that nothing can be added to it")
	}
	return faults
}

// topLevel fields have the docs of Kubernetes.
func topLevel(f field) bool {
	return strings.Count(f.path, ".") == 1 && slices.Contains([]string{"apiVersion", "kind", "metadata"}, f.name)
}

// resolves says whether there is a field at a path of a printer column.
func resolves(schema *apiextensionsv1.JSONSchemaProps, path string) bool {
	if strings.HasPrefix(path, ".metadata.") {
		return true
	}
	filter := regexp.MustCompile(`\[[^]]*\]`)
	for _, name := range strings.Split(filter.ReplaceAllString(path, ""), ".")[1:] {
		if schema.Items != nil {
			schema = schema.Items.Schema
		}
		next, found := schema.Properties[name]
		if !found {
			return false
		}
		schema = &next
	}
	return true
}

func TestConventions(t *testing.T) {
	kinds := 0
	for _, s := range tree(t) {
		if crdOf(s) != nil {
			kinds++
		}
		for _, violation := range conventions(s) {
			t.Error(violation)
		}
	}
	if kinds != 9 {
		t.Errorf("there are %d CRDs, want those of 9 kinds", kinds)
	}
}

func TestConventionRuleCanFail(t *testing.T) {
	const head = "spec:\n  names: {kind: Pod}\n  versions:\n  - additionalPrinterColumns: [{name: %s, jsonPath: %s}]\n    schema:\n      openAPIV3Schema:\n        properties:\n          status: {description: status of it, properties: {%s}}\n"
	for name, test := range map[string]struct{ field, want string }{
		"a count":                  {"nodes: {type: integer, description: nodes are counted}", "Pod.status.nodes is a number and ends neither in Count nor in Seconds"},
		"a time":                   {"since: {type: string, format: date-time, description: since when}", "Pod.status.since is a time and does not end in Time"},
		"a reference":              {"object: {type: string, description: object of it}", "Pod.status.object refers to something by a string that is no name"},
		"references":               {"budgets: {type: array, items: {type: string}, x-kubernetes-list-type: set, description: budgets of it}", "Pod.status.budgets refers to something by a string that is no name"},
		"a reference to nobody":    {"podRef: {type: object, description: podRef of it}", "Pod.status.podRef is a reference without a name"},
		"an undocumented field":    {"phase: {type: string}", "Pod.status.phase has no description that begins with its name"},
		"a list":                   {"words: {type: array, items: {type: string}, description: words of it}", "Pod.status.words does not say how the list merges"},
		"an enum of an open set":   {"type: {type: string, enum: [a], description: type of it}", "Pod.status.type is closed by an enum, so that nothing can be added to it"},
		"a field inside of a list": {"words: {type: array, items: {properties: {at: {type: string, format: date-time, description: at a time}}}, x-kubernetes-list-type: atomic, description: words of it}", "Pod.status.words.at is a time and does not end in Time"},
	} {
		t.Run(name, func(t *testing.T) {
			got := conventions(example(t, "charts/ebbtide/files/crds/pods.yaml", fmt.Sprintf(head, "Status", ".status", test.field)))
			if diff := cmp.Diff([]string{test.want}, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
	got := conventions(example(t, "charts/ebbtide/files/crds/pods.yaml", fmt.Sprintf(head, "Nodes", ".status.nodes", "")))
	if diff := cmp.Diff([]string{"column Nodes of Pod shows .status.nodes, which does not exist"}, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}
