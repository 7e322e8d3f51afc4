// Command helmrender writes what Helm would install but for the pods of the manager, as
// helm template does, so that what we ship can install it without Helm, and run the manager
// as a process.
package main

import (
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts/helm"
)

const head = "# Made by internal/helmrender from the chart beside it; change that and run make generate.\n"

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: helmrender <namespace> <values in YAML> <file to write>")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "helmrender:", err)
		os.Exit(1)
	}
}

func write(namespace, text, path string) error {
	release := helm.Release{Namespace: namespace, OutOfCluster: true}
	if err := yaml.UnmarshalStrict([]byte(text), &release.Values); err != nil {
		return fmt.Errorf("read the values: %w", err)
	}
	rendered, err := helm.Render(context.Background(), release)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(head), rendered...), 0o644)
}
