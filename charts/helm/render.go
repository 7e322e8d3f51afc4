// Package helm renders the chart as Helm does, with Helm's own library. No binary that
// we ship imports it: templates reach methods by their names, so the linker has to keep
// every method of every type, which makes the plugin half as large again.
package helm

import (
	"cmp"
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
	// Name of the release, by which nothing is named. Defaults to ebbtide.
	Name string
	// Namespace is where the manager is.
	Namespace string
	// OutOfCluster leaves out what runs the manager as pods, where it is a process of the
	// machine, and the CRDs, which whoever starts that has installed before.
	OutOfCluster bool
	// Cluster answers what the chart looks up in the cluster. Without it nothing is there,
	// as for helm template.
	Cluster engine.ClientProvider
	// Kinds are what the cluster serves of what the chart asks for, as group/version/Kind.
	// Defaults to all of it, as Kubernetes has it since 1.36.
	Kinds []string
	// Values are set instead of those of values.yaml, which has them all.
	Values map[string]any
}

// Render returns all objects that Helm would install, as YAML documents, file by file.
//
// Errors: values that values.schema.json refuses, a chart that is broken, a cluster that
// the chart does not go into, or the end of the context.
func Render(ctx context.Context, release Release) ([]byte, error) {
	chart, err := load()
	if err != nil {
		return nil, err
	}
	capabilities := common.DefaultCapabilities.Copy()
	if release.Kinds == nil {
		release.Kinds = []string{"admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"}
	}
	capabilities.APIVersions = slices.Concat(capabilities.APIVersions, release.Kinds)
	values, err := util.ToRenderValues(chart, release.Values, common.ReleaseOptions{
		Name: cmp.Or(release.Name, root), Namespace: release.Namespace, Revision: 1, IsInstall: true,
	}, capabilities)
	if err != nil {
		return nil, fmt.Errorf("read the values of the chart: %w", err)
	}
	rendered, err := release.render(ctx, chart, values)
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	var all []byte
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if release.OutOfCluster && inCluster(name) {
			continue
		}
		if text := strings.TrimSpace(rendered[name]); text != "" && path.Ext(name) == ".yaml" {
			all = fmt.Appendf(all, "---\n# Source: %s\n%s\n", name, strings.TrimPrefix(text, "---\n"))
		}
	}
	return all, nil
}

// render returns the files as they are rendered.
func (r Release) render(ctx context.Context, chart *chart.Chart, values common.Values) (map[string]string, error) {
	if r.Cluster != nil {
		return engine.RenderWithClientProvider(chart, values, r.Cluster)
	}
	// A value that values.yaml does not have is a mistake of the template.
	return engine.Engine{Strict: true}.RenderWithContext(ctx, chart, values)
}

// inCluster is true for what a manager needs only where it is a pod.
func inCluster(name string) bool {
	folder, file := path.Split(name)
	return folder == root+"/templates/manager/" || file == "crds.yaml"
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
