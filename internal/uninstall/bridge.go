package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Hooks takes Ebbtide's hooks off the Machines of other controllers, which would wait for
// them for ever where no manager runs.
type Hooks struct {
	// Client has the rights of who asks.
	Client client.Client
	// Namespace is where the Machines are; empty is everywhere.
	Namespace string
	// Names are those of Machines; nil are all of the namespace.
	Names []string
	// DryRun only tells of them.
	DryRun bool
	// Out gets a line for each.
	Out io.Writer
}

// pageSize is how many Machines are read at once.
const pageSize = 500

// bridgedKinds are those whose Machines can bear hooks.
var bridgedKinds = []schema.GroupVersionKind{bridge.ClusterAPIMachine, bridge.OpenShiftMachine}

// Run takes the hooks off and returns how many there were.
//
// Errors: a named Machine is not there; Machines that could not be read or changed. One of
// them holds up no other.
func (h Hooks) Run(ctx context.Context) (count int, err error) {
	missing := slices.Clone(h.Names)
	var problems []error
	for _, kind := range bridgedKinds {
		err := h.each(ctx, kind, func(machine *unstructured.Unstructured) {
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == machine.GetName() })
			changed, err := bridge.Change(machine, bridge.Take, time.Time{})
			if err != nil || changed == nil {
				return
			}
			if err := h.take(ctx, machine, changed); err != nil {
				problems = append(problems, err)
				return
			}
			count++
		})
		if err != nil {
			problems = append(problems, err)
		}
	}
	for _, name := range missing {
		problems = append(problems, fmt.Errorf("there is no Machine %s in namespace %s", excerpt.Line(name, maxError), h.Namespace))
	}
	return count, errors.Join(problems...)
}

func (h Hooks) take(ctx context.Context, machine, changed *unstructured.Unstructured) error {
	name := fmt.Sprintf("Machine %s (%s)", nameOf(machine), machine.GroupVersionKind().Group)
	if h.DryRun {
		fmt.Fprintf(h.Out, "%s has the hook of Ebbtide\n", name)
		return nil
	}
	err := h.Client.Patch(ctx, changed, kube.Change(machine))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s has changed just now; try it again", name)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(h.Out, "%s does not wait for Ebbtide any more\n", name)
	return nil
}

// each reads the Machines of a kind, page by page. Where the kind is not served there are none.
func (h Hooks) each(ctx context.Context, kind schema.GroupVersionKind, do func(*unstructured.Unstructured)) error {
	next := ""
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := h.Client.List(ctx, list, client.InNamespace(h.Namespace), client.Limit(pageSize), client.Continue(next))
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("list Machines of %s: %w", kind.Group, err)
		}
		for i := range list.Items {
			if len(h.Names) == 0 || slices.Contains(h.Names, list.Items[i].GetName()) {
				do(&list.Items[i])
			}
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// bridged are Machines of other controllers that would wait for ever. They are not let go
// here: a manager that still runs would have them wait again.
func (h Hook) bridged(ctx context.Context) (ongoing, error) {
	of := ongoing{
		title: "Machines of other controllers that wait for Ebbtide when they are deleted",
		howto: "have nobody ask for it any more: kubectl label cluster.cluster.x-k8s.io NAME -n NAMESPACE ebbtide.dev/drain-",
	}
	hooks := Hooks{Client: h.Client}
	for _, kind := range bridgedKinds {
		err := hooks.each(ctx, kind, func(machine *unstructured.Unstructured) {
			if bridge.Read(machine).Hooked {
				of.names = append(of.names, nameOf(machine))
			}
		})
		// Without the right to look, no bridge is switched on.
		if err != nil && !apierrors.IsForbidden(err) {
			return of, err
		}
	}
	return of, nil
}
