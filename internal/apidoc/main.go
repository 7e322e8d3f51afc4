// Command apidoc writes pages of docs/reference that follow from the code: api.md from the
// CRDs, constants.md from the Go package of the API, and metrics.md from the metrics that the
// programs define.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// warning is the first line of each page.
const warning = "<!-- Made by internal/apidoc; change the code and run make generate. -->\n\n"

const apiHead = warning + `# The API

Group and version of every kind are ` + "`ebbtide.dev/v1alpha1`" + `. Fields without "required" may be left out. An object that
breaks a limit is refused. Conditions, reasons and keys are listed in [constants.md](constants.md).

`

const constantsHead = warning + `# Conditions, reasons, events and keys

Sets of reasons and of blocker types are open: more may follow.

`

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: apidoc CRDS API-PACKAGE SOURCES DOCS, each a folder")
		os.Exit(2)
	}
	pages, err := reference(os.Args[1], os.Args[2], os.Args[3])
	for name, page := range pages {
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[4], name), []byte(page), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "apidoc:", err)
		os.Exit(1)
	}
}

// reference returns the pages by their file names.
func reference(crds, apiPackage, sources string) (map[string]string, error) {
	groups, err := readConstants(apiPackage)
	if err != nil {
		return nil, fmt.Errorf("read the constants of %s: %w", apiPackage, err)
	}
	kinds, err := readKinds(crds)
	if err != nil {
		return nil, fmt.Errorf("read the CRDs of %s: %w", crds, err)
	}
	metrics, err := readMetrics(sources)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of %s: %w", sources, err)
	}
	values := valuesOf(groups)
	page := func(head string, write func(writer)) string {
		out := &strings.Builder{}
		out.WriteString(head)
		write(writer{out: out, values: values})
		return strings.TrimRight(out.String(), "\n") + "\n"
	}
	return map[string]string{
		"api.md":       page(apiHead, func(w writer) { w.kinds(kinds) }),
		"constants.md": page(constantsHead, func(w writer) { w.constants(groups) }),
		"metrics.md":   page(metricsHead, func(w writer) { w.metrics(metrics) }),
	}, nil
}
