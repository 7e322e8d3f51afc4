package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// ongoing is something that has to end before the uninstall.
type ongoing struct {
	title string
	names []string
	// howto suggests how to end them.
	howto string
	// whole replaces title, names and howto if it is set.
	whole string
}

func (o ongoing) String() string {
	if o.whole != "" {
		return o.whole
	}
	return fmt.Sprintf("%s (%d): %s\n  %s", o.title, len(o.names), phrase.Some(o.names, shown), o.howto)
}

// permit returns an error that lists what this program does not end, and how to end it.
func (h Hook) permit(ctx context.Context, s *surveyor) error {
	found, err := h.machines(ctx, s)
	if err == nil && h.Mode == Refuse {
		var more []ongoing
		more, err = h.going(ctx, s)
		found = append(found, more...)
	}
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(o ongoing) bool { return len(o.names) == 0 && o.whole == "" })
	if len(found) == 0 {
		return nil
	}
	var text strings.Builder
	for _, o := range found {
		text.WriteString("\n" + o.String())
	}
	return errors.New("Ebbtide is in use, and uninstalling it would leave behind:" + text.String())
}

// machines returns the Machines and Clusters whose deletion waits for a manager. Those of other
// controllers are not released here, as a running manager would add the hook again.
func (h Hook) machines(ctx context.Context, s *surveyor) ([]ongoing, error) {
	own, others := s.survey(ctx, machines, clusters), s.survey(ctx, ofClusterAPI, ofOpenShift)
	for i := range others {
		// Without the right to list, no bridge is enabled.
		if apierrors.IsForbidden(others[i].err) {
			others[i].err = nil
		}
	}
	return []ongoing{
		{
			title: "Machines and Clusters that cannot be deleted without a manager", names: names(own),
			howto: "delete them; or keep them for a later manager: scale the managers to 0, run " +
				"kubectl ebbtide release --machines --yes, and uninstall without hooks",
		},
		{
			title: "Machines of other controllers whose deletion waits for Ebbtide", names: names(others),
			howto: "disable it: kubectl label cluster.cluster.x-k8s.io NAME -n NAMESPACE ebbtide.dev/drain-",
		},
	}, errors.Join(unread(own), unread(others))
}

// going returns what is in progress, besides Machines.
func (h Hook) going(ctx context.Context, s *surveyor) ([]ongoing, error) {
	rolling := ongoing{title: "NodeRollouts in progress", howto: `abort each: kubectl patch noderollout NAME --type=merge -p '{"spec":{"state":"Aborted"}}'`}
	begun := ongoing{title: "NodeMaintenances in progress", howto: `complete each: kubectl patch nodemaintenance NAME --type=merge -p '{"spec":{"stage":"Complete"}}'`}
	planned := ongoing{title: "Planned NodeMaintenances, announced on their nodes", howto: "delete them: kubectl delete nodemaintenance NAME"}
	asked := ongoing{title: "Evacuations", howto: "those of NodeMaintenances end with them; delete the others, and have their instigators remove their finalizers"}
	away := ongoing{title: "Nodes whose pods stay under locks", howto: "wait until they are back, or mark them as back: kubectl annotate drainrecord NODE ebbtide.dev/back=true"}
	locked := ongoing{title: "PodDisruptionBudgets locked by their owners", howto: "ask the owners to unlock them: kubectl ebbtide unlock pdb/NAME -n NAMESPACE"}
	err := errors.Join(
		s.each(ctx, rollouts, func(object client.Object) {
			if r, ok := object.(*v1alpha1.NodeRollout); ok && startsNodes(r) {
				rolling.names = append(rolling.names, r.Name)
			}
		}),
		s.each(ctx, maintenances, func(object client.Object) {
			m, ok := object.(*v1alpha1.NodeMaintenance)
			switch {
			case !ok || maintenance.Finished(m):
			case maintenance.Begun(m):
				begun.names = append(begun.names, fmt.Sprintf("%s (%s)", m.Name, excerpt.Line(string(m.Spec.Stage), maxStage)))
			default:
				planned.names = append(planned.names, m.Name)
			}
		}),
		s.each(ctx, evacuations, func(object client.Object) { asked.names = append(asked.names, nameOf(object)) }),
		s.each(ctx, drainRecords, func(object client.Object) { away.names = append(away.names, object.GetName()) }),
		s.each(ctx, budgets, func(object client.Object) {
			b, ok := object.(*policyv1.PodDisruptionBudget)
			if !ok {
				return
			}
			hold, inForce := budget.LockOf(b, s.now(), 0)
			if _, _, drains := hold.Drain(); inForce && !drains {
				locked.names = append(locked.names, excerpt.Line(fmt.Sprintf("%s by %s", nameOf(b), hold.Holder), maxLock))
			}
		}),
	)
	held, unread := s.heldStaticPods(ctx)
	return []ongoing{rolling, begun, planned, asked, away, locked, {whole: held}}, errors.Join(err, unread)
}

// startsNodes reports whether a rollout may start further nodes.
func startsNodes(r *v1alpha1.NodeRollout) bool {
	return r.DeletionTimestamp == nil && r.Spec.State != v1alpha1.RolloutAborted && r.Status.CompletedGeneration != r.Generation
}

const (
	// maxStage and maxLock bound texts of other clients, in bytes.
	maxStage, maxLock = 20, 300
)
