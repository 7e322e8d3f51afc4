package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/calendar"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// rolloutSpec are the flags that set fields of a new NodeRollout.
type rolloutSpec struct {
	rolloutNeed
	rolloutGates

	Max, MaxFailures, ControlPlane, ZoneBy, Depth, Reason string
	Until, Windows                                        []string
	StayDrained, Replace, CanaryApproval                  bool
	Canary, Retries                                       int32
	CanarySoak, Soak, DrainTimeout, WorkTimeout, InPlace  time.Duration

	flags *pflag.FlagSet
}

var controlPlanes = []string{string(v1alpha1.ControlPlaneExclude), string(v1alpha1.ControlPlaneFirst), string(v1alpha1.ControlPlaneLast)}

func (s *rolloutSpec) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	s.flags = flags
	s.rolloutNeed.addFlags(cmd)
	s.rolloutGates.addFlags(cmd)
	flags.StringVar(&s.Max, "max", "1", "number or percentage of the nodes that may be unavailable")
	flags.StringArrayVar(&s.Until, "until", nil, "what a node must report to be done: kubelet, kernel, os or runtime=VERSION, or reboot; can be repeated")
	flags.BoolVar(&s.StayDrained, "stay-drained", false, "leave the nodes drained")
	flags.BoolVar(&s.Replace, "replace", false, "delete the machines of drained nodes, so that their provider makes others; requires the chart value rollouts.replace")
	flags.StringVar(&s.ControlPlane, "control-plane", "", "order of control plane nodes: Exclude, First or Last (default Exclude)")
	flags.Int32Var(&s.Canary, "canary", 0, "number of nodes that must be done before others start")
	flags.DurationVar(&s.CanarySoak, "canary-soak", 0, "time between the last canary and the other nodes")
	flags.BoolVar(&s.CanaryApproval, "canary-approval", false, "after the canary nodes, wait for \"rollout approve\"")
	flags.DurationVar(&s.Soak, "soak", 0, "time that a node counts as unavailable after its maintenance")
	flags.StringArrayVar(&s.Windows, "window", nil, `weekly hours when nodes may start (e.g. "mon-fri 22:00-04:00 Europe/Berlin"); can be repeated`)
	flags.StringVar(&s.ZoneBy, "zone-by", "", "node label; nodes are unavailable in one of its values at a time (e.g. topology.kubernetes.io/zone)")
	flags.DurationVar(&s.DrainTimeout, "drain-timeout", 30*time.Minute, "time that a node may need to drain, after which it is given back and retried; 0 is no limit")
	flags.DurationVar(&s.WorkTimeout, "work-timeout", time.Hour, "time between the drain of a node and its return; 0 is no limit")
	flags.Int32Var(&s.Retries, "retries", 1, "further attempts for a node that does not drain in time")
	flags.StringVar(&s.MaxFailures, "max-failures", "1", "number or percentage of failed nodes that ends further starts")
	flags.StringVar(&s.Reason, "reason", "", "reason shown to everyone who waits")
	flags.StringVar(&s.Depth, "depth", "", "deepest type of pods to drain: Default, DaemonSet or Static (default Static, which is all)")
	flags.DurationVar(&s.InPlace, "in-place", 0, "expected downtime of nodes that return with their disks; pods can opt in to stay (see docs/in-place.md)")
	fixedValues(cmd, "control-plane", controlPlanes...)
	fixedValues(cmd, "depth", depths...)
	fixedValues(cmd, "until", "reboot", "kubelet=", "kernel=", "os=", "runtime=")
	fixedValues(cmd, "zone-by", "topology.kubernetes.io/zone")
}

// spec returns the spec that the flags describe, without nodes.
func (s *rolloutSpec) spec() (spec v1alpha1.NodeRolloutSpec, err error) {
	spec.TopologyKey, spec.Maintenance.Reason = s.ZoneBy, s.Reason
	switch {
	case s.Replace && (s.StayDrained || s.Reboot || s.Continuous || s.Job != ""):
		return spec, errors.New("--replace and --stay-drained, --reboot, --job or --continuous contradict each other")
	case s.Replace:
		spec.After = v1alpha1.AfterReplace
	case s.StayDrained:
		spec.After = v1alpha1.AfterStayDrained
	}
	target, err := targetOf(s.Until)
	if err != nil {
		return spec, err
	}
	spec.Target = target
	return spec, errors.Join(s.rolloutNeed.set(&spec), s.rolloutGates.set(&spec), s.limits(&spec), s.order(&spec), s.failure(&spec.Failure), s.maintenance(&spec.Maintenance))
}

// limits sets how many nodes may be unavailable, and when.
func (s *rolloutSpec) limits(spec *v1alpha1.NodeRolloutSpec) (err error) {
	if spec.MaxUnavailable, err = amount("max", s.Max); err != nil {
		return err
	}
	for _, text := range s.Windows {
		window, err := calendar.ParseWindow(text)
		if err != nil {
			return fmt.Errorf("--window: %w", err)
		}
		spec.Windows = append(spec.Windows, window)
	}
	spec.SoakSeconds, err = seconds("soak", s.Soak)
	return err
}

// order sets which nodes are first.
func (s *rolloutSpec) order(spec *v1alpha1.NodeRolloutSpec) error {
	word, err := oneOf("control-plane", s.ControlPlane, controlPlanes...)
	if err != nil {
		return err
	}
	spec.ControlPlane = v1alpha1.ControlPlanePolicy(word)
	switch {
	case s.flags.Changed("canary") && s.Canary < 1:
		return fmt.Errorf("--canary must be at least 1, not %d", s.Canary)
	case s.Canary == 0 && (s.CanarySoak != 0 || s.CanaryApproval):
		return errors.New("--canary-soak and --canary-approval require --canary")
	case s.Canary == 0:
		return nil
	}
	spec.Canary = &v1alpha1.RolloutCanary{NodeCount: s.Canary}
	if s.CanaryApproval {
		spec.Canary.Approved = new(false)
	}
	spec.Canary.SoakSeconds, err = seconds("canary-soak", s.CanarySoak)
	return err
}

// failure sets the limits that were given; the others have the defaults of the API.
func (s *rolloutSpec) failure(f *v1alpha1.RolloutFailure) (err error) {
	if f.DrainTimeoutSeconds, err = s.givenSeconds("drain-timeout", s.DrainTimeout); err != nil {
		return err
	}
	if f.WorkTimeoutSeconds, err = s.givenSeconds("work-timeout", s.WorkTimeout); err != nil {
		return err
	}
	if s.Retries < 0 || s.Retries > 10 {
		return fmt.Errorf("--retries must be from 0 to 10, not %d", s.Retries)
	}
	if s.flags.Changed("retries") {
		f.RetryCount = &s.Retries
	}
	if s.flags.Changed("max-failures") {
		f.MaxFailures, err = amount("max-failures", s.MaxFailures)
	}
	return err
}

func (s *rolloutSpec) givenSeconds(flag string, given time.Duration) (*int32, error) {
	if !s.flags.Changed(flag) {
		return nil, nil
	}
	number, err := seconds(flag, given)
	return &number, err
}

// maintenance sets what is copied into each NodeMaintenance.
func (s *rolloutSpec) maintenance(m *v1alpha1.RolloutMaintenance) error {
	depth, err := oneOf("depth", s.Depth, depths...)
	if err != nil {
		return err
	}
	m.DrainDepth = v1alpha1.PodType(depth)
	if !s.flags.Changed("in-place") {
		return nil
	}
	if s.InPlace < time.Second || s.InPlace > time.Hour || s.InPlace%time.Second != 0 {
		return fmt.Errorf("--in-place must be whole seconds from 1s to 1h, not %s", s.InPlace)
	}
	m.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: int32(s.InPlace / time.Second)}
	return nil
}

// longestFlag bounds durations of flags; the API has bounds of its own.
const longestFlag = 7 * 24 * time.Hour

// seconds returns a duration of a flag in whole seconds.
func seconds(flag string, given time.Duration) (int32, error) {
	if given < 0 || given > longestFlag || given%time.Second != 0 {
		return 0, fmt.Errorf("--%s must be whole seconds from 0s to 168h, not %s", flag, given)
	}
	return int32(given / time.Second), nil
}

// amount returns a number or a percentage of nodes.
func amount(flag, text string) (*intstr.IntOrString, error) {
	given := intstr.Parse(text)
	percent, isPercent := strings.CutSuffix(text, "%")
	number := intstr.Parse(percent)
	switch {
	case number.Type != intstr.Int || number.IntVal < 1 || isPercent && number.IntVal > 100:
		return nil, fmt.Errorf("--%s must be a number of at least 1, or a percentage from 1%% to 100%%, not %q", flag, excerpt.Line(text, maxSaid))
	case isPercent:
		// Such as 010%.
		given = intstr.FromString(fmt.Sprintf("%d%%", number.IntVal))
	}
	return &given, nil
}

// reported is a value that a node reports.
type reported struct {
	names []string
	set   func(target *v1alpha1.CompleteWhen, version string)
}

// reports lists the values that a node can report, by the names that --until takes: ours and those of the API.
var reports = []reported{
	{[]string{"kubelet", "kubeletversion"}, func(target *v1alpha1.CompleteWhen, version string) {
		if version[0] >= '0' && version[0] <= '9' {
			version = "v" + version
		}
		target.KubeletVersion = version
	}},
	{[]string{"kernel", "kernelversion"}, func(target *v1alpha1.CompleteWhen, version string) { target.KernelVersion = version }},
	{[]string{"os", "osimage"}, func(target *v1alpha1.CompleteWhen, version string) { target.OSImage = version }},
	{[]string{"runtime", "containerruntimeversion"}, func(target *v1alpha1.CompleteWhen, version string) { target.ContainerRuntimeVersion = version }},
}

// rebootWords lists the values of --until for a new boot.
var rebootWords = []string{"reboot", "newboot", "newboot=true", "reboot=true"}

// targetOf returns what nodes must report; nil if nothing was given.
func targetOf(until []string) (*v1alpha1.CompleteWhen, error) {
	if len(until) == 0 {
		return nil, nil
	}
	target := &v1alpha1.CompleteWhen{}
	seen := map[string]bool{}
	for _, one := range until {
		name, version, _ := strings.Cut(one, "=")
		name, version = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(version)
		at := slices.IndexFunc(reports, func(r reported) bool { return slices.Contains(r.names, name) })
		switch {
		case slices.Contains(rebootWords, strings.ToLower(strings.TrimSpace(one))):
			target.NewBoot = true
			continue
		case name == "readyseconds":
			number, err := strconv.ParseInt(version, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("--until readySeconds must be a number, not %q", excerpt.Line(version, maxSaid))
			}
			target.ReadySeconds = new(int32(number))
			continue
		case at < 0 || version == "":
			return nil, fmt.Errorf("--until must be %s, not %q", phrase.Or([]string{"kubelet=VERSION", "kernel=VERSION", "os=IMAGE", "runtime=VERSION", "reboot"}), excerpt.Line(one, maxSaid))
		case seen[reports[at].names[0]]:
			return nil, fmt.Errorf("--until names %s twice; for several versions, use a range such as kubelet='>=1.37.0 <1.38.0'", reports[at].names[0])
		}
		seen[reports[at].names[0]] = true
		reports[at].set(target, version)
	}
	return target, nil
}
