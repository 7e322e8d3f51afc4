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
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// maintenanceKinds are the names of the kind that kubectl takes, without the group.
var maintenanceKinds = []string{"nodemaintenance", "nodemaintenances", "nm"}

func isMaintenanceKind(word string) bool {
	kind, group, _ := strings.Cut(strings.ToLower(word), ".")
	return slices.Contains(maintenanceKinds, kind) && slices.Contains([]string{"", "ebbtide.dev", "v1alpha1.ebbtide.dev"}, group)
}

// maintenanceNames reads NAME, nodemaintenance/NAME, node/NAME and "nodemaintenance NAME...",
// each once. A node keeps its kind before its name.
func maintenanceNames(args []string) ([]string, error) {
	if len(args) > 1 && isMaintenanceKind(args[0]) {
		args = args[1:]
	}
	var names []string
	for _, arg := range args {
		name := arg
		of := "NodeMaintenance"
		if kind, rest, found := strings.Cut(arg, "/"); found && isMaintenanceKind(kind) {
			name = rest
		} else if found && isNodeKind(kind) {
			name, of = rest, "node"
		}
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			return nil, fmt.Errorf("%q is no name of a %s: %s", excerpt.Line(arg, 300), of, wrong[0])
		}
		if of == "node" {
			name = nodePrefix + name
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// nodePrefix marks the name of a node among those of maintenances.
const nodePrefix = "node/"

// ofNodes puts the maintenances that hold a node in place of the node. A name without a kind
// is that of a maintenance if there is one, or else of a node.
//
// Errors: there is no such node, or nobody holds it.
func (c *connection) ofNodes(ctx context.Context, reached client.Client, names []string) (maintenances []string, err error) {
	for _, name := range names {
		if !strings.HasPrefix(name, nodePrefix) && !onlyANode(ctx, reached, name) {
			maintenances = append(maintenances, name)
			continue
		}
		node := strings.TrimPrefix(name, nodePrefix)
		object, err := metadataOf(ctx, reached, nodeKind, node)
		switch {
		case apierrors.IsNotFound(err):
			return nil, said{fmt.Errorf("there is no node %s. See which there are with\n  %s", node, c.kubectl("get nodes"))}
		case err != nil:
			return nil, err
		}
		holders := holdersOf(object)
		if len(holders) == 0 {
			return nil, fmt.Errorf("no maintenance holds node %s. See what is on it with\n  %s", object.Name, c.command("why node/%s", object.Name))
		}
		maintenances = append(maintenances, holders...)
	}
	slices.Sort(maintenances)
	return slices.Compact(maintenances), nil
}

// onlyANode is true of a name that is that of a node, and of no maintenance.
func onlyANode(ctx context.Context, reached client.Client, name string) bool {
	if _, err := metadataOf(ctx, reached, v1alpha1.SchemeGroupVersion.WithKind("NodeMaintenance"), name); !apierrors.IsNotFound(err) {
		return false
	}
	_, err := metadataOf(ctx, reached, nodeKind, name)
	return err == nil
}

var nodeKind = corev1.SchemeGroupVersion.WithKind("Node")

// metadataOf reads an object that has no namespace.
func metadataOf(ctx context.Context, reached client.Client, kind schema.GroupVersionKind, name string) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	if err := reached.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, fmt.Errorf("get %s %s: %w", strings.ToLower(kind.Kind), name, err)
	}
	return object, nil
}
