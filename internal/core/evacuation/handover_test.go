package evacuation_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/golden"
)

const deployment = v1alpha1.DeploymentEvacuatorClass

// inTurnOf has an Evacuation be asked for by nobody but a responder of ours.
func requestedBy(responder string) scene {
	return func(s *evacuation.Snapshot) {
		s.Evacuation.Finalizers = nil
		s.Evacuation.Spec.Evacuators = []v1alpha1.Evacuator{{EvacuatorClass: deployment, Priority: 10000}}
		s.Evacuation = evacuation.ForResponder(s.Evacuation, evacuation.Cause{Name: "pod-1-web-0", UID: "uid", Responder: responder})
	}
}

func unsurged(s *evacuation.Snapshot) {
	s.Evacuation.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSurged, Status: metav1.ConditionFalse, Message: "Gave up."}}
}

func detached(s *evacuation.Snapshot) {
	s.Pod.Annotations = map[string]string{v1alpha1.SurgeAnnotation: "{}"}
}

// A pod that was to be replaced, and is not, is left to the responders that come next.
func TestAPodThatIsNotReplacedIsHandedOver(t *testing.T) {
	const surger = v1alpha1.DeploymentSurgeResponder
	const handsOver, evicts = evacuation.StateHandedOver, evacuation.StateEvicting
	for name, test := range map[string]struct {
		s    evacuation.Snapshot
		want evacuation.State
	}{
		"given up":                   {of(barePod(), requestedBy(surger), active(deployment, at(0)), completed, unsurged), handsOver},
		"given up, and not yet back": {of(barePod(), requestedBy(surger), active(deployment, at(0)), completed, unsurged, detached), handsOver},
		"replaced":                   {of(barePod(), requestedBy(surger), active(deployment, at(0)), completed, detached), evicts},
		"silent": {
			of(barePod(), requestedBy(surger), active(deployment, at(-30*time.Minute)), detached), handsOver,
		},
		"completed by somebody who has done nothing": {
			of(barePod(), requestedBy(surger), active(deployment, at(0)), completed), handsOver,
		},
		"still being replaced":               {of(barePod(), requestedBy(surger), active(deployment, at(0)), detached), evacuation.StateEvacuating},
		"somebody else wants it gone":        {of(barePod(), requestedBy(surger), finalizers(v1alpha1.LifecycleInstigator, v1alpha1.NodeMaintenanceInstigator), active(deployment, at(0)), completed, unsurged), evicts},
		"a caller of the eviction API waits": {of(barePod(), requestedBy(surger), others, active(deployment, at(0)), completed, unsurged), handsOver},
		"the evictor is active":              {of(barePod(), requestedBy("imperative-eviction.k8s.io/evictor"), active(deployment, at(0)), completed, unsurged), evicts},
		"a malformed cause":                  {of(barePod(), requestedBy(surger), noCause, active(deployment, at(0)), completed, unsurged), evicts},
	} {
		d := evacuation.Decide(test.s)
		if d.State != test.want || d.Evict != (test.want == evicts) {
			t.Errorf("%s: %s, %q, evicts %t; want %s", name, d.State, d.Message, d.Evict, test.want)
		}
		golden.Message(t, string(d.State), d.Message)
		if test.want == handsOver && (d.Status != nil || d.Delete || len(d.DropFinalizers) > 0) {
			t.Errorf("%s: it does something: %+v", name, d)
		}
	}
}

func others(s *evacuation.Snapshot) {
	s.Evacuation.Finalizers = append(s.Evacuation.Finalizers, v1alpha1.EvictionInstigator)
	s.Evacuation.Annotations[v1alpha1.EvictionAttemptAnnotation] = now.Format(time.RFC3339)
}

func noCause(s *evacuation.Snapshot) {
	s.Evacuation.Annotations[v1alpha1.EvictionTurnAnnotation] = `{"responder":7}`
}
