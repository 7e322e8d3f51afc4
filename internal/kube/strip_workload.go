package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// StripDeployment returns the parts of a Deployment that decisions read.
func StripDeployment(d *appsv1.Deployment) *appsv1.Deployment {
	stripped := &appsv1.Deployment{ObjectMeta: stripMeta(&d.ObjectMeta), Spec: d.Spec, Status: appsv1.DeploymentStatus{
		ObservedGeneration: d.Status.ObservedGeneration,
		Replicas:           d.Status.Replicas,
		AvailableReplicas:  d.Status.AvailableReplicas,
	}}
	stripped.Spec.Template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Volumes:        claims(d.Spec.Template.Spec.Volumes),
		InitContainers: ports(d.Spec.Template.Spec.InitContainers),
		Containers:     ports(d.Spec.Template.Spec.Containers),
	}}
	return stripped
}

// StripReplicaSet returns the parts of a ReplicaSet that decisions read.
func StripReplicaSet(r *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	meta := stripMeta(&r.ObjectMeta)
	meta.Annotations = nil
	return &appsv1.ReplicaSet{
		ObjectMeta: meta,
		Spec:       appsv1.ReplicaSetSpec{Replicas: r.Spec.Replicas, MinReadySeconds: r.Spec.MinReadySeconds},
		Status:     appsv1.ReplicaSetStatus{ObservedGeneration: r.Status.ObservedGeneration, Replicas: r.Status.Replicas},
	}
}

// StripDaemonSet returns the identity of a DaemonSet.
func StripDaemonSet(d *appsv1.DaemonSet) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: identity(&d.ObjectMeta)}
}

// StripNamespace returns the identity and labels of a namespace.
func StripNamespace(namespace *corev1.Namespace) *corev1.Namespace {
	meta := identity(&namespace.ObjectMeta)
	meta.Labels = namespace.Labels
	return &corev1.Namespace{ObjectMeta: meta}
}

func claims(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for i := range volumes {
		if claim := volumes[i].PersistentVolumeClaim; claim != nil {
			kept = append(kept, corev1.Volume{Name: volumes[i].Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}})
		}
	}
	return kept
}

func ports(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for i := range containers {
		for _, port := range containers[i].Ports {
			if port.HostPort != 0 {
				kept = append(kept, corev1.Container{Name: containers[i].Name, Ports: []corev1.ContainerPort{port}})
				break
			}
		}
	}
	return kept
}
