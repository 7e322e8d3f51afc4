package bridge_test

import (
	"slices"
	"testing"

	"ebbtide.dev/ebbtide/internal/core/bridge"
)

// A name that is mistyped would leave nodes to be drained by somebody else, unseen.
func TestNamesOfBridges(t *testing.T) {
	t.Parallel()
	const known = "; there are cluster-api, openshift, karpenter and cluster-autoscaler"
	for text, test := range map[string]struct {
		want  bridge.Names
		fault string
	}{
		"":                             {},
		" ":                            {},
		"cluster-api":                  {want: bridge.Names{bridge.ClusterAPI}},
		"openshift, cluster-api":       {want: bridge.Names{bridge.ClusterAPI, bridge.OpenShift}},
		"karpenter,karpenter":          {want: bridge.Names{bridge.Karpenter}},
		"cluster-autoscaler,openshift": {want: bridge.Names{bridge.OpenShift, bridge.ClusterAutoscaler}},
		"capi":                         {fault: `there is no bridge "capi"` + known},
		"cluster-api,":                 {fault: `there is no bridge ""` + known},
		"cluster-api,Karpenter":        {fault: `there is no bridge "Karpenter"` + known},
		"cluster-api;openshift;and so on and so on and so on": {
			fault: `there is no bridge "cluster-api;openshift;and so on and so o"` + known,
		},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, err := bridge.ParseNames(text)
			fault := ""
			if err != nil {
				fault = err.Error()
			}
			if !slices.Equal(got, test.want) || fault != test.fault {
				t.Errorf("%v and %q, want %v and %q", got, fault, test.want, test.fault)
			}
		})
	}
	names, _ := bridge.ParseNames("openshift")
	if !names.Has(bridge.OpenShift) || names.Has(bridge.ClusterAPI) || bridge.Names(nil).Has(bridge.OpenShift) {
		t.Errorf("%v: OpenShift %t, Cluster API %t", names, names.Has(bridge.OpenShift), names.Has(bridge.ClusterAPI))
	}
}
