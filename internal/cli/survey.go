package cli

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

// survey is a whole cluster as far as a forecast reads it. What could not be read is
// noted and the rest goes on.
type survey struct {
	reached client.Client
	// ebbtide is Ebbtide's own namespace.
	ebbtide string

	nodes        []*corev1.Node
	pods         []*corev1.Pod
	namespaces   []*corev1.Namespace
	budgets      []*policyv1.PodDisruptionBudget
	claims       []*corev1.PersistentVolumeClaim
	volumes      []*corev1.PersistentVolume
	classes      []*storagev1.StorageClass
	deployments  []*appsv1.Deployment
	replicaSets  []*appsv1.ReplicaSet
	statefulSets []*appsv1.StatefulSet
	jobs         []*batchv1.Job
	maintenances []*v1alpha1.NodeMaintenance
	evacuations  []*v1alpha1.Evacuation
	records      []*v1alpha1.DrainRecord
	rules        []*v1alpha1.MachineDrainRule
	agents       []*v1alpha1.NodeAgent
	leases       []*coordinationv1.Lease

	mu     sync.Mutex
	unread []preflight.Unread
	// failed are the errors of kinds that could not be read, by kind.
	failed map[string]error
}

// reader reads one kind of objects.
type reader func(ctx context.Context) error

// read calls readers, some at the same time. It fails only if nobody waits any more.
func (s *survey) read(ctx context.Context, readers ...reader) error {
	together := &errgroup.Group{}
	together.SetLimit(atOnce)
	s.failed = map[string]error{}
	for _, one := range readers {
		together.Go(func() error { return one(ctx) })
	}
	if err := together.Wait(); err != nil {
		return err
	}
	slices.SortFunc(s.unread, func(a, b preflight.Unread) int { return strings.Compare(a.Kind, b.Kind) })
	return nil
}

// of reads all objects of the kind of a list, and keeps of each what slim leaves.
func of[P listable](s *survey, into *[]P, list client.ObjectList, slim func(P) P, options ...client.ListOption) reader {
	return func(ctx context.Context) error {
		err := error(nil)
		// Pages go out of date where a cluster changes a lot.
		for range 2 {
			if *into, err = pages(ctx, s.reached, list, slim, options...); !apierrors.IsResourceExpired(err) {
				break
			}
		}
		switch {
		case err == nil, meta.IsNoMatchError(err):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		kind := strings.TrimSuffix(reflect.TypeOf(list).Elem().Name(), "List")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed[kind] = err
		s.unread = append(s.unread, preflight.Unread{Kind: kind, Why: excerpt.Line(err.Error(), maxSaid)})
		return nil
	}
}

// everything are the readers of a forecast, besides those of the nodes.
func (s *survey) everything() []reader {
	return []reader{
		of(s, &s.pods, &corev1.PodList{}, slimPod),
		of(s, &s.budgets, &policyv1.PodDisruptionBudgetList{}, whole),
		of(s, &s.claims, &corev1.PersistentVolumeClaimList{}, slimClaim),
		of(s, &s.volumes, &corev1.PersistentVolumeList{}, slimVolume),
		of(s, &s.classes, &storagev1.StorageClassList{}, whole),
		of(s, &s.namespaces, &corev1.NamespaceList{}, slimNamespace),
		of(s, &s.deployments, &appsv1.DeploymentList{}, slimDeployment),
		of(s, &s.replicaSets, &appsv1.ReplicaSetList{}, slimReplicaSet),
		of(s, &s.statefulSets, &appsv1.StatefulSetList{}, slimStatefulSet),
		of(s, &s.jobs, &batchv1.JobList{}, slimJob),
		of(s, &s.maintenances, &v1alpha1.NodeMaintenanceList{}, whole),
		of(s, &s.evacuations, &v1alpha1.EvacuationList{}, whole),
		of(s, &s.records, &v1alpha1.DrainRecordList{}, whole),
		of(s, &s.rules, &v1alpha1.MachineDrainRuleList{}, whole, client.InNamespace(s.ebbtide)),
		of(s, &s.agents, &v1alpha1.NodeAgentList{}, whole),
		s.leasesOfAgents,
	}
}

// leasesOfAgents are signs of life, where there may be any.
func (s *survey) leasesOfAgents(ctx context.Context) error {
	// Agents of pods need none, and a user who may not read Leases has said nothing wrong.
	leases, err := pages(ctx, s.reached, &coordinationv1.LeaseList{}, whole[*coordinationv1.Lease], client.InNamespace(s.ebbtide))
	if err == nil {
		s.leases = leases
	}
	return ctx.Err()
}

// whyUnread is why a kind of objects could not be read; empty if it was.
func (s *survey) whyUnread(kind string) string {
	for _, u := range s.unread {
		if u.Kind == kind {
			return u.Why
		}
	}
	return ""
}
