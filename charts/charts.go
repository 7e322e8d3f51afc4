// Package charts holds the install artifact of Ebbtide, for whoever installs
// it without Helm, such as the sandbox.
package charts

import (
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

// ClusterRole returns what the manager may do, as YAML. It is generated from
// the markers next to the code that needs the permissions.
func ClusterRole() ([]byte, error) {
	data, err := files.ReadFile("ebbtide/templates/clusterrole.yaml")
	if err != nil {
		return nil, fmt.Errorf("read ClusterRole of the chart: %w", err)
	}
	return data, nil
}
