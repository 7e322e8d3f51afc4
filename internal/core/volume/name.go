package volume

import (
	"crypto/sha256"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	pluginPrefix = "kubernetes.io/"
	csiPrefix    = pluginPrefix + "csi/"
	csiSeparator = "^"
)

// plugin is an in-tree volume plugin that attaches volumes, or did before its migration to CSI.
type plugin struct {
	// name follows kubernetes.io in the names of attached volumes.
	name string
	// source is the field of its volumes; fields in it make up the rest of the name.
	source string
	fields []string
	driver string
}

var plugins = []plugin{
	{"fc", "fc", []string{"targetWWNs", "lun"}, ""},
	{"fc", "fc", []string{"wwids"}, ""},
	{"iscsi", "iscsi", []string{"targetPortal", "iqn", "lun"}, ""},
	{"rbd", "rbd", []string{"pool", "image"}, ""},
	{"aws-ebs", "awsElasticBlockStore", []string{"volumeID"}, "ebs.csi.aws.com"},
	{"azure-disk", "azureDisk", []string{"diskURI"}, "disk.csi.azure.com"},
	{"cinder", "cinder", []string{"volumeID"}, "cinder.csi.openstack.org"},
	{"gce-pd", "gcePersistentDisk", []string{"pdName"}, "pd.csi.storage.gke.io"},
	{"portworx-volume", "portworxVolume", []string{"volumeID"}, "pxd.portworx.com"},
	{"vsphere-volume", "vsphereVolume", []string{"volumePath"}, "csi.vsphere.vmware.com"},
}

func (p plugin) id(volume map[string]any) string {
	source, own, _ := unstructured.NestedMap(volume, p.source)
	if !own {
		return ""
	}
	parts := make([]string, 0, len(p.fields))
	for _, field := range p.fields {
		value, set := source[field]
		if !set {
			return ""
		}
		parts = append(parts, fmt.Sprint(value))
	}
	return strings.Join(parts, ":")
}

// AttachedNames returns the possible names of a volume in the status of a node.
func AttachedNames(volume *corev1.PersistentVolume) []corev1.UniqueVolumeName {
	if csi := volume.Spec.CSI; csi != nil {
		return []corev1.UniqueVolumeName{csiName(csi.Driver, csi.VolumeHandle)}
	}
	return pluginNames(volume.Name, fields(&volume.Spec.PersistentVolumeSource))
}

func pluginNames(name string, source map[string]any) (names []corev1.UniqueVolumeName) {
	for _, p := range plugins {
		if id := p.id(source); id != "" {
			names = append(names, corev1.UniqueVolumeName(pluginPrefix+p.name+"/"+id))
		}
	}
	// FlexVolumes are named by driver and volume.
	if driver, found, _ := unstructured.NestedString(source, "flexVolume", "driver"); found {
		names = append(names, corev1.UniqueVolumeName(driver+"/"+name))
	}
	return names
}

func fields(source any) map[string]any {
	converted, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(source)
	return converted
}

// Handle parses the name of a CSI volume in the status of a node.
func Handle(attached corev1.UniqueVolumeName) (driver, handle string, csi bool) {
	rest, own := strings.CutPrefix(string(attached), csiPrefix)
	driver, handle, csi = strings.Cut(rest, csiSeparator)
	if !own || !csi {
		return "", "", false
	}
	return driver, handle, true
}

func csiName(driver, handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(csiPrefix + driver + csiSeparator + handle)
}

// attachmentName returns the attach-detach controller's name for a VolumeAttachment.
func attachmentName(driver, handle, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}
