package volume

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestClaims(t *testing.T) {
	in := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	tests := map[string]struct {
		pod  *corev1.Pod
		want []types.NamespacedName
	}{
		"no volumes":                 {pod(), nil},
		"claims":                     {pod(claimed("data"), claimed("log")), []types.NamespacedName{in("data"), in("log")}},
		"a generic ephemeral one":    {pod(claimed("data"), ephemeral), []types.NamespacedName{in("data"), in("pod-v1")}},
		"volumes that have no claim": {pod(corev1.VolumeSource{FC: fibre}, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, Claims(test.pod)); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandle(t *testing.T) {
	type parts struct {
		Driver, Handle string
		CSI            bool
	}
	tests := map[string]struct {
		name corev1.UniqueVolumeName
		want parts
	}{
		"a CSI volume":                   {"kubernetes.io/csi/csi.example^disk", parts{"csi.example", "disk", true}},
		"a handle with signs of its own": {"kubernetes.io/csi/csi.example^a/b^c", parts{"csi.example", "a/b^c", true}},
		"without a handle":               {"kubernetes.io/csi/csi.example", parts{}},
		"another plugin":                 {"kubernetes.io/fc/[a]:0", parts{}},
		"nothing":                        {"", parts{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			driver, handle, csi := Handle(test.name)
			if diff := cmp.Diff(test.want, parts{driver, handle, csi}); diff != "" {
				t.Errorf("handle (-want +got):\n%s", diff)
			}
		})
	}
}

// The status of a node and the volumes that are read for it meet by name.
func TestHandleIsThatOfAttachedName(t *testing.T) {
	for _, name := range AttachedNames(disk("disk", "data")) {
		if driver, handle, csi := Handle(name); driver != "csi.example" || handle != "disk" || !csi {
			t.Errorf("%s is handle %s of %s", name, handle, driver)
		}
	}
}

func TestAttachedNames(t *testing.T) {
	tests := map[string]struct {
		source corev1.PersistentVolumeSource
		want   []corev1.UniqueVolumeName
	}{
		"CSI":             {disk("disk", "").Spec.PersistentVolumeSource, []corev1.UniqueVolumeName{"kubernetes.io/csi/csi.example^disk"}},
		"AWS":             {corev1.PersistentVolumeSource{AWSElasticBlockStore: ebs}, []corev1.UniqueVolumeName{"kubernetes.io/aws-ebs/aws://eu-west-1a/vol-1"}},
		"GCE":             {corev1.PersistentVolumeSource{GCEPersistentDisk: gce}, []corev1.UniqueVolumeName{"kubernetes.io/gce-pd/disk-1"}},
		"Azure":           {corev1.PersistentVolumeSource{AzureDisk: azure}, []corev1.UniqueVolumeName{"kubernetes.io/azure-disk//subscriptions/s/disks/d"}},
		"fibre channel":   {corev1.PersistentVolumeSource{FC: fibre}, []corev1.UniqueVolumeName{"kubernetes.io/fc/[500a0982991b8dc5 500a0982891b8dc5]:2"}},
		"never attached":  {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}, nil},
		"nothing is said": {corev1.PersistentVolumeSource{}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, AttachedNames(volume("v", "", test.source))); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

// The attach-detach controller hashes handle, driver and node in this order.
func TestAttachmentName(t *testing.T) {
	const want = "csi-f8dc13758de6e8585188895267736b151f7670747d30cb32c86d58848c6caa59"
	if got := attachmentName("ebs.csi.aws.com", "vol-1", "node"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
