package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// fewFields are documented wherever they are.
const fewFields = 3

type schema = apiextensionsv1.JSONSchemaProps

// kind holds the documented parts of one CRD.
type kind struct {
	names      apiextensionsv1.CustomResourceDefinitionNames
	resource   string
	namespaced bool
	root       schema
	fields     []field
	// selector is the schema of its LabelSelectors; nil if it has none.
	selector *schema
	// known has the first path of each structure, by its fields; shared by all kinds.
	known map[string]string
}

// field is one field of a kind, or of what it has in it.
type field struct {
	path     string
	schema   schema
	required bool
	// like is the path with the same fields; empty if they follow.
	like string
}

// readKinds reads the CRDs of a folder in the order of their file names.
func readKinds(folder string) ([]kind, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var kinds []kind
	known := map[string]string{}
	for _, file := range files {
		k, err := readKind(file, known)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

func readKind(file string, known map[string]string) (kind, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return kind{}, fmt.Errorf("read: %w", err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return kind{}, fmt.Errorf("decode: %w", err)
	}
	if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Schema == nil {
		return kind{}, fmt.Errorf("want a CRD with the schema of one version, have %d", len(crd.Spec.Versions))
	}
	k := kind{
		names: crd.Spec.Names, resource: crd.Name, namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		root: *crd.Spec.Versions[0].Schema.OpenAPIV3Schema, known: known,
	}
	for _, part := range []string{"spec", "status"} {
		if s, has := k.root.Properties[part]; has {
			k.collect(field{path: part, schema: s, required: slices.Contains(k.root.Required, part)})
		}
	}
	return k, nil
}

// collect adds a field and those in it, but not those in a label selector or a condition, which are
// documented once or by Kubernetes, nor those that another field has as well.
func (k *kind) collect(f field) {
	inside, path := f.schema, f.path
	if inside.Items != nil {
		inside = *inside.Items.Schema
		path += "[]"
	}
	f.like = k.likeOf(path, inside)
	k.fields = append(k.fields, f)
	if f.like != "" {
		return
	}
	f.path = path
	switch {
	case isLabelSelector(inside):
		// That of a status repeats one of a spec and has no limits.
		if k.selector == nil && strings.HasPrefix(f.path, "spec") {
			k.selector = &inside
		}
	case !isConditions(f.schema):
		k.collectInside(f.path, inside)
	}
}

// likeOf returns the path with the same fields as this one; empty if there is none, or if they are
// too few to be worth a reference.
func (k *kind) likeOf(path string, inside schema) string {
	fields, err := json.Marshal(inside.Properties)
	if err != nil || len(inside.Properties) < fewFields || k.known == nil || isLabelSelector(inside) {
		return ""
	}
	if like, known := k.known[string(fields)]; known {
		return like
	}
	k.known[string(fields)] = k.names.Kind + " " + path
	return ""
}

func (k *kind) collectInside(path string, inside schema) {
	for _, name := range slices.Sorted(maps.Keys(inside.Properties)) {
		k.collect(field{path: path + "." + name, schema: inside.Properties[name], required: slices.Contains(inside.Required, name)})
	}
}

func isLabelSelector(s schema) bool {
	_, labels := s.Properties["matchLabels"]
	return labels
}

func isConditions(s schema) bool {
	return s.Items != nil && s.Items.Schema.Properties["lastTransitionTime"].Type != ""
}

// typeOf returns the type of a field in words.
func typeOf(s schema) string {
	switch {
	case isConditions(s):
		return "list of Condition"
	case s.Items != nil:
		return "list of " + typeOf(*s.Items.Schema)
	case isLabelSelector(s):
		return "[LabelSelector](#labelselector)"
	case s.AdditionalProperties != nil:
		return "map of " + typeOf(*s.AdditionalProperties.Schema)
	case s.Format == "date-time":
		return "time"
	case s.Type == "integer" && s.Format != "":
		return s.Format
	default:
		return s.Type
	}
}

// limits returns the validation of a field beside its type.
func limits(s schema) (limits []string) {
	if s.Default != nil {
		limits = append(limits, fmt.Sprintf("default `%s`", strings.Trim(string(s.Default.Raw), `"`)))
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, value := range s.Enum {
			values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
		}
		limits = append(limits, "one of "+strings.Join(values, ", "))
	}
	limits = append(limits, bounds("", whole(s.Minimum), whole(s.Maximum))...)
	if len(s.Enum) == 0 {
		limits = append(limits, bounds(" characters", s.MinLength, s.MaxLength)...)
	}
	limits = append(limits, bounds(" entries", s.MinItems, s.MaxItems)...)
	limits = append(limits, bounds(" entries", s.MinProperties, s.MaxProperties)...)
	if s.Pattern != "" && s.Format == "" {
		limits = append(limits, "matches `"+s.Pattern+"`")
	}
	if s.XListType != nil && *s.XListType == "map" {
		limits = append(limits, "merged by `"+strings.Join(s.XListMapKeys, "`, `")+"`")
	}
	return append(limits, entryLimits(s)...)
}

// entryLimits are the limits of what is in a list or map, unless it is an object
// with fields of its own.
func entryLimits(s schema) (all []string) {
	entry := schema{Type: "object"}
	switch {
	case s.Items != nil:
		entry = *s.Items.Schema
	case s.AdditionalProperties != nil:
		entry = *s.AdditionalProperties.Schema
	}
	if entry.Type != "object" {
		for _, limit := range limits(entry) {
			all = append(all, "each "+limit)
		}
	}
	return all
}

// whole is a limit of an integer, which JSON schema has as a float.
func whole(limit *float64) *int64 {
	if limit == nil {
		return nil
	}
	return new(int64(*limit))
}

// bounds describes the limits of a size.
func bounds(unit string, least, most *int64) []string {
	switch {
	case least == nil && most == nil:
		return nil
	case most == nil:
		return []string{fmt.Sprintf("at least %d%s", *least, unit)}
	case least == nil:
		return []string{fmt.Sprintf("at most %d%s", *most, unit)}
	default:
		return []string{fmt.Sprintf("%d to %d%s", *least, *most, unit)}
	}
}

// quoted is a piece of text in a CEL expression.
var quoted = regexp.MustCompile(`'([^']*)'`)

// refusals returns the messages of the rules of a field and of its entries. Parts of a message that
// are computed are left out.
func refusals(s schema) (words []string) {
	if s.Format == "date-time" {
		return nil // Its type says the same.
	}
	for _, rule := range s.XValidations {
		message := rule.Message
		if rule.MessageExpression != "" {
			var parts []string
			for _, part := range quoted.FindAllStringSubmatch(rule.MessageExpression, -1) {
				if strings.ContainsFunc(part[1], unicode.IsLetter) {
					parts = append(parts, part[1])
				}
			}
			message = strings.Join(parts, "…")
		}
		words = append(words, message)
	}
	if s.Items != nil {
		words = append(words, refusals(*s.Items.Schema)...)
	}
	return words
}
