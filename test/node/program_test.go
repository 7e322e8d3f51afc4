package node

import (
	"fmt"
	"strings"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// program is a Deployment of the application, at most one pod of it on a node, with a
// Service that leads to it.
type program struct {
	name     string
	replicas int
	// grace is how long a pod may take to end.
	grace time.Duration
	args  []string
	// on is a node that pods are on as long as they may be there; empty if it is the same
	// to them.
	on string
	// surges has pods replaced before they leave, stays has them stay while a node reboots.
	surges, stays bool
}

// text is what is applied.
func (p program) text() string {
	annotations, labels, affinity := "", "app: "+p.name, ""
	if p.surges {
		annotations = v1alpha1.EvacuatorAnnotationPrefix + v1alpha1.DeploymentEvacuatorClass + ": 10000/controller"
	}
	if p.stays {
		labels += ", " + v1alpha1.OnUpgradeLabel + ": " + v1alpha1.OnUpgradeStay
	}
	if p.on != "" {
		affinity = "preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: " +
			"[{key: kubernetes.io/hostname, operator: In, values: [" + p.on + "]}]}}]"
	}
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, annotations: {%[6]s}}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {%[7]s}}
    spec:
      terminationGracePeriodSeconds: %[3]d
      affinity: {nodeAffinity: {%[8]s}}
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: %[1]s}}}
      containers:
      - name: app
        image: %[4]s
        args: [%[5]s]
        readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  selector: {app: %[1]s}
  ports: [{port: 80, targetPort: 8080}]
`, p.name, p.replicas, int(p.grace.Seconds()), appImage, strings.Join(p.args, ", "), annotations, labels, affinity)
}
