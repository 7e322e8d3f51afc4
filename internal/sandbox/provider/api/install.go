package api

import (
	"embed"
	"io/fs"
)

//go:embed crds/*.yaml clusterrole.yaml
var files embed.FS

// CRDs returns the CustomResourceDefinitions, one YAML document each.
func CRDs() ([][]byte, error) {
	names, err := fs.Glob(files, "crds/*.yaml")
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, name := range names {
		document, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, document)
	}
	return all, nil
}

// Role returns the ClusterRole by which the manager may deal with the kinds, as
// a YAML document.
func Role() ([]byte, error) { return files.ReadFile("clusterrole.yaml") }
