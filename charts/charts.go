// Package charts holds the Helm chart of Ebbtide, and what it renders for whoever
// installs it without Helm, such as the sandbox.
package charts

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Files are those of the chart, in the folder ebbtide.
//
//go:embed all:ebbtide
var Files embed.FS

//go:embed sandbox.yaml
var sandbox []byte

//go:embed sandbox-older.yaml
var older []byte

// roles are apart from Files, so that a program that reads them alone is not linked with all.
//
//go:embed ebbtide/files/role*.yaml
var roles embed.FS

// CRDs returns the CustomResourceDefinitions of the chart, one YAML document each.
func CRDs() ([][]byte, error) {
	names, err := fs.Glob(Files, "ebbtide/files/crds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("find the CRDs of the chart: %w", err)
	}
	var all [][]byte
	for _, name := range names {
		data, err := Files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read %s of the chart: %w", name, err)
		}
		all = append(all, documents(data)...)
	}
	return all, nil
}

// Sandbox returns all objects that Helm would install beside the CRDs and the pods of the
// manager, with Machines, in the namespace ebbtide-system. They are generated. An API server
// that serves no MutatingAdmissionPolicies gets some of them in another form.
func Sandbox(policies bool) ([]*unstructured.Unstructured, error) {
	objects, err := Objects(sandbox)
	if err != nil || policies {
		return objects, err
	}
	others, err := Objects(older)
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return strings.HasPrefix(o.GetKind(), "MutatingAdmissionPolicy") || slices.ContainsFunc(others, func(other *unstructured.Unstructured) bool {
			return o.GetKind() == other.GetKind() && o.GetName() == other.GetName()
		})
	})
	return append(objects, others...), err
}

// Role returns the ClusterRoles and Roles of a file of the chart, such as role-machines. A Role
// of the namespace "release" belongs into that of the manager.
func Role(name string) ([]*unstructured.Unstructured, error) {
	file, err := roles.ReadFile("ebbtide/files/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read a role of the chart: %w", err)
	}
	return Objects(file)
}

// Objects reads a file of YAML documents.
//
// Errors: a document that is no object, or has a key twice.
func Objects(file []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, document := range documents(file) {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		// What is a comment and nothing else is none.
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// documents splits a file into its YAML documents that say anything.
func documents(data []byte) [][]byte {
	var all [][]byte
	// Separators stand at the beginning of a line, also of the first one.
	for document := range bytes.SplitSeq(append([]byte("\n"), data...), []byte("\n---\n")) {
		if len(bytes.TrimSpace(document)) > 0 {
			all = append(all, document)
		}
	}
	return all
}
