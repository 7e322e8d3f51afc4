// Package charts holds the install artifact of Ebbtide, for whoever installs
// it without Helm, such as the sandbox.
package charts

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
)

//go:embed all:ebbtide
var files embed.FS

// CRDs returns the CustomResourceDefinitions of the chart, one YAML document each.
func CRDs() ([][]byte, error) {
	names, err := fs.Glob(files, "ebbtide/crds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("find CRDs of the chart: %w", err)
	}
	crds := make([][]byte, 0, len(names))
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read CRD of the chart: %w", err)
		}
		crds = append(crds, data)
	}
	return crds, nil
}

// Roles returns what the manager may do: a ClusterRole and perhaps Roles, one
// YAML document each. They are generated from the markers next to the code that
// needs the permissions.
func Roles() ([][]byte, error) {
	data, err := files.ReadFile("ebbtide/templates/clusterrole.yaml")
	if err != nil {
		return nil, fmt.Errorf("read roles of the chart: %w", err)
	}
	var roles [][]byte
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		if len(bytes.TrimSpace(document)) > 0 {
			roles = append(roles, document)
		}
	}
	return roles, nil
}
