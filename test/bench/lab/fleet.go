package lab

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// fleetApps is the number of Deployments with several pods.
	fleetApps = 9
	// fleetReady is the time that a pod needs until it is ready.
	fleetReady = "1s"
	// Singleton is the Deployment with one pod. It surges where the contender can.
	Singleton = "single"
)

// Fleet describes nodes that are all maintained, a few at a time.
type Fleet struct {
	Nodes int
	// Pods counts those of all Deployments together.
	Pods int
	// Seed determines the sizes and budgets of the Deployments.
	Seed uint64
}

// PrepareFleet creates fresh nodes and pods and waits until they are ready.
func (l *Lab) PrepareFleet(ctx context.Context, fleet Fleet) (*Load, error) {
	l.loads++
	name := fmt.Sprintf("bench-%d", l.loads)
	load := newLoad(name, Work{Nodes: fleet.Nodes})
	load.apps = fleet.apps()
	if err := l.prepareFleet(ctx, load); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	return load, nil
}

func (l *Lab) prepareFleet(ctx context.Context, load *Load) error {
	if err := l.fill(ctx, load); err != nil {
		return err
	}
	return l.addBudgets(ctx, load)
}

// apps are Deployments of different sizes, of which 2 % to 6 % may be disrupted, and one of a
// single pod without a budget, because kubectl drain would wait for that forever.
func (f Fleet) apps() []app {
	random := rand.New(rand.NewPCG(f.Seed, 0))
	left := f.Pods - 1
	var apps []app
	for n := range fleetApps {
		size := left
		if more := fleetApps - n; more > 1 {
			size = left/more/2 + random.IntN(left/more)
		}
		left -= size
		budget := intstr.FromInt(max(1, size*(2+random.IntN(5))/100))
		apps = append(apps, app{
			name: fmt.Sprintf("app-%d", n+1), replicas: int32(size), readyAfter: fleetReady,
			budget: &policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &budget},
		})
	}
	return append(apps, app{name: Singleton, replicas: 1, readyAfter: fleetReady, surge: 1})
}

// newKernel is what a node reports when it is patched.
const newKernel = "6.12.9"

// PatchNode does what the administrator's tool does with a drained node.
func (l *Lab) PatchNode(ctx context.Context, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"nodeInfo":{"kernelVersion":"`+newKernel+`"}}}`))
	if err := l.Client.Status().Patch(ctx, node, patch); err != nil {
		return fmt.Errorf("patch node: %w", err)
	}
	return nil
}

// Uncordon returns a node to service.
func (l *Lab) Uncordon(ctx context.Context, name string) error {
	return l.setUnschedulable(ctx, false, name)
}

// UntilReady returns when all pods of the load are ready.
func (l *Lab) UntilReady(ctx context.Context, load *Load) error { return l.waitReady(ctx, load) }
