package volume

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/test/golden"
)

const (
	diskName = "kubernetes.io/csi/csi.example^disk"
	ebsName  = "kubernetes.io/csi/ebs.csi.aws.com^vol-1"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// cases hold what is attached, and whether there is nothing to wait for.
type cases map[string]struct {
	world *world
	done  bool
}

func (c cases) run(t *testing.T) {
	t.Helper()
	for name, test := range c {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decideGolden(t, test.world, test.done)
		})
	}
}

func decideGolden(t *testing.T, w *world, done bool) {
	t.Helper()
	d := Decide(w.Snapshot)
	if d.Done != done || done != (d.Message == "") {
		t.Errorf("done is %v with message %q, want %v", d.Done, d.Message, done)
	}
	if !done {
		golden.Message(t, d.Message)
	}
}

// The sentences of machine-deletion-process on the wait for volumes.
func TestWait(t *testing.T) {
	unattached, detached, leaving := attachment("disk"), attachment("disk"), attachment("disk")
	unattached.Status.Attached = false
	detached.Status.Attached, detached.Finalizers = false, nil
	leaving.DeletionTimestamp = &metav1.Time{}
	missing := start().attachments(attachment("disk"))
	missing.Node = nil
	cases{
		"volumesAttached is empty and there are no more VolumeAttachments": {start(), true},
		"volumesAttached is not empty":                                     {start().status(diskName).volumes(disk("disk", "data")), false},
		"there are VolumeAttachments":                                      {start().attachments(attachment("disk")).volumes(disk("disk", "data")), false},
		"both tell of the same volume":                                     {start().status(diskName).attachments(attachment("disk")).volumes(disk("disk", "data")), false},
		"a VolumeAttachment that is being detached":                        {start().attachments(leaving).volumes(disk("disk", "data")), false},
		"a VolumeAttachment that may have been attached: its driver holds": {start().attachments(unattached).volumes(disk("disk", "data")), false},
		"a VolumeAttachment that does not indicate that it is attached":    {start().attachments(detached).volumes(disk("disk", "data")), true},
		"what the status has is attached, whatever the VolumeAttachment says": {
			start().status(diskName).attachments(detached).volumes(disk("disk", "data")), false,
		},
		"the Node does not exist anymore": {missing, true},
		"a volume without a claim":        {start().attachments(attachment("disk")).volumes(disk("disk", "")), false},
		"an attachment without a volume": {
			start().attachments(attachment("disk")), false,
		},
		"a name in the status that nobody knows": {start().status("example.com/odd/thing"), false},
		"an inline volume": {
			start().status(ebsName).attachments(inline("ebs.csi.aws.com", "vol-1")), false,
		},
		"a VolumeAttachment of nothing": {
			start().attachments(&storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Name: "odd"}, Status: storagev1.VolumeAttachmentStatus{Attached: true},
			}),
			false,
		},
		"a volume of a plugin that a CSI driver took over is named once": {
			start().status("kubernetes.io/csi/csi.example^disk").attachments(attachment("disk")).
				volumes(volume("disk", "data", corev1.PersistentVolumeSource{AWSElasticBlockStore: ebs})),
			false,
		},
		"two volumes that are one disk are named once": {
			start().status("kubernetes.io/csi/csi.example^disk").volumes(disk("disk", ""), volume("another", "", disk("disk", "").Spec.PersistentVolumeSource)),
			false,
		},
		"all kinds": {
			start().status("example.com/odd/thing", diskName).attachments(attachment("free")).volumes(disk("disk", "data"), disk("free", "")),
			false,
		},
	}.run(t)
}

// The sentences of machine-drain-rules, "Changes to wait for volume detach". Which
// pods are ignored is decided elsewhere.
func TestIgnored(t *testing.T) {
	attached := func() *world {
		return start().status(diskName).attachments(attachment("disk")).volumes(disk("disk", "data")).claims()
	}
	unbound := attached()
	unbound.Volumes["disk"].Spec.ClaimRef.UID = "uid-of-an-earlier-claim"
	reserved := attached()
	reserved.Volumes["disk"].Spec.ClaimRef.Name = "of-another"
	free := attached()
	free.Volumes["disk"].Spec.ClaimRef = nil
	elsewhere := pod(claimed("data"))
	elsewhere.Namespace = "other"
	cases{
		"all volumes that belong to Pods for which we skipped the drain": {attached().ignored(pod(claimed("data"))), true},
		"Machine deletion can continue if only volumes belonging to Pods with behavior Skip are attached": {
			attached().attachments(attachment("two")).volumes(disk("two", "log")).claims().ignored(pod(claimed("data"), claimed("log"))), true,
		},
		"other volumes are waited for": {
			attached().attachments(attachment("two")).volumes(disk("two", "log")).claims().ignored(pod(claimed("log"))), false,
		},
		"another pod used the volume and is gone": {
			attached().ignored(pod(claimed("data")), pod(claimed("data"))), true,
		},
		"a claim of the same name in another namespace":           {attached().ignored(elsewhere), false},
		"a volume that is bound to an earlier claim of that name": {unbound.ignored(pod(claimed("data"))), false},
		"a volume that is bound to another claim":                 {reserved.ignored(pod(claimed("data"))), false},
		"a volume that is bound to no claim":                      {free.ignored(pod(claimed("data"))), false},
		"a claim that does not exist": {
			start().attachments(attachment("disk")).volumes(disk("disk", "data")).ignored(pod(claimed("data"))), false,
		},
		"a volume that does not exist": {
			start().attachments(attachment("disk")).claim("data", "disk").ignored(pod(claimed("data"))),
			false,
		},
		"a claim that has no volume": {
			start().attachments(attachment("disk")).claim("data", "").ignored(pod(claimed("data"))),
			false,
		},
	}.run(t)
}

// Which volume a pod uses is not always said by a claim and its volume alone.
func TestIgnoredByOtherWays(t *testing.T) {
	cases{
		"a generic ephemeral volume": {
			start().attachments(attachment("disk")).volumes(disk("disk", "pod-v0")).claims().owned("pod-v0", "uid-of-pod").ignored(pod(ephemeral)), true,
		},
		"a claim that has the name of a generic ephemeral volume of a pod and is not its own": {
			start().attachments(attachment("disk")).volumes(disk("disk", "pod-v0")).claims().owned("pod-v0", "uid-of-another").ignored(pod(ephemeral)),
			false,
		},
		"a disk that another volume is, too": {
			start().status("kubernetes.io/csi/csi.example^disk").attachments(attachment("another")).
				volumes(disk("disk", "data"), volume("another", "more", disk("disk", "").Spec.PersistentVolumeSource)).claims().
				ignored(pod(claimed("data"))),
			true,
		},
		"the plugin of the volume was taken over by a CSI driver": {
			start().status(diskName).attachments(attachment("disk")).
				volumes(volume("disk", "data", corev1.PersistentVolumeSource{AWSElasticBlockStore: ebs})).claims().ignored(pod(claimed("data"))),
			true,
		},
		"volumes that are never attached": {
			start().status(diskName).volumes(disk("disk", "data")).claims().ignored(pod(
				corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
				corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.example"}},
				corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/disk"}},
			)),
			false,
		},
	}.run(t)
}

// A problem is said, and then nobody knows whose volumes they are.
func TestProblem(t *testing.T) {
	cases{
		"nothing is ignored": {
			start().status(diskName).volumes(disk("disk", "data")).claims().ignored(pod(claimed("data"))).problem("list claims: forbidden"),
			false,
		},
		"nothing is attached anyway": {start().problem("list claims: forbidden"), true},
	}.run(t)
}

// Plugins inside Kubernetes name volumes in their own ways.
func TestOtherThanCSI(t *testing.T) {
	flex := &corev1.FlexVolumeSource{Driver: "example.com/flex"}
	san := &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.2001-04.com.example:disk", Lun: 0}
	cases{
		"fibre channel by target, of a pod": {
			start().status("kubernetes.io/fc/[500a0982991b8dc5 500a0982891b8dc5]:2").ignored(pod(corev1.VolumeSource{FC: fibre})), true,
		},
		"fibre channel by target, of a claim": {
			start().status("kubernetes.io/fc/[500a0982991b8dc5 500a0982891b8dc5]:2").
				volumes(volume("san", "data", corev1.PersistentVolumeSource{FC: fibre})).claims().ignored(pod(claimed("data"))),
			true,
		},
		"fibre channel by identifier": {
			start().status("kubernetes.io/fc/[3600508b400105e210000900000490000]").ignored(pod(corev1.VolumeSource{FC: world1})), true,
		},
		"another disk": {
			start().status("kubernetes.io/fc/[3600508b400105e210000900000490000]").ignored(pod(corev1.VolumeSource{FC: fibre})),
			false,
		},
		"fibre channel of a claim, waited for": {
			start().status("kubernetes.io/fc/[3600508b400105e210000900000490000]").volumes(volume("san", "data", corev1.PersistentVolumeSource{FC: world1})),
			false,
		},
		"iSCSI": {
			start().status("kubernetes.io/iscsi/10.0.0.1:3260:iqn.2001-04.com.example:disk:0").ignored(pod(corev1.VolumeSource{ISCSI: san})), true,
		},
		"a FlexVolume of a pod": {
			start().status("example.com/flex/v0").ignored(pod(corev1.VolumeSource{FlexVolume: flex})), true,
		},
		"a FlexVolume of a claim": {
			start().status("example.com/flex/lun").
				volumes(volume("lun", "data", corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "example.com/flex"}})).
				claims().ignored(pod(claimed("data"))),
			true,
		},
		"a plugin that no CSI driver has taken over yet": {
			start().status("kubernetes.io/gce-pd/disk-1").ignored(pod(corev1.VolumeSource{GCEPersistentDisk: gce})), true,
		},
		"a CSI driver took over a volume of a pod": {
			start().status(ebsName).attachments(inline("ebs.csi.aws.com", "vol-1")).ignored(pod(corev1.VolumeSource{AWSElasticBlockStore: ebs})), true,
		},
		"its handle says more than the pod": {
			start().attachments(inline("pd.csi.storage.gke.io", "projects/p/zones/z/disks/disk-1")).ignored(pod(corev1.VolumeSource{GCEPersistentDisk: gce})), true,
		},
		"its handle is the very name": {
			start().attachments(inline("disk.csi.azure.com", "/subscriptions/s/disks/d")).ignored(pod(corev1.VolumeSource{AzureDisk: azure})), true,
		},
		"its handle ends alike and is another": {
			start().attachments(inline("ebs.csi.aws.com", "other-vol-1")).ignored(pod(corev1.VolumeSource{AWSElasticBlockStore: ebs})),
			false,
		},
		"its handle is of another driver": {
			start().attachments(inline("csi.example", "vol-1")).ignored(pod(corev1.VolumeSource{AWSElasticBlockStore: ebs})),
			false,
		},
	}.run(t)
}

func TestMessageNamesFive(t *testing.T) {
	w := start()
	for i := range 7 {
		name := fmt.Sprintf("disk-%d", 6-i)
		w.volumes(disk(name, "data-"+name)).attachments(attachment(name))
	}
	decideGolden(t, w, false)
}

func TestDetachErrorsAreReported(t *testing.T) {
	failed := func(handle, why string) *storagev1.VolumeAttachment {
		a := attachment(handle)
		a.Status.DetachError = &storagev1.VolumeError{Message: why}
		return a
	}
	w := start().volumes(disk("one", "one"), disk("two", "two"), disk("three", "")).
		attachments(failed("one", "device is busy"), failed("two", "device is busy"), failed("three", "rpc error:\nno route"))
	decideGolden(t, w, false)
}

// The API takes 32,768 bytes.
func TestMessageIsBounded(t *testing.T) {
	w := start().problem(strings.Repeat("why ", 20_000))
	for i := range 40 {
		long := fmt.Sprintf("%d%s", i, strings.Repeat("x", 2000))
		a := attachment(long)
		a.Status.DetachError = &storagev1.VolumeError{Message: fmt.Sprintf("%d%s", i/3, long)}
		w.attachments(a).status(corev1.UniqueVolumeName("kubernetes.io/odd/" + long))
		switch i % 3 {
		case 0:
			w.volumes(disk(long, ""))
		case 1:
			w.volumes(disk(long, long))
		}
	}
	message := Decide(w.Snapshot).Message
	if len(message) > 32_768 || len(message) < 10_000 {
		t.Errorf("the message has %d bytes", len(message))
	}
}

func TestOrderMakesNoDifference(t *testing.T) {
	w := start().volumes(disk("a", "one"), disk("b", "two"), disk("c", ""), volume("d", "", disk("c", "").Spec.PersistentVolumeSource)).
		attachments(attachment("a"), attachment("b"), attachment("c"), attachment("missing"), inline("ebs.csi.aws.com", "vol-1")).
		status("kubernetes.io/csi/csi.example^c", ebsName, "example.com/odd/thing").claims().ignored(pod(claimed("one")), pod(ephemeral))
	again := attachment("missing")
	again.Name = "second"
	w.attachments(again)
	want := Decide(w.Snapshot)
	r := rand.New(rand.NewPCG(40, 4))
	for range 20 {
		status := w.Node.Status.VolumesAttached
		r.Shuffle(len(status), func(i, j int) { status[i], status[j] = status[j], status[i] })
		r.Shuffle(len(w.Attachments), func(i, j int) { w.Attachments[i], w.Attachments[j] = w.Attachments[j], w.Attachments[i] })
		r.Shuffle(len(w.Ignored), func(i, j int) { w.Ignored[i], w.Ignored[j] = w.Ignored[j], w.Ignored[i] })
		if diff := cmp.Diff(want, Decide(w.Snapshot)); diff != "" {
			t.Fatalf("decision (-want +got):\n%s", diff)
		}
	}
}
