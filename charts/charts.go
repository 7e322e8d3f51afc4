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
func CRDs() ([][]byte, error) { return documents("ebbtide/crds/*.yaml") }

// Roles returns what the manager may do, one YAML document each: a ClusterRole
// and perhaps Roles, generated from the markers next to the code that needs the
// permissions; and, for a manager that acts on Machines, another ClusterRole and one
// that gathers what providers of infrastructure allow it.
func Roles() ([][]byte, error) { return documents("ebbtide/templates/*role.yaml") }

// KubeconfigRole returns the ClusterRole that is bound to the manager in each namespace
// whose Secrets with kubeconfigs it may read.
func KubeconfigRole() ([][]byte, error) { return documents("ebbtide/templates/kubeconfig-reader.yaml") }

// Admission returns what the API server asks about requests, one YAML document
// each: the webhook configurations with the Secret of their certificate and their
// Service, and policies that need no webhook.
func Admission() ([][]byte, error) {
	webhooks, err := documents("ebbtide/templates/webhook.yaml")
	if err != nil {
		return nil, err
	}
	policies, err := documents("ebbtide/templates/policy*.yaml")
	return append(webhooks, policies...), err
}

// documents returns every YAML document of the files that match the pattern.
func documents(pattern string) ([][]byte, error) {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, fmt.Errorf("find %s of the chart: %w", pattern, err)
	}
	var all [][]byte
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read %s of the chart: %w", name, err)
		}
		// Separators stand at the beginning of a line, also of the first one.
		for document := range bytes.SplitSeq(append([]byte("\n"), data...), []byte("\n---\n")) {
			if len(bytes.TrimSpace(document)) > 0 {
				all = append(all, document)
			}
		}
	}
	return all, nil
}
