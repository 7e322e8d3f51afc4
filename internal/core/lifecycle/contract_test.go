package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

type fields = map[string]any

func external(spec, status fields) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: fields{
		"kind": "DockerMachine", "metadata": fields{"name": "worker-1", "uid": "infra-uid"}, "spec": spec, "status": status,
	}}
}

func TestInfrastructureContract(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec, status fields
		want         lifecycle.External
	}{
		"empty":                        {},
		"provisioned":                  {fields{"providerID": "a"}, fields{"initialization": fields{"provisioned": true}}, lifecycle.External{Ready: true, ProviderID: "a"}},
		"not provisioned yet":          {nil, fields{"initialization": fields{"provisioned": false}}, lifecycle.External{}},
		"not initialized yet":          {fields{"providerID": "a"}, fields{"initialization": fields{}}, lifecycle.External{ProviderID: "a"}},
		"older contract, ready":        {fields{"providerID": "a"}, fields{"ready": true}, lifecycle.External{Ready: true, ProviderID: "a"}},
		"older contract, not ready":    {nil, fields{"ready": false}, lifecycle.External{}},
		"both, the newer counts":       {nil, fields{"ready": true, "initialization": fields{"provisioned": false}}, lifecycle.External{}},
		"older contract, failure":      {nil, fields{"failureReason": "CreateError", "failureMessage": "no quota"}, lifecycle.External{Failure: "CreateError: no quota"}},
		"older contract, reason only":  {nil, fields{"failureReason": "CreateError"}, lifecycle.External{Failure: "CreateError"}},
		"older contract, message only": {nil, fields{"failureMessage": "no quota"}, lifecycle.External{Failure: "no quota"}},
		"ready is a string":            {nil, fields{"ready": "true"}, lifecycle.External{Fault: "it does not follow Cluster API's contract: .status.ready accessor error: true is of the type string, expected bool"}},
		"providerID is a number":       {fields{"providerID": int64(3)}, nil, lifecycle.External{Fault: "it does not follow Cluster API's contract: .spec.providerID accessor error: 3 is of the type int64, expected string"}},
		"providerID is too long": {fields{"providerID": strings.Repeat("a", 513)}, nil, lifecycle.External{
			Fault: "it does not follow Cluster API's contract: spec.providerID has 513 characters, more than 512",
		}},
		"initialization is a list":          {nil, fields{"initialization": []any{}, "ready": true}, lifecycle.External{Ready: true}},
		"the data secret of something else": {nil, fields{"dataSecretName": "a"}, lifecycle.External{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lifecycle.ReadInfrastructure(external(c.spec, c.status), &v1alpha1.Machine{})
			c.want.Kind, c.want.Name, c.want.UID = "DockerMachine", "worker-1", "infra-uid"
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBootstrapContract(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status fields
		want   lifecycle.External
	}{
		"empty":                       {},
		"created":                     {fields{"dataSecretName": "a", "initialization": fields{"dataSecretCreated": true}}, lifecycle.External{Ready: true, DataSecretName: "a"}},
		"not created yet":             {fields{"dataSecretName": "a", "initialization": fields{"dataSecretCreated": false}}, lifecycle.External{DataSecretName: "a"}},
		"created, but no name":        {fields{"initialization": fields{"dataSecretCreated": true}}, lifecycle.External{Ready: true}},
		"older contract, ready":       {fields{"ready": true, "dataSecretName": "a"}, lifecycle.External{Ready: true, DataSecretName: "a"}},
		"older contract, not ready":   {fields{"ready": false, "dataSecretName": "a"}, lifecycle.External{DataSecretName: "a"}},
		"nothing but the name":        {fields{"dataSecretName": "a"}, lifecycle.External{Ready: true, DataSecretName: "a"}},
		"older contract, failure":     {fields{"failureMessage": "no token"}, lifecycle.External{Failure: "no token"}},
		"dataSecretName is a boolean": {fields{"dataSecretName": true}, lifecycle.External{Fault: "it does not follow Cluster API's contract: .status.dataSecretName accessor error: true is of the type bool, expected string"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lifecycle.ReadBootstrap(external(nil, c.status), &v1alpha1.Machine{})
			c.want.Kind, c.want.Name, c.want.UID = "DockerMachine", "worker-1", "infra-uid"
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{UID: machineUID}}
	for name, c := range map[string]struct {
		owner *metav1.OwnerReference
		owned bool
	}{
		"nobody":                     {nil, false},
		"the Machine":                {&metav1.OwnerReference{Kind: "Machine", UID: machineUID, Controller: new(true)}, true},
		"one of its name before it":  {&metav1.OwnerReference{Kind: "Machine", UID: "older", Controller: new(true)}, false},
		"the Machine, not in charge": {&metav1.OwnerReference{Kind: "Machine", UID: machineUID}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := external(nil, nil)
			object.SetDeletionTimestamp(at(0))
			if c.owner != nil {
				object.SetOwnerReferences([]metav1.OwnerReference{*c.owner})
			}
			got := lifecycle.ReadControlPlane(object, machine)
			if got.Owned != c.owned || (got.Controller != nil) != (c.owner != nil && c.owner.Controller != nil) || !got.Deleting {
				t.Errorf("read %+v, want owned %v and deleting", got, c.owned)
			}
		})
	}
}
