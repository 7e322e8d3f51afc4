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
	"ebbtide.dev/ebbtide/internal/kube"
)

// survey holds the objects of a cluster that a forecast depends on. Kinds that cannot be read are
// noted.
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
	nodeBudgets  []*v1alpha1.NodeBudget

	mu     sync.Mutex
	unread []preflight.Unread
	// failed are the errors of kinds that could not be read, by kind.
	failed map[string]error
}

// reader reads one kind of objects.
type reader func(ctx context.Context) error

// read calls readers concurrently. It fails only if the context ends.
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

// of returns a reader of all objects of a kind, which keeps what slim returns of each.
func of[P listable](s *survey, into *[]P, list client.ObjectList, slim func(P) P, options ...client.ListOption) reader {
	return func(ctx context.Context) error {
		err := error(nil)
		// A page token expires if the cluster changes a lot.
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

// everything returns the readers of a forecast, except that of nodes.
func (s *survey) everything() []reader {
	return []reader{
		of(s, &s.pods, &corev1.PodList{}, kube.SlimPod),
		of(s, &s.budgets, &policyv1.PodDisruptionBudgetList{}, whole),
		of(s, &s.claims, &corev1.PersistentVolumeClaimList{}, whole),
		of(s, &s.volumes, &corev1.PersistentVolumeList{}, whole),
		of(s, &s.classes, &storagev1.StorageClassList{}, whole),
		of(s, &s.namespaces, &corev1.NamespaceList{}, slimNamespace),
		of(s, &s.deployments, &appsv1.DeploymentList{}, whole),
		of(s, &s.replicaSets, &appsv1.ReplicaSetList{}, slimReplicaSet),
		of(s, &s.statefulSets, &appsv1.StatefulSetList{}, whole),
		of(s, &s.jobs, &batchv1.JobList{}, whole),
		of(s, &s.maintenances, &v1alpha1.NodeMaintenanceList{}, whole),
		of(s, &s.evacuations, &v1alpha1.EvacuationList{}, whole),
		of(s, &s.records, &v1alpha1.DrainRecordList{}, whole),
		of(s, &s.rules, &v1alpha1.MachineDrainRuleList{}, whole, client.InNamespace(s.ebbtide)),
		of(s, &s.agents, &v1alpha1.NodeAgentList{}, whole),
		of(s, &s.nodeBudgets, &v1alpha1.NodeBudgetList{}, whole),
		s.leasesOfAgents,
	}
}

// leasesOfAgents reads the Leases of agents. Only agents outside pods have one, so that an error is
// ignored.
func (s *survey) leasesOfAgents(ctx context.Context) error {
	leases, err := pages(ctx, s.reached, &coordinationv1.LeaseList{}, whole[*coordinationv1.Lease], client.InNamespace(s.ebbtide))
	if err == nil {
		s.leases = leases
	}
	return ctx.Err()
}

// whyUnread returns why a kind could not be read; empty if it was.
func (s *survey) whyUnread(kind string) string {
	for _, u := range s.unread {
		if u.Kind == kind {
			return u.Why
		}
	}
	return ""
}
