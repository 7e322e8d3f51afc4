package evictionrequest_test

import (
	"testing"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestControllerOfAPod(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		situation evictionrequest.Situation
		want      evictionrequest.State
	}{
		"nobody else":               {evictionrequest.Situation{Mode: "auto", Served: true}, evictionrequest.StateActive},
		"the API is not served":     {evictionrequest.Situation{Mode: "controller"}, evictionrequest.StateNotServed},
		"asked for":                 {evictionrequest.Situation{Mode: "controller", Served: true, Holder: "x", Foreign: "y", Unknown: "z"}, evictionrequest.StateActive},
		"not asked for":             {evictionrequest.Situation{Mode: "off", Served: true}, evictionrequest.StateOff},
		"asked for the rest":        {evictionrequest.Situation{Mode: "member", Served: true}, evictionrequest.StateOff},
		"another Ebbtide":           {evictionrequest.Situation{Mode: "auto", Served: true, Holder: "tides"}, evictionrequest.StateAside},
		"another controller":        {evictionrequest.Situation{Mode: "auto", Served: true, Foreign: "evictionrequest-controller"}, evictionrequest.StateAside},
		"an unknown is never a yes": {evictionrequest.Situation{Mode: "auto", Served: true, Unknown: "get the Lease: timeout"}, evictionrequest.StateUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, message := evictionrequest.Role(tc.situation)
			if state != tc.want {
				t.Errorf("%s: %s; want %s", state, message, tc.want)
			}
			golden.Message(t, string(state), message)
		})
	}
	if mode, err := evictionrequest.ParseMode("on"); err == nil {
		t.Errorf("an unknown mode is %s", mode)
	}
}

// Who only responds cannot have Ebbtide step aside, whatever it writes into a status.
func TestForeignControllerIsRecognizedByItsObjects(t *testing.T) {
	t.Parallel()
	entry := func(manager, subresource, fields string, ago time.Duration) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: subresource, Time: &metav1.Time{Time: noon.Add(-ago)},
			FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const spec, turns = `{"f:spec":{"f:target":{}}}`, `{"f:status":{"f:targetResponders":{"k:{\"name\":\"x\"}":{}}}}`
	for name, tc := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"it makes and writes":      {[]metav1.ManagedFieldsEntry{entry("upstream", "", spec, time.Hour*9), entry("upstream", "status", turns, time.Minute)}, "upstream"},
		"an hour ago":              {[]metav1.ManagedFieldsEntry{entry("upstream", "", spec, 0), entry("upstream", "status", turns, time.Hour+1)}, ""},
		"that is us":               {[]metav1.ManagedFieldsEntry{entry(evictionrequest.FieldManager, "", spec, 0), entry(evictionrequest.FieldManager, "status", turns, 0)}, ""},
		"a responder oversteps":    {[]metav1.ManagedFieldsEntry{entry(evictionrequest.FieldManager, "", spec, 0), entry("mallory", "status", turns, 0)}, ""},
		"somebody makes Evictions": {[]metav1.ManagedFieldsEntry{entry("kubectl", "", spec, 0), entry(evictionrequest.FieldManager, "status", turns, 0)}, ""},
		"a responder responds":     {[]metav1.ManagedFieldsEntry{entry("x", "", spec, 0), entry("x", "status", `{"f:status":{"f:responders":{}}}`, 0)}, ""},
		"nobody can read it":       {[]metav1.ManagedFieldsEntry{entry("x", "", `[`, 0), entry("x", "status", `]`, 0)}, ""},
		"nobody says when":         {[]metav1.ManagedFieldsEntry{entry("x", "", spec, 0), {Manager: "x", Subresource: "status", FieldsV1: metav1.NewFieldsV1(turns)}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{ManagedFields: tc.entries}}
			if got := evictionrequest.Foreign(e, noon); got != tc.want {
				t.Errorf("%q is taken for another controller, want %q", got, tc.want)
			}
		})
	}
}
