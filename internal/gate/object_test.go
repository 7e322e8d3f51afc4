package gate_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/gate"
	"ebbtide.dev/ebbtide/test/golden"
)

// reader returns an object or an error.
type reader struct {
	client.Reader
	object string
	err    error
}

func (r reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	object, ok := into.(*unstructured.Unstructured)
	if !ok || key != (client.ObjectKey{Namespace: "ops", Name: "fleet"}) || object.GetKind() != "Fleet" || object.GetAPIVersion() != "example.com/v1" {
		return errors.New("another object")
	}
	if r.err != nil {
		return r.err
	}
	return yaml.Unmarshal([]byte(r.object), &object.Object)
}

func TestFieldOfAnObjectOpensAGate(t *testing.T) {
	t.Parallel()
	const object = `{
	  "metadata": {"labels": {"example.com/state": "go"}},
	  "status": {"phase": "Ready", "count": 3, "share": 0.25, "ok": true, "none": null, "list": [1, 2], "conditions": [
	    {"type": "Healthy", "status": "False"}, {"type": "Ready", "status": "True"}, {"type": "Twice", "status": "True"}, {"type": "Twice", "status": "True"}
	  ]}
	}`
	for path, test := range map[string]struct {
		value string
		want  rollout.Verdict
	}{
		".status.phase":                       {"Ready", rollout.Yes},
		".status.count":                       {"3", rollout.Yes},
		".status.share":                       {"0.25", rollout.Yes},
		".status.ok":                          {"true", rollout.Yes},
		`.metadata.labels.example\.com/state`: {"go", rollout.Yes},
		".status.list[1]":                     {"2", rollout.Yes},
		`.status.conditions[?(@.type=="Ready")].status`: {"True", rollout.Yes},
		".status.conditions[0].status":                  {"True", rollout.No},
		".status.none":                                  {"null", rollout.No},
		".status.absent":                                {"Ready", rollout.No},
		".status.absent.below":                          {"Ready", rollout.No},
		`.status.conditions[?(@.type=="Other")].status`: {"True", rollout.No},
		`.status.conditions[?(@.type=="Twice")].status`: {"True", rollout.Unknown},
		".status.list":                                  {"[1,2]", rollout.Unknown},
		".status.list[7]":                               {"1", rollout.Unknown},
		".status.phase[0]":                              {"R", rollout.Unknown},
		"..phase":                                       {"Ready", rollout.Unknown},
		".status.phase.below":                           {"Ready", rollout.No},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			got, text := gate.AskObject(t.Context(), reader{object: object}, fleet(path, test.value))
			if got != test.want || (text != "") != (got == rollout.Unknown) {
				t.Errorf("answer is %d, want %d", got, test.want)
			}
			if text != "" {
				golden.Message(t, text)
			}
		})
	}
}

func fleet(path, value string) *v1alpha1.ObjectGate {
	return &v1alpha1.ObjectGate{APIVersion: "example.com/v1", Kind: "Fleet", Namespace: "ops", Name: "fleet", JSONPath: path, Value: value}
}

func TestObjectThatCannotBeReadIsUnknown(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "example.com", Resource: "fleets"}
	for name, err := range map[string]error{
		"no right":  apierrors.NewForbidden(resource, "fleet", errors.New("user cannot get it")),
		"no object": apierrors.NewNotFound(resource, "fleet"),
		"no CRD":    &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Fleet"}, SearchedVersions: []string{"v1"}},
		"no answer": context.DeadlineExceeded,
		"a failure": apierrors.NewInternalError(errors.New("at 12:00:01")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, text := gate.AskObject(t.Context(), reader{err: err}, fleet(".a", "b"))
			if got != rollout.Unknown || text == "" {
				t.Errorf("answer is %d", got)
			}
			if text != "" {
				golden.Message(t, text)
			}
		})
	}
}

// The API refuses gates on Secrets; so does the manager, if an old CRD does not.
func TestSecretIsNotRead(t *testing.T) {
	t.Parallel()
	secret := &v1alpha1.ObjectGate{APIVersion: "v1", Kind: "Secret", Namespace: "ops", Name: "fleet", JSONPath: ".data.token", Value: "YQ=="}
	for _, version := range []string{"v1", corev1.SchemeGroupVersion.String(), "example.com/v1"} {
		secret.APIVersion = version
		if got, text := gate.AskObject(t.Context(), reader{err: errors.New("it is read")}, secret); got != rollout.Unknown || text != "a gate cannot read Secrets." {
			t.Errorf("answer is %d: %s", got, text)
		}
	}
}
