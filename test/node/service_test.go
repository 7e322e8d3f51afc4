package node

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// deployment is the text of a program that is on any nodes.
func deployment(name string, replicas int, grace time.Duration, args ...string) string {
	return program{name: name, replicas: replicas, grace: grace, args: args}.text()
}

// pods are those of an application that are not being deleted, by the name of their node.
func pods(ctx context.Context, c *cluster.Cluster, namespace, app string) (map[string][]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := c.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": app})
	all := map[string][]corev1.Pod{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			all[pod.Spec.NodeName] = append(all[pod.Spec.NodeName], pod)
		}
	}
	return all, err
}

// waitAvailable waits until a Deployment has all its replicas.
func waitAvailable(t *testing.T, c *cluster.Cluster, namespace, name string) {
	t.Helper()
	patience.Eventually(t, "Deployment "+name, func(ctx context.Context) (string, bool) {
		d := &appsv1.Deployment{}
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d)
		return fmt.Sprintf("%+v, %v", d.Status, err),
			err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == *d.Spec.Replicas
	})
}

// address is that of a Service.
func address(t *testing.T, c *cluster.Cluster, namespace, name string) string {
	t.Helper()
	service := &corev1.Service{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, service); err != nil {
		t.Fatal(err)
	}
	return "http://" + service.Spec.ClusterIP + "/"
}

// ask returns the name of the pod that has answered.
func ask(ctx context.Context, c *cluster.Cluster, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := c.HTTP().Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return strings.TrimSpace(string(body)), err
}

func names(all map[string][]corev1.Pod) (names []string) {
	for _, list := range all {
		for _, pod := range list {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestLongAServiceLeadsToProgramsOnAllNodes(t *testing.T) {
	c := cluster.Start(t, bare)
	importApp(t, c)
	namespace := c.Namespace(t)
	c.Apply(t, namespace, deployment("web", 3, 10*time.Second, "-graceful"))
	waitAvailable(t, c, namespace, "web")
	running, err := pods(t.Context(), c, namespace, "web")
	if err != nil || len(running) != len(c.Nodes) {
		t.Fatalf("pods run on %d nodes, want %v; %v", len(running), c.Nodes, err)
	}
	url := address(t, c, namespace, "web")
	answered := map[string]bool{}
	patience.Eventually(t, "an answer of every pod", func(ctx context.Context) (string, bool) {
		name, err := ask(ctx, c, url)
		answered[name] = err == nil
		for _, name := range names(running) {
			if !answered[name] {
				return fmt.Sprint(answered, err), false
			}
		}
		return "", true
	})
}

// The disk of a node survives a power cut, so that its pods are the same ones afterwards,
// with containers of their own that were started anew.
func TestLongAPowerCutEndsProgramsAndTheBootStartsThemAgain(t *testing.T) {
	c := cluster.Start(t, bare)
	importApp(t, c)
	namespace := c.Namespace(t)
	c.Apply(t, namespace, deployment("web", 3, 10*time.Second))
	waitAvailable(t, c, namespace, "web")
	running, err := pods(t.Context(), c, namespace, "web")
	if err != nil {
		t.Fatal(err)
	}
	node := c.Nodes[1]
	pod := running[node][0]
	before, err := getNode(t.Context(), c, node)
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + pod.Status.PodIP + ":8080/"
	if name, err := ask(t.Context(), c, url); name != pod.Name {
		t.Fatalf("%s answers %q, want %q; %v", url, name, pod.Name, err)
	}

	c.PowerOff(t, node)
	if name, err := ask(t.Context(), c, url); err == nil {
		t.Errorf("%s answers %q after the power cut, want no answer", url, name)
	}
	c.PowerOn(t, node)
	waitReady(t, c, node, before.Status.NodeInfo.BootID)
	patience.Eventually(t, "pod "+pod.Name+" to serve again", func(ctx context.Context) (string, bool) {
		now := &corev1.Pod{}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(&pod), now); err != nil {
			return err.Error(), false
		}
		restarted := len(now.Status.ContainerStatuses) == 1 && now.Status.ContainerStatuses[0].RestartCount == 1
		name, err := ask(ctx, c, "http://"+now.Status.PodIP+":8080/")
		return fmt.Sprintf("%+v, %v", now.Status, err), now.UID == pod.UID && restarted && name == pod.Name
	})
}
