package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// maxNodeInName bounds the part of a node's name in that of a maintenance.
	maxNodeInName = 50
	// maxNumber bounds the numbers at the end of names.
	maxNumber = 100
	// maxRaces bounds how often a name is chosen again because somebody else took it.
	maxRaces = 3
)

// errNameTaken means that a maintenance has taken the chosen name meanwhile.
var errNameTaken = errors.New("another NodeMaintenance was created at the same time; try again, or choose a --name")

// usualName returns the name of a maintenance without --name. It depends on the verb and on the
// selection only, so that a command can be repeated.
func usualName(verb string, names []string, selector *corev1.NodeSelector) string {
	switch {
	case len(names) == 1 && len(names[0]) <= maxNodeInName:
		return verb + "-" + names[0]
	case len(names) == 1:
		hash := "-" + shortHash(names[0])
		return verb + "-" + strings.TrimRight(names[0][:maxNodeInName-len(hash)], "-.") + hash
	case len(names) > 1:
		return fmt.Sprintf("%s-%d-nodes-%s", verb, len(names), shortHash(termTexts(selector)...))
	}
	return verb + "-nodes-" + shortHash(termTexts(selector)...)
}

func shortHash(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return hex.EncodeToString(sum[:4])
}

// termTexts returns the terms of a selector as sorted texts: the order of nodes is of no importance.
func termTexts(selector *corev1.NodeSelector) (texts []string) {
	if selector == nil {
		return nil
	}
	for i := range selector.NodeSelectorTerms {
		text, _ := json.Marshal(&selector.NodeSelectorTerms[i])
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	return texts
}

// chooseName gives a maintenance without --name the usual name, or that with the least number whose
// maintenance does not give way.
//
// Errors: all numbers are taken.
func (o *maintainOptions) chooseName(ctx context.Context, usual string, m *v1alpha1.NodeMaintenance) error {
	if o.Name != "" {
		return nil
	}
	for number := 1; number <= maxNumber; number++ {
		if m.Name = usual; number > 1 {
			m.Name = fmt.Sprintf("%s-%d", usual, number)
		}
		known := &v1alpha1.NodeMaintenance{}
		err := o.reached.Get(ctx, client.ObjectKey{Name: m.Name}, known)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			return nil
		case err != nil:
			return err
		case !givesWay(known, m):
			return nil
		}
	}
	return fmt.Errorf("NodeMaintenances %s to %s exist. Choose a --name, or delete those that are complete. List them with\n  %s",
		usual, m.Name, o.command("status"))
}

// givesWay reports whether a maintenance leaves its name to the next number: it is over, or has
// other nodes.
func givesWay(known, wanted *v1alpha1.NodeMaintenance) bool {
	return known.DeletionTimestamp != nil || known.Spec.Stage == v1alpha1.StageComplete || !hasSameNodes(known, wanted)
}

func hasSameNodes(known, wanted *v1alpha1.NodeMaintenance) bool {
	return slices.Equal(termTexts(known.Spec.NodeSelector), termTexts(wanted.Spec.NodeSelector))
}

// isSameRequest compares the specs, apart from texts.
func (o *maintainOptions) isSameRequest(known, wanted *v1alpha1.NodeMaintenance) bool {
	return known.DeletionTimestamp == nil && known.Spec.Stage == wanted.Spec.Stage && hasSameNodes(known, wanted) && o.difference(known, wanted) == ""
}

// difference names a field besides the nodes and the stage that is not as wanted; empty if none is.
func (o *maintainOptions) difference(known, wanted *v1alpha1.NodeMaintenance) string {
	depth := func(m *v1alpha1.NodeMaintenance) v1alpha1.PodType {
		return cmp.Or(m.Spec.DrainDepth, v1alpha1.PodTypeStatic)
	}
	switch {
	case depth(known) != depth(wanted):
		return "spec.drainDepth"
	case !equality.Semantic.DeepEqual(withDefaults(known.Spec.InPlace), withDefaults(wanted.Spec.InPlace)):
		return "spec.inPlace"
	case !o.isSameDeadline(known, wanted.Spec.Deadline):
		return "spec.deadline"
	case known.Spec.CompleteWhen != nil:
		return "spec.completeWhen"
	case len(known.Spec.CompletedNodes) > 0:
		return "spec.completedNodes"
	}
	return ""
}

// withDefaults completes spec.inPlace as the API server does.
func withDefaults(inPlace *v1alpha1.InPlace) *v1alpha1.InPlace {
	if inPlace == nil {
		return nil
	}
	full := *inPlace
	full.LockTimeoutSeconds = cmp.Or(full.LockTimeoutSeconds, 300)
	full.OnLockTimeout = cmp.Or(full.OnLockTimeout, v1alpha1.LockTimeoutEvict)
	if full.ExpectedRebootCount == nil {
		full.ExpectedRebootCount = new(int32(1))
	}
	return &full
}

// isSameDeadline compares deadlines. One that counts from now is that of an earlier call of the same
// command if it was as far ahead when the maintenance was created.
func (o *maintainOptions) isSameDeadline(m *v1alpha1.NodeMaintenance, wanted *v1alpha1.Deadline) bool {
	known := m.Spec.Deadline
	if known == nil || wanted == nil {
		return known == wanted
	}
	action := cmp.Or(wanted.OnDeadline, v1alpha1.DeadlineWait)
	if cmp.Or(known.OnDeadline, v1alpha1.DeadlineWait) != action {
		return false
	}
	const usualLead = 60
	if action == v1alpha1.DeadlineDelete && cmp.Or(known.DeleteBeforeSeconds, usualLead) != cmp.Or(wanted.DeleteBeforeSeconds, usualLead) {
		return false
	}
	if o.relative == 0 {
		return known.Time.Equal(&wanted.Time)
	}
	apart := known.Time.Sub(m.CreationTimestamp.Add(o.relative))
	return apart.Abs() <= min(time.Minute, 10*time.Second+o.relative/10)
}
