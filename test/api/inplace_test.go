package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	downtimeField = "spec.inPlace.expectedDowntimeSeconds"
	timeoutField  = "spec.inPlace.lockTimeoutSeconds"
	actionField   = "spec.inPlace.onLockTimeout"
	rebootField   = "spec.inPlace.expectedRebootCount"
)

var badInPlace = map[string]struct {
	inPlace string
	want    refusal
}{
	"no downtime":               {"{}", refusal{downtimeField: "Required value"}},
	"a downtime of null":        {"{expectedDowntimeSeconds: null}", refusal{downtimeField: "Required value"}},
	"a downtime of 0":           {"{expectedDowntimeSeconds: 0}", refusal{downtimeField: "should be greater than or equal to 1"}},
	"a negative downtime":       {"{expectedDowntimeSeconds: -1}", refusal{downtimeField: "should be greater than or equal to 1"}},
	"a second too much":         {"{expectedDowntimeSeconds: 3601}", refusal{downtimeField: "should be less than or equal to 3600"}},
	"a downtime of 100,000":     {"{expectedDowntimeSeconds: 100000}", refusal{downtimeField: "should be less than or equal to 3600"}},
	"a downtime beyond numbers": {"{expectedDowntimeSeconds: 99999999999}", refusal{downtimeField: "should be less than or equal to 3600"}},
	"a downtime in words":       {"{expectedDowntimeSeconds: 10m}", refusal{downtimeField: `must be of type integer: "string"`}},
	"a fraction":                {"{expectedDowntimeSeconds: 1.5}", refusal{downtimeField: "must be of type int"}},
	"no time for locks":         {"{expectedDowntimeSeconds: 9, lockTimeoutSeconds: 0}", refusal{timeoutField: "should be greater than or equal to 1"}},
	"negative time for locks":   {"{expectedDowntimeSeconds: 9, lockTimeoutSeconds: -1}", refusal{timeoutField: "should be greater than or equal to 1"}},
	"more than a day for locks": {"{expectedDowntimeSeconds: 9, lockTimeoutSeconds: 86401}", refusal{timeoutField: "should be less than or equal to 86400"}},
	"time for locks in words":   {"{expectedDowntimeSeconds: 9, lockTimeoutSeconds: forever}", refusal{timeoutField: `must be of type integer: "string"`}},
	"an action in lower case":   {"{expectedDowntimeSeconds: 9, onLockTimeout: delete}", refusal{actionField: `supported values: "Evict", "Wait", "Delete"`}},
	"an empty action":           {`{expectedDowntimeSeconds: 9, onLockTimeout: ""}`, refusal{actionField: `supported values: "Evict", "Wait", "Delete"`}},
	"an action that is none":    {"{expectedDowntimeSeconds: 9, onLockTimeout: Ignore}", refusal{actionField: `supported values: "Evict", "Wait", "Delete"`}},
	"fewer reboots than none":   {"{expectedDowntimeSeconds: 9, expectedRebootCount: -1}", refusal{rebootField: "should be greater than or equal to 0"}},
	"more reboots than 10":      {"{expectedDowntimeSeconds: 9, expectedRebootCount: 11}", refusal{rebootField: "should be less than or equal to 10"}},
	"reboots in words":          {"{expectedDowntimeSeconds: 9, expectedRebootCount: once}", refusal{rebootField: `must be of type integer: "string"`}},
	"two faults": {
		"{expectedDowntimeSeconds: 0, onLockTimeout: Force}",
		refusal{downtimeField: "should be greater than or equal to 1", actionField: "supported values"},
	},
	"true":   {"true", refusal{"spec.inPlace": `must be of type object: "boolean"`}},
	"a list": {"[{expectedDowntimeSeconds: 9}]", refusal{"spec.inPlace": `must be of type object: "array"`}},
}

func TestInPlaceIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, test := range badInPlace {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.expect(t, try(t, c, maintenance("bad", anyNode+"\ninPlace: "+test.inPlace)))
		})
	}
}

func TestInPlaceHasDefaults(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, test := range map[string]struct {
		inPlace string
		want    v1alpha1.InPlace
	}{
		"only-a-downtime": {"{expectedDowntimeSeconds: 600}", v1alpha1.InPlace{ExpectedDowntimeSeconds: 600, LockTimeoutSeconds: 300, OnLockTimeout: "Evict", ExpectedRebootCount: new(int32(1))}},
		"nulls": {
			"{expectedDowntimeSeconds: 600, lockTimeoutSeconds: null, onLockTimeout: null}",
			v1alpha1.InPlace{ExpectedDowntimeSeconds: 600, LockTimeoutSeconds: 300, OnLockTimeout: "Evict", ExpectedRebootCount: new(int32(1))},
		},
		"no-reboot": {
			"{expectedDowntimeSeconds: 600, expectedRebootCount: 0}",
			v1alpha1.InPlace{ExpectedDowntimeSeconds: 600, LockTimeoutSeconds: 300, OnLockTimeout: "Evict", ExpectedRebootCount: new(int32(0))},
		},
		"another-action": {
			"{expectedDowntimeSeconds: 600, onLockTimeout: Wait}",
			v1alpha1.InPlace{ExpectedDowntimeSeconds: 600, LockTimeoutSeconds: 300, OnLockTimeout: "Wait", ExpectedRebootCount: new(int32(1))},
		},
	} {
		name = create(t, c, maintenance("in-place-"+name, anyNode+"\ninPlace: "+test.inPlace)).GetName()
		var nm v1alpha1.NodeMaintenance
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &nm); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&test.want, nm.Spec.InPlace); diff != "" {
			t.Errorf("%s: inPlace (-want +got):\n%s", name, diff)
		}
	}
}

// A maintenance may become one in place, and cease to be one, at any stage; what
// is immutable beside it stays so.
func TestInPlaceMayChange(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, maintenance("in-place-changes", anyNode+"\ndrainPlan: [{podPriority: 1}]"))
	for _, change := range []string{
		"spec: {inPlace: {expectedDowntimeSeconds: 60}}",
		"spec: {stage: Drain}",
		"spec: {inPlace: {expectedDowntimeSeconds: 600, onLockTimeout: Wait}}",
		"spec: {inPlace: {lockTimeoutSeconds: 30}}",
		"spec: {inPlace: null}",
		"spec: {inPlace: {expectedDowntimeSeconds: 5}}",
	} {
		if err := patch(t, c, o, change); err != nil {
			t.Errorf("%s is refused: %v", change, err)
		}
	}
	refusal{"spec.drainPlan": "drainPlan is immutable"}.expect(t,
		patch(t, c, o, "spec: {inPlace: {expectedDowntimeSeconds: 7}, drainPlan: [{podPriority: 2}]}"))
	refusal{downtimeField: "should be greater than or equal to 1"}.expect(t,
		patch(t, c, o, "spec: {inPlace: {expectedDowntimeSeconds: 0}}"))
	var nm v1alpha1.NodeMaintenance
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), &nm); err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.InPlace{ExpectedDowntimeSeconds: 5, LockTimeoutSeconds: 300, OnLockTimeout: v1alpha1.LockTimeoutEvict, ExpectedRebootCount: new(int32(1))}
	if diff := cmp.Diff(want, nm.Spec.InPlace); diff != "" {
		t.Errorf("inPlace (-want +got):\n%s", diff)
	}
}
