package api

import (
	"fmt"
	"strings"
	"testing"
)

// record is a DrainRecord with these lines in its spec beside what it needs.
func record(name, spec string) string {
	return fmt.Sprintf(`
apiVersion: ebbtide.dev/v1alpha1
kind: DrainRecord
metadata: {name: %s}
spec:
  maintenanceRef: {name: reboot}
  inPlace: {expectedDowntimeSeconds: 600}
%s`, name, indent(spec, "  "))
}

// repeated is a list of n such entries.
func repeated(entry string, n int) string { return "[" + strings.Repeat(entry+",", n) + "]" }

const stayingPod = "{namespace: shop, name: db-0, uid: " + uid + "}"

func TestDrainRecordIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, test := range map[string]struct {
		document string
		want     refusal
	}{
		"no maintenance":   {strings.Replace(record("bad", ""), "maintenanceRef: {name: reboot}", "", 1), refusal{"spec.maintenanceRef": "Required value"}},
		"no object's name": {strings.Replace(record("bad", ""), "name: reboot", `name: "a/b"`, 1), refusal{"spec.maintenanceRef.name": "should match '^[a-z0-9]"}},
		"nobody":           {strings.Replace(record("bad", ""), "name: reboot", `name: ""`, 1), refusal{"spec.maintenanceRef.name": "should be at least 1 chars long"}},
		"no settings":      {strings.Replace(record("bad", ""), "inPlace: {expectedDowntimeSeconds: 600}", "", 1), refusal{"spec.inPlace": "Required value"}},
		"a long reason":    {record("bad", "reason: "+strings.Repeat("r", 1025)), refusal{"spec.reason": "may not be more than 1024"}},
		"too many pods":    {record("bad", "pods: "+repeated(stayingPod, 4097)), refusal{"spec.pods": "must have at most 4096 items"}},
		"too many budgets": {record("bad", "budgets: "+repeated("{namespace: shop, name: db}", 4097)), refusal{"spec.budgets": "must have at most 4096 items"}},
		"a pod without uid": {
			record("bad", "pods: [{namespace: shop, name: db-0}]"),
			refusal{"spec.pods[0].uid": "Required value"},
		},
		"a budget of a long name": {
			record("bad", "budgets: [{namespace: shop, name: "+strings.Repeat("b", 254)+"}]"),
			refusal{"spec.budgets[0].name": "may not be more than 253"},
		},
		"a pod under too many budgets": {
			record("bad", "pods: [{namespace: shop, name: db-0, uid: "+uid+", budgetNames: "+repeated("db", 257)+"}]"),
			refusal{"spec.pods[0].budgetNames": "must have at most 256 items"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.expect(t, try(t, c, test.document))
		})
	}
}

// A node with more pods than any kubelet runs has room in its record.
func TestALargeDrainRecordIsAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	if err := try(t, c, record("large", "pods: "+repeated(stayingPod, 4096)+"\nbudgets: "+repeated("{namespace: shop, name: db}", 4096))); err != nil {
		t.Errorf("refused: %v", err)
	}
}
