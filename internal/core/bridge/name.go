package bridge

import (
	"fmt"
	"slices"
	"strings"
)

// Name identifies a controller that owns machines or nodes, and for which Ebbtide drains.
type Name string

// What can be bridged.
const (
	ClusterAPI        Name = "cluster-api"
	OpenShift         Name = "openshift"
	Karpenter         Name = "karpenter"
	ClusterAutoscaler Name = "cluster-autoscaler"
)

var names = []Name{ClusterAPI, OpenShift, Karpenter, ClusterAutoscaler}

// Names lists the enabled bridges in the order of the constants.
type Names []Name

// ParseNames reads names separated by commas. It fails on an unknown name.
func ParseNames(text string) (Names, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var asked []Name
	for one := range strings.SplitSeq(text, ",") {
		name := Name(strings.TrimSpace(one))
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("there is no bridge %.40q; there are cluster-api, openshift, karpenter and cluster-autoscaler", string(name))
		}
		asked = append(asked, name)
	}
	return slices.DeleteFunc(slices.Clone(names), func(n Name) bool { return !slices.Contains(asked, n) }), nil
}

// Has reports whether one is switched on.
func (n Names) Has(name Name) bool { return slices.Contains(n, name) }
