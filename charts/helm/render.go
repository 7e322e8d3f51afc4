// Package helm renders the chart as Helm does, with Helm's own library. No binary that
// we ship imports it: templates reach methods by their names, so the linker has to keep
// every method of every type, which makes the plugin half as large again.
package helm

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"

	"ebbtide.dev/ebbtide/charts"
)

// root is the folder of the chart.
const root = "ebbtide"

// Release is how the chart is installed into a cluster. Cluster-scoped objects have
// fixed names, so there is one in a cluster.
type Release struct {
	// Namespace is where the manager is.
	Namespace string
	// Values are set instead of those of values.yaml, which has them all.
	Values map[string]any
}

// Render returns all objects that Helm would install beside the CRDs, as YAML documents,
// file by file: the account of the manager and what it may do, and what the API server
// asks about requests.
//
// Errors: values that values.schema.json refuses, a chart that is broken, or the end of the context.
func Render(ctx context.Context, release Release) ([]byte, error) {
	chart, err := load()
	if err != nil {
		return nil, err
	}
	values, err := util.ToRenderValues(chart, release.Values, common.ReleaseOptions{
		Name: root, Namespace: release.Namespace, Revision: 1, IsInstall: true,
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("read the values of the chart: %w", err)
	}
	// A value that values.yaml does not have is a mistake of the template.
	rendered, err := engine.Engine{Strict: true}.RenderWithContext(ctx, chart, values)
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	var all []byte
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if text := strings.TrimSpace(rendered[name]); text != "" && path.Ext(name) == ".yaml" {
			all = fmt.Appendf(all, "---\n# Source: %s\n%s\n", name, strings.TrimPrefix(text, "---\n"))
		}
	}
	return all, nil
}

// load reads the chart, once: nothing here changes it.
var load = sync.OnceValues(func() (*chart.Chart, error) {
	var all []*archive.BufferedFile
	err := fs.WalkDir(charts.Files, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := charts.Files.ReadFile(name)
		all = append(all, &archive.BufferedFile{Name: strings.TrimPrefix(name, root+"/"), Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	chart, err := loader.LoadFiles(all)
	if err != nil {
		return nil, fmt.Errorf("load the chart: %w", err)
	}
	return chart, nil
})
