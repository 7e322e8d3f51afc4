package validate_test

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// expectWarnings counts warnings; testdata/messages.txt has their words.
func expectWarnings(t *testing.T, want int, got []string) {
	t.Helper()
	for _, w := range got {
		golden.Message(t, w)
	}
	if len(got) != want {
		t.Errorf("%d warnings, want %d: %q", len(got), want, got)
	}
}

// expectRefusal asks for a refusal or for none.
func expectRefusal(t *testing.T, want bool, got string) {
	t.Helper()
	if want {
		golden.Message(t, got)
	}
	if (got != "") != want {
		t.Errorf("refusal %q, want one: %v", got, want)
	}
}

// expect compares the fields that are refused, each with how.
func expect(t *testing.T, want []string, refused field.ErrorList) {
	t.Helper()
	var got []string
	for _, fault := range refused {
		golden.Message(t, fault.Error())
		got = append(got, fmt.Sprintf("%s: %s", fault.Field, fault.Type))
	}
	difference.None(t, "refused", want, got)
}
