package scenario

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	// ebbtides is what only Ebbtide writes: its keys, those of the source documents, the
	// hash of detached pods, the reason of its node conditions.
	ebbtides = regexp.MustCompile(`"[^"]*(ebbtide|Ebbtide|nodemaintenance\.k8s\.io|evacuation\.coordination\.k8s\.io/instigator_)[^"]*"`)
	// others are keys of the sandbox, of scenarios, those by which people ask for something, and
	// who began a NodeMaintenance, which stays with it.
	others = regexp.MustCompile(`^"(sandbox\.|scenario\.)|ebbtide\.dev/(on-upgrade|aggregate-to-manager|requested-by)"`)
)

// traces are all keys of Ebbtide on all objects of all resources of the API, one line
// each. What is told, and the definitions of its kinds, are no objects that bear any.
func (w *world) traces() []string {
	w.t.Helper()
	kinds, err := discovery.NewDiscoveryClientForConfigOrDie(w.cluster.Config).ServerPreferredResources()
	w.must("discover", err)
	var lines []string
	for _, list := range kinds {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		w.must("discover", err)
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") && resource.Kind != "Event" && resource.Kind != "CustomResourceDefinition" {
				lines = append(lines, w.tracesOn(group.WithKind(resource.Kind))...)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func (w *world) tracesOn(kind schema.GroupVersionKind) (lines []string) {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	w.must("list "+kind.Kind, w.client.List(w.ctx, list, client.Limit(0)))
	for i := range list.Items {
		o := &list.Items[i]
		// An Evacuation and a DrainRecord are traces themselves, a NodeMaintenance is not.
		if kind.Kind == "Evacuation" || kind.Kind == "DrainRecord" {
			lines = append(lines, fmt.Sprintf("%s %s/%s", kind.Kind, o.GetNamespace(), o.GetName()))
		}
		at := func(path ...string) any {
			found, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
			return found
		}
		keys := []any{o.GetLabels(), o.GetAnnotations(), o.GetFinalizers(), at("spec", "taints"), at("spec", "schedulingGates")}
		if kind.Kind == "Node" {
			keys = append(keys, at("status", "conditions"))
		}
		text, err := json.Marshal(keys)
		w.must("read "+o.GetName(), err)
		for _, key := range ebbtides.FindAllString(string(text), -1) {
			// Pools of nodes have the names of tests.
			if !others.MatchString(key) && !strings.Contains(key, w.prefix[:len(w.prefix)-1]) {
				lines = append(lines, fmt.Sprintf("%s %s/%s %s", kind.Kind, o.GetNamespace(), o.GetName(), key))
			}
		}
	}
	return lines
}
