package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Hooks removes Ebbtide's hooks from the Machines of other controllers, which would wait forever without
// a manager.
type Hooks struct {
	// Client has the user's rights.
	Client client.Client
	// Namespace of the Machines; empty selects all.
	Namespace string
	// Names of Machines; nil selects all.
	Names []string
	// DryRun only lists them.
	DryRun bool
	// Out receives a line for each.
	Out io.Writer
}

// Run removes the hooks and returns their number.
//
// Errors: a named Machine does not exist; Machines could not be read or changed. The others are released
// nevertheless.
func (h Hooks) Run(ctx context.Context) (count int, err error) {
	s := newSurveyor(h.Client, time.Now, "")
	s.namespace = h.Namespace
	missing := sets.New(h.Names...)
	var problems []error
	for _, k := range []kind{ofClusterAPI, ofOpenShift} {
		g := group{kind: k}
		g.err = s.each(ctx, k, func(machine client.Object) {
			missing.Delete(machine.GetName())
			finding, found := s.find(ctx, machine)
			if found && (len(h.Names) == 0 || slices.Contains(h.Names, machine.GetName())) {
				g.findings = append(g.findings, finding)
			}
		})
		removed, err := h.remove(ctx, s, g)
		count += removed
		problems = append(problems, g.err, err)
	}
	for _, name := range sets.List(missing) {
		problems = append(problems, fmt.Errorf("Machine %q not found in namespace %q", name, h.Namespace))
	}
	return count, errors.Join(problems...)
}

// remove removes the hooks from the Machines of one kind.
func (h Hooks) remove(ctx context.Context, s *surveyor, g group) (count int, err error) {
	result, refused := "has Ebbtide's hook", map[types.UID]error{}
	if !h.DryRun {
		result = "no longer waits for Ebbtide"
		for _, f := range s.writeAll(ctx, g) {
			refused[f.object.GetUID()] = f.err
		}
	}
	var problems []error
	for _, finding := range g.findings {
		machine := fmt.Sprintf("Machine %s (%s)", nameOf(finding.Object), finding.Object.GetObjectKind().GroupVersionKind().Group)
		if err := refused[finding.Object.GetUID()]; err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", machine, err))
			continue
		}
		fmt.Fprintf(h.Out, "%s %s\n", machine, result)
		count++
	}
	return count, errors.Join(problems...)
}
