package cli

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// maintenanceKinds are the names of the kind that kubectl takes, without the group.
var maintenanceKinds = []string{"nodemaintenance", "nodemaintenances", "nm"}

func isMaintenanceKind(word string) bool {
	kind, group, _ := strings.Cut(strings.ToLower(word), ".")
	return slices.Contains(maintenanceKinds, kind) && slices.Contains([]string{"", "ebbtide.dev", "v1alpha1.ebbtide.dev"}, group)
}

// maintenanceNames reads NAME, nodemaintenance/NAME, and "nodemaintenance NAME...", each
// name once.
func maintenanceNames(args []string) ([]string, error) {
	if len(args) > 1 && isMaintenanceKind(args[0]) {
		args = args[1:]
	}
	var names []string
	for _, arg := range args {
		name := arg
		if kind, rest, found := strings.Cut(arg, "/"); found && isMaintenanceKind(kind) {
			name = rest
		}
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			return nil, fmt.Errorf("%q is no name of a NodeMaintenance: %s", excerpt.Line(arg, 300), wrong[0])
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}
