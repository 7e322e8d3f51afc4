package webhook

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// registered are annotations by which evacuators register: classes and values.
func registered(pairs ...string) map[string]string {
	annotations := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		annotations[v1alpha1.EvacuatorAnnotationPrefix+pairs[i]] = pairs[i+1]
	}
	return annotations
}

func podNamed(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "node-one", Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
}
