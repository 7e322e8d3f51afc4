package surge

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ebbtide.dev/ebbtide/internal/core/command"
)

const (
	// settled is the time that clients such as kube-proxy get to learn of a replacement.
	settled = time.Second
	// maxRoutes limits the distinct labels of detached pods: one, and one more in a rollout.
	maxRoutes = 8
)

// Endpoint says that a Service leads to a pod.
type Endpoint struct {
	Route
	For time.Duration
}

// Route is a Service by its addresses of one type.
type Route struct {
	Service     string
	AddressType discoveryv1.AddressType
}

// routes lead to detached pods with the same labels.
type routes struct {
	labels labels.Set
	of     []Route
}

func (p *pass) routed() []routes {
	if p.routes != nil {
		return p.routes
	}
	p.routes = []routes{}
	at := map[string]int{}
	for _, d := range p.detached {
		endpoints := p.Endpoints[d.pod.UID]
		if len(endpoints) == 0 {
			continue
		}
		set := withoutHash(d.pod.Labels)
		n, known := at[set.String()]
		if !known && len(p.routes) == maxRoutes {
			continue
		}
		if !known {
			n = len(p.routes)
			at[set.String()], p.routes = n, append(p.routes, routes{labels: set})
		}
		for _, endpoint := range endpoints {
			if !slices.Contains(p.routes[n].of, endpoint.Route) {
				p.routes[n].of = append(p.routes[n].of, endpoint.Route)
			}
		}
	}
	return p.routes
}

// withoutHash returns the labels of a pod that Services select by.
func withoutHash(all labels.Set) labels.Set {
	set := labels.Set{}
	for key, value := range all {
		if key != appsv1.DefaultDeploymentUniqueLabelKey {
			set[key] = value
		}
	}
	return set
}

// reach returns the delay until all Services of detached pods have led to this one for long enough,
// and a Service that does not yet.
func (p *pass) reach(pod *corev1.Pod) (after time.Duration, missing string) {
	for _, routes := range p.routed() {
		if !carries(pod.Labels, routes.labels) {
			continue
		}
		for _, route := range routes.of {
			n := slices.IndexFunc(p.Endpoints[pod.UID], func(e Endpoint) bool { return e.Route == route })
			if n < 0 {
				return nobodyKnows, route.Service
			}
			after = max(after, settled-p.Endpoints[pod.UID][n].For)
		}
	}
	return after, ""
}

func carries(all map[string]string, some labels.Set) bool {
	for key, value := range some {
		if has, found := all[key]; !found || has != value {
			return false
		}
	}
	return true
}

// unreached returns which Service does not lead to a pod that is ready; empty if each does.
func (p *pass) unreached(pod *corev1.Pod) string {
	if _, ready := readySince(pod); !ready {
		return ""
	}
	_, service := p.reach(pod)
	if service == "" {
		return ""
	}
	return command.Of("Pod %s is ready, but Service %s does not lead to it yet. Look at: kubectl -n %s get endpointslices -l %s=%s",
		pod.Name, service, pod.Namespace, discoveryv1.LabelServiceName, service)
}
