package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// subject is an object that an argument names; kind is kindAny if only a name was given.
type subject struct{ kind, namespace, name string }

// Kinds of subjects.
const (
	kindAny, kindPod, kindNode, kindBudget = "", "pod", "node", "pdb"
	kindMachine, kindMaintenance           = "machine", "nodemaintenance"
	kindRollout                            = "noderollout"
)

// kinds have the names that kubectl takes, without the group, and the group.
var kinds = map[string]struct {
	names []string
	group string
}{
	kindPod:         {names: []string{"pod", "pods", "po"}},
	kindNode:        {names: []string{"node", "nodes", "no"}},
	kindBudget:      {[]string{"pdb", "pdbs", "poddisruptionbudget", "poddisruptionbudgets"}, "policy"},
	kindMachine:     {[]string{"machine", "machines", "ema"}, v1alpha1.SchemeGroupVersion.Group},
	kindMaintenance: {[]string{"nodemaintenance", "nodemaintenances", "nm"}, v1alpha1.SchemeGroupVersion.Group},
	kindRollout:     {[]string{"noderollout", "noderollouts", "nro"}, v1alpha1.SchemeGroupVersion.Group},
}

// kindOf returns the kind with a name such as pdb, nodes or nodemaintenances.v1alpha1.ebbtide.dev.
func kindOf(word string) (kind string, known bool) {
	name, group, _ := strings.Cut(strings.ToLower(word), ".")
	group = strings.TrimPrefix(strings.TrimPrefix(group, "v1."), v1alpha1.SchemeGroupVersion.Version+".")
	for kind, k := range kinds {
		if slices.Contains(k.names, name) && (group == "" || group == k.group) {
			return kind, true
		}
	}
	return kindAny, false
}

// isKind reports whether a word is a name of this kind.
func isKind(word, kind string) bool {
	found, known := kindOf(word)
	return known && found == kind
}

// subjectsOf reads NAME, KIND/NAME, KIND/NAMESPACE/NAME and KIND NAME..., each subject once, where
// a verb takes these kinds.
func subjectsOf(args []string, takes ...string) (subjects []subject, err error) {
	kind := kindAny
	if len(args) > 1 && !strings.Contains(args[0], "/") {
		if known, found := kindOf(args[0]); found {
			kind, args = known, args[1:]
		}
	}
	for _, arg := range args {
		s, ok := parseSubject(kind, arg)
		switch {
		case strings.Contains(s.name, ","):
			return nil, fmt.Errorf("invalid argument %q: separate names with spaces, not commas", excerpt.Line(arg, 260))
		case !ok || !slices.Contains(takes, s.kind):
			return nil, fmt.Errorf("invalid argument %q: use %s", excerpt.Line(arg, 300), forms(takes))
		}
		if !slices.Contains(subjects, s) {
			subjects = append(subjects, s)
		}
	}
	return subjects, nil
}

// parseSubject reads one argument; kind is the one that was given before.
func parseSubject(kind, arg string) (s subject, ok bool) {
	words := strings.Split(arg, "/")
	if len(words) == 1 {
		return subject{kind: kind, name: arg}, arg != ""
	}
	s.name = words[len(words)-1]
	if s.kind, ok = kindOf(words[0]); !ok || kind != kindAny || s.name == "" {
		return s, false
	}
	if len(words) == 2 {
		return s, true
	}
	s.namespace = words[1]
	return s, len(words) == 3 && s.kind != kindNode && s.kind != kindMaintenance && s.kind != kindRollout
}

// oneSubject is subjectsOf for a verb that takes exactly one.
func oneSubject(args []string, takes ...string) (subject, error) {
	subjects, err := subjectsOf(args, takes...)
	switch {
	case err != nil:
		return subject{}, err
	case len(subjects) != 1:
		return subject{}, fmt.Errorf("expected exactly one argument: %s", forms(takes))
	}
	return subjects[0], nil
}

// forms lists how the kinds that a verb takes are written.
func forms(takes []string) string {
	words := make([]string, len(takes))
	for i, kind := range takes {
		words[i] = strings.TrimPrefix(kind+"/NAME", "/")
	}
	return phrase.Or(words)
}

// maintenancesOf returns the names of maintenances, with those that hold a node in place of the
// node. A name without a kind is that of a maintenance if there is one, otherwise of a node.
//
// Errors: there is no such node, or no maintenance holds it.
func (c *connection) maintenancesOf(ctx context.Context, reached client.Client, subjects []subject) (names []string, err error) {
	for _, s := range subjects {
		if s.kind == kindMaintenance || s.kind == kindAny && !isOnlyNode(ctx, reached, s.name) {
			names = append(names, s.name)
			continue
		}
		node, err := metadataOf(ctx, reached, nodeKind, s.name)
		switch {
		case apierrors.IsNotFound(err):
			return nil, final(fmt.Errorf("node %q not found. List the nodes with\n  %s", s.name, c.kubectl("get nodes")))
		case err != nil:
			return nil, err
		}
		holders := holdersOf(node)
		if len(holders) == 0 {
			return nil, fmt.Errorf("no maintenance holds node %q. See its pods with\n  %s", s.name, c.command("why node/%s", s.name))
		}
		names = append(names, holders...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// isOnlyNode reports whether a node has this name, and no maintenance does.
func isOnlyNode(ctx context.Context, reached client.Client, name string) bool {
	if _, err := metadataOf(ctx, reached, maintenanceKind, name); !apierrors.IsNotFound(err) {
		return false
	}
	_, err := metadataOf(ctx, reached, nodeKind, name)
	return err == nil
}

var (
	nodeKind        = corev1.SchemeGroupVersion.WithKind("Node")
	maintenanceKind = v1alpha1.SchemeGroupVersion.WithKind("NodeMaintenance")
)

// metadataOf reads a cluster-scoped object.
func metadataOf(ctx context.Context, reached client.Client, kind schema.GroupVersionKind, name string) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	if err := reached.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, fmt.Errorf("get %s %s: %w", strings.ToLower(kind.Kind), name, err)
	}
	return object, nil
}

// metadataList lists the metadata of all objects of a kind.
func metadataList(ctx context.Context, reached client.Client, kind schema.GroupVersionKind, options ...client.ListOption) ([]*metav1.PartialObjectMetadata, error) {
	all, err := pages(ctx, reached, listKind(kind), whole[*metav1.PartialObjectMetadata], options...)
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", strings.ToLower(kind.Kind), err)
	}
	return all, nil
}

func listKind(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}
