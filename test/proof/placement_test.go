package proof

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/placement"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

var placements = flag.Int("placements", 6, "how many random clusters are scheduled")

// podsEach is how many pods are put into each cluster, one after the other.
const podsEach = 16

// The estimate is asked before each pod is created: it fits if and only if the scheduler
// binds it. Where it was bound is what the estimate goes by for the next one.
func TestLongPodsFitWhereTheSchedulerPutsThem(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	for number := range *placements {
		t.Run(fmt.Sprint(first+uint64(number)), func(t *testing.T) {
			t.Parallel()
			newScarce(t, first+uint64(number)).compare()
		})
	}
}

// scarce is a random cluster on the real control plane.
type scarce struct {
	scheduling
	t       *testing.T
	cluster *cluster.Cluster
	client  client.Client
}

func newScarce(t *testing.T, seed uint64) *scarce {
	c := cluster.Start(t, cluster.Spec{NoManager: true})
	s := &scarce{t: t, cluster: c, client: c.Client, scheduling: scheduling{Rand: rand.New(rand.NewPCG(seed, 1)), pool: c.Pool()}}
	for i := range 2 {
		name := c.Namespace(t)
		s.namespaces = append(s.namespaces, name)
		s.label(name, map[string]string{"team": s.team(i), cluster.PoolLabel: s.pool})
	}
	var names []string
	for i := range 3 + s.IntN(4) {
		names = append(names, fmt.Sprintf("%s-%d", s.pool, i))
	}
	c.ForgetNodes(t, names...)
	for _, name := range names {
		s.create(s.node(name))
	}
	s.storage()
	s.awaitNodes(names)
	return s
}

func (s *scarce) create(object client.Object) {
	s.t.Helper()
	object.SetUID("")
	if err := s.client.Create(s.t.Context(), object); err != nil {
		s.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

func (s *scarce) label(namespace string, labels map[string]string) {
	object := &corev1.Namespace{}
	object.Name = namespace
	patch := client.MergeFrom(object.DeepCopy())
	object.Labels = labels
	if err := s.client.Patch(s.t.Context(), object, patch); err != nil {
		s.t.Fatalf("label namespace: %v", err)
	}
}

// storage has volumes that are bound and such that wait for their first pod.
func (s *scarce) storage() {
	static := s.pool + "-static"
	s.shared(s.storageClass(static))
	for n, namespace := range s.namespaces {
		for i := range claims {
			name := fmt.Sprintf("data-%d", i)
			if i < 4 {
				v := s.volume(fmt.Sprintf("%s-%d-%d", s.pool, n, i), static)
				if i < 2 {
					v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name}
					v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("1Ti")
				}
				s.shared(v)
			}
			claim := s.claim(namespace, name, static)
			if i < 2 {
				claim.Spec.VolumeName = fmt.Sprintf("%s-%d-%d", s.pool, n, i)
			}
			s.create(claim)
		}
	}
	s.awaitVolumes()
}

// shared creates an object that no namespace takes with it.
func (s *scarce) shared(object client.Object) {
	s.create(object)
	s.t.Cleanup(func() {
		ctx, cancel := patience.Context(s.t)
		defer cancel()
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		_ = s.client.Patch(ctx, object, patch)
		if err := client.IgnoreNotFound(s.client.Delete(ctx, object)); err != nil {
			s.t.Errorf("delete %s: %v", object.GetName(), err)
		}
	})
}

// awaitVolumes waits until the claims that have a volume are bound to it, and the other
// volumes are there to be bound.
func (s *scarce) awaitVolumes() {
	s.t.Helper()
	patience.Eventually(s.t, "the volumes are settled", func(context.Context) (string, bool) {
		w := s.world()
		for _, claim := range w.Claims {
			if claim.Spec.VolumeName != "" && claim.Status.Phase != corev1.ClaimBound {
				return fmt.Sprintf("claim %s is %s", claim.Name, claim.Status.Phase), false
			}
		}
		for _, v := range w.Volumes {
			if v.Status.Phase != corev1.VolumeBound && v.Status.Phase != corev1.VolumeAvailable {
				return fmt.Sprintf("volume %s is %s", v.Name, v.Status.Phase), false
			}
		}
		return "", true
	})
}

func (s *scarce) awaitNodes(names []string) {
	s.t.Helper()
	patience.Eventually(s.t, "the nodes are ready", func(context.Context) (string, bool) {
		for _, n := range s.world().Nodes {
			cordoned := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
			notReady := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
			if slices.Contains(names, n.Name) && (notReady || cordoned != n.Spec.Unschedulable) {
				return fmt.Sprintf("%s has taints %v", n.Name, n.Spec.Taints), false
			}
		}
		return "", true
	})
}

// world is what there is of this cluster.
func (s *scarce) world() (w placement.World) {
	s.t.Helper()
	nodes, pods, claims := &corev1.NodeList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
	volumes, classes, namespaces := &corev1.PersistentVolumeList{}, &storagev1.StorageClassList{}, &corev1.NamespaceList{}
	for _, list := range []client.ObjectList{nodes, pods, claims, volumes, classes, namespaces} {
		if err := s.client.List(s.t.Context(), list); err != nil {
			s.t.Fatalf("list: %v", err)
		}
	}
	ours := func(name string) bool { return strings.HasPrefix(name, s.pool+"-") }
	w.Nodes = chosen(nodes.Items, func(n *corev1.Node) bool { return ours(n.Name) })
	w.Pods = chosen(pods.Items, func(p *corev1.Pod) bool { return ours(p.Namespace) })
	w.Claims = chosen(claims.Items, func(c *corev1.PersistentVolumeClaim) bool { return ours(c.Namespace) })
	w.Volumes = chosen(volumes.Items, func(v *corev1.PersistentVolume) bool { return ours(v.Name) })
	w.Classes = chosen(classes.Items, func(c *storagev1.StorageClass) bool { return ours(c.Name) })
	w.Namespaces = chosen(namespaces.Items, func(n *corev1.Namespace) bool { return ours(n.Name) })
	return w
}

func chosen[T any](all []T, is func(*T) bool) (some []*T) {
	for i := range all {
		if is(&all[i]) {
			some = append(some, &all[i])
		}
	}
	return some
}

// compare puts pods into the cluster.
func (s *scarce) compare() {
	fits := 0
	for i := range podsEach {
		w := s.world()
		pod := s.pod(fmt.Sprintf("pod-%d", i))
		s.create(pod)
		node, why := placement.New(w).Place(pod)
		bound, says := s.await(pod, node != "")
		if (node != "") != (bound != "") {
			s.t.Errorf("pod %s: the estimate has node %q because %q, the scheduler node %q because %q\n%s", pod.Name, node, why, bound, says, describe(pod))
		}
		if bound == "" {
			s.delete(pod)
			continue
		}
		fits++
		s.awaitVolumes()
	}
	s.t.Logf("%d of %d pods were bound", fits, podsEach)
}

// await waits for what the scheduler says of a pod. What it refuses and was expected to
// bind may be about what it has not seen yet, so it gets some seconds more.
func (s *scarce) await(pod *corev1.Pod, expected bool) (node, says string) {
	s.t.Helper()
	refusedAt := time.Time{}
	patience.Eventually(s.t, "a decision on pod "+pod.Name, func(ctx context.Context) (string, bool) {
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err.Error(), false
		}
		if node = pod.Spec.NodeName; node != "" {
			return "", true
		}
		for _, c := range pod.Status.Conditions {
			if c.Type != corev1.PodScheduled || c.Reason != corev1.PodReasonUnschedulable {
				continue
			}
			if says = c.Message; refusedAt.IsZero() {
				refusedAt = time.Now()
			}
			return says, !expected || time.Since(refusedAt) > 3*time.Second
		}
		return "nothing", false
	})
	return node, says
}

func (s *scarce) delete(pod *corev1.Pod) {
	s.t.Helper()
	if err := s.client.Delete(s.t.Context(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		s.t.Fatalf("delete pod: %v", err)
	}
	patience.Eventually(s.t, "the end of pod "+pod.Name, func(ctx context.Context) (string, bool) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

func describe(pod *corev1.Pod) string {
	copied := pod.DeepCopy()
	copied.ManagedFields = nil
	return fmt.Sprintf("labels %v, spec %+v", copied.Labels, copied.Spec)
}
