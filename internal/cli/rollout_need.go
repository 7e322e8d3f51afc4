package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// rebootRequired is the value of --when for a node condition that the agent reports.
const rebootRequired = "reboot-required"

// rolloutNeed are the flags that say which nodes of a rollout need maintenance.
type rolloutNeed struct {
	When               []string
	Job                string
	Reboot, Continuous bool
}

func (n *rolloutNeed) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&n.When, "when", nil, "maintain only nodes that need it: reboot-required, or a type of node conditions (e.g. KernelDeadlock); can be repeated")
	flags.StringVar(&n.Job, "job", "", "CronJob as NAMESPACE/NAME, whose Job must succeed on each drained node, before a reboot (see docs/fleet.md)")
	flags.BoolVar(&n.Reboot, "reboot", false, "have the agents of the nodes reboot them when they are drained (see docs/fleet.md)")
	flags.BoolVar(&n.Continuous, "continuous", false, "maintain nodes whenever they need it, and never end; requires --when or --until")
	fixedValues(cmd, "when", rebootRequired)
}

// set sets the fields of a rollout whose target is set.
func (n *rolloutNeed) set(spec *v1alpha1.NodeRolloutSpec) error {
	for _, one := range n.When {
		switch {
		case strings.EqualFold(one, rebootRequired) || one == v1alpha1.NodeRebootRequired:
			n.when(spec).RebootRequired = true
		case len(validation.IsQualifiedName(one)) > 0:
			return fmt.Errorf("--when must be %s or a type of node conditions, not %q", rebootRequired, excerpt.Line(one, maxSaid))
		case !slices.Contains(n.when(spec).Conditions, one):
			spec.When.Conditions = append(spec.When.Conditions, one)
		}
	}
	var err error
	spec.Reboot = n.Reboot
	if spec.Job, err = jobOf(n.Job); err != nil {
		return err
	}
	switch {
	case n.Job != "" && spec.After == v1alpha1.AfterStayDrained:
		return errors.New("--job and --stay-drained contradict each other")
	case n.Reboot && spec.After == v1alpha1.AfterStayDrained:
		return errors.New("--reboot and --stay-drained contradict each other")
	case !n.Continuous:
		return nil
	case spec.When == nil && spec.Target == nil:
		return errors.New("--continuous requires --when or --until, which say that a node needs maintenance")
	}
	spec.Mode = v1alpha1.RolloutContinuous
	return nil
}

// jobOf returns the job that a flag names; nil if it is empty.
func jobOf(text string) (*v1alpha1.RolloutJob, error) {
	if text == "" {
		return nil, nil
	}
	namespace, name, _ := strings.Cut(text, "/")
	if len(validation.IsDNS1123Label(namespace))+len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, fmt.Errorf("--job must be the namespace and the name of a CronJob, such as ops/patch, not %q", excerpt.Line(text, maxSaid))
	}
	return &v1alpha1.RolloutJob{Namespace: namespace, CronJob: name}, nil
}

func (n *rolloutNeed) when(spec *v1alpha1.NodeRolloutSpec) *v1alpha1.RolloutWhen {
	if spec.When == nil {
		spec.When = &v1alpha1.RolloutWhen{}
	}
	return spec.When
}
