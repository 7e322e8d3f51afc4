package attack

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainOfEvictionRequests(m)) }

// The accounts that attack. Each has the rights that its name says, and the manager and the
// agent have those that the chart gives them.
const (
	owner     = "owner of a namespace"
	drainer   = "may drain one node"
	reporter  = "may write nodes/status"
	agent     = "agent of a node"
	manager   = "manager's token"
	elsewhere = "remote cluster"
	fleet     = "may write Machines"
	requester = "may create EvictionRequests"
	roller    = "may write NodeRollouts"
)

// stage is a control plane with the chart and the manager, and all accounts.
type stage struct {
	*cluster.Cluster
	t      *testing.T
	actors map[string]client.Client
	// names stand in the documents of attempts in capitals.
	names *strings.Replacer
}

// victims are what others have.
const victims = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: TEAM, labels: {app: web}}
spec: {nodeName: NODE-B, automountServiceAccountToken: false, containers: [{name: web, image: web}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: web
  namespace: TEAM
  annotations: {ebbtide.dev/lock: '{"holder": "backup", "expiresAt": "LATER"}'}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: OTHERS}
spec: {nodeName: NODE-B, automountServiceAccountToken: false, containers: [{name: web, image: web}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: OTHERS}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: OPERATIONS}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: kubeconfigs, namespace: TEAM}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ebbtide-kubeconfigs}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: OPERATIONS}]
---
apiVersion: ebbtide.dev/v1alpha1
kind: NodeMaintenance
metadata: {name: MAINTENANCE}
spec:
  stage: Idle
  nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [NODE-B]}]}]}
---
apiVersion: ebbtide.dev/v1alpha1
kind: NodeRollout
metadata: {name: MAINTENANCE}
spec:
  state: Paused
  nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [NODE-B]}]}]}
---
apiVersion: ebbtide.dev/v1alpha1
kind: Cluster
metadata: {name: east, namespace: TEAM}
spec: {}
---
apiVersion: ebbtide.dev/v1alpha1
kind: Machine
metadata: {name: one, namespace: TEAM}
spec: {clusterName: east, infrastructureRef: {apiVersion: infra.example.com/v1, kind: BareMachine, name: one}}
`

func newStage(t *testing.T) *stage {
	t.Helper()
	c := cluster.Start(t, cluster.Spec{Nodes: 2, EvictionRequests: true})
	c.StartManager(t)
	team, others := c.Namespace(t), c.Namespace(t)
	s := &stage{Cluster: c, t: t, names: strings.NewReplacer("TEAM", team, "OTHERS", others, "NODE-A", c.Nodes[0], "NODE-B", c.Nodes[1],
		"OPERATIONS", cluster.Account.Namespace, "ACCOUNT", cluster.Account.Name, "MAINTENANCE", c.Pool(), "LATER", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))}
	for _, o := range cluster.Chart(t) {
		if strings.HasPrefix(o.GetName(), "ebbtide-agent") {
			s.apply(o)
		}
	}
	c.Apply(t, team, s.names.Replace(victims))
	s.actors = map[string]client.Client{
		owner: s.ownerOf(team),
		drainer: s.user(of("ebbtide.dev", "nodemaintenances"),
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, ResourceNames: c.Nodes[:1], Verbs: []string{"delete"}}),
		reporter: s.user(of("", "nodes/status")),
		agent: s.as("system:serviceaccount:ebbtide-agents:ebbtide-agent",
			map[string][]string{"authentication.kubernetes.io/node-name": c.Nodes[:1]}),
		manager: s.as(cluster.Account.User(), nil),
		fleet:   s.user(of("ebbtide.dev", "machines", "machines/status", "clusters", "clusters/status")),
		roller: s.user(of("ebbtide.dev", "noderollouts", "nodemaintenances", "nodemaintenances/status"),
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, ResourceNames: c.Nodes[:1], Verbs: []string{"delete"}}),
		requester: s.user(of("lifecycle.k8s.io", "evictionrequests"), of("ebbtide.dev", "evacuations", "evacuations/status")),
	}
	// The API server reads policies from a cache of its own, and those of agents were made last.
	patience.Eventually(t, "the policies to be obeyed", func(ctx context.Context) (string, bool) {
		err := s.actors[agent].Create(ctx, s.object(foreignAgent), client.DryRunAll)
		return fmt.Sprint(err), apierrors.IsForbidden(err)
	})
	return s
}

// apply makes an object of the chart that the sandbox leaves out.
func (s *stage) apply(o *unstructured.Unstructured) {
	s.t.Helper()
	if err := s.Client.Apply(s.t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test")); err != nil {
		s.t.Fatal(err)
	}
}

// of is the right to read and write these resources.
func of(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{
		"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
	}}
}

func (s *stage) user(rules ...rbacv1.PolicyRule) client.Client {
	_, user := s.User(s.t, rules...)
	return user
}

// ownerOf has every right in a namespace, and none outside.
func (s *stage) ownerOf(namespace string) client.Client {
	name, user := s.User(s.t)
	s.Apply(s.t, namespace, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: owner}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]`, name))
	return user
}

// as is the client of a service account, with the rights that the chart gives it.
func (s *stage) as(account string, extra map[string][]string) client.Client {
	s.t.Helper()
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: account, Groups: []string{"system:serviceaccounts", "system:authenticated"}, Extra: extra}
	c, err := client.New(config, client.Options{Scheme: s.Client.Scheme()})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// object decodes a document in which names stand in capitals.
func (s *stage) object(document string) *unstructured.Unstructured {
	s.t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(s.names.Replace(document)), &content); err != nil {
		s.t.Fatalf("decode %s: %v", document, err)
	}
	return &unstructured.Unstructured{Object: content}
}
