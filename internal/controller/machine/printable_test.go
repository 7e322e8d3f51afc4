package machine

import "testing"

func TestPrintableMessageKeepsListsAndDropsControlCharacters(t *testing.T) {
	t.Parallel()
	got := printable("Pods:\n* refused:\n  * by \x1b[31ma  budget: x\n")
	if want := "Pods:\n* refused:\n  * by [31ma budget: x\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
