package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/charts/helm"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

// Account is the manager's. None of its names is a default, so that what takes them for
// constants fails wherever it is tested.
var Account = sandbox.Account{Namespace: "operations", Name: "drainer"}

// Chart are the objects of the chart as they are installed into clusters, except where
// webhooks are called, and with what agents of nodes need, which clusters have not.
func Chart(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	objects, err := render(t.Context(), Kinds(), map[string]any{
		"machines": map[string]any{"enabled": true}, "agent": map[string]any{"enabled": true, "hosts": true},
		"rollouts": map[string]any{"replace": []any{"machines", "cluster-api", "openshift", "karpenter"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// chart is what Helm would install, but for the pods of the manager.
func chart(ctx context.Context, spec Spec) ([]*unstructured.Unstructured, error) {
	var bridges []any
	for _, one := range strings.FieldsFunc(spec.Bridges, func(r rune) bool { return r == ',' }) {
		bridges = append(bridges, one)
	}
	var namespaces []any
	for _, one := range spec.jobNamespaces() {
		namespaces = append(namespaces, one)
	}
	kinds := Kinds()
	if spec.OnlyWebhooks {
		kinds = []string{}
	}
	objects, err := render(ctx, kinds, map[string]any{
		"machines":         map[string]any{"enabled": !spec.NoMachines},
		"evictionRequests": map[string]any{"enabled": spec.EvictionRequests},
		"bridges":          bridges,
		"rollouts":         map[string]any{"jobNamespaces": namespaces, "replace": spec.replaceable()},
	})
	for _, one := range spec.jobNamespaces() {
		namespace := &unstructured.Unstructured{}
		namespace.SetAPIVersion("v1")
		namespace.SetKind("Namespace")
		namespace.SetName(one)
		objects = slices.Insert(objects, 0, namespace)
	}
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetName() == spec.Lacks && strings.HasSuffix(o.GetKind(), "Binding")
	}), err
}

func (s Spec) jobNamespaces() []string {
	return strings.FieldsFunc(s.JobNamespaces, func(r rune) bool { return r == ',' })
}

// managerArgs are those of the manager that tests share.
func (s Spec) managerArgs() []string {
	args := []string{"--bridge=" + s.Bridges}
	var kinds []string
	for _, kind := range s.replaceable() {
		kinds = append(kinds, fmt.Sprint(kind))
	}
	args = append(args, "--rollout-replace="+strings.Join(kinds, ","))
	if s.JobNamespaces != "" {
		args = append(args, "--rollout-job-namespaces="+s.JobNamespaces)
	}
	return args
}

// replaceable are the machines that rollouts may delete: ours, and those of bridges.
func (s Spec) replaceable() (kinds []any) {
	if !s.NoMachines {
		kinds = append(kinds, "machines")
	}
	for _, bridge := range []string{"cluster-api", "openshift", "karpenter"} {
		if strings.Contains(s.Bridges, bridge) {
			kinds = append(kinds, bridge)
		}
	}
	return kinds
}

// Kinds are what the chart is told of the API servers of tests, for helm.Release: nil means
// that they serve MutatingAdmissionPolicies.
func Kinds() []string {
	if sandbox.ServesMutatingPolicies(sandbox.RequestedVersion()) {
		return nil
	}
	return []string{}
}

func render(ctx context.Context, kinds []string, values map[string]any) ([]*unstructured.Unstructured, error) {
	values["serviceAccount"] = map[string]any{"name": Account.Name}
	rendered, err := helm.Render(ctx, helm.Release{Namespace: Account.Namespace, OutOfCluster: true, Kinds: kinds, Values: values})
	if err != nil {
		return nil, err
	}
	return charts.Objects(rendered)
}
