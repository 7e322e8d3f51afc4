package cluster

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Brief describes what a wait saw in a few lines: of an object its conditions, its status and
// what Ebbtide has written on it, of other values what is printed of them.
func Brief(seen any) string {
	switch seen := seen.(type) {
	case nil:
		return "nothing"
	case error:
		return seen.Error()
	case string:
		return seen
	case client.Object:
		return briefObject(seen)
	}
	list := reflect.ValueOf(seen)
	if list.Kind() != reflect.Slice {
		return fmt.Sprintf("%+v", seen)
	}
	if list.Len() == 0 {
		return "none"
	}
	lines := make([]string, list.Len())
	for i := range lines {
		item := list.Index(i)
		if object, ok := pointer(item).(client.Object); ok {
			lines[i] = strings.ReplaceAll(briefObject(object), "\n", "; ")
			continue
		}
		lines[i] = fmt.Sprintf("%+v", item.Interface())
	}
	return strings.Join(lines, "\n")
}

// pointer returns a pointer to an item of a list of structs, or the item.
func pointer(item reflect.Value) any {
	if item.Kind() == reflect.Struct && item.CanAddr() {
		return item.Addr().Interface()
	}
	return item.Interface()
}

func briefObject(object client.Object) string {
	if reflect.ValueOf(object).IsNil() {
		return "nothing"
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err.Error()
	}
	lines := []string{heading(object)}
	conditions, _, _ := unstructured.NestedSlice(content, "status", "conditions")
	for _, one := range conditions {
		if c, ok := one.(map[string]any); ok {
			lines = append(lines, cut(fmt.Sprintf("%v=%v (%v): %v", c["type"], c["status"], c["reason"], c["message"])))
		}
	}
	unstructured.RemoveNestedField(content, "status", "conditions")
	if status, _, _ := unstructured.NestedMap(content, "status"); len(status) > 0 {
		text, _ := json.Marshal(status)
		lines = append(lines, cut("status: "+string(text)))
	}
	return strings.Join(lines, "\n")
}

// heading names an object and says what holds it.
func heading(object client.Object) string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", object), "*")
	parts := []string{kind[strings.LastIndex(kind, ".")+1:] + " " + object.GetName()}
	if at := object.GetDeletionTimestamp(); at != nil {
		parts = append(parts, fmt.Sprintf("deleted at %s", at.Format("15:04:05")))
	}
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		parts = append(parts, fmt.Sprintf("finalizers %v", finalizers))
	}
	var ours []string
	for key, value := range object.GetAnnotations() {
		if strings.Contains(key, "ebbtide.dev/") {
			ours = append(ours, key+"="+value)
		}
	}
	slices.Sort(ours)
	return cut(strings.Join(append(parts, ours...), ", "))
}

// widest is how many characters of a line a failure shows.
const widest = 300

func cut(line string) string {
	if runes := []rune(line); len(runes) > widest {
		return string(runes[:widest]) + "…"
	}
	return line
}
