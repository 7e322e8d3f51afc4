package view

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/volume"
)

// Stranded is a volume that can only be used on nodes held by NodeMaintenances.
type Stranded struct {
	Claim, Volume  string
	Nodes, Holders []string
}

// StrandedOf returns the volume of a claim if all nodes on which it can be used are held.
func StrandedOf(claim string, v *corev1.PersistentVolume, nodes []*metav1.PartialObjectMetadata) *Stranded {
	sites := volume.Sites(v, nodes)
	if len(sites) == 0 {
		return nil
	}
	s := &Stranded{Claim: claim, Volume: v.Name}
	for _, site := range sites {
		holders := cordon.Holders(&corev1.Node{ObjectMeta: site.ObjectMeta})
		if len(holders) == 0 {
			return nil
		}
		s.Nodes, s.Holders = append(s.Nodes, site.Name), append(s.Holders, holders...)
	}
	slices.Sort(s.Holders)
	s.Holders = slices.Compact(s.Holders)
	return s
}

func (s *Stranded) why() string {
	return fmt.Sprintf("Its volume %s (claim %s) can only be used on node %s, which accepts no pods during maintenance.",
		excerpt.Line(s.Volume, maxWords), excerpt.Line(s.Claim, maxWords), phrase.Some(s.Nodes, maxNamed))
}
