package cluster_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

const database = `
apiVersion: v1
kind: PersistentVolume
metadata:
  name: %[1]s
  annotations: {sandbox.ebbtide.dev/detach-after: 3s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  csi: {driver: sandbox.ebbtide.dev, volumeHandle: %[1]s}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: %[1]s
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: db}
spec:
  containers: [{name: db, image: registry.example/db}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`

// The real attach-detach controller decides; the provider is the driver.
func TestAVolumeIsAttachedWhileAPodUsesItAndTakesItsTimeToBeDetached(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{Nodes: 1})
	c.StartProvider(t)
	namespace, volume := c.Namespace(t), c.Pool()+"-data"
	c.Apply(t, namespace, fmt.Sprintf(database, volume))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Nodes[0]}}

	await(t, c.Client, node, "with the volume", func() bool {
		attached := node.Status.VolumesAttached
		return len(attached) == 1 && string(attached[0].Name) == "kubernetes.io/csi/sandbox.ebbtide.dev^"+volume
	})

	attachment := attachmentOf(t, c, volume)
	if !attachment.Status.Attached {
		t.Errorf("the volume is in the status of the node, and its attachment is not attached: %+v", attachment)
	}

	pod, begin := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}}, time.Now()
	if err := c.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, c.Client, attachment)
	// The API server counts in whole seconds.
	if took := time.Since(begin); took < 2*time.Second {
		t.Errorf("the volume was detached within %s, and takes 3s", took)
	}
	await(t, c.Client, node, "without the volume", func() bool { return len(node.Status.VolumesAttached) == 0 })
}

func attachmentOf(t *testing.T, c *cluster.Cluster, volume string) *storagev1.VolumeAttachment {
	t.Helper()
	list := &storagev1.VolumeAttachmentList{}
	if err := c.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if name := list.Items[i].Spec.Source.PersistentVolumeName; name != nil && *name == volume {
			return &list.Items[i]
		}
	}
	t.Fatalf("there is no attachment of volume %s", volume)
	return nil
}
