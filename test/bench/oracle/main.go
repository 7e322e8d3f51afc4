// Command oracle drains nodes as fast as the API server allows: sixteen workers evict at once,
// without a limit of their own, and retry when a budget changes. It knows the budgets of the
// benchmark, so it is a yardstick and not a drain. It prints "ready", reads lines with node
// names, drains those nodes and prints "done".
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	budgets, err := watchBudgets(ctx, client)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		pods, err := cordonAndList(ctx, client, strings.Fields(lines.Text()))
		if err != nil {
			return err
		}
		if err := newDrain(client, budgets).run(ctx, pods); err != nil {
			return err
		}
		fmt.Println("done")
	}
	return nil
}

func cordonAndList(ctx context.Context, client kubernetes.Interface, nodes []string) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	for _, node := range nodes {
		cordon := []byte(`{"spec":{"unschedulable":true}}`)
		if _, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, cordon, metav1.PatchOptions{}); err != nil {
			return nil, fmt.Errorf("cordon node: %w", err)
		}
		list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
		})
		if err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		pods = append(pods, list.Items...)
	}
	return pods, nil
}
