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

	"ebbtide.dev/ebbtide/internal/core/excerpt"
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

// Run takes the hooks off and returns how many there were.
//
// Errors: a named Machine is not there; Machines that could not be read or changed. One of
// them holds up no other.
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
		taken, err := h.take(ctx, s, g)
		count += taken
		problems = append(problems, g.err, err)
	}
	for _, name := range sets.List(missing) {
		problems = append(problems, fmt.Errorf("there is no Machine %s in namespace %s", excerpt.Line(name, maxError), h.Namespace))
	}
	return count, errors.Join(problems...)
}

// take takes the hooks off the Machines of one kind.
func (h Hooks) take(ctx context.Context, s *surveyor, g group) (count int, err error) {
	says, refused := "has the hook of Ebbtide", map[types.UID]error{}
	if !h.DryRun {
		says = "does not wait for Ebbtide any more"
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
		fmt.Fprintf(h.Out, "%s %s\n", machine, says)
		count++
	}
	return count, errors.Join(problems...)
}
