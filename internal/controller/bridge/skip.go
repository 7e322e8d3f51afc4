package bridge

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/volume"
)

// markSkipped labels the pods with volumes that a rule has skipped, so that Cluster API skips
// them, too. It knows no rules of ours, and would wait forever for their volumes.
func markSkipped(ctx context.Context, drain *drainOf) error {
	for _, pod := range drain.decision.SkippedByRule {
		if len(volume.Claims(pod)) == 0 {
			continue
		}
		label := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:"skip"}}}`, pod.UID, v1alpha1.DrainLabel)
		err := drain.connection.Client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, label))
		// One that is gone, or another one by now, has no volumes of this drain.
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("label pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}
