package command_test

import (
	"os/exec"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/internal/core/command"
)

func TestNamesThatTheAPIServerAllowsEnterACommand(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"web-0", "10.0.0.7", "deny.example.com", strings.Repeat("a.", 120) + "a", "app.kubernetes.io/Name_x", "NoExecute", "nodes.v1.example.com/status",
	} {
		if got := command.Of("kubectl get pod %s", name); got != "kubectl get pod "+name {
			t.Errorf("got %q for %q", got, name)
		}
	}
	if got := command.Of("kubectl delete pdb %s -n %s", command.Names("a", "b"), "shop"); got != "kubectl delete pdb a b -n shop" {
		t.Errorf("got %q", got)
	}
}

// Attack: text of others that is more than a name, where a name belongs.
var hostile = []string{
	"", "x'; touch owned; echo '", "$(touch owned)", "`touch owned`", "a b", "a\nb", "a\x1b[2Jb", "--all", "-o=yaml", "a;b", "a|b", "a&b", "a>b",
	"~", "*", "a\\", "a\"b", "{a,b}", "!!", "#", "é", strings.Repeat("a", 400), "a/b/c", "../../x",
}

func TestTextThatIsNoNameDoesNotEnterACommand(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		if got := command.Of("kubectl get pod %s -n %s", text, "shop"); got != "kubectl get pod NAME -n shop" {
			t.Errorf("got %q for %q", got, text)
		}
		if got := command.Names("web", text).String(); got != "web NAME" {
			t.Errorf("got %q for %q", got, text)
		}
		if got := command.Folder(text, "FOLDER").String(); got != "FOLDER" {
			t.Errorf("got folder %q for %q", got, text)
		}
	}
	if got := command.Folder("/etc/kubernetes/manifests", "FOLDER").String(); got != "/etc/kubernetes/manifests" {
		t.Errorf("got folder %q", got)
	}
}

func TestAShellReadsQuotedTextAsOneWord(t *testing.T) {
	t.Parallel()
	for _, text := range append(hostile, "app in (a,b),!c", `{"spec":{"stage":"Complete"}}`) {
		line := command.Of("printf %s %s", command.Quote("<%s>"), command.Quote(text))
		got, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
		if err != nil || string(got) != "<"+text+">" {
			t.Errorf("sh -c %q printed %q, %v", line, got, err)
		}
	}
}
