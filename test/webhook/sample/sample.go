// Package sample has objects that tests of webhooks show them, with and without an API server.
package sample

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

// Pod returns a pod of application web on node-one.
func Pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "node-one", Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
}

// DaemonPod returns what the DaemonSet controller creates for a node.
func DaemonPod(namespace, name, node string) *corev1.Pod {
	pod := Pod(namespace, name)
	pod.Spec.NodeName = ""
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log", UID: "log", Controller: new(true)}}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{NodeTerm(corev1.NodeSelectorOpIn, node)},
		},
	}}
	return pod
}

// Machine returns a Machine whose infrastructure is a ConfigMap, which the API server knows, and
// whose bootstrap config is of a kind that it does not know.
func Machine(namespace, name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.MachineSpec{
			ClusterName:       "east",
			InfrastructureRef: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: name},
			Bootstrap: v1alpha1.MachineBootstrap{
				ConfigRef: &v1alpha1.ObjectReference{APIVersion: "boot.example.com/v1", Kind: "BareConfig", Name: name},
			},
		},
	}
}

// Maintenance returns a NodeMaintenance of nodes, which need not exist.
func Maintenance(name string, nodes ...string) *v1alpha1.NodeMaintenance {
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeMaintenanceSpec{NodeSelector: &corev1.NodeSelector{}}}
	for _, node := range nodes {
		m.Spec.NodeSelector.NodeSelectorTerms = append(m.Spec.NodeSelector.NodeSelectorTerms, NodeTerm(corev1.NodeSelectorOpIn, node))
	}
	return m
}

// Rollout returns a NodeRollout of nodes, which need not exist.
func Rollout(name string, nodes ...string) *v1alpha1.NodeRollout {
	return &v1alpha1.NodeRollout{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.NodeRolloutSpec{NodeSelector: Maintenance("", nodes...).Spec.NodeSelector},
	}
}

// NodeTerm returns a term that selects a node by its name.
func NodeTerm(operator corev1.NodeSelectorOperator, node string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: operator, Values: []string{node}}}}
}

// LockedBudget returns a budget of application web that dba@example.com has locked.
func LockedBudget(namespace string, d time.Duration) *policyv1.PodDisruptionBudget {
	now := time.Now().Truncate(time.Second)
	lock := budget.Lock{
		Holder: "dba@example.com", Reason: "defragmentation",
		AcquiredAt: metav1.Time{Time: now}, ExpiresAt: metav1.Time{Time: now.Add(d)},
	}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "all", Annotations: map[string]string{v1alpha1.LockAnnotation: lock.Write()},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
}

// Certificate returns a certificate for a name that is its own authority.
func Certificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
