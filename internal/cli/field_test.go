package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/internal/core/lint"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/test/golden"
)

// Scripts read -o json. A field that is gone, or has another name or type, breaks them: a new
// one is accepted with -update, any other change is a mistake.
func TestFieldsForScripts(t *testing.T) {
	t.Parallel()
	var fields []string
	for verb, model := range map[string]any{"lint": lint.Report{}, "plan": preflight.Forecast{}, "status": view.StatusList{}, "status NAME": view.Status{}, "rollout list": rolloutList{}, "rollout plan": view.RolloutPlan{}, "rollout status": view.RolloutStatus{}} {
		fields = append(fields, fieldsOf(verb+": ", reflect.TypeOf(model))...)
	}
	slices.Sort(fields)
	golden.Equal(t, "fields.txt", strings.Join(slices.Compact(fields), "\n")+"\n")
}

// fieldsOf are the paths of the JSON of a type, with the kinds of their values.
func fieldsOf(path string, of reflect.Type) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		if of.Kind() == reflect.Slice {
			path += "[]"
		}
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1" && of.Name() != "TypeMeta" {
		return []string{path + " " + of.Kind().String()}
	}
	var all []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" && field.Anonymous:
			all = append(all, fieldsOf(path, field.Type)...)
		case name != "" && name != "-":
			all = append(all, fieldsOf(path+"."+name, field.Type)...)
		}
	}
	return all
}
