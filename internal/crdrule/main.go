// Command crdrule adds to generated CRDs what Go markers cannot express: limits and rules inside
// foreign types such as LabelSelector, and the format of times. The API server refuses a CRD
// whose CEL rules could cost too much, so every list, map and string that a rule reads needs a
// limit. An overlay has the shape of the schema and never replaces a keyword.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

var (
	//go:embed labelselector.yaml
	labelSelector []byte
	//go:embed nodeselector.yaml
	nodeSelector []byte
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: crdrule <folder of the CRDs> <overlay.yaml>...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "crdrule:", err)
		os.Exit(1)
	}
}

// run completes every CRD of a folder in place. An overlay <resource>.yaml is for
// the CRD <group>_<resource>.yaml; one without its CRD is an error.
func run(folder string, overlays []string) error {
	byResource := map[string]string{}
	for _, overlay := range overlays {
		byResource[filepath.Base(overlay)] = overlay
	}
	crds, err := filepath.Glob(filepath.Join(folder, "*_*.yaml"))
	if err != nil {
		return fmt.Errorf("list CRDs: %w", err)
	}
	for _, crd := range crds {
		_, resource, _ := strings.Cut(filepath.Base(crd), "_")
		if err := complete(crd, byResource[resource]); err != nil {
			return fmt.Errorf("complete %s: %w", crd, err)
		}
		delete(byResource, resource)
	}
	for _, overlay := range byResource {
		return fmt.Errorf("no CRD in %s for the overlay %s", folder, overlay)
	}
	return nil
}

// complete adds to a CRD what all have, and what its overlay file says, if any.
func complete(crdFile, overlayFile string) error {
	crd, err := read(crdFile)
	if err != nil {
		return err
	}
	overlay := map[string]any{}
	if overlayFile != "" {
		if overlay, err = read(overlayFile); err != nil {
			return err
		}
	}
	if err := apply(crd, overlay); err != nil {
		return err
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := os.WriteFile(crdFile, append([]byte("---\n"), out...), 0o644); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func read(file string) (map[string]any, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	content, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", file, err)
	}
	return content, nil
}

func decode(document []byte) (content map[string]any, err error) {
	err = yaml.UnmarshalStrict(document, &content)
	return content, err
}

// apply merges the overlay into the schema of every version of the CRD.
func apply(crd, overlay map[string]any) error {
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return errors.New("not a CRD: spec.versions is empty")
	}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		schema, _ := version["schema"].(map[string]any)
		root, _ := schema["openAPIV3Schema"].(map[string]any)
		if err := merge(root, overlay, ""); err != nil {
			return err
		}
		spellTimes(root)
		joinLines(root)
		properties, _ := root["properties"].(map[string]any)
		spec, _ := properties["spec"].(map[string]any)
		if err := limitSelectors(spec, ".spec"); err != nil {
			return err
		}
	}
	return nil
}

// timePattern matches times as Go spells them. The format date-time alone also allows other
// spellings, such as a small t or z, and one such object would keep every controller from reading
// any of its kind.
const timePattern = `^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`

// timeRule refuses what is no string: beside a format, the API server takes a list for one. CEL
// cannot read that as a time.
const timeRule = "self >= timestamp('0001-01-01T00:00:00Z')"

// spellTimes adds the pattern and the rule to every time in a schema.
func spellTimes(schema any) {
	place, _ := schema.(map[string]any)
	if place["format"] == "date-time" {
		place["pattern"] = timePattern
		place["x-kubernetes-validations"] = []any{map[string]any{"rule": timeRule, "message": "must be a time, such as 2026-03-01T22:00:00Z"}}
	}
	for _, part := range place {
		spellTimes(part)
	}
}

// brokenLine is the end of a line in a paragraph and how the next one begins: no list, and no
// paragraph of its own.
var brokenLine = regexp.MustCompile(`([^\n])\n([^\s*-])`)

// joinLines has each paragraph of a description be one line. Comments in Go are broken where
// their lines end, and kubectl explain would show that in the middle of sentences.
func joinLines(schema any) {
	place, _ := schema.(map[string]any)
	if text, is := place["description"].(string); is {
		place["description"] = brokenLine.ReplaceAllString(text, "$1 $2")
	}
	for _, part := range place {
		joinLines(part)
	}
}

// limitSelectors adds the rules of selectors to each of a spec. Those of a status are written by
// controllers, and repeat what a spec has.
func limitSelectors(schema map[string]any, path string) error {
	if text := rulesOf(schema); text != nil {
		rules, err := decode(text)
		if err != nil {
			return fmt.Errorf("decode the rules of %s: %w", path, err)
		}
		return merge(schema, rules, path)
	}
	for key, part := range schema {
		if child, isMap := part.(map[string]any); isMap {
			if err := limitSelectors(child, path+"."+key); err != nil {
				return err
			}
		}
	}
	return nil
}

// rulesOf returns the rules of a schema that is a selector.
func rulesOf(schema map[string]any) []byte {
	properties, _ := schema["properties"].(map[string]any)
	switch {
	case properties["matchLabels"] != nil && properties["matchExpressions"] != nil:
		return labelSelector
	case properties["nodeSelectorTerms"] != nil:
		return nodeSelector
	}
	return nil
}

// merge adds to dst what src has. It neither replaces what is there nor adds a
// property to an object that has properties.
func merge(dst, src map[string]any, path string) error {
	for key, value := range src {
		at := path + "." + key
		child, isMap := value.(map[string]any)
		existing, exists := dst[key]
		switch target, targetIsMap := existing.(map[string]any); {
		case isMap && targetIsMap:
			if err := merge(target, child, at); err != nil {
				return err
			}
		case strings.HasSuffix(path, ".properties"):
			return fmt.Errorf("%s: the generated schema has no such property", at)
		case exists:
			return fmt.Errorf("%s: the generated schema sets it already", at)
		default:
			dst[key] = value
		}
	}
	return nil
}
