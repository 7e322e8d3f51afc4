package golden

import (
	"os"
	"strings"
	"testing"
)

// said has tests of these names say these messages, in a folder of its own.
func said(t *testing.T, file string, messages map[string]string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("testdata/messages.txt", []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	scenarios = map[string]scenario{}
	t.Cleanup(func() { scenarios = map[string]scenario{} })
	for name, message := range messages {
		t.Run(name, func(t *testing.T) {
			Message(t, "Reason", message)
			Message(t, "Reason", message)
		})
	}
	diff, err := compareMessages(false)
	if err != nil {
		t.Fatal(err)
	}
	return diff
}

func TestMessageInOtherWordsDiffers(t *testing.T) {
	for name, message := range map[string]string{"same": "It waits.\nFor long.", "other": "It holds.\nFor long."} {
		diff := said(t, t.Name()+"/"+name+"\n  Reason: It waits.\n    For long.\n", map[string]string{name: message})
		if (diff != "") != (name == "other") {
			t.Errorf("%s message differs:\n%s", name, diff)
		}
	}
	if diff := said(t, "TestGone\n  It waits.\n", nil); !strings.Contains(diff, "It waits.") {
		t.Errorf("a message that is gone does not differ:\n%s", diff)
	}
}

func TestMessagesOfTestsThatDidNotRunAreKept(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	const file = "TestA/one\n  Reason: One.\n    Two.\nTestB\n  Three.\n"
	if err := os.WriteFile("testdata/messages.txt", []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	if diff, err := compareMessages(true); err != nil || diff != "" {
		t.Errorf("messages differ: %v\n%s", err, diff)
	}
}
