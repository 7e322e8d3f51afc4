package kube

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// AddController has the manager run a controller on what its sources lead to.
//
// Errors: a source cannot be watched, or the name is taken.
func AddController[R comparable](
	mgr manager.Manager, name string, options controller.TypedOptions[R], sources []source.TypedSource[R],
) error {
	c, err := controller.NewTyped(name, mgr, options)
	if err != nil {
		return fmt.Errorf("add the %s controller: %w", name, err)
	}
	for _, source := range sources {
		if err := c.Watch(source); err != nil {
			return fmt.Errorf("watch for the %s controller: %w", name, err)
		}
	}
	return nil
}
