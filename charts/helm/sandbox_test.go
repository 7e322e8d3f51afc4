package helm_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/charts/helm"
)

// The sandbox has no Helm, and installs what make generate has rendered. It has the manager
// as a process, and has installed the CRDs before.
func TestTheSandboxInstallsTheChart(t *testing.T) {
	t.Parallel()
	for policies, kinds := range map[bool][]string{true: nil, false: {}} {
		got, err := charts.Sandbox(policies)
		if err != nil {
			t.Fatal(err)
		}
		values := read(t, "{machines: {enabled: true}, evictionRequests: {enabled: true}}")
		want := slices.DeleteFunc(renderFor(t, helm.Release{Namespace: "ebbtide-system", Kinds: kinds, Values: values}),
			func(o *unstructured.Unstructured) bool {
				return slices.Contains([]string{"CustomResourceDefinition", "Deployment", "PodDisruptionBudget"}, o.GetKind()) || ofHook(o)
			})
		byName := cmpopts.SortSlices(func(a, b *unstructured.Unstructured) bool {
			return a.GetKind()+a.GetNamespace()+a.GetName() < b.GetKind()+b.GetNamespace()+b.GetName()
		})
		if diff := cmp.Diff(want, got, byName); diff != "" {
			t.Errorf("with policies %t it is not what the chart renders, run make generate (-want +got):\n%s", policies, diff)
		}
	}
}
