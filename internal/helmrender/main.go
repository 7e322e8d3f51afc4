// Command helmrender writes what Helm would install but for the pods of the manager, as
// helm template does, so that what we ship can install it without Helm, and run the manager
// as a process.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts/helm"
)

const separator = "---\n"

const head = "# Made by internal/helmrender from the chart beside it; change that and run make generate.\n"

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: helmrender <namespace> <values in YAML> <file to write> <file for what older API servers get instead>")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "helmrender:", err)
		os.Exit(1)
	}
}

func write(namespace, text, path, olderPath string) error {
	release := helm.Release{Namespace: namespace, OutOfCluster: true}
	if err := yaml.UnmarshalStrict([]byte(text), &release.Values); err != nil {
		return fmt.Errorf("read the values: %w", err)
	}
	rendered, err := helm.Render(context.Background(), release)
	if err != nil {
		return err
	}
	release.Kinds = []string{}
	older, err := helm.Render(context.Background(), release)
	if err != nil {
		return err
	}
	var differs strings.Builder
	for object := range strings.SplitSeq(string(older), separator) {
		if !strings.Contains(string(rendered), strings.TrimSpace(object)) {
			differs.WriteString(separator + object)
		}
	}
	return errors.Join(
		os.WriteFile(path, append([]byte(head), rendered...), 0o644),
		os.WriteFile(olderPath, []byte(head+differs.String()), 0o644))
}
