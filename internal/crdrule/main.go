// Command crdrule adds to a generated CRD what Go markers cannot say: limits
// and rules inside types that are not ours, such as a NodeSelector, and the
// spelling of times.
//
// A limit is needed on every list, map and string that a CEL rule reads, because
// the API server refuses a CRD whose rules could become too expensive. The
// overlay has the shape of the schema; it adds keywords to places that exist and
// never replaces one, so that it cannot drift away from the Go types unnoticed.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: crdrule <overlay.yaml> <crd.yaml>")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "crdrule:", err)
		os.Exit(1)
	}
}

// run merges the overlay file into every version of the CRD file, in place.
func run(overlayFile, crdFile string) error {
	overlay, err := read(overlayFile)
	if err != nil {
		return err
	}
	crd, err := read(crdFile)
	if err != nil {
		return err
	}
	if err := apply(crd, overlay); err != nil {
		return fmt.Errorf("merge %s into %s: %w", overlayFile, crdFile, err)
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return fmt.Errorf("encode %s: %w", crdFile, err)
	}
	if err := os.WriteFile(crdFile, append([]byte("---\n"), out...), 0o644); err != nil {
		return fmt.Errorf("write CRD: %w", err)
	}
	return nil
}

func read(file string) (map[string]any, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	var content map[string]any
	if err := yaml.UnmarshalStrict(data, &content); err != nil {
		return nil, fmt.Errorf("decode %s: %w", file, err)
	}
	return content, nil
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
	}
	return nil
}

// timePattern is how Go spells a time. The format date-time alone also allows
// what Go cannot read, such as a small t or z, and one such object would keep
// every controller from reading any of its kind.
const timePattern = `^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`

// spellTimes adds the pattern to every time in a schema.
func spellTimes(schema any) {
	place, _ := schema.(map[string]any)
	if place["format"] == "date-time" {
		place["pattern"] = timePattern
	}
	for _, part := range place {
		spellTimes(part)
	}
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
