package view_test

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/core/view"
)

func TestWhetherAManagerActs(t *testing.T) {
	t.Parallel()
	at := func(age time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: noon.Add(-age)} }
	for name, test := range map[string]struct {
		renewed *metav1.MicroTime
		silent  string
	}{
		"it does":                   {at(2 * time.Second), ""},
		"its clock is ahead":        {at(-30 * time.Second), ""},
		"another one may take over": {at(59 * time.Second), ""},
		"none does":                 {at(time.Minute), "has not renewed for 1m0s the Lease tides/leader"},
		"none has for a day":        {at(24*time.Hour + time.Millisecond), "has not renewed for 24h0m0s the Lease tides/leader"},
		"none ever has":             {nil, "has never renewed the Lease tides/leader"},
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "tides", Name: "leader"}, Spec: coordinationv1.LeaseSpec{RenewTime: test.renewed}}
		if got := view.ManagerNote(lease, noon); (got == "") != (test.silent == "") || !strings.Contains(got, test.silent) {
			t.Errorf("%s: %q, want %q in it", name, got, test.silent)
		}
	}
}
