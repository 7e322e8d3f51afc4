package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// podPage bounds the complete pods in memory.
	podPage = 250
	// maxNamed bounds the objects that are read by name for a check.
	maxNamed = 1000
	// maxPods bounds the pods in memory.
	maxPods = 20000
)

// +kubebuilder:rbac:groups="",resources=nodes;pods;namespaces,verbs=list
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims;persistentvolumes,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list

// check answers questions about nodes by the API server: the cache has neither what pods request nor
// what their volumes are. What could not be read is unknown.
type check struct {
	live client.Reader
	// room is the cluster, nil until it is read; roomErr is why it could not be.
	room    *preflight.Room
	roomErr error
	named   int
}

// respond answers a question. The cluster is read once for all of them.
func (c *check) respond(ctx context.Context, q core.Question) (core.Verdict, string) {
	if q.Requirement == v1alpha1.RequiresNoLoss {
		return verdictOf(c.losesNothing(ctx, q.Node))
	}
	if c.room == nil && c.roomErr == nil {
		c.room, c.roomErr = c.readRoom(ctx)
	}
	if c.roomErr != nil {
		return verdictOf(false, c.roomErr)
	}
	leaving := strings.Split(q.Leaving, ",")
	if err := c.readClaims(ctx, append(leaving, q.Node)); err != nil {
		return verdictOf(false, err)
	}
	fits, unknown := c.room.Fits(q.Node, leaving)
	if unknown != "" {
		return core.Unknown, unknown + "."
	}
	return verdictOf(fits, nil)
}

func verdictOf(yes bool, err error) (core.Verdict, string) {
	switch {
	case err != nil:
		return core.Unknown, err.Error() + "."
	case yes:
		return core.Yes, ""
	}
	return core.No, ""
}

// unreadable says that a kind of objects cannot be read, in words that are the same for the same
// reason.
func unreadable(kind string, err error) error {
	reason := string(apierrors.ReasonForError(err))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		reason = "Timeout"
	case reason == "":
		reason = "no answer"
	}
	return fmt.Errorf("%s cannot be read (%s)", kind, reason)
}

// losesNothing reports whether a drain of a node loses no pod and no data.
func (c *check) losesNothing(ctx context.Context, node string) (bool, error) {
	pods, err := c.pods(ctx, client.MatchingFields{kube.PodNodeField: node})
	if err != nil {
		return false, err
	}
	var jobs []*batchv1.Job
	known := map[client.ObjectKey]bool{}
	for _, pod := range pods {
		owner := podclass.Owner(pod)
		if owner == nil || owner.Kind != "Job" {
			continue
		}
		key := client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}
		if known[key] {
			continue
		}
		known[key] = true
		job := &batchv1.Job{}
		switch err := c.get(ctx, key, job); {
		case err == nil:
			jobs = append(jobs, job)
		case !apierrors.IsNotFound(err):
			return false, unreadable("its Jobs", err)
		}
	}
	return !preflight.LossOf(pods, jobs).Any(), nil
}

// get reads one of a bounded number of objects.
func (c *check) get(ctx context.Context, key client.ObjectKey, into client.Object) error {
	if c.named++; c.named > maxNamed {
		return apierrors.NewTooManyRequests("too many objects", 0)
	}
	return c.live.Get(ctx, key, into)
}

// pods lists pods, without what nothing depends on.
func (c *check) pods(ctx context.Context, options ...client.ListOption) (all []*corev1.Pod, err error) {
	for next := ""; ; {
		var page corev1.PodList
		if err := c.live.List(ctx, &page, append(options, client.Limit(podPage), client.Continue(next))...); err != nil {
			return nil, unreadable("the pods", err)
		}
		for i := range page.Items {
			if pod := &page.Items[i]; !podclass.Terminal(pod) {
				all = append(all, kube.SlimPod(pod))
			}
		}
		if next = page.Continue; next == "" {
			return all, nil
		}
		if len(all) > maxPods {
			return nil, fmt.Errorf("the cluster has more than %d pods", maxPods)
		}
	}
}

// readRoom reads the cluster, except for claims and their volumes.
func (c *check) readRoom(ctx context.Context) (*preflight.Room, error) {
	room := &preflight.Room{}
	var err error
	if room.World.Nodes, err = pagedNodes(ctx, c.live, kube.SlimNode); err != nil {
		return nil, unreadable("the nodes", err)
	}
	var namespaces corev1.NamespaceList
	if err := c.live.List(ctx, &namespaces); err != nil {
		return nil, unreadable("the namespaces", err)
	}
	var classes storagev1.StorageClassList
	if err := c.live.List(ctx, &classes); err != nil {
		return nil, unreadable("the StorageClasses", err)
	}
	room.World.Namespaces, room.World.Classes = kube.Pointers(namespaces.Items), kube.Pointers(classes.Items)
	pods, err := c.pods(ctx)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			room.World.Pods = append(room.World.Pods, pod)
		} else if pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 {
			room.Unscheduled = append(room.Unscheduled, pod)
		}
	}
	return room, nil
}

// readClaims reads the claims of the pods that look for room, and their volumes.
func (c *check) readClaims(ctx context.Context, nodes []string) error {
	known := map[string]bool{}
	for _, claim := range c.room.World.Claims {
		known[claim.Namespace+"/"+claim.Name] = true
	}
	leaves := map[string]bool{"": true}
	for _, node := range nodes {
		leaves[node] = true
	}
	for _, pod := range append(c.room.Unscheduled, c.room.World.Pods...) {
		if !leaves[pod.Spec.NodeName] {
			continue
		}
		for i := range pod.Spec.Volumes {
			source := pod.Spec.Volumes[i].PersistentVolumeClaim
			if source == nil || known[pod.Namespace+"/"+source.ClaimName] {
				continue
			}
			known[pod.Namespace+"/"+source.ClaimName] = true
			if err := c.readClaim(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: source.ClaimName}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *check) readClaim(ctx context.Context, key client.ObjectKey) error {
	claim := &corev1.PersistentVolumeClaim{}
	if err := c.get(ctx, key, claim); err != nil {
		return ignoreNotFound("PersistentVolumeClaims", err)
	}
	c.room.World.Claims = append(c.room.World.Claims, claim)
	if claim.Spec.VolumeName == "" {
		return nil
	}
	volume := &corev1.PersistentVolume{}
	if err := c.get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil {
		return ignoreNotFound("PersistentVolumes", err)
	}
	c.room.World.Volumes = append(c.room.World.Volumes, volume)
	return nil
}

// ignoreNotFound returns nil for an object that does not exist: then its pod fits nowhere.
func ignoreNotFound(kind string, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return unreadable(kind, err)
}
