package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// rolloutGates are the flags that say what must hold before a node starts.
type rolloutGates struct {
	Require, GatePrometheus []string
}

var requirements = []string{string(v1alpha1.RequiresRoom), string(v1alpha1.RequiresNoLoss)}

func (g *rolloutGates) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&g.Require, "require", nil, "what must hold before a node starts: Room (its pods fit on other nodes) or NoLoss (no pods or data are lost for good)")
	flags.StringArrayVar(&g.GatePrometheus, "gate-prometheus", nil, `NAME=QUERY of a Prometheus query that must return no 0 before a node starts (e.g. 'healthy=min(up{job="api"})'); can be repeated`)
	fixedValues(cmd, "require", requirements...)
}

// set sets the fields of a rollout.
func (g *rolloutGates) set(spec *v1alpha1.NodeRolloutSpec) error {
	for _, one := range g.Require {
		word, err := oneOf("require", one, requirements...)
		if err != nil {
			return err
		}
		if requirement := v1alpha1.RolloutRequirement(word); word != "" && !slices.Contains(spec.Requires, requirement) {
			spec.Requires = append(spec.Requires, requirement)
		}
	}
	for _, one := range g.GatePrometheus {
		name, query, _ := strings.Cut(one, "=")
		if len(validation.IsDNS1123Label(name)) > 0 || strings.TrimSpace(query) == "" {
			return fmt.Errorf("--gate-prometheus must be NAME=QUERY, such as 'healthy=min(up{job=\"api\"})', not %q", excerpt.Line(one, maxSaid))
		}
		if slices.ContainsFunc(spec.Gates, func(known v1alpha1.RolloutGate) bool { return known.Name == name }) {
			return fmt.Errorf("--gate-prometheus names gate %s twice", name)
		}
		spec.Gates = append(spec.Gates, v1alpha1.RolloutGate{Name: name, Prometheus: &v1alpha1.PrometheusGate{Query: query}})
	}
	return nil
}
