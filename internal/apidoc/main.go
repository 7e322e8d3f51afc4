// Command apidoc writes docs/api.md: every kind with its fields, from the CRDs, and every
// constant, from the Go package of the API. It shows what the API server enforces: types,
// defaults, limits and the messages of refusals. The text is that of the types.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const head = `<!-- Made by internal/apidoc; change the types in api/v1alpha1 and run make generate. -->

# The API

Group and version of every kind are ` + "`ebbtide.dev/v1alpha1`" + `. Fields without "required" may be left out. An object that
breaks a limit is refused.

`

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: apidoc <folder of the CRDs> <folder of the Go package> <file to write>")
		os.Exit(2)
	}
	text, err := document(os.Args[1], os.Args[2])
	if err == nil {
		err = os.WriteFile(os.Args[3], []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "apidoc:", err)
		os.Exit(1)
	}
}

// document describes the kinds of one folder of CRDs, in the order of their
// names, and then the constants of a Go package.
func document(crds, goPackage string) (string, error) {
	groups, err := readConstants(goPackage)
	if err != nil {
		return "", fmt.Errorf("read the constants of %s: %w", goPackage, err)
	}
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil {
		return "", fmt.Errorf("list CRDs: %w", err)
	}
	out := &strings.Builder{}
	out.WriteString(head)
	var kinds []kind
	for _, file := range files {
		k, err := readKind(file)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", file, err)
		}
		kinds = append(kinds, k)
	}
	w := writer{out: out, values: valuesOf(groups)}
	w.contents(kinds)
	for _, k := range kinds {
		w.kind(k)
	}
	w.labelSelector(kinds)
	w.constants(groups)
	return out.String(), nil
}
