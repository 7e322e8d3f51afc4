package cluster_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
	"ebbtide.dev/ebbtide/test/cluster"
)

func provisioned(instance *api.SandboxMachine) func() bool {
	return func() bool {
		flag := instance.Status.Initialization.Provisioned
		return flag != nil && *flag
	}
}

func saying(instance *api.SandboxMachine, message string) func() bool {
	return func() bool { return instance.Status.Message == message }
}

// An instance is a node that says whose it is, and it answers as long as its
// object is there; the node itself is the Machine's to delete.
func TestAnInstanceLivesFromItsOwnerToItsDeletion(t *testing.T) {
	t.Parallel()
	w := startProvider(t)
	hosts := &v1alpha1.Cluster{ObjectMeta: w.meta("hosts")}
	w.create(t, hosts)
	instance := &api.SandboxMachine{ObjectMeta: w.meta("m"), Spec: api.SandboxMachineSpec{
		NodeLabels:    map[string]string{"example.com/pool": "a"},
		Taints:        []corev1.Taint{{Key: "example.com/gpu", Effect: corev1.TaintEffectNoSchedule}},
		CreateSeconds: 1, DeleteSeconds: 1,
	}}
	w.create(t, instance)
	await(t, w.Client, instance, "waiting for an owner", saying(instance, "no Machine owns it yet"))
	if instance.Status.StartTime != nil || len(instance.Finalizers) != 0 {
		t.Errorf("nobody owns the instance, and it has begun: %+v", instance)
	}

	w.own(t, w.machine(t, hosts.Name), instance)

	await(t, w.Client, instance, "provisioned", provisioned(instance))
	id := "sandbox://" + w.namespace + "/" + instance.Name
	if instance.Spec.ProviderID != id || instance.Status.Message != "the instance runs" {
		t.Errorf("the instance is known as %q and says %q", instance.Spec.ProviderID, instance.Status.Message)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: instance.Name}}
	await(t, w.Client, node, "ready", func() bool { return readiness(node) == corev1.ConditionTrue })
	if node.Spec.ProviderID != id || node.Labels["example.com/pool"] != "a" || node.Spec.Taints[0].Key != "example.com/gpu" {
		t.Errorf("the node is not as asked for: %+v", node)
	}

	if err := w.Client.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, w.Client, instance)
	await(t, w.Client, node, "not answering", func() bool { return readiness(node) == corev1.ConditionUnknown })
	if node.DeletionTimestamp != nil {
		t.Error("the provider deletes the node, which is the Machine's to delete")
	}
	w.remove(t, node)
}

// What an instance waits for is said, and its coming is seen.
func TestAnInstanceWaitsForItsClusterAndForItsName(t *testing.T) {
	t.Parallel()
	w := startProvider(t)
	instance := &api.SandboxMachine{ObjectMeta: w.meta("m")}
	w.create(t, instance)
	stranger := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: instance.Name}, Spec: corev1.NodeSpec{ProviderID: "other://1"}}
	w.create(t, stranger)
	w.own(t, w.machine(t, w.meta("hosts").Name), instance)
	await(t, w.Client, instance, "waiting for the Cluster", saying(instance,
		`read the Cluster: Cluster.ebbtide.dev "`+w.meta("hosts").Name+`" not found`))

	w.create(t, &v1alpha1.Cluster{ObjectMeta: w.meta("hosts")})
	await(t, w.Client, instance, "waiting for the name", saying(instance,
		"there is another node "+stranger.Name+` already, with the provider ID "other://1"`))

	w.remove(t, stranger)
	await(t, w.Client, instance, "provisioned", provisioned(instance))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: instance.Name}}
	await(t, w.Client, node, "ready", func() bool { return readiness(node) == corev1.ConditionTrue })
	w.remove(t, node)
}

func TestANodeIsMadeInTheClusterOfItsMachine(t *testing.T) {
	t.Parallel()
	w := startProvider(t)
	other := cluster.Start(t, cluster.Spec{NoManager: true})
	hosts := &v1alpha1.Cluster{ObjectMeta: w.meta("hosts"), Spec: v1alpha1.ClusterSpec{
		KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: "hosts-kubeconfig"},
	}}
	w.create(t, hosts)
	instance := &api.SandboxMachine{ObjectMeta: w.meta("m")}
	w.create(t, instance)
	w.own(t, w.machine(t, hosts.Name), instance)
	await(t, w.Client, instance, "waiting for the kubeconfig",
		saying(instance, `read the kubeconfig: Secret "hosts-kubeconfig" not found`))
	kubeconfig, err := os.ReadFile(other.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	w.create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "hosts-kubeconfig"},
		Data:       map[string][]byte{"value": kubeconfig},
	})

	await(t, w.Client, instance, "provisioned", provisioned(instance))

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: instance.Name}}
	await(t, other.Client, node, "ready", func() bool { return readiness(node) == corev1.ConditionTrue })
	nodes := &corev1.NodeList{}
	if err := w.Client.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	for _, local := range nodes.Items {
		if local.Name == instance.Name {
			t.Error("the node is also in the cluster of the provider")
		}
	}
	if err := w.Client.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, w.Client, instance)
	await(t, other.Client, node, "not answering", func() bool { return readiness(node) == corev1.ConditionUnknown })
}

func TestBootstrapDataIsASecretThatGoesWithItsConfig(t *testing.T) {
	t.Parallel()
	w := startProvider(t)
	config := &api.SandboxConfig{ObjectMeta: w.meta("m"), Spec: api.SandboxConfigSpec{Data: "join the cluster"}}
	w.create(t, config)
	w.own(t, w.machine(t, "hosts"), config)

	await(t, w.Client, config, "ready", func() bool {
		created := config.Status.Initialization.DataSecretCreated
		return created != nil && *created
	})

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: config.Status.DataSecretName}}
	await(t, w.Client, secret, "there", func() bool { return true })
	if diff := cmp.Diff(map[string][]byte{"value": []byte("join the cluster")}, secret.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if err := w.Client.Delete(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, w.Client, secret)
}

// A provider that was ended after an act and before its report goes on where it was.
func TestWhatWasMadeBeforeAnInterruptionIsTakenOver(t *testing.T) {
	t.Parallel()
	w := startProvider(t)
	hosts := &v1alpha1.Cluster{ObjectMeta: w.meta("hosts")}
	w.create(t, hosts)
	instance, config := &api.SandboxMachine{ObjectMeta: w.meta("m")}, &api.SandboxConfig{ObjectMeta: w.meta("m")}
	w.create(t, instance)
	w.create(t, config)
	node := sandbox.NewNode(instance.Name, nil)
	node.Spec.ProviderID = "sandbox://" + w.namespace + "/" + instance.Name
	w.create(t, node)
	uid := node.UID
	w.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: config.Name + "-bootstrap"}})

	machine := w.machine(t, hosts.Name)
	w.own(t, machine, instance)
	w.own(t, machine, config)

	await(t, w.Client, instance, "provisioned", provisioned(instance))
	await(t, w.Client, config, "ready", func() bool { return config.Status.DataSecretName == config.Name+"-bootstrap" })
	await(t, w.Client, node, "the same", func() bool { return node.UID == uid })
	w.remove(t, node)
}
