package gate

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

// AskObject returns whether an object opens a gate, by a reader without a cache. If that is unknown,
// the text says why; it is the same for the same reason.
func AskObject(ctx context.Context, reader client.Reader, gate *v1alpha1.ObjectGate) (verdict rollout.Verdict, text string) {
	if gate.Kind == "Secret" {
		return rollout.Unknown, "a gate cannot read Secrets."
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(gate.APIVersion, gate.Kind))
	if err := reader.Get(ctx, client.ObjectKey{Namespace: gate.Namespace, Name: gate.Name}, object); err != nil {
		return rollout.Unknown, unread(gate, err)
	}
	value, found, err := valueOf(object.Object, gate.JSONPath)
	switch {
	case err != nil:
		return rollout.Unknown, err.Error() + "."
	case !found || value != gate.Value:
		return rollout.No, ""
	}
	return rollout.Yes, ""
}

// unread says why an object could not be read.
func unread(gate *v1alpha1.ObjectGate, err error) string {
	name := excerpt.Line(gate.Kind+" "+gate.Name, maxText)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Sprintf("the API server does not serve kind %s of %s.", excerpt.Line(gate.Kind, maxText), excerpt.Line(gate.APIVersion, maxText))
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the manager may not get %s. Bind a role with this right to its service account.", name)
	case apierrors.IsNotFound(err):
		return name + " does not exist."
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the API server does not return %s within %s.", name, timeout)
	}
	return name + " cannot be read: " + excerpt.Line(string(apierrors.ReasonForError(err)), maxText) + "."
}

// valueOf returns the only value that a path selects, as text; false if there is none.
func valueOf(object map[string]any, path string) (value string, found bool, err error) {
	if !rollout.IsJSONPath(path) {
		return "", false, errors.New("its jsonPath is invalid")
	}
	parsed := jsonpath.New("gate").AllowMissingKeys(true)
	if err := parsed.Parse("{" + path + "}"); err != nil {
		return "", false, errors.New("its jsonPath is invalid")
	}
	results, err := parsed.FindResults(object)
	switch {
	case err != nil:
		return "", false, errors.New("its jsonPath does not fit the object")
	case len(results) != 1 || len(results[0]) == 0:
		return "", false, nil
	case len(results[0]) > 1 || !results[0][0].CanInterface():
		return "", false, errors.New("its jsonPath selects more than one value")
	}
	return textOf(results[0][0].Interface())
}

// textOf returns a value of JSON as text.
func textOf(value any) (text string, found bool, err error) {
	switch typed := value.(type) {
	case nil:
		return "", false, nil
	case string:
		return typed, true, nil
	case bool, int64:
		return fmt.Sprint(typed), true, nil
	case float64:
		return strconv.FormatFloat(typed, 'f', -1, 64), true, nil
	}
	return "", false, errors.New("its jsonPath selects a list or an object")
}
