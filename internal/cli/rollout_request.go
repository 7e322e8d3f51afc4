package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

const (
	// maxSlug bounds the part of the nodes in the name of a rollout.
	maxSlug = 30
	// maxSameName bounds the rollouts whose names differ by their number only.
	maxSameName = 100
)

// rolloutRequest creates a rollout, or continues the one that is the same.
type rolloutRequest struct {
	rolloutOptions
	dryRun
	Name string

	// prefix begins generated names.
	prefix string
}

func (o *rolloutRequest) validate() error {
	return errors.Join(o.dryRun.check(), o.output.check(), checkRolloutName(o.Name))
}

// object returns a rollout with this spec. The selector is that of -l, or empty.
func (o *rolloutRequest) object(spec v1alpha1.NodeRolloutSpec, selector string) *v1alpha1.NodeRollout {
	r := &v1alpha1.NodeRollout{Spec: spec}
	r.SetGroupVersionKind(rolloutKind)
	if r.Name = o.Name; r.Name == "" {
		r.Name = rolloutNameOf(o.prefix, selector, &spec)
	}
	return r
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// rolloutNameOf returns a name that is the same for the same nodes and the same work.
func rolloutNameOf(prefix, selector string, spec *v1alpha1.NodeRolloutSpec) string {
	of := fmt.Sprintf("%d-nodes", len(spec.NodeSelector.NodeSelectorTerms))
	if selector != "" {
		of = strings.Trim(notInName.ReplaceAllString(strings.ToLower(selector), "-"), "-")
		of = strings.TrimRight(of[:min(len(of), maxSlug)], "-")
	} else if terms := spec.NodeSelector.NodeSelectorTerms; len(terms) == 1 && len(terms[0].MatchFields) == 1 {
		of = terms[0].MatchFields[0].Values[0]
		of = strings.TrimRight(of[:min(len(of), maxSlug)], "-.")
	}
	sum := fnv.New32a()
	// Such values can always be encoded.
	parts := []any{spec.NodeSelector, spec.Mode, spec.Target, spec.When, spec.Reboot, spec.After}
	if spec.Job != nil { // Otherwise an upgrade of the plugin would change the name.
		parts = append(parts, spec.Job)
	}
	work, _ := json.Marshal(parts)
	_, _ = sum.Write(work)
	return fmt.Sprintf("%s-%s-%s", prefix, of, rand.SafeEncodeString(fmt.Sprint(sum.Sum32())))
}

// create creates the rollout, or continues an existing one that requests the same. If that one is
// over, a generated name gets the next number.
//
// Errors: a different rollout of this name exists; the result is unknown.
func (o *rolloutRequest) create(ctx context.Context, r *v1alpha1.NodeRollout, picked []*metav1.PartialObjectMetadata) error {
	if o.dryRun.Mode == dryRunClient {
		return nil
	}
	wanted := r.DeepCopy()
	for number := 1; number <= maxSameName; number++ {
		if number > 1 {
			wanted.Name = fmt.Sprintf("%s-%d", r.Name, number)
		}
		known, err := o.createOne(ctx, wanted)
		if err != nil {
			return err
		}
		if known == nil {
			wanted.DeepCopyInto(r)
			return nil
		}
		same, err := o.continues(ctx, known, wanted, picked)
		if err != nil {
			return err
		}
		if same {
			o.warn(fmt.Sprintf("NodeRollout %s already exists with the same request", known.Name))
			known.DeepCopyInto(r)
			r.SetGroupVersionKind(rolloutKind)
			return nil
		}
	}
	return fmt.Errorf("there are %d NodeRollouts with names like %s; delete old ones, or choose a --name", maxSameName, r.Name)
}

// createOne creates a rollout, and returns the existing one of its name, if there is one. Ctrl-C does
// not cancel the request, as the result would be unknown.
func (o *rolloutRequest) createOne(ctx context.Context, r *v1alpha1.NodeRollout) (known *v1alpha1.NodeRollout, err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	settled, stop := settle(ctx)
	defer stop()
	err = o.reached.Create(settled, r, &client.CreateOptions{DryRun: o.dryRun.options(), FieldManager: fieldManager})
	// The client clears the kind.
	r.SetGroupVersionKind(rolloutKind)
	switch {
	case apierrors.IsAlreadyExists(err):
		known = &v1alpha1.NodeRollout{}
		if err := o.reached.Get(settled, client.ObjectKeyFromObject(r), known); err != nil {
			return nil, fmt.Errorf("NodeRollout %s already exists: %w", r.Name, err)
		}
		return known, nil
	case isUncertain(err):
		return nil, final(fmt.Errorf("unknown whether NodeRollout %s was created: %w. Check with\n  %s\nand stop it with\n  %s",
			r.Name, cause(err), o.kubectl("get noderollout %s", r.Name), o.command("rollout abort %s", r.Name)))
	}
	return nil, err
}

// continues reports whether an existing rollout is to be continued. If not, it is over, and the next
// name is tried.
//
// Errors: it requests something else; its name was given, and it is over.
func (o *rolloutRequest) continues(ctx context.Context, known, wanted *v1alpha1.NodeRollout, picked []*metav1.PartialObjectMetadata) (bool, error) {
	if same, err := o.isSame(ctx, known, wanted); err != nil {
		return false, err
	} else if !same {
		return false, fmt.Errorf("NodeRollout %s already exists and differs. Choose another --name, watch it with\n  %s\nor change it with\n  %s",
			known.Name, o.command("rollout watch %s", known.Name), o.kubectl("edit noderollout %s", known.Name))
	}
	over, err := o.isOver(ctx, known, picked)
	if err != nil || !over {
		return !over && err == nil, err
	}
	if o.Name != "" {
		return false, fmt.Errorf("NodeRollout %s already exists and is over. Choose another --name, or delete it with\n  %s",
			known.Name, o.kubectl("delete noderollout %s", known.Name))
	}
	return false, nil
}

// isOver reports whether a rollout does nothing more for these nodes. One whose nodes stay drained is
// over when they were given back.
//
// Errors: only some of them were given back.
func (o *rolloutRequest) isOver(ctx context.Context, r *v1alpha1.NodeRollout, picked []*metav1.PartialObjectMetadata) (bool, error) {
	switch {
	case r.DeletionTimestamp != nil, r.Spec.State == v1alpha1.RolloutAborted:
		return true, nil
	case !isComplete(r):
		return false, nil
	case r.Spec.After != v1alpha1.AfterStayDrained:
		return true, nil
	}
	active, err := maintenancesOfRollout(ctx, o.reached, r.Name)
	if err != nil {
		return false, err
	}
	var kept, back []string
	for _, node := range picked {
		if slices.ContainsFunc(holdersOf(node), func(holder string) bool { return slices.Contains(active, holder) }) {
			kept = append(kept, node.Name)
		} else {
			back = append(back, node.Name)
		}
	}
	switch {
	case len(kept) == 0:
		return true, nil
	case len(back) == 0 || r.Status.FailedCount > 0:
		return false, nil
	}
	return false, fmt.Errorf("NodeRollout %s has drained these nodes, and %s were given back since. To start again, give back all with\n  %s",
		r.Name, someOf(back), o.command("complete noderollout/%s", r.Name))
}

// maintenancesOfRollout returns the names of the unfinished NodeMaintenances of a rollout.
func maintenancesOfRollout(ctx context.Context, reached client.Client, rollout string) ([]string, error) {
	active, err := pages(ctx, reached, &v1alpha1.NodeMaintenanceList{}, func(m *v1alpha1.NodeMaintenance) *v1alpha1.NodeMaintenance {
		if maintenance.Finished(m) {
			return nil
		}
		return m
	}, client.MatchingLabels{v1alpha1.RolloutLabel: rollout})
	if err != nil {
		return nil, fmt.Errorf("list nodemaintenances of NodeRollout %s: %w", rollout, err)
	}
	return namesOf(active), nil
}

// isSame reports whether two rollouts have the same spec, with the defaults of the API and apart from
// texts, the state and decisions of users about single nodes.
func (o *rolloutRequest) isSame(ctx context.Context, known, wanted *v1alpha1.NodeRollout) (bool, error) {
	full := &v1alpha1.NodeRollout{Spec: *wanted.Spec.DeepCopy()}
	full.GenerateName = wanted.Name[:min(len(wanted.Name), maxSlug)] + "-"
	if err := o.reached.Create(ctx, full, client.DryRunAll); err != nil {
		return false, err
	}
	return equality.Semantic.DeepEqual(whatIsDone(known), whatIsDone(full)), nil
}

// whatIsDone returns the part of the spec that isSame compares.
func whatIsDone(r *v1alpha1.NodeRollout) *v1alpha1.NodeRolloutSpec {
	spec := r.Spec.DeepCopy()
	spec.State, spec.Nodes, spec.Maintenance.Reason = "", nil, ""
	if spec.Canary != nil && spec.Canary.Approved != nil {
		spec.Canary.Approved = new(false)
	}
	return spec
}
